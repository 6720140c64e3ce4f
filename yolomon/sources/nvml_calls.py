"""Calls about one GPU, each error handled a value at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yolomon.sources.nvml_library import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESET_REQUIRED,
)

ARGUMENT_VERSION_MISMATCH, NO_DATA, NOT_READY, DEPRECATED = 25, 21, 27, 26
_NEVER = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED})
_NOT_NOW = frozenset({NOT_FOUND, NO_DATA, NOT_READY})  # no data, and no fault either
_LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})


class GpuLostError(Exception):
    """The GPU fell off the bus, or needs a reset; NVML's own words."""


class GpuCalls:
    """NVML functions of one GPU. "Not supported" is remembered; any other error is counted and retried."""

    def __init__(self, nvml: Any, handle: Any) -> None:  # noqa: ANN401 - pynvml has no types
        if not handle:
            raise ValueError("a null handle crashes NVML (nvitop#139)")
        self.nvml = nvml
        self.handle = handle
        self.errors = 0
        self.trouble: str | None = None  # the first error of this reading, as NVML says it
        self.code: int | None = None  # its return code
        self._unsupported: set[tuple[Any, ...]] = set()

    def begin(self) -> None:
        """Begin a reading: forget the last one's trouble."""
        self.trouble = self.code = None

    def ask(self, function: str, *arguments: Any) -> Any:  # noqa: ANN401 - what the function gives
        """`nvml.<function>(handle, *arguments)`, or None.

        Raises:
            GpuLostError: the GPU is lost.
        """
        key = (function, *arguments)
        if key in self._unsupported:
            return None
        call: Callable[..., Any] | None = getattr(self.nvml, function, None)
        if call is None:  # an older nvidia-ml-py
            self._unsupported.add(key)
            return None
        try:
            return call(self.handle, *arguments)
        except self.nvml.NVMLError as error:
            self.note(key, error)
            return None

    def supported(self, function: str, *arguments: Any) -> bool:  # noqa: ANN401
        """Whether the function was not yet found to be unsupported."""
        return (function, *arguments) not in self._unsupported

    def note(self, key: tuple[Any, ...], error: Any) -> None:  # noqa: ANN401 - pynvml.NVMLError
        """Sort an error: remember, count, or raise when the GPU is gone."""
        if error.value in _LOST:
            raise GpuLostError(str(error)) from error
        if error.value in _NEVER:
            self._unsupported.add(key)
        elif error.value not in _NOT_NOW:
            self.errors += 1
            if self.trouble is None:
                self.trouble = f"{str(key[0]).removeprefix('nvmlDeviceGet').removeprefix('nvml')}: {error}"
                self.code = error.value


class Rate:
    """A counter's growth a second. None at first, after a gap, and where the counter went backwards."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def per_second(self, counter: float | None, now: float) -> float | None:
        """The mean rate since the last call. `now`: seconds of any steady clock."""
        before, self._before = self._before, None if counter is None else (counter, now)
        if before is None or counter is None or counter < before[0] or now <= before[1]:
            return None
        return (counter - before[0]) / (now - before[1])
