"""Read the loss values of several steps in one go, without making the GPU wait.

`tensor.item()` on a CUDA tensor waits until the GPU has done all work queued before it, and even on an idle
GPU each reading costs a launch and a copy. Here a step's values stay where they are (`Held`), and those of
all steps since the last reading come over in one copy (`Transfer`): at once where the GPU is idle
(Ultralytics' progress bar on rank 0 has just waited for it), else into pinned memory behind the work that is
queued, to be read when the copy has arrived.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from yolomon.trainer.foreign import Tensor, Torch
from yolomon.trainer.plain import short


class Held(NamedTuple):
    """Named scalars of one step that were not read yet."""

    names: tuple[str, ...]
    tensors: tuple[Tensor, ...]  # one scalar a name, or one vector of them all

    @property
    def on_host(self) -> bool:
        """Whether reading them needs no device."""
        return not any(on_device(tensor) for tensor in self.tensors)

    def copied(self) -> Held:
        """The same values in memory of their own: one small copy on the device."""
        torch: Torch = sys.modules["torch"]
        return Held(self.names, (torch.cat([tensor.detach().reshape(-1) for tensor in self.tensors]),))


def on_device(value: object) -> bool:
    """Whether it is a tensor outside the host's memory, which costs something to read."""
    return getattr(getattr(value, "device", None), "type", "cpu") != "cpu"


def without_graph(value: Tensor) -> Tensor:
    """The tensor, cut off from the graph that made it: holding it must not hold that. Others as they are."""
    return value.detach() if getattr(value, "requires_grad", False) else value


class Transfer:
    """The values of several steps on their way to the host.

    Raises:
        RuntimeError: the device failed, or the tensors' memory was used for something else meanwhile
        (CUDA graphs).
    """

    def __init__(self, steps: Sequence[Held]) -> None:
        self._names = [held.names for held in steps]
        torch: Torch = sys.modules["torch"]
        tensors = [tensor.detach().reshape(-1) for held in steps for tensor in held.tensors]
        device = tensors[0].device
        stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        idle = stream is None or stream.query()
        together = torch.cat([tensor.to(device) for tensor in tensors])
        self._done: Any = None  # a torch.cuda.Event; None: to be read at once
        self._host = together
        if not idle:
            self._host = torch.empty(together.shape, dtype=together.dtype, pin_memory=True)
            self._host.copy_(together, non_blocking=True)
            self._done = torch.cuda.Event()
            self._done.record(stream)

    @property
    def steps(self) -> int:
        """Of how many steps."""
        return len(self._names)

    def arrived(self) -> bool:
        """Whether `values` costs no waiting.

        Raises:
            RuntimeError: the device failed.
        """
        return self._done is None or bool(self._done.query())

    def values(self) -> list[dict[str, float]]:
        """The numbers of each step, by name.

        Raises:
            RuntimeError: the device failed.
        """
        numbers = iter(self._host.tolist())
        return [{name: short(next(numbers)) for name in names} for names in self._names]


def snapshot(values: Mapping[str, Tensor]) -> Held | None:
    """Hold a copy of the scalars among these tensors: their owner may go on to change them."""
    scalars = {name: value for name, value in values.items() if value.numel() == 1}
    return Held(tuple(scalars), tuple(scalars.values())).copied() if scalars else None
