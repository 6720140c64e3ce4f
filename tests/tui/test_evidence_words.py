"""Every number that a rule gives as evidence has a name and a unit for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolomon.diagnosis import rules
from yolomon.diagnosis.catalog import CATALOG, explain, thresholds_of
from yolomon.messages import Message, english, translator
from yolomon.tui.evidence_words import EVIDENCE, STATES, evidence_words
from yolomon.tui.words import duration

RULES = sorted(Path(rules.__file__).parent.glob("*.py"))


def _parameters(tree: ast.Module) -> dict[str, int]:
    """Function or class of the module -> the place of its argument `evidence`."""
    places: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args]
        elif isinstance(node, ast.ClassDef):
            names = [
                a.target.id
                for a in node.body
                if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name)
            ]
        else:
            continue
        if "evidence" in names:
            places[node.name] = names.index("evidence") - ("self" in names)
    return places


def _evidence(tree: ast.Module) -> Iterator[ast.expr]:
    """What is given as evidence: by keyword, by place, or put into a variable of that name."""
    places = _parameters(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "evidence")
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in places and len(node.args) > places[name]:
                yield node.args[places[name]]
        elif isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "evidence":
            yield node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(ast.unparse(target) == "evidence" for target in targets):
                yield node.value
            yield from (
                t.slice
                for t in targets
                if isinstance(t, ast.Subscript) and ast.unparse(t.value) == "evidence"
            )


def emitted() -> dict[str, str]:
    """Name of a piece of evidence -> the rule that gives it."""
    found: dict[str, str] = {}
    for path in RULES:
        for given in _evidence(ast.parse(path.read_text("utf-8"))):
            keys = (
                given.keys
                if isinstance(given, ast.Dict)
                else [given]
                if isinstance(given, ast.Constant)
                else []
            )
            for key in keys:
                if key is not None:  # None: another dict is put in, which is evidence of its own
                    assert isinstance(key, ast.Constant), f"{path.name}: {ast.unparse(key)} is no literal"
                    found[str(key.value)] = path.name
    return found


def test_every_name_that_a_rule_gives_has_a_label() -> None:
    names = emitted()
    assert len(names) > 120
    missing = {name: rule for name, rule in names.items() if name not in EVIDENCE}
    assert not missing


def test_no_label_is_left_over() -> None:
    assert set(EVIDENCE) <= set(emitted())
    assert {name for name, _ in STATES} <= set(EVIDENCE)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_no_label_is_code(language: str) -> None:
    tr = translator(language)
    labels = [tr(label) for label, _ in EVIDENCE.values()]
    assert not [label for label in labels if "_" in label or not label.strip()]
    if language == "zh_CN":
        same = {tr(label) for label, _ in EVIDENCE.values() if tr(label) == str(label)}
        assert same <= {"rank", "epoch", "loss", "Xid", "mAP50-95"}


@pytest.mark.parametrize(
    ("name", "value", "label", "shown"),
    [
        ("peers_waiting_percent_of_time", 71.2, "time that the others wait for it", "71 %"),
        ("window_seconds", 8.0, "time looked at", "8 s"),
        ("step_seconds_before", 0.1546, "step time before", "0.155 s"),
        ("seconds_to_full", 5400.0, "full in", "1 h 30 min"),
        ("bytes_per_minute", 3 * 2**20, "growth", "3.0 MB a minute"),
        ("bytes_per_step", 100, "growth", "100 B a step"),
        ("mann_kendall_z", 4.23, "how sure it grows (Mann-Kendall)", "4.2 σ"),
        ("largest_ratio", 8.61, "greatest spike, of the usual loss", "8.61 times"),
        ("width_lanes", 8.0, "PCIe lanes", "x8"),
        ("other_pid", 4711.0, "the other process (PID)", "4711"),
        ("available_share_percent", 2.4, "available, of all", "2.4 %"),
        ("bottleneck", "main-process", "what holds the input up", "the trainer's main process"),
        ("process_cpu_percent", None, "its CPU (of one core)", "–"),
        ("loss", float("nan"), "loss", "NaN"),
        ("last_words", "RuntimeError:\x1b[31m boom", "the log's last words", "RuntimeError: [31m boom"),
        ("of_another_version_percent", 3.0, "of another version percent", "3 %"),
    ],
)
def test_names_and_units(name: str, value: float | str | None, label: str, shown: str) -> None:
    assert evidence_words(english, name, value) == (label, shown)


def test_in_chinese() -> None:
    tr = translator("zh_CN")
    assert evidence_words(tr, "window_seconds", 95.0) == ("统计时长", duration(tr, 95.0))
    assert evidence_words(tr, "limit_of", "container") == ("谁的上限", "容器")


def test_the_units_of_thresholds_have_their_chinese() -> None:
    tr = translator("zh_CN")
    units = {threshold.unit for code in CATALOG for threshold in thresholds_of(code)} - {""}
    same = {unit for unit in units if tr(Message(unit)) == unit}
    assert same <= {"%", "mAP50"}
    told = explain("load-imbalance", tr)
    assert "20 个百分点" in told and " share" not in told
