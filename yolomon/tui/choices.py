"""What the user chose on the pages: kept while yolomon runs, so that a page looks as it was left."""

from __future__ import annotations

from typing import Literal

import msgspec

from yolomon.model import Finding

Order = Literal["tree", "cpu", "memory", "gpu", "io"]
ORDERS: tuple[Order, ...] = ("tree", "cpu", "memory", "gpu", "io")


class Choices(msgspec.Struct):
    """All of it; the pages change it in place."""

    gpu_index: int | None = None
    finding: tuple[str, str, float] | None = None  # code, target, when raised
    order: Order = "tree"
    statistic: str = "std"  # of the features page's history
    toggled: set[str] = msgspec.field(
        default_factory=set
    )  # curves shown although hidden by default, or hidden
    logarithmic: bool = False
    smooth: int = 0  # which strength
    band: bool = True


def key_of(finding: Finding) -> tuple[str, str, float]:
    """What makes a finding the same one as a second ago."""
    return finding.code, finding.target, finding.raised_ts
