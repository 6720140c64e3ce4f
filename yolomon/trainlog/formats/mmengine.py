"""MMEngine (MMDetection 3, MMYOLO) `vis_data/<time>.json` and mmcv 1.x (MMDetection 2) `<time>.log.json`.

Both are JSON lines with seconds an iteration in `time` and MiB of torch's peak allocation in `memory`.
MMEngine counts `iter` over the run and its validation records carry the EPOCH in `step`, with no mode and no
clock (mmaction2#2612); where training counts iterations alone (no `epoch`), it is the iteration, or 0.
mmcv counts `iter` within the epoch, says `mode`, and begins with a header of 10 kB (mmpose#1301).

`mAP` of VOC and DOTA is at an IoU of 0.5 unless the thresholds are many, and then their APs are there, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

from yolomon.model import RunInfo, TrainRecord
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.json_records import JsonParser, whole
from yolomon.trainlog.formats.jsonl import head_objects
from yolomon.trainlog.json_lines import Body
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import MIB, Meaning

_OVERRIDES: Mapping[str, Meaning] = {
    "time": Meaning("step_seconds"),
    "memory": Meaning("memory_peak_bytes", 0, MIB),
    "data_time": Meaning("data_seconds"),
    "pascal_voc/mAP": Meaning("map50_95", 1),  # of several thresholds, see `_with_voc_map`
    "dota/mAP": Meaning("map50_95", 1),
}
_EVALUATION_OVERRIDES = (
    "time",
    "data_time",
)  # in a validation record they are seconds an evaluated image batch
_VOC = frozenset({"mAP", "pascal_voc/mAP", "dota/mAP"})
_FURTHER_AP = re.compile(r"(?:^|/)AP(?:55|60|65|70|75|80|85|90|95)$")


def _is_validation(body: Body) -> bool:
    """Whether these are metrics: all that MMEngine writes of training has `iter`."""
    if "iter" in body or any(key.startswith("loss") or key in ("lr", "base_lr") for key in body):
        return False
    return any(key not in ("time", "data_time", "memory", "step", "epoch") for key in body)


def _with_voc_map(body: Body) -> Body:
    """The metrics with VOC's mAP under a name that says its threshold, where it has but one."""
    names = _VOC.intersection(body)
    if not names or any(_FURTHER_AP.search(key) for key in body):
        return body
    return {(f"{key}50" if key in names else key): value for key, value in body.items()}


class MmengineParser(JsonParser):
    """MMEngine's scalars."""

    zero_based: ClassVar[bool | None] = False
    overrides: ClassVar[Mapping[str, Meaning]] = _OVERRIDES

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._epoch: int | None = None  # of the newest training record
        self._iteration = 0  # of the same
        self._counts_iterations = False  # training records have no epoch
        self._epoch_in_step: bool | None = None  # what the first validation's `step` was

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """A training interval, or a validation whose `step` is the epoch, or the iteration."""
        if not _is_validation(body):
            record = self.make(body, arrival_ts, kind="batch", phase="train")
            self._epoch = record.epoch if record.epoch is not None else self._epoch
            self._iteration = record.step or self._iteration
            self._counts_iterations = record.epoch is None and record.step is not None
            return record
        rest = {key: value for key, value in body.items() if key not in _EVALUATION_OVERRIDES}
        step = whole(rest.pop("step", None))
        if self._counts_iterations:
            if step:
                rest["step"] = step
        elif step is not None:
            if self._epoch_in_step is None:
                self._epoch_in_step = self._epoch is None or step <= self._epoch + 1 or step < self._iteration
            rest["epoch" if self._epoch_in_step and "epoch" not in rest else "step"] = step
        return self.make(_with_voc_map(rest), arrival_ts, kind="validation", phase="validation")


class MmcvParser(JsonParser):
    """mmcv 1.x records with `mode`."""

    zero_based: ClassVar[bool | None] = False
    overrides: ClassVar[Mapping[str, Meaning]] = _OVERRIDES

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """The header (env_info, config, seed), a training interval or a validation."""
        mode = body.get("mode")
        if mode is None and ("env_info" in body or "config" in body or "exp_name" in body):
            name = body.get("exp_name")
            run = RunInfo(trainer="MMDetection 2", model=shown(name, 120) if isinstance(name, str) else None)
            return TrainRecord(ts=arrival_ts, kind="start", source=self.source, run=run)
        # `iter` is the batch within the epoch here; as `step` it would go back every epoch.
        renamed = {("batch" if key == "iter" else key): value for key, value in body.items()}
        if mode == "val":
            for key in ("time", "data_time", "lr", "batch"):
                renamed.pop(key, None)
            return self.make(_with_voc_map(renamed), arrival_ts, kind="validation", phase="validation")
        return self.make(renamed, arrival_ts, kind="batch", phase="train")


class Mmengine:
    """MMEngine's `vis_data/<time>.json` (and its double, `scalars.json`)."""

    name: ClassVar[str] = "mmengine-json"
    title: ClassVar[str] = "MMEngine / MMYOLO scalars"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By the key set of its training records, or a lone object of test metrics."""
        found, _ = head_objects(head)
        if any("mode" in body for body in found):
            return 0.0
        train = sum(
            "loss" in body and "iter" in body and "step" in body and "data_time" in body for body in found
        )
        if train:
            return 0.95
        tests = sum("data_time" in body and "time" in body and _is_validation(body) for body in found)
        return 0.8 if tests and tests == len(found) else 0.0

    @staticmethod
    def parser(source: str) -> MmengineParser:
        """A new parser for one file."""
        return MmengineParser(source)


class Mmcv:
    """mmcv 1.x `<time>.log.json`."""

    name: ClassVar[str] = "mmcv-json"
    title: ClassVar[str] = "MMDetection 2 (mmcv) log.json"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `mode` with `iter`, or by the header that comes first."""
        found, _ = head_objects(head)
        if any(body.get("mode") in ("train", "val") and "iter" in body and "epoch" in body for body in found):
            return 0.95
        return 0.9 if any("env_info" in body for body in found) else 0.0

    @staticmethod
    def parser(source: str) -> MmcvParser:
        """A new parser for one file."""
        return MmcvParser(source)
