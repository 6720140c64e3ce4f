"""Limits of containers, as the kernel's files of v1 and v2 tell them."""

from __future__ import annotations

import pytest

from tests.sources.conftest import FakeMachine
from yolomon.sources.cgroup import Cgroup, count_cores, find_cgroup
from yolomon.sources.procfs import Roots

GIB = 1 << 30


def v2(machine: FakeMachine, path: str, root: str = "/") -> None:
    machine.write("proc/self/cgroup", f"0::{path}\n")
    machine.write(
        "proc/self/mountinfo", f"30 23 0:26 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    )


def v1(machine: FakeMachine, path: str, root: str = "/") -> None:
    machine.write("proc/self/cgroup", f"4:memory:{path}\n2:cpu,cpuacct:{path}\n0::/\n")
    machine.write(
        "proc/self/mountinfo",
        f"35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        f"32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
    )


def test_v2_lowest_limit_on_the_way_up_holds(machine: FakeMachine) -> None:
    v2(machine, "/job.slice/step_0/task")
    base = "sys/fs/cgroup/job.slice"
    machine.write(f"{base}/step_0/task/memory.max", "max\n")
    machine.write(f"{base}/step_0/memory.max", f"{8 * GIB}\n")
    machine.write(f"{base}/step_0/memory.current", f"{5 * GIB}\n")
    machine.write(f"{base}/step_0/memory.stat", f"anon 1\nfile 2\ninactive_file {3 * GIB}\n")
    machine.write(f"{base}/memory.max", f"{64 * GIB}\n")
    group = find_cgroup(machine.roots)
    limit = group.memory_limit()
    assert limit is not None
    assert limit[0] == 8 * GIB
    assert group.memory_used_bytes(limit[1]) == 2 * GIB  # cache that can be dropped at once is not used


def test_v2_max_everywhere_is_no_limit(machine: FakeMachine) -> None:
    v2(machine, "/a")
    machine.write("sys/fs/cgroup/a/memory.max", "max\n")
    machine.write("sys/fs/cgroup/a/cpu.max", "max 100000\n")
    group = find_cgroup(machine.roots)
    assert group.memory_limit() is None
    assert group.cpu_limit_cores() is None


def test_v2_in_a_container_the_mount_point_is_the_group(machine: FakeMachine) -> None:
    v2(machine, "/")
    machine.write("sys/fs/cgroup/memory.max", f"{4 * GIB}")
    machine.write("sys/fs/cgroup/cpu.max", "250000 100000\n")
    machine.write("sys/fs/cgroup/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n")
    group = find_cgroup(machine.roots)
    limit = group.memory_limit()
    assert limit is not None and limit[0] == 4 * GIB
    assert group.cpu_limit_cores() == 2.5
    assert group.oom_kills() == 3


def test_v2_path_outside_of_the_own_namespace(machine: FakeMachine) -> None:
    v2(machine, "/../../system.slice/ssh.service")
    machine.write("sys/fs/cgroup/memory.max", f"{GIB}")
    assert find_cgroup(machine.roots).memory_folders == (f"{machine.roots.sys}/fs/cgroup",)


def test_v1_sentinel_is_no_limit(machine: FakeMachine) -> None:
    v1(machine, "/")
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    group = find_cgroup(machine.roots)
    assert group.memory_version == 1
    assert group.memory_limit() is None
    assert group.cpu_limit_cores() is None


def test_v1_docker_sees_the_host_path_but_mounts_its_own_group(machine: FakeMachine) -> None:
    v1(machine, "/docker/abc", root="/docker/abc")
    base = "sys/fs/cgroup/memory"
    machine.write(f"{base}/memory.limit_in_bytes", f"{2 * GIB}")
    machine.write(f"{base}/memory.usage_in_bytes", f"{GIB}")
    machine.write(f"{base}/memory.stat", f"inactive_file 5\ntotal_inactive_file {GIB // 2}\n")
    machine.write(f"{base}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    group = find_cgroup(machine.roots)
    limit = group.memory_limit()
    assert limit is not None and limit[0] == 2 * GIB
    assert group.memory_used_bytes(limit[1]) == GIB // 2
    assert group.cpu_limit_cores() == 4.0
    assert group.oom_kills() == 1


def test_v1_limit_above_what_is_mounted_counts(machine: FakeMachine) -> None:
    v1(machine, "/kubepods/pod/x", root="/kubepods/pod/x")
    base = "sys/fs/cgroup/memory"
    machine.write(f"{base}/memory.limit_in_bytes", "9223372036854771712")
    machine.write(f"{base}/memory.stat", f"cache 1\nhierarchical_memory_limit {GIB}\n")
    limit = find_cgroup(machine.roots).memory_limit()
    assert limit is not None and limit[0] == GIB


def test_cpuset_limits_too(machine: FakeMachine) -> None:
    v2(machine, "/")
    machine.write("sys/fs/cgroup/cpu.max", "800000 100000\n")
    machine.write("sys/fs/cgroup/cpuset.cpus.effective", "0-2,64\n")
    assert find_cgroup(machine.roots).cpu_limit_cores() == 4.0


@pytest.mark.parametrize(("text", "cores"), [("0-3,8", 5), ("7", 1), ("", 0), ("a-b", 0), ("0-127\n", 128)])
def test_core_lists(text: str, cores: int) -> None:
    assert count_cores(text) == cores


def test_a_machine_without_groups(machine: FakeMachine) -> None:
    group = find_cgroup(machine.roots)
    assert group == Cgroup()
    assert group.memory_limit() is None
    assert group.cpu_limit_cores() is None
    assert group.oom_kills() is None


def test_this_machine_can_be_read() -> None:
    limit = find_cgroup(Roots()).memory_limit()
    assert limit is None or limit[0] > 1 << 20
