"""What is kept out at the start stays out, what needs it gets it, and curves are drawn all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from yolomon.lean import absent, stand_ins

ROOT = Path(__file__).resolve().parents[1]


def modules_after(statements: str) -> set[str]:
    code = f"{statements}\nimport json, sys\nprint(json.dumps([n for n, m in sys.modules.items() if m]))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


def test_an_absent_module_cannot_be_imported_inside_and_can_afterwards() -> None:
    sys.modules.pop("wave", None)
    with absent("wave"), pytest.raises(ImportError):
        import_module("wave")
    assert import_module("wave").__name__ == "wave"


def test_a_module_that_is_there_already_stays() -> None:
    with absent("json"):
        assert import_module("json") is json


def test_a_stand_in_is_forgotten_and_never_hides_what_is_loaded() -> None:
    with stand_ins({"yolomon_made_up": {"answer": 42}, "json": {"loads": None}}):
        assert import_module("yolomon_made_up").answer == 42
        assert import_module("json") is json
    assert "yolomon_made_up" not in sys.modules


def test_the_screen_starts_without_ssl_and_curves_without_pillow() -> None:
    loaded = modules_after(
        "from yolomon.lean import begin_screen, import_plotext\n"
        "begin_screen()\n"
        "import textual.app\n"
        "import_plotext()\n"
    )
    assert {"textual.app", "asyncio", "plotext"} <= loaded
    assert not loaded & {"ssl", "PIL", "unittest", "plotext._doc.doc"}


def test_curves_are_drawn_by_the_lean_plotext() -> None:
    lines = subprocess.run(
        [
            sys.executable,
            "-c",
            "from yolomon.lean import import_plotext\n"
            "p = import_plotext()\n"
            "p.terminal.limit(False, False)\n"
            "f = p.figure; f.clear(); f.plot_size(40, 8)\n"
            "f.draw(f.signal([1, 2, 3], [1, 4, 2], marker='braille').lines())\n"
            "print(f.build().string(colorless=True))",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        env={"PYTHONIOENCODING": "utf-8", "PATH": ""},
    ).stdout.splitlines()
    assert len([line for line in lines if line]) == 8
    assert any("\u2801" <= sign <= "\u28ff" for line in lines for sign in line)


def test_a_plotext_that_needs_its_manual_is_loaded_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "plotext"
    (package / "_doc").mkdir(parents=True)
    (package / "__init__.py").write_text("from plotext._doc.doc import needed\n")
    (package / "_doc" / "__init__.py").write_text("")
    (package / "_doc" / "doc.py").write_text("needed = 'whole'\n")
    kept: dict[str, ModuleType] = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "plotext"}
    for name in kept:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    from yolomon.lean import import_plotext

    try:
        assert import_plotext().needed == "whole"
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == "plotext"]:
            del sys.modules[name]
