"""`log.txt` of DETR, Deformable DETR, RT-DETR, D-FINE, RF-DETR 1.2: JSON lines, one an epoch.

Epochs count from 0. `test_coco_eval_bbox` is COCO's list of 12 (first AP, second AP50). Runs are appended
without a
mark, with other keys. RF-DETR adds `ema_test_*`, times as texts and a nested results object.
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

_COCO = {"coco_eval_bbox": ("mAP50-95", "mAP50"), "coco_eval_masks": ("mAP50-95(M)", "mAP50(M)")}
_PREFIXES = ("test_", "ema_test_", "val_", "")


class DetrParser(JsonParser):
    """Records of one epoch each, training and test together."""

    zero_based: ClassVar[bool | None] = True
    map_factor: ClassVar[float | None] = 1.0
    overrides: ClassVar[Mapping[str, Meaning]] = {"best_map": Meaning(""), "n_parameters": Meaning("")}

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """The epoch's record; the list of COCO figures becomes named numbers."""
        flat = {key: value for key, value in body.items() if "results_json" not in key}
        for prefix in _PREFIXES:
            for key, names in _COCO.items():
                values = body.get(prefix + key)
                if isinstance(values, list):
                    for name, value in zip(names, values, strict=False):
                        if isinstance(value, (int, float)):
                            flat[f"{prefix}{name}"] = value
        trains = any(key.startswith("train_") for key in body)
        evaluates = any(key.startswith(("test_", "ema_test_", "val_")) for key in body)
        kind: Literal["epoch", "validation"] = "validation" if evaluates and not trains else "epoch"
        return self.make(flat, arrival_ts, kind=kind)


class Detr:
    """The DETR family's `log.txt`."""

    name: ClassVar[str] = "detr-json"
    title: ClassVar[str] = "DETR / RT-DETR / D-FINE / RF-DETR log.txt"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """By `epoch` and `train_loss` with `n_parameters` or COCO's list, which these all write."""
        found, _ = head_objects(head)
        if any("epoch" in b and "train_loss" in b and "n_parameters" in b for b in found):
            return 0.95
        return 0.8 if any("test_coco_eval_bbox" in body for body in found) else 0.0

    @staticmethod
    def parser(source: str) -> DetrParser:
        """A new parser for one file."""
        return DetrParser(source)
