"""What torch's CUDA allocator holds and uses: a part of what nvidia-smi shows."""

from __future__ import annotations

import sys
import time
from typing import Any

SNAPSHOT_SECONDS = 30.0  # a snapshot walks all blocks (milliseconds): at most so often
_RETRIES = "num_alloc_retries"


def allocator_numbers() -> dict[str, int]:
    """Bytes of this process's current GPU, cheap enough for every step (one call into torch).

    `mem_allocated`: in tensors. `mem_reserved`: held from the driver (nvidia-smi shows this plus the CUDA
    context). `mem_peak`: the most ever allocated. `mem_alloc_retries`: how often the cache had to be
    flushed to get memory. Empty where torch has no initialised CUDA device, or its statistics have another
    shape.
    Source: torch.cuda.memory_stats_as_nested_dict.
    """
    statistics = _statistics()
    try:
        return {
            "mem_allocated": int(statistics["allocated_bytes"]["all"]["current"]),
            "mem_reserved": int(statistics["reserved_bytes"]["all"]["current"]),
            "mem_peak": int(statistics["allocated_bytes"]["all"]["peak"]),
            "mem_alloc_retries": int(statistics[_RETRIES]),
        }
    except (KeyError, TypeError, ValueError):
        return {}


class BlockCensus:
    """The allocator's blocks, looked at seldom.

    `mem_largest_free_block`: bytes of the largest free block inside what is reserved. With plenty reserved
    but no large block, the memory is fragmented. `mem_inactive_split`: bytes in free pieces of split
    blocks, which cannot go back to the driver. `mem_ooms`: how often torch told of "out of memory".
    """

    def __init__(self) -> None:
        self._next = 0.0

    def numbers(self) -> dict[str, int]:
        """The figures above; empty when asked again within 30 s or where torch does not give them."""
        if time.monotonic() < self._next:
            return {}
        statistics = _statistics()
        if not statistics:
            return {}
        self._next = time.monotonic() + SNAPSHOT_SECONDS
        found: dict[str, int] = {}
        try:
            found["mem_inactive_split"] = int(statistics["inactive_split_bytes"]["all"]["current"])
            found["mem_ooms"] = int(statistics["num_ooms"])
            found["mem_largest_free_block"] = _largest_free_block()
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
            return found  # e.g. the cudaMallocAsync backend keeps no blocks of its own
        return found


def _largest_free_block() -> int:
    torch = sys.modules["torch"]
    device = torch.cuda.current_device()
    free = (
        block["size"]
        for segment in torch.cuda.memory_snapshot()
        if segment["device"] == device
        for block in segment["blocks"]
        if block["state"] == "inactive"
    )
    return int(max(free, default=0))


def _statistics() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {}
    try:
        return dict(cuda.memory_stats_as_nested_dict())
    except (AttributeError, RuntimeError):  # an older torch, or another allocator
        return {}
