"""Every message for users has its Chinese: a missing one fails here, a stale one too."""

from __future__ import annotations

import ast
import json
import string
from pathlib import Path

import pytest

from yolomon.messages import english, msg, normalize_language, translator

PACKAGE = Path(__file__).resolve().parents[1] / "yolomon"
CATALOGS = sorted((PACKAGE / "locales" / "zh_CN").glob("*.json"))
MARKERS = {"msg", "tr"}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _messages() -> dict[str, str]:
    """Literal template -> where it is used."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _called(node) in MARKERS and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found[first.value] = f"{path.relative_to(PACKAGE.parent)}:{node.lineno}"
    return found


def _fields(template: str) -> set[str]:
    return {name.split(".")[0].split("[")[0] for _, name, _, _ in string.Formatter().parse(template) if name}


MESSAGES = _messages()
CHINESE: dict[str, str] = {}
for _catalog in CATALOGS:
    CHINESE.update(json.loads(_catalog.read_text("utf-8")))


def test_every_message_has_its_chinese() -> None:
    missing = {text: place for text, place in MESSAGES.items() if text.strip() and text not in CHINESE}
    assert not missing, "\n".join(f"{place}: {text!r}" for text, place in missing.items())


def test_a_translation_keeps_the_fields() -> None:
    wrong = [text for text, chinese in CHINESE.items() if _fields(text) != _fields(chinese)]
    assert not wrong


def test_no_catalog_contradicts_another() -> None:
    seen: dict[str, tuple[str, str]] = {}
    for catalog in CATALOGS:
        for text, chinese in json.loads(catalog.read_text("utf-8")).items():
            assert seen.get(text, (chinese, ""))[0] == chinese, (text, catalog.name, seen[text][1])
            seen[text] = (chinese, catalog.name)


def test_messages_are_put_into_words_late() -> None:
    inner = msg("{count} steps", count=3)
    assert english("after {what}", what=inner) == "after 3 steps"
    assert english(inner, count=4) == "4 steps"


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("zh_CN.UTF-8", "zh_CN"),
        ("zh-Hans", "zh_CN"),
        ("zh", "zh_CN"),
        ("de_DE.UTF-8", "en"),
        ("C", "en"),
        ("", "en"),
    ],
)
def test_languages_by_locale_name(name: str, language: str) -> None:
    assert normalize_language(name) == language
    assert translator(name).language == language
