"""NVML field values: many readings in one call, each with a result of its own."""

from __future__ import annotations

from typing import Any

from yolomon.sources.nvml_calls import GpuCalls
from yolomon.sources.nvml_library import NOT_SUPPORTED

ALL_LINKS = 0xFFFFFFFF
"""As scope of an NVLink counter: the sum over the links (nvml.h)."""

# NVML_FI_DEV_* of nvml.h, by number: the names came with later versions of nvidia-ml-py.
ECC_CORRECTED = (3, 0)  # volatile: since the driver was loaded
ECC_UNCORRECTED = (4, 0)
MEMORY_TEMPERATURE = (82, 0)
NVLINK_TX_KIB = (138, ALL_LINKS)
NVLINK_RX_KIB = (139, ALL_LINKS)
REMAPPED_PENDING = (144, 0)
REMAPPED_FAILED = (145, 0)
PCIE_TX_BYTES = (197, 0)
PCIE_RX_BYTES = (198, 0)
SLOW_FIELDS = (
    ECC_CORRECTED, ECC_UNCORRECTED, MEMORY_TEMPERATURE, NVLINK_TX_KIB, NVLINK_RX_KIB, REMAPPED_PENDING,
    REMAPPED_FAILED, PCIE_TX_BYTES, PCIE_RX_BYTES,
)  # fmt: skip

Field = tuple[int, int]
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by NVML_VALUE_TYPE_*
_WRAPS_AT = 1 << 32


class Fields:
    """Reads a set of field values; a field that is not supported is left out of the next call."""

    def __init__(self, calls: GpuCalls, wanted: tuple[Field, ...] = SLOW_FIELDS) -> None:
        self._calls = calls
        self._wanted = list(wanted)
        self._wide: set[Field] = set()

    def read(self) -> dict[Field, float]:
        """The fields that answered.

        Raises:
            GpuLostError: the GPU is lost.
        """
        calls = self._calls
        if not self._wanted or not calls.supported("nvmlDeviceGetFieldValues"):
            return {}
        try:
            values = calls.nvml.nvmlDeviceGetFieldValues(calls.handle, self._wanted)
        except calls.nvml.NVMLError as error:
            calls.note(("nvmlDeviceGetFieldValues",), error)
            return {}
        found: dict[Field, float] = {}
        kept = []
        for field, value in zip(self._wanted, values, strict=True):
            result = value.nvmlReturn
            if result != NOT_SUPPORTED:
                kept.append(field)
            if result == 0:
                number = _number(value)
                if number is not None:
                    found[field] = number
        self._wanted = kept
        return found

    def wide_counter(self, field: Field, found: dict[Field, float]) -> float | None:
        """A byte counter that is known to be wider than 32 bits.

        nvml.h says of the PCIe byte counters "Value can be wrapped", and on some boards they wrap at 4 GiB:
        a busy link does that within a second, and a rate made of it would be wrong without a sign. So one is
        trusted once it was seen beyond 4 GiB.
        """
        value = found.get(field)
        if value is not None and value >= _WRAPS_AT:
            self._wide.add(field)
        return value if field in self._wide else None


def _number(value: Any) -> float | None:  # noqa: ANN401 - c_nvmlFieldValue_t
    kind = value.valueType
    if not 0 <= kind < len(_MEMBERS):
        return None
    number: float = getattr(value.value, _MEMBERS[kind])
    return number
