"""The fake NVML from Python: write its scenario, read its journal of calls."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

SCENARIO_VARIABLE = "FAKE_NVML_SCENARIO"


class FakeNvml:
    """A loaded fake library and the scenario file that it plays.

    The library is loaded once a process. `play` replaces the file in one step; the next NVML call sees it.
    """

    def __init__(self, library: Path, scenario: Path) -> None:
        self.library = library
        self.scenario = scenario
        self._loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._loaded.fakeNvmlCalls.argtypes = (ctypes.c_char_p, ctypes.c_int)
        self._loaded.fakeNvmlCalls.restype = ctypes.c_uint
        self._loaded.fakeNvmlNullHandles.restype = ctypes.c_uint

    def play(self, *lines: str) -> None:
        """Replace the scenario by these lines (each may hold several)."""
        written = self.scenario.with_suffix(".new")
        written.write_text("\n".join(lines) + "\n")
        written.replace(self.scenario)
        # An environment set by os.environ reaches getenv() in the library as well.
        os.environ[SCENARIO_VARIABLE] = str(self.scenario)

    def calls(self, function: str, gpu: int = -2) -> int:
        """Calls of `function` ("*": of any) so far. `gpu` -1: those that name no GPU; -2: all of them."""
        return int(self._loaded.fakeNvmlCalls(function.encode(), gpu))

    def null_handles(self) -> int:
        """How often a null handle was passed; the real library may crash then (nvitop#139)."""
        return int(self._loaded.fakeNvmlNullHandles())
