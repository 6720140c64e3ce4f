"""Detectron2's `metrics.json`: JSON lines every 20 iterations, evaluation keys only where it was done.

Iterations count from 0 and there is no epoch and no clock. Runs are appended without a mark; a resumed run
repeats
iterations, and records may be one out of order. AP is 0 to 100, NaN or -1 where a class or size is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.json_records import JsonParser
from yolomon.trainlog.formats.jsonl import head_objects
from yolomon.trainlog.json_lines import Body
from yolomon.trainlog.roles import Meaning

_AP = ("bbox/AP", "segm/AP")  # alone, or after the name of a data set where several are tested


class Detectron2Parser(JsonParser):
    """Records of EventStorage; those with AP and no loss are validations."""

    map_factor: ClassVar[float | None] = 0.01
    overrides: ClassVar[Mapping[str, Meaning]] = {
        "time": Meaning("step_seconds"),
        "eta_seconds": Meaning("eta_seconds"),
    }

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """A logged interval, with the evaluation's numbers where one was done."""
        trains = "total_loss" in body or "lr" in body
        if trains:
            return self.make(body, arrival_ts, kind="batch", phase="train")
        return self.make(body, arrival_ts, kind="validation", phase="validation")


class Detectron2:
    """Detectron2's `metrics.json`."""

    name: ClassVar[str] = "detectron2-json"
    title: ClassVar[str] = "Detectron2 metrics.json"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `iteration` with `total_loss` or with AP under `bbox/`."""
        found, _ = head_objects(head)
        if any("iteration" in body and "total_loss" in body for body in found):
            return 0.95
        return 0.7 if any(key.endswith(_AP) for body in found for key in body) else 0.0

    @staticmethod
    def parser(source: str) -> Detectron2Parser:
        """A new parser for one file."""
        return Detectron2Parser(source)
