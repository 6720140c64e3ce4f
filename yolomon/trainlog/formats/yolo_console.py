"""The console that Ultralytics, YOLOv5, v7 and v9 share: header, redrawn bar, validation row.

        Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        1/100      2.31G      1.234      2.345        1.1         42        640: 20% ━━── 1/5 2.0it/s 0.2s<2s
                   Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100% ━━ 1/1 28it/s
                     all          6         12        0.9        0.8        0.7        0.6

Losses are running means over the epoch so far, of rank 0 alone. A redraw becomes a batch record only when
the bar's count moved. The `all` row ends an epoch; without validation the next epoch's first frame does.

Two things are less regular than they look. A trainer that prints the `all` row (YOLOv5 up to v5, YOLOv7)
and is redirected to a file hands its rows over a buffer at a time, many epochs late: they belong to the
epochs that were validated, in order. And a bar of tqdm in a narrow terminal is cut anywhere, without a mark.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from yolomon.model import Roles, RunInfo, TrainRecord
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.console_lines import is_alarming, message
from yolomon.trainlog.formats.numbers import number, sane_map, total
from yolomon.trainlog.formats.progress_bar import Frame, frame, whole_words
from yolomon.trainlog.plain_text import plain, shown

_COUNT = re.compile(r"(\d{1,9})/(\d{1,9})$")
_MEMORY = re.compile(r"(\d{1,9}(?:\.\d*)?)([GM])$")
_COMPLETED = re.compile(r"\d+ epochs completed in ")
_NAMES_BEFORE = 2  # Epoch, GPU_mem
_NAMES_AFTER = 2  # Instances, Size
_GLUED = re.compile(r"(?<=[\]s])\s{2,}(?=\d{1,9}/\d{1,9} +\d[\d.]*[GM] |Class +Images )")
_LATE_ROWS = 3  # validated epochs without their row from which on rows are late, and not lost
_LATE_LIMIT = 4096
_FRAME_LENGTH = 160  # characters; a longer line may be several frames


class YoloConsole:
    """The shared parser. A subclass says where epochs start, its gigabyte, and which lines it listens to."""

    first_epoch: ClassVar[int] = 1
    gigabyte: ClassVar[float] = 2**30

    def __init__(self, source: str) -> None:
        self.source = source
        self.run = RunInfo()
        self._names: list[str] = []  # of the losses
        self._second = "M"  # what the second set of metrics is of: masks or poses
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._done = -1
        self._validates_best = False
        self._pending: TrainRecord | None = None  # the last frame of an epoch that no `all` row has ended yet
        self._validated = False  # the pending epoch's validation bar was seen
        self._late: deque[int] = deque(maxlen=_LATE_LIMIT)  # validated epochs whose row is still to come
        self._probing = False  # AutoBatch is at work
        self._counted: int | None = None  # the newest header's epoch, counted from the start of training

    # ------------------------------------------------------------------ the parser's protocol

    def feed(self, line: bytes, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The records of one redraw or line; the final redraw of an epoch is kept for its epoch record."""
        text = plain(line)
        if len(text) > _FRAME_LENGTH and text.count("%") > 1:
            # A copy of a console without its carriage returns: many frames on one line.
            return [record for piece in _GLUED.split(text) for record in self._piece(piece, arrival_ts)]
        return self._piece(text, arrival_ts)

    def _piece(self, text: str, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        if "%" in text:
            drawn = frame(text)
            if drawn is not None:
                return self._bar(drawn, arrival_ts)
        words = text.split()
        if not words:
            return ()
        if len(words) > _NAMES_BEFORE and _COUNT.match(words[0]) and _MEMORY.match(words[1]):
            return self._bar(Frame(self._without_bar(text, words), 0, 0, None, None, ""), arrival_ts)
        if words[0] in ("Class", "classes"):
            self._validation_bar(words, True)
            return ()
        if words[0] == "all":
            return self._validation(words[1:], arrival_ts)
        if words[0] == "Epoch" and len(words) > 2 and words[1].lower() == "gpu_mem":
            self._header(words)
            return ()
        if text.startswith("AutoBatch: "):
            self._probing = "Using batch-size" not in text
        elif self._probing and "out of memory" in text:
            return ()  # AutoBatch tries how much fits
        return self.line(text.strip(), arrival_ts)

    def finish(self, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """The epoch whose bar was full when the log ended, where nothing told its end."""
        return self._complete_pending(arrival_ts) if self._pending and self._bar_full() else ()

    def line(self, text: str, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """A line of words. A subclass listens to more of them."""
        if text.startswith("Validating ") and "best" in text:
            records = list(self._complete_pending(arrival_ts))
            self._validates_best = True
            return records
        if _COMPLETED.match(text):
            end = TrainRecord(
                ts=arrival_ts,
                kind="end",
                source=self.source,
                epoch=self._epoch,
                epochs=self._epochs,
                text=shown(text),
            )
            return [*self._complete_pending(arrival_ts), end]
        if is_alarming(text):
            return [self.message(text, arrival_ts)]
        return ()

    def message(self, text: str, arrival_ts: float) -> TrainRecord:
        """A line of words as a record, in the epoch it was said."""
        return message(self.source, arrival_ts, text, self._epoch)

    def start(self, arrival_ts: float, epochs_before: int = 0) -> TrainRecord:
        """Training begins, with the settings read so far; a resumed one after so many epochs."""
        self._epoch = self._pending = None
        self._done = -1
        self._validates_best = self._validated = self._probing = False
        self._late.clear()
        self._counted = epochs_before
        return TrainRecord(
            ts=arrival_ts, kind="start", source=self.source, epochs=self.run.epochs, run=self.run
        )

    # ------------------------------------------------------------------ rows

    def _header(self, words: list[str]) -> None:
        complete = whole_words(" ".join(words))
        if len(complete) == len(words):  # not cut by a narrow terminal
            self._names = words[_NAMES_BEFORE:-_NAMES_AFTER]
        elif len(complete) - _NAMES_BEFORE > len(self._names):
            self._names = complete[_NAMES_BEFORE:]
        if self._counted is not None:
            self._counted += 1

    def _without_bar(self, text: str, words: list[str]) -> str:
        """The row of a frame that has no bar: logged without one, or cut by a narrow terminal.

        tqdm cuts at the terminal's width and leaves no mark, so the last number of a row that is too
        short may be half a number; the row is marked with `…` there.
        """
        size = next((place for place, word in enumerate(words) if word.endswith(":")), None)
        if size is not None:  # the colon stands between the row and its bar
            return " ".join(words[: size + 1]).rstrip(":")
        if self._names and len(words) < _NAMES_BEFORE + len(self._names) + _NAMES_AFTER:
            return " ".join([*words, "…"] if text.endswith(" ") else [*words[:-1], "…"])
        return " ".join(words)

    def _bar(self, drawn: Frame, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        words = whole_words(drawn.words)
        count = _COUNT.match(words[0]) if words else None
        if count is None or len(words) < 2:
            self._validation_bar(words, drawn.done == drawn.total)
            return ()
        memory = _MEMORY.match(words[1])
        if memory is None:
            return ()
        epoch = int(count[1]) + 1 - self.first_epoch
        records: list[TrainRecord | BrokenLine] = []
        if epoch != self._epoch or drawn.done < self._done:
            records += self._complete_pending(arrival_ts)
            self._epoch, self._done, self._validated = epoch, 0, False
            if self._counted is not None:
                self._counted = epoch
            self._epochs = int(count[2]) + (0 if self.first_epoch else 1)
            records.append(
                TrainRecord(
                    ts=arrival_ts, kind="epoch_start", source=self.source, epoch=epoch, epochs=self._epochs
                )
            )
        record = self._batch(words, memory, drawn, arrival_ts, was_cut="…" in drawn.words)
        self._pending = record
        if drawn.done > self._done:
            self._done = drawn.done
            records.append(record)
        return records

    def _batch(
        self, words: list[str], memory: re.Match[str], drawn: Frame, arrival_ts: float, was_cut: bool
    ) -> TrainRecord:
        cells = words[_NAMES_BEFORE:]
        after = [] if was_cut else cells[-_NAMES_AFTER:]
        losses: dict[str, float] = {}
        for place, cell in enumerate(cells if was_cut else cells[:-_NAMES_AFTER]):
            value = number(cell)
            if value is not None:
                losses[self._names[place] if place < len(self._names) else f"loss_{place + 1}"] = value
        numbers = dict(losses)
        image_size = number(after[1]) if len(after) == _NAMES_AFTER else None
        if image_size is not None:
            numbers["Instances"], numbers["Size"] = number(after[0]) or 0.0, image_size
        memory_bytes = float(memory[1]) * (self.gigabyte if memory[2] == "G" else self.gigabyte / 1000)
        rate = drawn.steps_per_second
        batch_size = self.run.batch_size
        assert self._epoch is not None  # set by the caller
        return TrainRecord(
            ts=arrival_ts,
            kind="batch",
            source=self.source,
            epoch=self._epoch,
            epochs=self._epochs,
            step=(self._epoch - 1) * drawn.total + drawn.done if drawn.total else None,
            batch=drawn.done if drawn.total else None,
            batches=drawn.total or None,
            numbers=numbers,
            roles=Roles(
                loss=self._loss(losses, was_cut),
                losses={name: value for name, value in losses.items() if name != "total"},
                image_size=image_size,
                memory_reserved_bytes=memory_bytes or None,  # 0G: training on the CPU
                step_seconds=1.0 / rate if rate else None,
                images_per_second=rate * batch_size if rate and batch_size and batch_size >= 1 else None,
            ),
        )

    def _loss(self, losses: dict[str, float], was_cut: bool) -> float | None:
        """The total where the trainer prints one, else the sum of all parts; a cut row has no sum."""
        if "total" in losses:
            return losses["total"]
        if was_cut and len(losses) < max(len(self._names), 2):
            return None
        return total(losses.values())

    def _validation_bar(self, words: list[str], complete: bool) -> None:
        if not words or words[0] not in ("Class", "classes"):
            return
        self._validated = self._validated or complete
        if "Pose(P" in words:
            self._second = "P"
        elif "Mask(P" in words:
            self._second = "M"

    def _validation(self, cells: list[str], arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        values = [number(cell) for cell in cells]
        metrics = self._metrics([v for v in values if v is not None]) if None not in values else {}
        if self._pending is not None and self._validated and len(self._late) < _LATE_ROWS:
            self._late.clear()
        late = self._late.popleft() if self._late else None
        if not metrics:
            return ()
        roles = Roles(
            map50=sane_map(metrics.get("metrics/mAP50(B)")),
            map50_95=sane_map(metrics.get("metrics/mAP50-95(B)")),
            precision=metrics.get("metrics/precision(B)"),
            recall=metrics.get("metrics/recall(B)"),
        )
        if late is not None:
            return [self._evaluation(late, arrival_ts, metrics, roles)]
        last, self._pending = self._pending, None
        if self._validates_best or last is None:
            # best.pt is of an earlier epoch
            epoch = None if self._validates_best else self._epoch_of_row()
            return [self._evaluation(epoch, arrival_ts, metrics, roles)]
        return [self._epoch_record(last, arrival_ts, metrics, roles)]

    def _epoch_of_row(self) -> int | None:
        """The epoch of a row without a bar before it (`verbose=False` hides bars): the headers count."""
        if self._counted is not None and self._counted > (self._epoch or 0):
            self._epoch, self._epochs = self._counted, self.run.epochs
        return self._epoch

    def _evaluation(
        self, epoch: int | None, arrival_ts: float, metrics: dict[str, float], roles: Roles
    ) -> TrainRecord:
        return TrainRecord(
            ts=arrival_ts,
            kind="validation",
            source=self.source,
            epoch=epoch,
            epochs=self._epochs,
            numbers=metrics,
            roles=roles,
        )

    def _metrics(self, values: list[float]) -> dict[str, float]:
        names = ("precision", "recall", "mAP50", "mAP50-95")
        if len(values) == 2:  # classification
            return {"metrics/accuracy_top1": values[0], "metrics/accuracy_top5": values[1]}
        if len(values) not in (6, 10):  # images, instances, then four of each kind
            return {}
        metrics = {f"metrics/{name}(B)": value for name, value in zip(names, values[2:6], strict=True)}
        if len(values) == 10:
            metrics |= {f"metrics/{n}({self._second})": v for n, v in zip(names, values[6:], strict=True)}
        return metrics

    # ------------------------------------------------------------------ the end of an epoch

    def _bar_full(self) -> bool:
        return self._pending is not None and self._pending.batch == self._pending.batches

    def _complete_pending(self, arrival_ts: float) -> list[TrainRecord | BrokenLine]:
        """The epoch record of an epoch that ended without a validation row; none if its bar never filled."""
        last, full = self._pending, self._bar_full()
        self._pending = None
        if last is not None and last.epoch is not None and full and self._validated:
            self._late.append(last.epoch)
        return [self._epoch_record(last, arrival_ts, {}, Roles())] if last is not None and full else []

    def _epoch_record(
        self, last: TrainRecord, arrival_ts: float, metrics: dict[str, float], roles: Roles
    ) -> TrainRecord:
        means = {f"train/{name}": value for name, value in last.roles.losses.items()}
        return TrainRecord(
            ts=arrival_ts,
            kind="epoch",
            source=self.source,
            epoch=last.epoch,
            epochs=last.epochs,
            step=last.step,
            numbers=means | metrics,
            roles=Roles(
                loss=last.roles.loss,
                losses=last.roles.losses,
                map50=roles.map50,
                map50_95=roles.map50_95,
                precision=roles.precision,
                recall=roles.recall,
                memory_reserved_bytes=last.roles.memory_reserved_bytes,
            ),
        )
