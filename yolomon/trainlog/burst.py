"""Bursts: a log that grows faster than records can be looked at one by one.

A job that writes thousands of lines a second, or a log that is copied in, must not make the screen fall
behind or the memory grow. So only so many batch records a second go on whole, always the newest; the others
go into the curves as blocks of minimum, maximum and last, are counted exactly, and those whose loss is not
finite are still told one by one, with their step. Other records (epochs, validations, messages) are always
told.
"""

from __future__ import annotations

from collections.abc import Iterable

from yolomon.model import CurveBlock, TrainRecord
from yolomon.trainlog.backlog import BacklogReader, pool_part
from yolomon.trainlog.curves import CurveBuilder
from yolomon.trainlog.epoch_length import EpochLength
from yolomon.trainlog.formats.base import BrokenLine, Format, Parser
from yolomon.trainlog.formats.json_records import JsonParser
from yolomon.trainlog.roles import loss_is_broken
from yolomon.trainlog.segments import SegmentTracker

WHOLE_PER_SECOND = 200.0  # a screen that draws twice a second takes about 700 batch records beside it
SAVED_UP = 100.0  # batch records that may come at once after a calm time
KEPT = 4  # of each piece that was read, whatever the rate: the newest
BROKEN_ALONE = 8  # of each piece
POINTS_A_BLOCK = 64

Told = TrainRecord | CurveBlock


class Allowance:
    """How many batch records may go on whole: `per_second` of them, saved up while fewer come."""

    def __init__(self, per_second: float = WHOLE_PER_SECOND, saved_up: float = SAVED_UP) -> None:
        self._per_second = per_second
        self._most = saved_up
        self._saved = saved_up
        self._at: float | None = None

    def take(self, wanted: int, clock: float) -> int:
        """How many of these may pass: all, or of a burst the newest few. `clock` in seconds never jumps."""
        if self._at is not None:
            self._saved = min(self._most, self._saved + (clock - self._at) * self._per_second)
        self._at = clock
        if wanted <= self._saved:
            self._saved -= wanted
            return wanted
        return min(wanted, KEPT)


class Condenser:
    """Makes few items of many lines or records of one log, in order."""

    def __init__(self, path: str, allowance: Allowance | None = None) -> None:
        self._path = path
        self.allowance = Allowance() if allowance is None else allowance
        self._builder = CurveBuilder(path, POINTS_A_BLOCK, live=True)
        self._builder.has_batches = True
        self._reader: BacklogReader | None = None
        self.records = 0
        self.broken_lines = 0
        self.nan_losses = 0
        self.last_broken: BrokenLine | None = None

    def lines(
        self,
        lines: list[bytes],
        now: float,
        format_: Format,
        parser: Parser,
        tracker: SegmentTracker,
        length: EpochLength,
    ) -> list[Told] | None:
        """What these JSON lines amount to, read in columns; None where the format is another.

        The counts of this call are left in `records`, `broken_lines` and `nan_losses`.
        """
        if not isinstance(parser, JsonParser):
            return None
        reader = self._reader
        if reader is None or reader.parser is not parser:
            reader = self._reader = BacklogReader(self._path, format_, parser, 0)
            reader.broken_alone = BROKEN_ALONE
        reader.share(tracker, length)
        reader.records = reader.broken_lines = reader.nan_losses = 0
        found: list[Told] = []
        broken = 0
        for part in reader.parts(lines, now):
            if isinstance(part, TrainRecord):
                broken += self._single(part, found, broken)
            else:
                pool_part(part, self._builder)
        found.extend(self._builder.flush())
        self.records, self.broken_lines = reader.records, reader.broken_lines
        self.nan_losses = reader.nan_losses
        self.last_broken = BrokenLine(reader.broken_example, "") if reader.broken_lines else None
        return found

    def thinned(self, records: Iterable[TrainRecord], clock: float) -> list[Told]:
        """Records of any format with the batches that are too many for the screen made blocks."""
        every = list(records)
        batches = sum(record.kind == "batch" for record in every)
        surplus = batches - self.allowance.take(batches, clock)
        if surplus <= 0:
            return list(every)
        found: list[Told] = []
        broken = 0
        for record in every:
            if surplus and record.kind == "batch":
                surplus -= 1
                broken += self._single(record, found, broken)
                continue
            found.extend(self._builder.flush())
            found.append(record)
        found.extend(self._builder.flush())
        return found

    def _single(self, record: TrainRecord, found: list[Told], broken: int) -> int:
        """Tell one record, or pool it if it is a usual batch; 1 where it is one with a broken loss."""
        is_broken = record.kind == "batch" and loss_is_broken(record.roles)
        if record.kind == "batch" and not (is_broken and broken < BROKEN_ALONE):
            self._builder.add(record)
            return int(is_broken)
        found.extend(self._builder.flush())
        found.append(record)
        return int(is_broken)
