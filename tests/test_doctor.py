"""`yolomon doctor`: what it finds on machines in many states."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_nvml.build import CompilerMissingError, build
from tests.sources.conftest import FakeMachine
from tests.sources.conftest import machine as machine
from yolomon.doctor import Check, worst
from yolomon.doctor.devices import device_checks
from yolomon.doctor.log import log_check
from yolomon.doctor.machine import machine_checks
from yolomon.doctor.terminal import TerminalFacts, terminal_checks
from yolomon.messages import msg

REPOSITORY = Path(__file__).resolve().parents[1]
GOOD = {"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build(tmp_path_factory.mktemp("fake")).parent
    except CompilerMissingError as error:
        pytest.skip(str(error))


def doctor(library: Path | None, scenario: Path, *lines: str) -> dict[str, tuple[str, str]]:
    """All checks in a process of its own, on the fake NVML: name -> status, text."""
    scenario.write_text("\n".join(lines) + "\n")
    script = (
        "from yolomon.doctor import run_checks\n"
        "for check in run_checks(nvml_timeout_seconds=2.0):\n"
        "    print(check.name, check.status, check.detail, sep='|')\n"
    )
    environment = {**os.environ, **GOOD, "FAKE_NVML_SCENARIO": str(scenario)}
    if library is not None:
        environment["LD_LIBRARY_PATH"] = str(library)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    rows = [line.split("|", 2) for line in done.stdout.splitlines()]
    return {name: (status, text) for name, status, text in rows}


def test_eight_gpus(library: Path, tmp_path: Path) -> None:
    checks = doctor(library, tmp_path / "s", "system gpus 8", "gpu 7 name Odd\\e[31m")
    assert checks["nvml"][0] == "PASS"
    status, text = checks["gpus"]
    assert status == "PASS"
    assert "8 GPUs" in text and "7x NVIDIA H200" in text
    assert "\x1b" not in text


def test_a_lost_gpu_is_named(library: Path, tmp_path: Path) -> None:
    checks = doctor(library, tmp_path / "s", "system gpus 4", "gpu 2 fail nvmlDeviceGetName gpu-is-lost")
    assert checks["gpus"][0] == "FAIL"
    assert "2: GPU is lost" in checks["gpus"][1]


def test_version_mismatch(library: Path, tmp_path: Path) -> None:
    checks = doctor(library, tmp_path / "s", "system fail nvmlInitWithFlags version-mismatch")
    assert checks["nvml"][0] == "FAIL"
    assert "updated while in use" in checks["nvml"][1]
    assert "shm" in checks  # the other checks go on


def test_a_gpu_that_hangs_is_named_and_the_others_are_well(library: Path, tmp_path: Path) -> None:
    checks = doctor(library, tmp_path / "s", "system gpus 3", "gpu 1 hang * 30")
    assert checks["nvml"][0] == "PASS"
    status, text = checks["gpus"]
    assert status == "FAIL"
    assert "1: " in text and "0: " not in text and "2: " not in text


def test_nvml_that_hangs_does_not_hang_the_doctor(library: Path, tmp_path: Path) -> None:
    checks = doctor(library, tmp_path / "s", "system hang nvmlInitWithFlags 30")
    assert checks["nvml"] == ("FAIL", "NVML gave no answer for 2 s")
    assert "locale" in checks


def test_a_machine_without_a_driver_is_no_fault(tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has a driver")
    checks = doctor(None, tmp_path / "s")
    assert checks["driver"][0] == "WARN"
    assert checks["nvml"][0] == "WARN"
    assert checks["nvml-module"][0] == "PASS"


def test_driver_and_device_files(machine: FakeMachine) -> None:
    machine.write(
        "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  x\n"
    )
    machine.write("top/dev/nvidia0", "")
    machine.write("top/dev/nvidiactl", "")
    checks = by_name(device_checks(machine.roots, 5.0))
    assert checks["driver"].status == "PASS"
    assert "570.86.10" in str(checks["driver"].detail)
    assert checks["device-files"].status == "PASS"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_device_files_that_may_not_be_opened(machine: FakeMachine) -> None:
    machine.write("top/dev/nvidia0", "").chmod(0)
    check = by_name(device_checks(machine.roots, 5.0))["device-files"]
    assert check.status == "FAIL"
    assert check.remedy is not None


def test_container_with_its_own_pids_and_a_limit(machine: FakeMachine) -> None:
    machine.write("top/.dockerenv", "")
    machine.write("proc/meminfo", "MemTotal: 1 kB\n")
    machine.write("proc/self/cgroup", "0::/\n")
    machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    machine.write("sys/fs/cgroup/memory.max", str(8 << 30))
    machine.write("sys/fs/cgroup/memory.current", str(1 << 30))
    namespace = machine.folder / "proc/self/ns/pid"
    namespace.parent.mkdir()
    namespace.symlink_to("pid:[4026532999]")
    checks = by_name(machine_checks(machine.roots, {}))
    assert checks["proc"].status == "PASS"
    assert "docker" in str(checks["container"].detail)
    assert checks["pid-namespace"].status == "WARN"
    assert "--pid=host" in str(checks["pid-namespace"].remedy)
    assert checks["limits"].status == "PASS" and "8.0 GiB" in str(checks["limits"].detail)
    assert checks["shm"].status == "WARN"  # there is none
    machine.write("sys/fs/cgroup/memory.current", str(7900 << 20))
    assert by_name(machine_checks(machine.roots, {}))["limits"].status == "WARN"


def test_a_hidden_proc_is_told(machine: FakeMachine) -> None:
    assert by_name(machine_checks(machine.roots, {}))["proc"].status == "FAIL"


@pytest.mark.parametrize(
    ("environment", "name", "status"),
    [
        (GOOD, "term", "PASS"),
        ({**GOOD, "TERM": "dumb"}, "term", "FAIL"),
        ({"LANG": "C.UTF-8"}, "term", "FAIL"),
        ({**GOOD, "LANG": "C"}, "locale", "WARN"),
        ({**GOOD, "LC_ALL": "POSIX"}, "locale", "WARN"),
        ({**GOOD, "NO_COLOR": "1"}, "colors", "PASS"),
        ({**GOOD, "TMUX": "/tmp/tmux-0/default,1,0"}, "multiplexer", "WARN"),
        ({**GOOD, "TMUX": "x", "TERM": "screen"}, "multiplexer", "WARN"),
        ({**GOOD, "TMUX": "x", "TERM": "tmux-256color"}, "multiplexer", "PASS"),
        ({**GOOD, "STY": "1.x", "TERM": "screen"}, "multiplexer", "WARN"),
    ],
)
def test_terminals(environment: dict[str, str], name: str, status: str) -> None:
    check = by_name(terminal_checks(environment, TerminalFacts(True, 120, 40)))[name]
    assert check.status == status
    assert (check.remedy is not None) == (status != "PASS")


@pytest.mark.parametrize(
    ("facts", "name", "status"),
    [
        (TerminalFacts(False), "tty", "WARN"),
        (TerminalFacts(True, 120, 40), "tty", "PASS"),
        (TerminalFacts(True), "size", "WARN"),
        (TerminalFacts(True, 30, 8), "size", "WARN"),
        (TerminalFacts(True, 60, 15), "size", "PASS"),
    ],
)
def test_sizes(facts: TerminalFacts, name: str, status: str) -> None:
    assert by_name(terminal_checks(GOOD, facts))[name].status == status


def test_a_log_that_can_be_followed(tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    log.write_text('{"epoch": 1, "loss": 0.5}\n' * 5)
    check = log_check(str(log))
    assert check.status == "PASS"
    assert "JSON" in str(check.detail)


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (lambda path: None, "FAIL", "does not exist"),
        (lambda path: path.mkdir(), "FAIL", "holds no log"),
        (lambda path: path.touch(), "WARN", "is empty"),
        (lambda path: path.write_bytes(bytes(range(256)) * 9), "FAIL", "no format"),
        (os.mkfifo, "WARN", "no regular file"),
    ],
)
def test_logs_that_cannot(tmp_path: Path, make: object, status: str, words: str) -> None:
    assert callable(make)
    path = tmp_path / "log"
    make(path)
    check = log_check(str(path))
    assert (check.status, words in str(check.detail)) == (status, True), check


def test_the_worst_counts() -> None:
    checks = [Check("a", "WARN", msg("x")), Check("b", "PASS", msg("x"))]
    assert worst(checks) == "WARN"
    assert worst([]) == "PASS"
    assert worst([*checks, Check("c", "FAIL", msg("x"))]) == "FAIL"
