"""yolomon's own stream: one event a line, one file a rank (train_start ... batch ... train_end)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from yolomon.model import RecordKind, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.json_records import JsonParser, whole
from yolomon.trainlog.formats.jsonl import head_objects
from yolomon.trainlog.json_lines import Body
from yolomon.trainlog.plain_text import shown
from yolomon.trainlog.roles import Meaning, Phase

KINDS: dict[str, RecordKind] = {
    "train_start": "start",
    "start": "start",
    "epoch_start": "epoch_start",
    "train_epoch_start": "epoch_start",
    "batch": "batch",
    "step": "batch",
    "epoch_end": "epoch_end",
    "train_epoch_end": "epoch_end",
    "val_start": "val_start",
    "val_end": "val_end",
    "validation": "validation",
    "eval": "validation",
    "fit_epoch_end": "epoch",
    "epoch": "epoch",
    "model_save": "checkpoint",
    "checkpoint": "checkpoint",
    "features": "features",
    "warning": "message",
    "message": "message",
    "dropped": "message",
    "exception": "message",
    "oom_retry": "message",
    "nan_recovery": "message",
    "epoch_restart": "message",
    "aborted": "message",
    "stopping": "stopping",
    "train_end": "end",
    "teardown": "end",
}
LAYERS_LIMIT = 256


class YolomonParser(JsonParser):
    """Events to records. Epochs count from 1 and memory is bytes; both are part of the schema."""

    zero_based: ClassVar[bool | None] = False
    overrides: ClassVar[Mapping[str, Meaning]] = {
        "mem_allocated": Meaning("memory_allocated_bytes", 0, 1.0),
        "mem_reserved": Meaning("memory_reserved_bytes", 0, 1.0),
        "mem_peak": Meaning("memory_peak_bytes", 0, 1.0),
        "batch_size": Meaning(""),
        "loss_step": Meaning(""),
    }

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """The record of one event; an unknown event is a message that carries its numbers."""
        event = body.get("event")
        if not isinstance(event, str):
            return self.make(body, arrival_ts)
        kind = KINDS.get(event, "message")
        if kind == "batch":
            return with_rate(self.make(body, arrival_ts, kind=kind, phase="train", text=""))
        if kind == "epoch" and body.get("final") is True:
            # The last look at best.pt belongs to no epoch; the stream numbers it last + 1.
            last = {key: value for key, value in body.items() if key != "epoch"}
            return self.make(last, arrival_ts, kind="validation", phase="validation", text="")
        if kind == "start":
            return self.make(body, arrival_ts, kind=kind, run=run_info(body))
        if kind == "features":
            return self._features(body, arrival_ts)
        phase: Phase = "validation" if kind in ("val_end", "validation") else None
        text = body.get("text", body.get("error"))
        words = shown(text) if isinstance(text, str) else event if kind == "message" else ""
        return self.make(body, arrival_ts, kind=kind, phase=phase, text=words)

    def _features(self, body: Body, arrival_ts: float) -> TrainRecord:
        layers = body.get("layers")
        if not isinstance(layers, dict):
            layers = body.get("features")
        features: dict[str, dict[str, float]] = {}
        for name, statistics in layers.items() if isinstance(layers, dict) else ():
            if isinstance(statistics, dict) and len(features) < LAYERS_LIMIT:
                numbers = {
                    shown(str(key), 60): float(value)
                    for key, value in statistics.items()
                    if isinstance(value, (int, float)) and not isinstance(value, bool)
                }
                features[shown(str(name), 120)] = numbers
        rest = {key: value for key, value in body.items() if key not in ("layers", "features")}
        return self.make(rest, arrival_ts, kind="features", features=features)


def with_rate(record: TrainRecord) -> TrainRecord:
    """The record with this rank's images a second, of images and step time, where none is told."""
    roles = record.roles
    images, seconds = roles.images, roles.step_seconds
    if roles.images_per_second is None and images and seconds and seconds > 0:
        # Set on the new record in place: `replace` copies twenty fields, and this is done for each batch.
        msgspec.structs.force_setattr(roles, "images_per_second", images / seconds)
    return record


def run_info(body: Mapping[str, Any]) -> RunInfo:
    """The settings a train_start event tells."""

    def text(*names: str) -> str | None:
        found = next((body[name] for name in names if isinstance(body.get(name), str)), None)
        return None if found is None else shown(found, 200)

    def number(*names: str) -> float | None:
        return next(
            (
                float(body[name])
                for name in names
                if isinstance(body.get(name), (int, float)) and not isinstance(body[name], bool)
            ),
            None,
        )

    def flag(name: str) -> bool | None:
        return body[name] if isinstance(body.get(name), bool) else None

    cache = body.get("cache")
    return RunInfo(
        model=text("model"),
        task=text("task"),
        data=text("data"),
        trainer=text("trainer", "framework"),
        epochs=whole(body.get("epochs")),
        batch_size=number("batch_size", "batch"),
        image_size=whole(body.get("imgsz", body.get("image_size"))),
        workers=whole(body.get("workers")),
        world_size=whole(body.get("world_size")),
        patience=whole(body.get("patience")),
        close_mosaic=whole(body.get("close_mosaic")),
        cache=None if cache is None else shown(str(cache), 40),
        amp=flag("amp"),
        device=None if body.get("device") is None else shown(str(body["device"]), 80),
        optimizer=text("optimizer"),
        validates=flag("val"),
        multi_scale=number("multi_scale"),
        save_directory=text("save_dir", "save_directory"),
    )


class YolomonEvents:
    """yolomon's own events, one JSON object a line."""

    name: ClassVar[str] = "yolomon-jsonl"
    title: ClassVar[str] = "yolomon events"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """Certain where objects carry `ts`, `rank` and a known `event`."""
        found, _ = head_objects(head)
        known = sum(
            isinstance(body.get("event"), str)
            and body["event"] in KINDS
            and isinstance(body.get("ts"), (int, float))
            and "rank" in body
            for body in found
        )
        return 0.98 if known and known * 2 >= len(found) else 0.0

    @staticmethod
    def parser(source: str) -> YolomonParser:
        """A new parser for one file."""
        return YolomonParser(source)
