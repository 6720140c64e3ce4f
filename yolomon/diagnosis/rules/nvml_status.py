"""NVML that cannot be read: said with the cause that the source found, and what still works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.messages import msg
from yolomon.model import Item

# A machine without an NVIDIA GPU, or the first seconds of a start, are facts and no fault.
_FACTS = frozenset({"no-gpu", "no-driver", "no-library", "starting", ""})


class NvmlStatus:
    """Passes on what the source of the GPUs says about itself."""

    codes: ClassVar[tuple[str, ...]] = ("nvml-unavailable",)

    def observe(self, item: Item, view: View) -> None:
        """Nothing to keep; the history holds the newest status."""

    def check(self, view: View) -> Iterator[Claim]:
        """The newest status of the source."""
        status = view.history.statuses.get("nvml")
        if status is None or status.ok or status.reason == "starting":
            return
        worked = any(gpu.answer_ts is not None for gpu in view.history.gpus.values())
        yield Claim(
            code="nvml-unavailable",
            target="host",
            severity="info" if status.reason in _FACTS and not worked else "warning",
            onset_ts=status.ts,
            summary=msg("The GPUs cannot be read ({reason})", reason=status.reason or "unknown"),
            cause=status.cause or msg("NVIDIA's management library does not answer"),
            remedy=status.remedy or msg("`yolomon doctor` checks driver, library and container"),
            evidence={"reason": status.reason, "failed_calls": float(status.errors)},
            unseen=(msg("GPU figures are missing; the trainer's log and the host are still followed"),),
            raise_after_seconds=2.0,
        )
