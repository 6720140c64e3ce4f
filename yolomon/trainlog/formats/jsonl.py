"""JSON lines of any shape: what a number means is told by its name. Also structlog and loguru records."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.json_records import JsonParser
from yolomon.trainlog.json_lines import Body, objects

HEAD_OBJECTS = 20  # how many objects of the head the JSON formats look at


def head_objects(head: Head) -> tuple[list[Body], int]:
    """The first objects of the head, and how many of the lines before them were no objects."""
    if b"{" not in head.data[:65536]:
        return [], 1
    found: list[Body] = []
    broken = 0
    lines = head.data.split(b"\n")
    if len(lines) > 1:
        lines = lines[:-1] if lines[-1].strip() and not lines[-1].rstrip().endswith(b"}") else lines
    for line in lines[: 4 * HEAD_OBJECTS]:
        for entry in objects(line):
            if isinstance(entry, BrokenLine):
                broken += 1
            else:
                found.append(entry)
        if len(found) >= HEAD_OBJECTS:
            break
    return found, broken


class GenericJsonParser(JsonParser):
    """Objects by their names; loguru's envelope is opened, structlog's `event` words are kept as text."""

    def record(self, body: Body, arrival_ts: float) -> TrainRecord | None:
        """The record of one object."""
        inner = body.get("record")
        if isinstance(inner, dict) and isinstance(inner.get("extra"), dict):
            return self._loguru(inner, arrival_ts)
        return self.make(body, arrival_ts)

    def _loguru(self, record: dict[str, Any], arrival_ts: float) -> TrainRecord | None:
        extra: Body = dict(record["extra"])
        time = record.get("time")
        if "ts" not in extra and isinstance(time, dict):
            extra["ts"] = time.get("timestamp")
        if "message" not in extra:
            extra["message"] = record.get("message")
        return self.make(extra, arrival_ts)


class Jsonl:
    """Any JSON-lines log."""

    name: ClassVar[str] = "jsonl"
    title: ClassVar[str] = "JSON lines"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "lines"

    @staticmethod
    def score(head: Head) -> float:
        """0.5 for objects with any number, less where lines are broken or hold words alone."""
        found, broken = head_objects(head)
        hinted = head.name.endswith((".jsonl", ".ndjson"))
        if not found or (broken > len(found) and not hinted):
            return 0.0
        if str(found[0].get("schema", "")).startswith("yolomon.telemetry"):
            return 0.0  # a recording of the machine, no trainer's log
        parser = GenericJsonParser("")
        tells = any(
            isinstance(record, TrainRecord) and (record.numbers or record.epoch is not None)
            for record in (parser.record(body, 0.0) for body in found)
        )
        if not tells and not hinted:
            return 0.0
        return 0.5 if tells else 0.35

    @staticmethod
    def parser(source: str) -> GenericJsonParser:
        """A new parser for one file."""
        return GenericJsonParser(source)
