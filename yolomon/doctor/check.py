"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from yolomon.messages import Message

Status = Literal["PASS", "WARN", "FAIL"]
_ORDER: tuple[Status, ...] = ("PASS", "WARN", "FAIL")


class Check(msgspec.Struct, frozen=True):
    """One thing looked at. `name` is stable, for scripts; `remedy` is there when something can be done."""

    name: str
    status: Status
    detail: Message
    remedy: Message | None = None


def worst(checks: Iterable[Check]) -> Status:
    """The worst status of all; PASS where there is none."""
    return max((check.status for check in checks), key=_ORDER.index, default="PASS")
