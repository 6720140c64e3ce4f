"""The host's figures: against this machine, and in containers that a fake tree plays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.sources.conftest import FakeMachine
from yolomon.model import Header, Item, SourceStatus, Telemetry
from yolomon.sources.container import (
    container_name,
    is_wsl,
    loaded_driver_version,
    pid_namespace_shared,
)
from yolomon.sources.host import HostSource
from yolomon.sources.hostreader import HostReader
from yolomon.sources.pressure import pressure_percent
from yolomon.sources.probe import Probe
from yolomon.sources.space import space_of
from yolomon.sources.temperature import CpuTemperature

MIB = 1 << 20


def wait_for(condition: object, seconds: float = 10.0) -> bool:
    assert callable(condition)
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_figures_of_this_machine() -> None:
    reader = HostReader()
    info = reader.info()
    reader.sample()
    time.sleep(0.2)
    sample = reader.sample()
    assert reader.failing == {}
    assert info.cores == os.cpu_count() == len(sample.cpu_percent or ())
    assert all(0 <= share <= 100 for share in sample.cpu_percent or ())
    assert sample.memory_total_bytes is not None
    assert sample.memory_total_bytes <= psutil.virtual_memory().total
    assert sample.memory_available_bytes == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert sample.load_average is not None
    assert sample.net_received_bytes is not None


def test_first_reading_has_no_cpu_share() -> None:
    assert HostReader().sample().cpu_percent is None  # a counter needs two


def test_container_limit_replaces_the_machines_memory(machine: FakeMachine) -> None:
    machine.write("proc/self/cgroup", "0::/\n")
    machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    machine.write("sys/fs/cgroup/memory.max", f"{512 * MIB}")
    machine.write("sys/fs/cgroup/memory.current", f"{300 * MIB}")
    machine.write("sys/fs/cgroup/memory.stat", f"inactive_file {100 * MIB}\n")
    machine.write("sys/fs/cgroup/memory.pressure", "some avg10=9.00\nfull avg10=7.50 avg60=1 total=2\n")
    reader = HostReader(machine.roots)
    assert reader.info().memory_limit_bytes == 512 * MIB
    sample = reader.sample()
    assert sample.memory_total_bytes == 512 * MIB
    assert sample.memory_used_bytes == 200 * MIB
    assert sample.memory_available_bytes == 312 * MIB
    assert sample.memory_pressure_full_percent == 7.5


def test_a_limit_above_the_machines_memory_is_none(machine: FakeMachine) -> None:
    machine.write("proc/self/cgroup", "0::/\n")
    machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    machine.write("sys/fs/cgroup/memory.max", f"{1 << 50}")
    reader = HostReader(machine.roots)
    assert reader.info().memory_limit_bytes is None
    assert reader.sample().memory_total_bytes == psutil.virtual_memory().total


def test_the_trainers_container_seen_from_outside(machine: FakeMachine) -> None:
    machine.write("proc/self/cgroup", "0::/user.slice\n")
    machine.write("proc/77/cgroup", "0::/docker-abc.scope\n")
    machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    machine.write("sys/fs/cgroup/user.slice/memory.max", "max")
    machine.write("sys/fs/cgroup/docker-abc.scope/memory.max", f"{64 * MIB}")
    reader = HostReader(machine.roots)
    assert reader.info().memory_limit_bytes is None
    reader.follow_trainer(77)
    assert reader.info().memory_limit_bytes == 64 * MIB
    reader.follow_trainer(None)
    assert reader.info().memory_limit_bytes is None


def test_oom_kills_in_a_container_are_the_groups_own(machine: FakeMachine) -> None:
    machine.write("proc/vmstat", "oom_kill 40\n")
    machine.write("proc/self/cgroup", "0::/\n")
    machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    machine.write("sys/fs/cgroup/memory.events", "oom_kill 2\n")
    assert HostReader(machine.roots).sample().oom_kills == 40
    namespace = machine.folder / "proc/self/ns/pid"
    namespace.parent.mkdir()
    namespace.symlink_to("pid:[4026532999]")
    assert HostReader(machine.roots).sample().oom_kills == 2


def test_one_part_that_fails_does_not_take_the_others(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("proc/meminfo", "not what it should be\n")
    reader = HostReader(machine.roots)
    monkeypatch.setattr(psutil, "PROCFS_PATH", machine.roots.proc)
    sample = reader.sample()
    assert sample.memory_total_bytes is None
    assert sample.swap_total_bytes is None
    assert sample.load_average is not None
    assert {"memory"} <= set(reader.failing)
    assert reader.errors >= 1


@pytest.mark.parametrize(
    ("files", "environment", "name"),
    [
        ({}, {}, None),
        ({"top/.dockerenv": ""}, {}, "docker"),
        ({"top/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({"run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({"proc/1/cgroup": "4:memory:/kubepods/burstable/pod1\n"}, {}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
    ],
)
def test_containers(
    machine: FakeMachine, files: dict[str, str], environment: dict[str, str], name: str | None
) -> None:
    for path, text in files.items():
        machine.write(path, text)
    assert container_name(machine.roots, environment) == name


def test_pid_namespace(machine: FakeMachine) -> None:
    assert pid_namespace_shared(machine.roots) is None
    link = machine.folder / "proc/self/ns/pid"
    link.parent.mkdir(parents=True)
    link.symlink_to("pid:[4026531836]")
    assert pid_namespace_shared(machine.roots) is True
    link.unlink()
    link.symlink_to("pid:[4026532450]")
    assert pid_namespace_shared(machine.roots) is False


def test_driver_and_wsl(machine: FakeMachine) -> None:
    assert loaded_driver_version(machine.roots) is None
    machine.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC: 12.3.0\n",
    )
    assert loaded_driver_version(machine.roots) == "580.159.04"
    assert not is_wsl(machine.roots)
    machine.write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")
    assert is_wsl(machine.roots)


def test_cpu_temperature_is_the_hottest_package(machine: FakeMachine) -> None:
    assert CpuTemperature(machine.roots).read() is None
    for chip, celsius in (("hwmon1", 51), ("hwmon2", 63)):
        machine.write(f"sys/class/hwmon/{chip}/name", "coretemp\n")
        machine.write(f"sys/class/hwmon/{chip}/temp1_label", "Package id 0\n")
        machine.write(f"sys/class/hwmon/{chip}/temp1_input", f"{celsius}000\n")
        machine.write(f"sys/class/hwmon/{chip}/temp2_label", "Core 0\n")
        machine.write(f"sys/class/hwmon/{chip}/temp2_input", "99000\n")
    machine.write("sys/class/hwmon/hwmon3/name", "nvme\n")
    machine.write("sys/class/hwmon/hwmon3/temp1_input", "80000\n")
    assert CpuTemperature(machine.roots).read() == 63


def test_pressure(tmp_path: Path) -> None:
    file = tmp_path / "io"
    file.write_text("some avg10=12.50 avg60=3.00 avg300=1.00 total=1\nfull avg10=4.00 avg60=0 total=0\n")
    assert pressure_percent(str(file), "some") == 12.5
    assert pressure_percent(str(file), "full") == 4.0
    assert pressure_percent(str(tmp_path / "none"), "full") is None


def test_space_of_a_file_system() -> None:
    space = space_of("/")
    assert space is not None
    assert 0 < space.used_bytes <= space.total_bytes
    with pytest.raises(OSError):
        space_of("/no/such/folder")


def test_a_probe_that_hangs_is_not_waited_for() -> None:
    release = threading.Event()
    now = [0.0]

    def hang() -> int:
        release.wait()
        return 1

    probe = Probe("hang", hang, interval_seconds=0.01, max_age_seconds=5, monotonic=lambda: now[0])
    probe.start()
    assert probe.latest() is None
    release.set()
    assert wait_for(lambda: probe.latest() == 1)
    probe.stop(1.0)
    now[0] = 100.0
    assert probe.latest() is None  # too old


def test_a_probe_keeps_the_reason_of_a_failure() -> None:
    def fail() -> int:
        raise OSError(5, "Input/output error")

    probe = Probe("fail", fail, interval_seconds=1, max_age_seconds=5)
    probe.read_once()
    assert probe.latest() is None
    assert probe.errors == 1
    assert "Input/output error" in (probe.error or "")


def test_source_tells_host_processes_and_free_room(tmp_path: Path) -> None:
    items: list[Item] = []
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    source = HostSource(interval_seconds=0.1, slow_interval_seconds=0.2, search_trainers=False)
    source.watch_folder(str(tmp_path))
    try:
        source.start(items.append)
        source.watch_pids([process.pid], origin="log")

        def telemetry() -> list[Telemetry]:
            return [item for item in list(items) if isinstance(item, Telemetry)]

        assert wait_for(lambda: any(t.processes for t in telemetry()))
        assert wait_for(lambda: any(t.host and t.host.disk_free_bytes for t in telemetry()))
        assert wait_for(lambda: any(t.processes and t.processes[0].pss_bytes for t in telemetry()))
    finally:
        source.stop()
        process.kill()
        process.wait()
    headers = [item for item in items if isinstance(item, Header)]
    assert headers and headers[0].host is not None and headers[0].host.cores == os.cpu_count()
    assert [t.processes[0].pid for t in telemetry() if t.processes][-1] == process.pid
    statuses = [item for item in items if isinstance(item, SourceStatus)]
    assert statuses[0].ok
    count = len(items)
    time.sleep(0.25)
    assert len(items) == count  # all threads ended


def test_a_process_that_ended_leaves_the_list() -> None:
    items: list[Item] = []
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    source = HostSource(interval_seconds=0.5, slow_interval_seconds=0.2, search_trainers=False)
    try:
        source.watch_pids([process.pid])
        source.start(items.append)

        def newest() -> tuple[object, ...] | None:
            lists = [i.processes for i in list(items) if isinstance(i, Telemetry) and i.processes is not None]
            return lists[-1] if lists else None

        assert wait_for(lambda: bool(newest()) or pid_namespace_shared() is False)
        process.kill()
        process.wait()
        assert wait_for(lambda: newest() == ())
    finally:
        source.stop()
        process.kill()
        process.wait()
