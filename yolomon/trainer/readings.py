"""Read loss values without making the GPU wait.

`tensor.item()` on a CUDA tensor waits until the GPU has done all work queued before it. Here the values of
a step go to pinned host memory in one small asynchronous copy. When the GPU is already idle (Ultralytics'
progress bar on rank 0 has just waited for it) they are read at once; otherwise the values handed back are
those of the latest earlier step whose copy has arrived, together with the number of that step.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from yolomon.trainer.foreign import Stream, Tensor, Torch
from yolomon.trainer.plain import number, short


class Reading(NamedTuple):
    """Numbers by name, and the step they belong to where that is not the step asked for."""

    values: dict[str, float]
    step: int | None = None


class _Copy(NamedTuple):
    names: tuple[str, ...]
    host: Tensor  # pinned
    done: Any  # a torch.cuda.Event
    step: int


class ScalarReader:
    """Reads named scalars of successive steps. Not for several threads."""

    def __init__(self) -> None:
        self._pending: _Copy | None = None

    def read(self, values: Mapping[str, object], step: int) -> Reading:
        """The numbers among `values`: numbers and CPU tensors at once, CUDA tensors as the module says."""
        plain: dict[str, float] = {}
        on_gpu: dict[str, Tensor] = {}
        for name, value in values.items():
            if getattr(value, "is_cuda", False):
                on_gpu[name] = value
            else:
                found = number(value)
                if found is not None:
                    plain[name] = found if isinstance(found, int) else short(found)
        if not on_gpu:
            return Reading(plain)
        torch: Torch = sys.modules["torch"]
        stream = torch.cuda.current_stream(next(iter(on_gpu.values())).device)
        idle = stream.query()
        if idle or self._pending is None or self._pending.done.query():
            stacked = torch.stack([value.detach().reshape(()).float() for value in on_gpu.values()])
            if idle:
                self._pending = None
                return Reading(plain | _named(tuple(on_gpu), stacked))
            arrived, self._pending = self._pending, self._copy(torch, tuple(on_gpu), stacked, stream, step)
            if arrived is not None:
                return Reading(plain | _named(arrived.names, arrived.host), arrived.step)
        return Reading(plain)

    @staticmethod
    def _copy(torch: Torch, names: tuple[str, ...], stacked: Tensor, stream: Stream, step: int) -> _Copy:
        host = torch.empty(stacked.shape, dtype=stacked.dtype, pin_memory=True)
        host.copy_(stacked, non_blocking=True)
        done = torch.cuda.Event()
        done.record(stream)
        return _Copy(names, host, done, step)


def _named(names: tuple[str, ...], tensor: Tensor) -> dict[str, float]:
    return {name: short(value) for name, value in zip(names, tensor.tolist(), strict=True)}
