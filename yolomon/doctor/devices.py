"""Driver, NVML's Python module, NVML itself, and the GPUs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from yolomon.doctor.check import Check
from yolomon.messages import msg
from yolomon.sources.container import loaded_driver_version
from yolomon.sources.nvml_library import (
    NvmlFailure,
    NvmlUnavailableError,
    binding_report,
    load_binding,
    plain,
    start_nvml,
)
from yolomon.sources.procfs import Roots

NAMES_SHOWN = 8
T = TypeVar("T")


def device_checks(roots: Roots, timeout_seconds: float) -> list[Check]:
    """Checks of everything between the GPU and us."""
    checks = [_driver(roots), _nodes(Path(roots.top)), _binding()]
    if checks[-1].status != "FAIL":
        checks += _nvml(roots, timeout_seconds)
    return checks


def _driver(roots: Roots) -> Check:
    version = loaded_driver_version(roots)
    if version is not None:
        return Check("driver", "PASS", msg("NVIDIA kernel driver {version}", version=version))
    return Check(
        "driver",
        "WARN",
        msg("No NVIDIA kernel driver is to be seen in /proc"),
        msg("Without one, host and trainer are shown and the GPUs are not"),
    )


def _nodes(top: Path) -> Check:
    """The device files: a user without access to them gets NVML errors that do not say so."""
    nodes = sorted(top.glob("dev/nvidia[0-9]*")) + [
        node for node in (top / "dev/nvidiactl", top / "dev/dxg") if node.exists()
    ]
    if not nodes:
        return Check("device-files", "WARN", msg("There are no /dev/nvidia* device files"))
    denied = [node.name for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if denied:
        return Check(
            "device-files",
            "FAIL",
            msg("This user may not open {names} in /dev", names=", ".join(denied[:NAMES_SHOWN])),
            msg("Check their permissions and this user's groups (often `video` or `render`)"),
        )
    return Check(
        "device-files", "PASS", msg("{count} device files in /dev, all may be opened", count=len(nodes))
    )


def _binding() -> Check:
    report = binding_report()
    installed = ", ".join(f"{name} {version}" for name, version in report.installed.items())
    if report.failure is not None:
        return Check("nvml-module", "FAIL", report.failure.cause, report.failure.remedy)
    if "nvidia-ml-py3" in report.installed:
        return Check(
            "nvml-module",
            "WARN",
            msg("Two packages provide the module pynvml: {packages}", packages=installed),
            msg("Remove the old one: pip uninstall nvidia-ml-py3, then reinstall nvidia-ml-py"),
        )
    return Check(
        "nvml-module", "PASS", msg("{packages}, at {path}", packages=installed, path=str(report.path))
    )


def _nvml(roots: Roots, timeout_seconds: float) -> list[Check]:
    """Start NVML on a thread: on a sick GPU it may never come back (gpu-monitoring-tools#46)."""
    until = time.monotonic() + timeout_seconds
    started = _within(until, lambda: _start(Path(roots.top)))
    if started is None:
        return [
            Check(
                "nvml",
                "FAIL",
                msg("NVML gave no answer for {seconds} s", seconds=round(timeout_seconds)),
                msg(
                    "A GPU may be stuck: `sudo dmesg | grep -i xid`. "
                    "Or set persistence mode: nvidia-smi -pm 1"
                ),
            )
        ]
    if isinstance(started, NvmlFailure):
        return [_unavailable(started)]
    nvml, count, driver = started
    return [
        Check("nvml", "PASS", msg("NVML answers, driver {version}", version=driver or "?")),
        _gpus(nvml, count, min(until, time.monotonic() + timeout_seconds / 2)),
    ]


def _start(top: Path) -> tuple[Any, int, str | None] | NvmlFailure:
    """The module, the number of GPUs, the driver's version. It is not shut down: a stuck GPU would wait."""
    try:
        nvml = load_binding()
        count, driver = start_nvml(nvml, top)
    except NvmlUnavailableError as error:
        return error.failure
    return nvml, count, driver


def _within(until: float, work: Callable[[], T]) -> T | None:
    """What the work gives; None where it is not done by then: its thread is left to hang."""
    answer: list[T] = []
    thread = threading.Thread(target=lambda: answer.append(work()), name="yolomon-doctor", daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()))
    return answer[0] if answer else None


def _unavailable(failure: NvmlFailure) -> Check:
    """No driver at all is a machine without GPUs: worth knowing, no fault."""
    status = "WARN" if failure.reason == "no-driver" else "FAIL"
    return Check("nvml", status, failure.cause, failure.remedy)  # type: ignore[arg-type]


def _gpus(nvml: Any, count: int, until: float) -> Check:  # noqa: ANN401 - pynvml has no types
    """Ask each GPU on a thread of its own: one that hangs says nothing about the others."""
    answers: list[str | None] = [None] * count  # what it is called; None: no answer yet
    broken: dict[int, str] = {}

    def ask(index: int) -> None:
        try:
            answers[index] = plain(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index)))
        except (nvml.NVMLError, UnicodeDecodeError) as error:
            broken[index] = str(error)

    threads = [threading.Thread(target=ask, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    names = [name for name in answers if name is not None]
    silent = [index for index, name in enumerate(answers) if name is None and index not in broken]
    if broken or silent:
        told = [f"{index}: {broken[index]}" for index in sorted(broken)] + [f"{index}: …" for index in silent]
        return Check(
            "gpus",
            "FAIL",
            msg("GPUs that do not answer: {gpus}", gpus="; ".join(told[:NAMES_SHOWN])),
            msg("See `sudo dmesg | grep -i xid`; a lost GPU comes back with a reboot"),
        )
    if not names:
        return Check("gpus", "WARN", msg("NVML works and knows no GPU"))
    shown = ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))
    if count == 1:
        return Check("gpus", "PASS", msg("one GPU: {name}", name=names[0]))
    return Check("gpus", "PASS", msg("{count} GPUs: {names}", count=count, names=shown))
