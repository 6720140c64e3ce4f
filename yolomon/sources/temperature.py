"""The CPU's temperature, from the one or two sensors that tell it.

hwmon of the kernel (Documentation/hwmon/sysfs-interface.rst): millidegrees. Only the packages' sensors are
read; one a core would cost hundreds of files on a large machine.
"""

from __future__ import annotations

from pathlib import Path

from yolomon.sources.procfs import REAL, Roots, int_or_none, text_or_none

_DRIVERS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal")
_LABELS = ("Package", "Physical", "Tctl", "Tdie", "CPU")


class CpuTemperature:
    """Finds the sensors once and reads them when asked."""

    def __init__(self, roots: Roots = REAL) -> None:
        self._files = _sensor_files(roots)

    def read(self) -> float | None:
        """The hottest package, degrees Celsius; None where the machine tells none (most virtual ones)."""
        values = [value for file in self._files if (value := int_or_none(file)) is not None]
        plausible = [value / 1000 for value in values if -40_000 < value < 150_000]
        return max(plausible, default=None)


def _sensor_files(roots: Roots) -> tuple[str, ...]:
    labelled: list[str] = []
    bare: list[str] = []
    for chip in sorted(Path(roots.sys, "class/hwmon").glob("hwmon*")):
        if (text_or_none(f"{chip}/name") or "").strip() not in _DRIVERS:
            continue
        for sensor in sorted(chip.glob("temp*_input")):
            label = text_or_none(str(sensor).replace("_input", "_label"))
            if label is None:
                bare.append(str(sensor))
            elif label.startswith(_LABELS):
                labelled.append(str(sensor))
    return tuple(labelled or bare[:2])
