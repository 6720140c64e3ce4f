"""The fake NVML, loaded once into this process, and a place where a source's items are collected."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pynvml
import pytest

from tests.fake_nvml.build import CompilerMissingError, build
from tests.fake_nvml.fake import FakeNvml
from yolomon.model import GpuSample, Item, SourceStatus, Telemetry
from yolomon.sources.nvml import NvmlSource

Kind = TypeVar("Kind", bound=Item)


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled fake NVML."""
    try:
        return build(tmp_path_factory.mktemp("fake_nvml"))
    except CompilerMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def _loaded(fake_library: Path, tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    fake = FakeNvml(fake_library, tmp_path_factory.mktemp("scenario") / "scenario")
    if pynvml.nvmlLib is not None:  # an earlier test loaded this machine's own NVML
        pynvml.nvmlLib = ctypes.CDLL(str(fake_library))
        pynvml._nvmlGetFunctionPointer_cache.clear()
    return fake


@pytest.fixture
def nvml(_loaded: FakeNvml) -> Iterator[FakeNvml]:
    """The fake NVML; `nvml.play(...)` sets its scenario, also in the middle of a test."""
    _loaded.play("system gpus 1")
    yield _loaded
    _loaded.play("system gpus 1")  # whatever hangs is let go
    assert _loaded.null_handles() == 0, "a null handle was passed to NVML"


class Collected:
    """Items of a source in their order, with waits that end."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._changed = threading.Condition()

    def __call__(self, item: Item) -> None:
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()

    def wait(self, found: Callable[[list[Item]], Any], seconds: float = 5.0) -> Any:
        """What `found` gives of the items, once it is true."""
        until = time.monotonic() + seconds
        with self._changed:
            while not (result := found(self.items)):
                left = until - time.monotonic()
                if left <= 0:
                    pytest.fail(f"did not come within {seconds} s; the last items: {self.items[-4:]}")
                self._changed.wait(min(left, 0.05))  # what is asked may change without an item
            return result

    def first(self, kind: type[Kind], matches: Callable[[Kind], Any] = bool, since: int = 0) -> Kind:
        """The first item of that kind that matches, waited for."""

        def found(items: list[Item]) -> Kind | None:
            return next((i for i in items[since:] if isinstance(i, kind) and matches(i)), None)

        result: Kind = self.wait(found)
        return result

    def sample(self, gpu: int, matches: Callable[[GpuSample], Any] = bool, since: int = 0) -> GpuSample:
        """The first reading of that GPU that matches, waited for."""

        def found(items: list[Item]) -> GpuSample | None:
            telemetry = (i for i in items[since:] if isinstance(i, Telemetry))
            return next((s for t in telemetry for s in t.gpus if s.index == gpu and matches(s)), None)

        result: GpuSample = self.wait(found)
        return result

    def samples(self, gpu: int, since: int = 0) -> list[GpuSample]:
        """All readings of that GPU so far."""
        return [
            s for i in list(self.items[since:]) if isinstance(i, Telemetry) for s in i.gpus if s.index == gpu
        ]

    def ticks(self, count: int, gpu: int = 0) -> int:
        """Wait for so many more readings of that GPU; the position in `items` where this began."""
        since = len(self.items)
        self.wait(lambda _: len(self.samples(gpu, since)) >= count)
        return since

    def status(self, reason: str) -> SourceStatus:
        """The first status with that reason, waited for."""
        return self.first(SourceStatus, lambda status: status.reason == reason)


Watch = Callable[..., Collected]


@pytest.fixture
def watch(nvml: FakeNvml) -> Iterator[Watch]:
    """Starts an `NvmlSource` that ticks fast, and gives what it emits."""
    sources: list[NvmlSource] = []

    def begin(**options: Any) -> Collected:
        quick: dict[str, Any] = {
            "interval_seconds": 0.05,
            "slow_interval_seconds": 0.15,
            "deadline_seconds": 0.2,
            "retry_seconds": 0.3,
        }
        source = NvmlSource(**(quick | options))
        sources.append(source)
        collected = Collected()
        source.start(collected)
        return collected

    yield begin
    nvml.play("system gpus 1")
    for source in sources:
        source.stop(3.0)
