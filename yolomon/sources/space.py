"""Room in file systems: /dev/shm, where loader workers hand over batches, and the run's own."""

from __future__ import annotations

import os

import msgspec


class Space(msgspec.Struct, frozen=True, gc=False):
    """A file system's room in bytes; `free_bytes` is what a user without privileges may still write."""

    total_bytes: int
    used_bytes: int
    free_bytes: int


def space_of(path: str) -> Space | None:
    """Room in the file system that holds `path`; None where it tells no size.

    May take seconds, or not return at all, on a network mount: call it from a `Probe`.

    Raises:
        OSError: the path does not exist or the file system does not answer.
    """
    told = os.statvfs(path)
    if told.f_blocks <= 0:
        return None
    unit = told.f_frsize or told.f_bsize
    return Space(told.f_blocks * unit, (told.f_blocks - told.f_bfree) * unit, told.f_bavail * unit)
