"""What reading the host costs: `python -m tests.benchmarks.host_cost [WORKERS]`.

Forks a tree of sleeping workers, reads it as the host source does, and does the same with psutil in the same
run. Prints microseconds a reading, and the share of a core at the source's own rates.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import psutil

from yolomon.sources.hostreader import HostReader
from yolomon.sources.processes import ProcessTree, proportional_set_bytes

HOST_SECONDS, PROCESS_SECONDS = 1.0, 5.0


def microseconds(read: Callable[[], object], rounds: int) -> float:
    """CPU time of one call, the mean of `rounds`."""
    read()
    began = time.process_time()
    for _ in range(rounds):
        read()
    return (time.process_time() - began) / rounds * 1e6


def with_psutil(pid: int) -> list[object]:
    """The same figures of the tree by psutil."""
    root = psutil.Process(pid)
    found: list[object] = []
    for process in (root, *root.children(recursive=True)):
        with process.oneshot():
            found.append(
                (
                    process.name(),
                    process.memory_info().rss,
                    process.cpu_times(),
                    process.num_threads(),
                    process.status(),
                    process.io_counters(),
                    process.cpu_affinity(),
                )
            )
    return found


def fork_tree(workers: int) -> int:
    """A process with so many sleeping children, in a group of its own."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for _ in range(workers):
            if os.fork() == 0:
                break
        time.sleep(600)
        os._exit(0)
    return pid


def main() -> None:
    """Measure and print."""
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    pid = fork_tree(workers)
    try:
        while len(psutil.Process(pid).children()) < workers:
            time.sleep(0.1)
        reader = HostReader()
        reader.info()
        tree = ProcessTree()
        host = microseconds(reader.sample, 100)
        ours = microseconds(lambda: tree.read([pid], time.monotonic()), 20)
        theirs = microseconds(lambda: with_psutil(pid), 5)
        pss = microseconds(lambda: proportional_set_bytes(pid), 20)
        count = len(tree.pids)
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    share = 100 * (host / 1e6 / HOST_SECONDS + ours / 1e6 / PROCESS_SECONDS)
    print(f"host sample          {host:9.0f} us   ({os.cpu_count()} cores)")
    print(f"tree of {count:4d}         {ours:9.0f} us   ({ours / count:.0f} us a process)")
    print(f"the same by psutil   {theirs:9.0f} us   ratio {theirs / ours:.1f}")
    print(f"PSS of one process   {pss:9.0f} us")
    print(
        f"share of a core      {share:9.2f} %    (host each {HOST_SECONDS} s, tree each {PROCESS_SECONDS} s)"
    )


if __name__ == "__main__":
    main()
