"""Reading protobuf messages without their schema: field numbers and raw values.

Source: protobuf.dev/programming-guides/encoding (varint, fixed64, length-delimited, fixed32).
"""

from __future__ import annotations

from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) pairs: a varint as int, all else as the raw bytes (8, 4, or as long as it says).

    Raises:
        ValueError: the message is cut off or uses a wire type that is no longer in use.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire == 1:
            size = 8
        elif wire == 5:
            size = 4
        elif wire == 2:
            size, at = _varint(data, at)
        else:
            raise ValueError(f"wire type {wire}")
        if at + size > end:
            raise ValueError("message is cut off")
        yield key >> 3, data[at : at + size]
        at += size


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
