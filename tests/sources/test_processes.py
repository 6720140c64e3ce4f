"""A training job's processes, read from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.sources.conftest import FakeMachine
from yolomon.sources.identity import environment_of
from yolomon.sources.processes import (
    PAGE_BYTES,
    ProcessTree,
    cwd,
    open_files,
    parse_stat,
    proportional_set_bytes,
)
from yolomon.sources.trainers import TrainerSearch, holds_cuda, may_train, trains_here


def test_stat_line_with_an_odd_name() -> None:
    line = b"7 (a) b (c) D 3 0 0 0 -1 0 0 0 0 0 11 22 0 0 20 0 5 0 777 99 42 0\n"
    stat = parse_stat(line)
    assert (stat.name, stat.state, stat.parent_pid) == ("a) b (c", "D", 3)
    assert (stat.cpu_ticks, stat.threads, stat.start_ticks, stat.rss_pages) == (33, 5, 777, 42)


@pytest.mark.parametrize("line", [b"", b"7 (x", b"7 (x) S 1 2", b"garbage"])
def test_what_is_no_stat_line(line: bytes) -> None:
    with pytest.raises(ValueError):
        parse_stat(line)


def test_tree_of_a_trainer_with_workers(machine: FakeMachine) -> None:
    machine.process(
        100,
        children=(101, 102),
        command=("/usr/bin/python3", "train.py", "--batch", "64"),
        environment={"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500"},
    )
    machine.process(101, parent=100, name="pt_data_worker", state="R")
    machine.process(102, parent=100, name="pt_data_worker", state="Z")
    machine.process(500)  # a stranger
    trainer, first, second = ProcessTree(machine.roots).read([100], 0.0)
    assert trainer.command == "/usr/bin/python3 train.py --batch 64"
    assert (trainer.rank, trainer.local_rank, trainer.world_size, trainer.master_port) == (1, 0, 2, "29500")
    assert trainer.rss_bytes == 10 * PAGE_BYTES
    assert trainer.cpu_seconds == 200 / os.sysconf("SC_CLK_TCK")
    assert trainer.started_ts == 1_700_000_000 + 1000 / os.sysconf("SC_CLK_TCK")
    assert (trainer.read_bytes, trainer.write_bytes) == (4096, 512)
    assert (first.name, first.status, first.parent_pid) == ("pt_data_worker", "running", 100)
    assert second.status == "zombie"
    assert trainer.cuda_visible_devices is None


def test_only_the_named_variables_are_read(machine: FakeMachine) -> None:
    machine.process(100, environment={"CUDA_VISIBLE_DEVICES": "2,3"})
    assert environment_of(100, machine.roots) == {"CUDA_VISIBLE_DEVICES": "2,3"}


def test_escape_sequences_of_a_command_line_are_taken_out(machine: FakeMachine) -> None:
    machine.process(100, name="py\x1b[31m", command=("python", "\x1b]0;owned\x07.py"))
    (sample,) = ProcessTree(machine.roots).read([100], 0.0)
    assert "\x1b" not in sample.name + (sample.command or "")


def test_a_pid_used_again_by_the_watched_trainer_is_read_anew(machine: FakeMachine) -> None:
    tree = ProcessTree(machine.roots)
    machine.process(100, environment={"RANK": "0"})
    assert tree.read([100], 0.0)[0].rank == 0
    machine.process(100, start_ticks=9000, environment={"RANK": "3"})
    assert tree.read([100], 1.0)[0].rank == 3


def test_a_workers_pid_used_again_by_a_stranger_is_dropped(machine: FakeMachine) -> None:
    tree = ProcessTree(machine.roots)
    machine.process(100, children=(101,))
    machine.process(101, parent=100)
    assert len(tree.read([100], 0.0)) == 2
    machine.process(100, children=())
    machine.process(101, parent=1, start_ticks=9000)
    assert [sample.pid for sample in tree.read([100], 1.0)] == [100]


def test_workers_that_outlive_their_trainer_are_still_told(machine: FakeMachine) -> None:
    tree = ProcessTree(machine.roots)
    machine.process(100, children=(101,))
    machine.process(101, parent=100)
    tree.read([100], 0.0)
    machine.end(100)
    machine.process(101, parent=1)
    assert [sample.pid for sample in tree.read([100], 1.0)] == [101]


def test_a_job_no_longer_watched_is_forgotten(machine: FakeMachine) -> None:
    tree = ProcessTree(machine.roots)
    machine.process(100, children=(101,))
    machine.process(101, parent=100)
    machine.process(200)
    tree.read([100], 0.0)
    assert [sample.pid for sample in tree.read([200], 1.0)] == [200]


def test_children_without_the_kernels_list(machine: FakeMachine) -> None:
    machine.process(100, children=None)
    machine.process(101, parent=100, children=None)
    machine.process(102, parent=101, children=None)
    assert [sample.pid for sample in ProcessTree(machine.roots).read([100], 0.0)] == [100, 101, 102]


def test_the_number_of_processes_is_bounded(machine: FakeMachine) -> None:
    machine.process(100, children=tuple(range(101, 130)))
    for pid in range(101, 130):
        machine.process(pid, parent=100)
    tree = ProcessTree(machine.roots, limit=8)
    assert len(tree.read([100], 0.0)) == 8
    assert len(tree.read([100], 1.0)) == 8


def test_what_may_not_be_read_is_none(machine: FakeMachine) -> None:
    machine.process(100)
    for name in ("io", "environ", "cmdline"):
        (machine.folder / "proc/100" / name).unlink()
    (sample,) = ProcessTree(machine.roots).read([100], 0.0)
    assert sample.command is None
    assert sample.rank is None
    assert sample.read_bytes is None
    assert sample.cwd is None


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A real process with a child."""
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process = subprocess.Popen([sys.executable, "-c", script], env={"RANK": "5"}, cwd="/")
    yield process
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.kill()
    process.wait()


