"""Turn what training code has at hand (tensors, NumPy scalars, paths) into what JSON can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from yolomon.trainer.foreign import Json

TEXT_LIMIT = 2000
_ENCODER = json.JSONEncoder(ensure_ascii=False)  # made once: json.dumps would make one a line


def number(value: object) -> float | int | None:
    """A Python number of a number, a one-element tensor or array; None where there is none.

    A tensor on a GPU is copied, which waits for the GPU.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    item = getattr(value, "item", None)
    if item is None:
        return None
    try:
        plain = item()
    except (TypeError, ValueError, RuntimeError):  # more than one element, or a tensor without data
        return None
    return plain if isinstance(plain, (int, float)) else None


def short(value: float, digits: int = 7) -> float:
    """`value` with so many significant digits: float32 has no more, and lines stay short."""
    return float(f"{value:.{digits}g}")


def jsonable(value: object) -> Json:
    """`value` as JSON types; what has none becomes its text, cut at 2000 characters."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value[:TEXT_LIMIT]
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    plain = number(value)
    if plain is not None:
        return plain
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [jsonable(item) for item in value]
    tolist = getattr(value, "tolist", None)
    if tolist is not None:
        return tolist()
    return str(value)[:TEXT_LIMIT]


def encode(record: Mapping[str, object]) -> bytes:
    """One line of JSON with its newline. NaN and infinity stay bare: NaN, Infinity, -Infinity."""
    try:
        text = _ENCODER.encode(record)
    except (TypeError, ValueError):
        text = _ENCODER.encode(jsonable(record))
    return text.encode("utf-8", "replace") + b"\n"
