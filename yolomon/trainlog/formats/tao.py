"""NVIDIA TAO's `status.json`: JSON lines with a state and, in `kpi` and `graphical`, numbers.

Where a record has a `step` epochs count from 0 and `max_epoch` is the last index. Without one (the TensorFlow
backends and PyTorch's up to TAO 5.0) epochs count from 1, `max_epoch` is how many there are, losses and
learning rate stand in `graphical`, as texts, and `mean average precision` is VOC's, at an IoU of 0.5. The
numbers are sticky: a later message repeats a training loss of before, so only those that changed, or come
with an epoch, are taken. A good run ENDS with status RUNNING. Times are local and without leading zeros.
Sources: NVIDIA/tao_tensorflow1_backend cv/common/callbacks/loggers.py, NVIDIA/tao_pytorch_backend
core/callbacks/loggers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from yolomon.model import RecordKind, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.json_records import JsonParser, whole
from yolomon.trainlog.formats.jsonl import head_objects
from yolomon.trainlog.json_lines import Body
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import Meaning, Phase
from yolomon.trainlog.timestamps import duration_seconds, unpadded

_STATES = frozenset({"STARTED", "RUNNING", "SUCCESS", "FAILURE", "SKIPPED"})
_STAMPS = frozenset({"date", "time", "status", "verbosity", "message", "kpi", "categorical", "graphical",
     "eta",
                     "max_epoch", "max_step"})  # fmt: skip


class TaoParser(JsonParser):
    """Status messages to records."""

    zero_based: ClassVar[bool | None] = True
    overrides: ClassVar[Mapping[str, Meaning]] = {
        "time_per_epoch": Meaning("epoch_seconds"),
        "time_per_step": Meaning("step_seconds"),
        "mean average precision": Meaning("map50"),
    }

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._kpi: dict[str, object] = {}
        self._from_zero = False  # an epoch 0 was seen

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """A start, an epoch, a validation, a failure or words."""
        kpi: dict[str, object] = {}
        for name in ("graphical", "kpi"):
            values = body.get(name)
            if isinstance(values, dict):
                kpi.update(values)
        fresh = {key: value for key, value in kpi.items() if self._kpi.get(key) != value or "epoch" in body}
        self._kpi.update(kpi)
        flat: Body = {key: value for key, value in body.items() if key not in _STAMPS}
        flat.update(fresh)
        last, epoch = whole(body.get("max_epoch")), whole(body.get("epoch"))
        self._from_zero = self._from_zero or "step" in body or epoch == 0
        if epoch is not None and not self._from_zero:
            flat["epoch"] = epoch - 1
        if last is not None:
            flat["epochs"] = last + self._from_zero
        eta = body.get("eta")
        if isinstance(eta, str) and (seconds := duration_seconds(eta)) is not None:
            flat["eta_seconds"] = seconds
        message = body.get("message")
        text = shown(message) if isinstance(message, str) else ""
        kind, phase = self._kind(body, fresh, text)
        run = RunInfo(trainer="NVIDIA TAO", epochs=flat.get("epochs")) if kind == "start" else None
        return self.make(
            flat,
            arrival_ts,
            kind=kind,
            phase=phase,
            own_ts=unpadded(body.get("date"), body.get("time")),
            run=run,
            text=text,
        )

    @staticmethod
    def _kind(body: Body, fresh: Mapping[str, object], text: str) -> tuple[RecordKind, Phase]:
        status = body.get("status")
        if status == "STARTED" and not fresh:
            # The loop starts within a run, after a first validation.
            return ("message" if "loop" in text.lower() else "start"), None
        if status == "SUCCESS":
            return "end", None
        if status == "FAILURE" or not (fresh or "epoch" in body):
            return "message", None
        evaluates = any("map" in key.lower() or key.lower().startswith("val") for key in fresh)
        trains = any("loss" in key.lower() and not key.lower().startswith("val") for key in fresh)
        if evaluates and not trains:
            return "validation", "validation"
        return ("epoch" if "epoch" in body or evaluates else "message"), None


class Tao:
    """NVIDIA TAO's `status.json`."""

    name: ClassVar[str] = "tao-json"
    title: ClassVar[str] = "NVIDIA TAO status.json"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `status` with `verbosity`, `date` and `time`."""
        found, _ = head_objects(head)
        return (
            0.97
            if any(b.get("status") in _STATES and "verbosity" in b and "date" in b for b in found)
            else 0.0
        )

    @staticmethod
    def parser(source: str) -> TaoParser:
        """A new parser for one file."""
        return TaoParser(source)