def test_agrees_with_psutil_on_this_machine(family: subprocess.Popen[bytes]) -> None:
    real = psutil.Process(family.pid)
    until = time.monotonic() + 10
    while not real.children() and time.monotonic() < until:
        time.sleep(0.02)
    trainer, worker = ProcessTree().read([family.pid], 0.0)
    assert (trainer.name, trainer.cwd, trainer.rank) == (real.name(), "/", 5)
    assert trainer.started_ts == pytest.approx(real.create_time(), abs=1.5)
    assert trainer.rss_bytes == pytest.approx(real.memory_info().rss, rel=0.3)
    assert trainer.threads == real.num_threads()
    assert trainer.affinity_cores == len(real.cpu_affinity())
    assert worker.pid == real.children()[0].pid
    assert cwd(family.pid) == "/"
    pss = proportional_set_bytes(family.pid)
    assert pss is not None and 0 < pss <= (trainer.rss_bytes or 0) * 1.3


def test_open_files_are_those_open_for_writing(tmp_path: Path) -> None:
    log, data = tmp_path / "train.jsonl", tmp_path / "data.bin"
    data.write_text("x")
    with log.open("a"), data.open():
        files = open_files(os.getpid())
    assert str(log) in files
    assert str(data) not in files


def test_trainers_are_found_by_an_open_cuda_device(machine: FakeMachine) -> None:
    machine.process(50, children=(100,), command=("bash",))
    machine.process(100, parent=50)
    machine.process(101, parent=100)
    machine.process(102, parent=50, command=("python", "serve.py"))
    for pid in (100, 101):  # a forked worker holds what its parent opened
        fd = machine.folder / f"proc/{pid}/fd"
        fd.mkdir()
        (fd / "7").symlink_to("/dev/nvidia-uvm")
    fd = machine.folder / "proc/102/fd"
    fd.mkdir()
    (fd / "3").symlink_to("/dev/nvidiactl")  # NVML alone: another monitor
    assert TrainerSearch(machine.roots).find() == (100,)
    assert not holds_cuda(102, machine.roots)


def test_trainers_are_found_by_rank_and_command(machine: FakeMachine) -> None:
    machine.process(100, command=("/opt/bin/python3.11", "tools/train.py"), environment={"RANK": "0"})
    machine.process(101, command=("python", "tools/train.py"))  # no rank, no CUDA: not (yet) a trainer
    machine.process(102, command=("nginx",), environment={"RANK": "0"})
    assert TrainerSearch(machine.roots).find() == (100,)


def test_a_pid_of_another_namespace_is_no_trainer_here(machine: FakeMachine) -> None:
    machine.process(721, command=("/usr/sbin/sshd", "-D"))
    machine.process(722, command=("/opt/venv/bin/python3", "train.py"))
    machine.process(723, command=("./darknet", "detector", "train"))
    for pid, device in ((721, "/dev/null"), (723, "/dev/nvidia-uvm")):
        fd = machine.folder / f"proc/{pid}/fd"
        fd.mkdir()
        (fd / "3").symlink_to(device)
    assert not may_train(721, machine.roots)
    assert may_train(722, machine.roots)
    assert may_train(723, machine.roots)
    assert [pid for pid in (721, 722, 723) if trains_here(pid, machine.roots)] == [722, 723]
