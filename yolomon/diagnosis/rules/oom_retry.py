"""oom-risk of a run that already ran out of device memory, caught it and went on."""

from __future__ import annotations

from collections.abc import Iterable

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.messages import Message, msg
from yolomon.model import TrainRecord

SHOWN_SECONDS = 120.0


class OomRetry:
    """The log tells of memory that ran out, and steps came after it. A part of the rule of vram-growth."""

    def __init__(self) -> None:
        self._retry: tuple[float, str] | None = None  # when, and the log's words

    def observe(self, record: TrainRecord) -> None:
        """Look at the log's words."""
        if record.kind == "start":
            self._retry = None
        elif record.kind == "message" and "out of memory" in record.text.lower():
            self._retry = (record.ts, record.text[:160])

    def check(self, view: View) -> Iterable[Claim]:
        """At most one claim, for two minutes."""
        last = view.phases.last_batch_ts()
        retry = self._retry
        if retry is None or last is None or last <= retry[0] or view.now_ts - retry[0] >= SHOWN_SECONDS:
            return []
        return [self._claim(view, retry)]

    @staticmethod
    def _claim(view: View, retry: tuple[float, str]) -> Claim:
        indices = view.job.gpu_indices
        target = f"gpu{indices[0]}" if len(indices) == 1 else "run"
        return Claim(
            code="oom-risk",
            target=target,
            severity="critical",
            onset_ts=retry[0],
            summary=msg("the trainer ran out of GPU memory and went on"),
            cause=msg("a step needed more memory than there is; the trainer caught it"),
            remedy=_remedy_batch(view),
            evidence={"log": retry[1]},
            signals=("memory_used_bytes",),
            clear_after_seconds=1.0,
        )


def _remedy_batch(view: View) -> Message:
    batch = view.history.train.run.batch_size
    if batch is not None and batch >= 2:
        return msg("use batch={half} (it is {batch})", half=int(batch) // 2, batch=int(batch))
    return msg("use a smaller batch or image size")
