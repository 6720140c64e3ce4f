"""Pressure stall information: the share of time that tasks waited for memory, disk or CPU.

Format: Documentation/accounting/psi.rst of the kernel, "some avg10=0.25 avg60=... total=...". Kernels older
than 4.20 and kernels booted without psi=1 have no such file.
"""

from __future__ import annotations

from yolomon.sources.procfs import text_or_none


def pressure_percent(path: str, kind: str) -> float | None:
    """The mean over the last 10 s, in percent. `kind` is "some" or "full"; None where there is none."""
    for line in (text_or_none(path) or "").splitlines():
        fields = line.split()
        if fields and fields[0] == kind:
            for field in fields[1:]:
                name, _, value = field.partition("=")
                if name == "avg10":
                    try:
                        return float(value)
                    except ValueError:
                        return None
    return None
