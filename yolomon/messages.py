"""Text for users: English templates in the code, other languages as catalogs beside it.

A message is a template with named fields; what fills the fields is data and is never translated.
Catalogs are `locales/<language>/<part>.json`: {"English template": "translated template"}.
A test reads every literal given to `msg(...)` and `tr(...)` and fails when a catalog lacks it.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Protocol

import msgspec

LANGUAGES = ("en", "zh_CN")


class Message(msgspec.Struct, frozen=True, gc=False):
    """A sentence for the user that is put into words late, in the reader's language."""

    template: str
    values: dict[str, Any] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        """The English sentence."""
        return self.template.format(**self.values) if self.values else self.template


def msg(template: str, **values: object) -> Message:
    """A message to be translated when it is shown. `template` must be a literal (a test collects them)."""
    return Message(template, values)


class UserError(Exception):
    """Something that the user named or set and that cannot be used. `message` says why, in one line."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class Translate(Protocol):
    """Turns a literal template, or a ready `Message`, into the reader's language."""

    def __call__(self, template: str | Message, /, **values: object) -> str:
        """The sentence with its fields filled in."""
        ...


class Translator:
    """Translate by catalog; a template that the catalog lacks stays English."""

    def __init__(self, language: str, catalog: dict[str, str]) -> None:
        self.language = language
        self._catalog = catalog

    def __call__(self, template: str | Message, /, **values: object) -> str:
        """The sentence in this language. A `Message` among the values is translated too."""
        if isinstance(template, Message):
            values = {**template.values, **values}
            template = template.template
        text = self._catalog.get(template, template)
        if not values:
            return text
        words = {k: self(v) if isinstance(v, Message) else v for k, v in values.items()}
        return text.format(**words)


def english(template: str | Message, /, **values: object) -> str:
    """The `Translate` that leaves English as it is."""
    return _ENGLISH(template, **values)


_ENGLISH = Translator("en", {})


def one_line(text: str) -> str:
    """Text for one line of a terminal: whatever could move the cursor, colour or break the line becomes "?".

    A path, an option or a line of a log may hold escape sequences, line ends, direction marks and halves of
    characters (bytes of a file's name that are no UTF-8).
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or unicodedata.category(sign) == "Zs" else "?" for sign in text)


def translator(language: str) -> Translator:
    """The translator for `language` ("en", "zh_CN", also "zh", "zh-CN", "zh_CN.UTF-8").

    An unknown language gives English.
    """
    code = normalize_language(language)
    catalog: dict[str, str] = {}
    if code != "en":
        from importlib import resources  # 12 ms that English need not wait for

        folder = resources.files("yolomon") / "locales" / code
        for part in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if part.name.endswith(".json"):
                catalog.update(msgspec.json.decode(part.read_bytes(), type=dict[str, str]))
    return Translator(code, catalog)


def normalize_language(language: str) -> str:
    """One of `LANGUAGES` for a locale name such as "zh_CN.UTF-8", "zh-Hans" or "C"."""
    name = language.split(".")[0].replace("-", "_").lower()
    return "zh_CN" if name == "zh" or name.startswith(("zh_cn", "zh_hans", "zh_sg")) else "en"
