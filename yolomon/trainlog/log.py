"""One log: its bytes followed, its format recognised, its lines made records, its faults counted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from yolomon.messages import Message, msg
from yolomon.model import LogStatus, TrainRecord
from yolomon.trainlog.burst import Condenser, Told
from yolomon.trainlog.epoch_length import EpochLength
from yolomon.trainlog.formats.base import BrokenLine, Format, Head, Parser
from yolomon.trainlog.formats.registry import recognise
from yolomon.trainlog.json_lines import complete
from yolomon.trainlog.lines import LineSplitter
from yolomon.trainlog.roles import loss_is_broken
from yolomon.trainlog.segments import SegmentTracker
from yolomon.trainlog.tail import Chunk, FileFollower, Restart

HEAD_LIMIT = 1 << 16
UNKNOWN_LIMIT = 1 << 20  # bytes kept of a log that no format knows yet
WHOLE_LIMIT = 64 << 20  # bytes of a file that is read as a whole
QUIET_SECONDS = 2.0  # after which a last line without its end may be taken as complete
REPEATS_LIMIT = 20_000  # records remembered, to know them again in a file that is written anew
ELAPSED = {"ultralytics-csv": "time"}


class Counts(msgspec.Struct):
    """What one log gave so far."""

    records: int = 0
    broken_lines: int = 0
    lost_records: int = 0
    nan_losses: int = 0
    restarts: int = 0
    last_broken: BrokenLine | None = None


class Log:
    """One file as records. No thread of its own: call `look` from one.

    Args:
        path: the file; it need not exist yet.
        offset: where to begin, at the start of a line.
        format_: how to read it, where that is already known.
        parser: goes on with this one.
    """

    def __init__(
        self, path: str, *, offset: int = 0, format_: Format | None = None, parser: Parser | None = None
    ) -> None:
        self.path = path
        self.follower = FileFollower(path, offset)
        self.counts = Counts()
        self.format = format_
        self.tracker = SegmentTracker(None if format_ is None else ELAPSED.get(format_.name))
        self.last_growth_ts: float | None = None
        self._parser = parser
        self._length = EpochLength()
        self._splitter = LineSplitter(redraws=format_ is not None and format_.reads == "redraws")
        self._overlong = 0
        self._unknown = bytearray()
        self._unknown_size = 0
        self._looked_at = 0  # how much of an unknown log was looked at for its format
        self._whole_changed = False
        self._told_restart = False
        self._seen: dict[int, None] = {}
        self._repeats: set[int] = set()
        self._quiet_since: float | None = None
        self._clock = 0.0
        self._condenser: Condenser | None = None  # at work only while `look_live` looks

    def close(self) -> None:
        """Give the file back."""
        self.follower.close()

    # ------------------------------------------------------------ reading

    def look_live(self, now: float, clock: float, condenser: Condenser) -> list[Told]:
        """The records since the last look; of a burst the newest, and the curves of the others."""
        self._condenser, self._clock = condenser, clock
        try:
            return self._look(now, clock)
        finally:
            self._condenser = None

    def look(self, now: float, clock: float | None = None) -> list[TrainRecord]:
        """The records that came since the last look.

        Args:
            now: UNIX seconds, the arrival of what is new.
            clock: a clock that never jumps, for how long the log has been quiet; `now` unless given.
        """
        found = self._look(now, now if clock is None else clock)
        return [entry for entry in found if isinstance(entry, TrainRecord)]  # no blocks without a condenser

    def _look(self, now: float, clock: float) -> list[Told]:
        found: list[Told] = []
        grew = False
        for event in self.follower.look(clock):
            if isinstance(event, Restart):
                found.extend(self._restart(event, now))
            elif isinstance(event, Chunk):
                grew = True
                found.extend(self._take_live(event.data, now))
        if grew:
            self.last_growth_ts = now
            self._quiet_since = clock
        elif self._quiet_since is not None and clock - self._quiet_since >= QUIET_SECONDS:
            found.extend(self._quiet(now))
        return found

    def push(self, data: bytes, now: float, clock: float) -> list[TrainRecord]:
        """The records of bytes that come from a pipe and not from the file; b"" where none came."""
        if data:
            self.last_growth_ts, self._quiet_since = now, clock
            return self._take(data, now)
        if self._quiet_since is not None and clock - self._quiet_since >= QUIET_SECONDS:
            return self._quiet(now)
        return []

    def finish(self, now: float) -> list[TrainRecord]:
        """What is still held back, when nothing more will come."""
        found: list[TrainRecord] = []
        if self.format is None:
            found.extend(self._recognise(now, final=True))
        if self.format is not None and self.format.reads == "whole":
            found.extend(self._read_whole(now))
        elif self._parser is not None:
            found.extend(self._feed_rest(now))
        if self._parser is not None:
            found.extend(self._accept(self._parser.finish(now)))
        return found

    def _take_live(self, data: bytes, now: float) -> list[Told]:
        condenser = self._condenser
        if condenser is None or self._repeats:
            return list(self._take(data, now))
        if self._parser is None or self.format is None or self.format.reads != "lines":
            return condenser.thinned(self._take(data, now), self._clock)
        lines = self._lines(data)
        passing = condenser.allowance.take(len(lines), self._clock)
        found: list[Told] = []
        if passing < len(lines):
            older = condenser.lines(
                lines[:-passing], now, self.format, self._parser, self.tracker, self._length
            )
            if older is None:
                return condenser.thinned(self._fed(lines, now), self._clock)
            found.extend(older)
            self.counts.records += condenser.records
            self.counts.broken_lines += condenser.broken_lines
            self.counts.nan_losses += condenser.nan_losses
            self.counts.last_broken = condenser.last_broken or self.counts.last_broken
            lines = lines[-passing:]
        found.extend(self._fed(lines, now))
        return found

    def _take(self, data: bytes, now: float) -> list[TrainRecord]:
        if self.format is None or self._parser is None:
            self._unknown += data
            self._unknown_size += len(data)
            found = self._recognise(now)
            if self.format is None and len(self._unknown) > UNKNOWN_LIMIT:
                del self._unknown[: len(self._unknown) - HEAD_LIMIT]
            return found
        if self.format.reads == "whole":
            self._whole_changed = True
            return []
        if self.format.reads == "bytes":
            return self._accept(self._parser.feed(data, now))
        return self._fed(self._lines(data), now)

    def _lines(self, data: bytes) -> list[bytes]:
        lines = self._splitter.feed(data)
        if self._splitter.overlong != self._overlong:
            self.counts.broken_lines += self._splitter.overlong - self._overlong
            self.counts.last_broken = BrokenLine("", "longer than 4 MB")
            self._overlong = self._splitter.overlong
        return lines

    def _fed(self, lines: list[bytes], now: float) -> list[TrainRecord]:
        assert self._parser is not None
        feed = self._parser.feed
        found: list[TrainRecord] = []
        for line in lines:
            found.extend(self._accept(feed(line, now)))
        return found

    def _recognise(self, now: float, *, final: bool = False) -> list[TrainRecord]:
        """Find the format; once found, what was kept is read."""
        # A long text without a format is not looked at anew for each line.
        if not final and self._unknown_size - self._looked_at < min(len(self._unknown), HEAD_LIMIT) // 16:
            return []
        data = bytes(self._unknown)
        if not data or not (final or b"\n" in data or b"\r" in data or len(data) >= HEAD_LIMIT):
            return []
        if b"\n" in data:
            self._looked_at = self._unknown_size
        path = Path(self.path)
        # Behind a long preamble the newest part tells the format.
        part = data[:HEAD_LIMIT] if self._unknown_size == len(data) else data[-HEAD_LIMIT:]
        found = recognise(Head(path.name, path.parent.name, part))
        if found is None and len(data) > HEAD_LIMIT:
            found = recognise(Head(path.name, path.parent.name, data[-HEAD_LIMIT:]))
        if found is None:
            return []
        self.use(found)
        self._unknown.clear()
        return self._take(data, now)

    def use(self, format_: Format) -> None:
        """Read this log as that format from now on."""
        self.format = format_
        self._parser = format_.parser(self.path)
        segment = self.tracker.segment
        self.tracker = SegmentTracker(ELAPSED.get(format_.name))
        self.tracker.segment = segment
        self._splitter = LineSplitter(redraws=format_.reads == "redraws")
        self._overlong = 0

    def _quiet(self, now: float) -> list[TrainRecord]:
        """Quiet for a while: a lone object without a line end is complete, a whole file is read."""
        if self.format is None:
            if self._looked_at != self._unknown_size and b"\n" in self._unknown:
                return [*self._recognise(now, final=True)]
            if complete(bytes(self._unknown[:WHOLE_LIMIT])):
                return [*self._recognise(now, final=True), *self._quiet_line(now)]
            return []
        if self.format.reads == "whole":
            return self._read_whole(now) if self._whole_changed else []
        if self.format.reads == "bytes":  # a step whose last event is torn
            return [] if self._parser is None else self._accept(self._parser.finish(now))
        return self._quiet_line(now)

    def _quiet_line(self, now: float) -> list[TrainRecord]:
        pending = self._splitter.pending
        if self._parser is None or not pending.lstrip().startswith((b"{", b"[")) or not complete(pending):
            return []
        return self._feed_rest(now)

    def _feed_rest(self, now: float) -> list[TrainRecord]:
        rest = self._splitter.take_last()
        if not rest or self._parser is None or rest == b"\r":
            return []
        return self._accept(self._parser.feed(rest.rstrip(b"\r"), now))

    def _read_whole(self, now: float) -> list[TrainRecord]:
        self._whole_changed = False
        try:
            with open(self.path, "rb") as file:
                data = file.read(WHOLE_LIMIT + 1)
        except OSError:
            return []  # gone again; the follower tells
        if len(data) > WHOLE_LIMIT or self._parser is None:
            return []
        return self._accept(self._parser.feed(data, now))

    # ------------------------------------------------------------ what became of the file

    def _restart(self, event: Restart, now: float) -> list[TrainRecord]:
        """The content begins anew: the half line is read (old file complete) or lost."""
        found: list[TrainRecord] = []
        if self.format is not None and self.format.reads == "whole":
            self._whole_changed = True
            return found
        if event.complete:
            if self.format is None:
                found.extend(self._recognise(now, final=True))
            found.extend(self._feed_rest(now))
            if self.format is None and self._unknown.strip(b"\0\r\n "):
                self.counts.lost_records += 1
        elif self._splitter.pending or (self.format is None and self._unknown.strip(b"\0\r\n ")):
            self.counts.lost_records += 1
        self.counts.restarts += 1
        self._told_restart = False
        self._repeats = set(self._seen)
        self._seen = {}
        self._unknown.clear()
        self._unknown_size = self._looked_at = 0
        self.format = self._parser = None
        self._splitter = LineSplitter()
        self._overlong = 0
        self._length = EpochLength()
        return found

    # ------------------------------------------------------------ records

    def _accept(self, entries: Iterable[TrainRecord | BrokenLine]) -> list[TrainRecord]:
        found = []
        for entry in entries:
            if isinstance(entry, BrokenLine):
                self.counts.broken_lines += 1
                self.counts.last_broken = entry
                continue
            if self._is_repeat(entry):
                continue
            self.counts.records += 1
            record = self._length.fill(entry)
            segment = self.tracker.place(record)
            if segment:
                record = msgspec.structs.replace(record, segment=segment)
            if loss_is_broken(record.roles):
                self.counts.nan_losses += 1
            found.append(record)
        return found

    def _is_repeat(self, record: TrainRecord) -> bool:
        """Whether it was read before the file was written anew (Lightning, timm and YOLOv7 rewrite)."""
        roles = record.roles
        identity = hash(
            (
                record.kind, record.rank, record.epoch, record.step, record.batch, record.own_ts, record.text,
                roles.loss, roles.map50_95, roles.learning_rate, record.numbers.get("time"),
            )
        )  # fmt: skip
        self._seen[identity] = None
        if len(self._seen) > REPEATS_LIMIT:
            del self._seen[next(iter(self._seen))]
        if self._repeats and identity in self._repeats:
            self._repeats.discard(identity)
            return True
        return False

    # ------------------------------------------------------------ telling

    def status(self, now: float, progress_percent: float | None = None) -> LogStatus:
        """How it stands, with a sentence where something is to be said."""
        follower = self.follower
        state = follower.state
        detail = follower.detail
        if detail is None and self.format is None:
            detail = self._unknown_message()
        if detail is None and self.counts.restarts and not self._told_restart:
            detail = msg("the log was restarted")
        reported: str = state
        if state == "following" and self.counts.restarts and not self._told_restart:
            reported = "restarted"
            self._told_restart = True
        return LogStatus(
            ts=now,
            source=self.path,
            state=reported,  # type: ignore[arg-type]
            format="" if self.format is None else self.format.title,
            records=self.counts.records,
            broken_lines=self.counts.broken_lines,
            lost_records=self.counts.lost_records,
            last_growth_ts=self.last_growth_ts,
            progress_percent=progress_percent,
            detail=detail,
        )

    def _unknown_message(self) -> Message | None:
        if not self._unknown_size:
            return msg("the file is empty so far") if self.follower.state == "following" else None
        if self._unknown_size < 64 and b"\n" not in self._unknown:
            return msg("waiting for a whole line")
        if looks_binary(bytes(self._unknown[:4096])):
            return msg("a binary file of no known format")
        return msg("no training log that yolomon knows; `yolomon inspect` tells more")


def looks_binary(data: bytes) -> bool:
    """Whether these bytes are no text: NUL bytes among others, or many control characters."""
    text = data.lstrip(b"\0")
    if not text:
        return False
    odd = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in text)
    return odd * 20 > len(text)
