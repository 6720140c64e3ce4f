"""The arrows of the design: data flows one way, the trainer's side stands alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_import_contracts_hold() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import yolomon", {"textual", "msgspec", "psutil", "pynvml", "torch", "click"}),
        (
            "from yolomon import attach, JsonlLogger, FeatureMonitor",
            {"textual", "msgspec", "psutil", "click"},
        ),
        ("import yolomon.cli", {"textual", "plotext", "psutil", "pynvml"}),
        ("import yolomon.monitor", {"textual", "plotext", "rich"}),
    ],
)
def test_what_an_import_brings_along(statement: str, unwanted: set[str]) -> None:
    code = (
        f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    assert not unwanted & set(json.loads(result.stdout))


def test_no_module_is_a_drawer_for_everything() -> None:
    vague = {"utils", "util", "helpers", "manager", "common", "misc"}
    assert not [p for p in (ROOT / "yolomon").rglob("*.py") if p.stem in vague]
