"""`yolomon doctor`: looks at all that a dashboard on this machine depends on, and says what to mend."""

from __future__ import annotations

import os
from collections.abc import Mapping

from yolomon.doctor.check import Check, Status, worst
from yolomon.doctor.devices import device_checks
from yolomon.doctor.log import log_check
from yolomon.doctor.machine import machine_checks
from yolomon.doctor.terminal import TerminalFacts, terminal_checks
from yolomon.sources.procfs import REAL, Roots

__all__ = ["Check", "Status", "run_checks", "worst"]


def run_checks(
    log: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    roots: Roots = REAL,
    terminal: TerminalFacts | None = None,
    nvml_timeout_seconds: float = 10.0,
) -> list[Check]:
    """All checks, in the order in which a person would ask. Takes at most about `nvml_timeout_seconds`.

    Args:
        log: the training log that the user has in mind.
        environment: the process's environment unless given.
        roots: where the kernel's files lie.
        terminal: what the standard output is; found out unless given.
        nvml_timeout_seconds: how long NVML may take to start (without persistence mode it takes seconds).
    """
    environment = os.environ if environment is None else environment
    checks = [
        *device_checks(roots, nvml_timeout_seconds),
        *machine_checks(roots, environment),
        *terminal_checks(environment, terminal or TerminalFacts.of_stdout()),
    ]
    if log is not None:
        checks.append(log_check(log))
    return checks
