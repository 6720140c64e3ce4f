"""The module `pynvml` and NVML's library: found, shadowed, old; and the fake for other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_nvml.build import build
from yolomon.sources.nvml_library import binding_report, gpus_of_kernel, kernel_module_version, plain

ROOT = Path(__file__).parents[3]
REPORT = """
from yolomon.sources.nvml_library import binding_report
report = binding_report()
print(report.failure.reason, report.failure.cause, report.path, sep="|")
"""


def run(code: str, *path: Path, **environment: str) -> str:
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT])), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_right_module() -> None:
    report = binding_report()
    assert report.failure is None
    assert report.path is not None and report.path.endswith("pynvml.py")
    assert report.installed["nvidia-ml-py"]


def test_an_old_package_that_shadows_the_module_is_named_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml/__init__.py").write_text("def nvmlInit(): raise OSError\n")
    reason, cause, path = run(REPORT, tmp_path).split("|")
    assert reason == "wrong-binding"
    assert str(tmp_path) in cause and str(tmp_path) in path


def test_no_module_at_all(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('gone')\n")
    assert run(REPORT, tmp_path).startswith("no-binding|")


def test_the_module_is_not_imported_before_it_is_needed() -> None:
    assert run("import sys, yolomon.sources.nvml; print('pynvml' in sys.modules)") == "False"


def test_a_library_without_memory_v2(tmp_path: Path) -> None:
    build(
        tmp_path,
        without=["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperatureV", "nvmlGpmQueryDeviceSupport"],
    )
    code = """
import pynvml
from yolomon.sources.nvml_gpu import GpuReader
pynvml.nvmlInit()
reader = GpuReader(pynvml, pynvml.nvmlDeviceGetHandleByIndex(0), 0)
sample = reader.read(slow=True)
print(reader.info.memory_api, sample.memory_used_bytes > 0, sample.temperature_celsius > 0, sample.gpm)
print(sample.error)
"""
    assert run(code, LD_LIBRARY_PATH=str(tmp_path)) == "v1 True True None\nNone"


def test_other_programs_run_on_the_fake(fake_library: Path, tmp_path: Path) -> None:
    pytest.importorskip("nvitop")
    scenario = tmp_path / "scenario"
    scenario.write_text("system gpus 2\nsystem driver 571.0.1\ngpu * util 37\ngpu 1 process 99 2G\n")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(fake_library.parent),
        "FAKE_NVML_SCENARIO": str(scenario),
    }
    done = subprocess.run(
        [sys.executable, "-m", "nvitop", "-1"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "571.0.1" in done.stdout
        and "H200" in done.stdout
        and "37%" in done.stdout
        and "2048MiB" in done.stdout
    )
    assert "error" not in done.stderr.lower()


def test_a_scenario_line_that_is_not_understood_is_said(fake_library: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario"
    scenario.write_text("system gpus 1\ngpu 0 utilisation 5\n")
    code = "import sys, pynvml; pynvml.nvmlInit()"
    given = {**os.environ, "LD_LIBRARY_PATH": str(fake_library.parent), "FAKE_NVML_SCENARIO": str(scenario)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=30, check=True
    )
    assert "line 2 is not understood: gpu 0 utilisation 5" in done.stderr


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"NVIDIA H200", "NVIDIA H200"),
        (b"a\xffb", "a�b"),
        ("\x1b]0;x\x07\u202egpu\n", "]0;xgpu"),
        (b"\xe6\x98\xbe\xe5\x8d\xa1", "显卡"),
    ],
)
def test_plain_text(raw: bytes | str, text: str) -> None:
    assert plain(raw) == text


def test_the_open_kernel_module_tells_its_version_too(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (u@h)  Mon\n"
    )
    assert kernel_module_version(tmp_path) == "570.124.06"
    assert kernel_module_version(tmp_path / "none") is None
    assert gpus_of_kernel(tmp_path) == []
