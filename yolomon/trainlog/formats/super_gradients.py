r"""super-gradients (YOLO-NAS): `experiment_logs_*.txt` (a line an epoch) and the console (bars, summaries).

    Epoch 0 (1/300)  - Train_PPYoloELoss/loss: 1.2\tValid_mAP@0.50: 0.3
    Train epoch 33: 100%|██████████| 250/250 [05:10<00:00,  1.24s/it, PPYoloELoss/loss=2.17, gpu_mem=13.4]
    SUMMARY OF EPOCH 33
    └── Validation
        ├── Map@0.50 = 0.6063

Epochs count from 0 in words and from 1 in "(1/300)". `gpu_mem` is torch's reserved memory in units of 1e9
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from yolomon.model import Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number, sane_map
from yolomon.trainlog.formats.progress_bar import Frame, frame, whole_postfix
from yolomon.trainlog.plain_text import plain

_EPOCH_LINE = re.compile(r"Epoch (\d{1,9}) \((\d{1,9})/(\d{1,9})\) *- (.*)$")
_CELL = re.compile(r"(?<![\w/@.:\-])([\w/@.:\-]{1,99}): (-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))(?=\s|$)")
_BAR_WORDS = re.compile(r"Train epoch (\d{1,9})$")
_POSTFIX = re.compile(r"(?<![\w/@.\-])([\w/@.\-]{1,99})=(-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))")
_SUMMARY = re.compile(r"SUMMARY OF EPOCH (\d{1,9})")
_LEAF = re.compile(r"[│ ]*[├└]── ([\w/@.:\-]+) += (-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))")
_SECTION = re.compile(r"[├└]── (Train(?:ing)?|Validation)$")  # "Train" before 3.2
_STARTED = re.compile(r"Started training for (\d{1,9}) epochs \((\d{1,9})/\d{1,9}\)")
_NEXT = re.compile(r"Train epoch \d|SUMMARY OF EPOCH|Epoch \d+ \(")  # a summary without its closing line
_BEST = re.compile(r"Best until now|Epoch N-1")


class SuperGradientsParser:
    """Epoch lines, bars and summaries."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._done = -1
        self._section = ""
        self._summary: dict[str, float] | None = None

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one line or redraw."""
        text = plain(line).rstrip()
        records: list[TrainRecord | BrokenLine] = []
        if self._summary is not None:
            if _BEST.search(text) is not None:
                return ()
            if (leaf := _LEAF.match(text)) is not None:
                value = number(leaf[2])
                if value is not None:
                    self._summary[f"{self._section}_{leaf[1]}"] = value
                return ()
            if (section := _SECTION.search(text)) is not None:
                self._section = "Valid" if section[1] == "Validation" else "Train"
                return ()
            if text.startswith("=") or _NEXT.search(text) is not None:
                records += self.finish(arrival_ts)
        drawn = frame(text)
        bar = _BAR_WORDS.search(drawn.words.strip()) if drawn is not None else None
        if drawn is not None and bar is not None:
            return records + self._bar(int(bar[1]) + 1, drawn, arrival_ts)
        if (summary := _SUMMARY.search(text)) is not None:
            self._epoch, self._summary, self._section = int(summary[1]) + 1, {}, "Train"
        elif (row := _EPOCH_LINE.search(text)) is not None:
            numbers = {n: v for n, cell in _CELL.findall(row[4]) if (v := number(cell)) is not None}
            records.append(self._epoch_record(int(row[2]), int(row[3]), numbers, arrival_ts))
        elif (started := _STARTED.search(text)) is not None:
            self._epochs = int(started[1])
            run = RunInfo(trainer="super-gradients", epochs=self._epochs)
            records.append(
                TrainRecord(ts=arrival_ts, kind="start", source=self._source, epochs=self._epochs, run=run)
            )
        elif is_alarming(text):
            records.append(message(self._source, arrival_ts, text, self._epoch))
        return records

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The summary that is being read: warnings may lie between its lines; a line of `=` ends it."""
        summary, self._summary = self._summary, None
        if not summary or self._epoch is None:
            return []
        return [self._epoch_record(self._epoch, None, summary, arrival_ts)]

    def _bar(self, epoch: int, drawn: Frame, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        if epoch != self._epoch:
            self._epoch, self._done = epoch, 0
        if drawn.done <= self._done:
            return []
        self._done = drawn.done
        numbers = {
            n: v
            for n, cell in _POSTFIX.findall(whole_postfix(drawn.postfix))
            if (v := number(cell)) is not None
        }
        memory = numbers.get("gpu_mem")
        loss, losses = _losses(numbers)
        return [
            TrainRecord(
                ts=arrival_ts,
                kind="batch",
                source=self._source,
                epoch=epoch,
                epochs=self._epochs,
                step=(epoch - 1) * drawn.total + drawn.done,
                batch=drawn.done,
                batches=drawn.total,
                numbers=numbers,
                roles=Roles(
                    loss=loss,
                    losses=losses,
                    step_seconds=1.0 / drawn.steps_per_second if drawn.steps_per_second else None,
                    memory_reserved_bytes=memory * 1e9 if memory else None,
                ),
            )
        ]

    def _epoch_record(
        self, epoch: int, epochs: int | None, numbers: dict[str, float], arrival_ts: float
    ) -> TrainRecord:
        self._epoch = epoch
        train = {n[len("Train_") :]: v for n, v in numbers.items() if n.startswith("Train_")}
        valid = {n[len("Valid_") :]: v for n, v in numbers.items() if n.startswith("Valid_")}
        loss, losses = _losses(train)
        by_lower = {name.lower(): value for name, value in valid.items()}
        return TrainRecord(
            ts=arrival_ts,
            kind="epoch",
            source=self._source,
            epoch=epoch,
            epochs=epochs or self._epochs,
            numbers=numbers,
            roles=Roles(
                loss=loss,
                losses=losses,
                validation_losses={n: v for n, v in valid.items() if "loss" in n.lower()},
                map50=sane_map(by_lower.get("map@0.50")),
                map50_95=sane_map(by_lower.get("map@0.50:0.95")),
                precision=by_lower.get("precision@0.50"),
                recall=by_lower.get("recall@0.50"),
                learning_rate=next((v for n, v in numbers.items() if n.lower() in ("lr", "inv_lr")), None),
            ),
        )


def _losses(numbers: dict[str, float]) -> tuple[float | None, dict[str, float]]:
    """The total (`X/loss` or `X/total`) and the other parts."""
    total_name = next((n for n in numbers if n.endswith(("/loss", "/total"))), None)
    parts = {n: v for n, v in numbers.items() if "loss" in n.lower() and n != total_name}
    return (numbers[total_name] if total_name is not None else None), parts


class SuperGradients:
    """Format: super-gradients."""

    name: ClassVar[str] = "super-gradients"
    title: ClassVar[str] = "super-gradients (YOLO-NAS) log"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By its epoch line, its summary or its bar."""
        text = head.data.decode("utf-8", "replace")
        if re.search(
            r"Epoch \d+ \(\d+/\d+\) *- |SUMMARY OF EPOCH \d+|^Train epoch \d+: ", text, re.MULTILINE
        ):
            return 0.95
        return 0.7 if "super_gradients" in text or "- sg_trainer" in text else 0.0

    @staticmethod
    def parser(source: str) -> SuperGradientsParser:
        """A parser for one log."""
        return SuperGradientsParser(source)
