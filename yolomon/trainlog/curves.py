"""The curves of what a log held before we attached: points pooled to blocks of minimum, maximum and last.

The same names and the same axis as the history draws live records with.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from yolomon.model import CurveBlock, TrainRecord

ROLES = (
    "loss", "learning_rate", "map50", "map50_95", "precision", "recall", "fitness",
    "images_per_second", "step_seconds", "data_seconds", "gradient_norm",
)  # fmt: skip
NAMES_LIMIT = 256
BLOCKS_A_SIZE = 512


def progress(record: TrainRecord) -> float | None:
    """The place on the curves' axis: epochs done (2.5: half of the third), or the step without epochs."""
    if record.epoch is not None:
        if record.kind == "batch" and record.batch is not None and record.batches:
            return record.epoch - 1 + record.batch / record.batches
        return float(record.epoch)
    return None if record.step is None else float(record.step)


def points(record: TrainRecord, has_batches: bool) -> Iterator[tuple[str, float]]:
    """The values of one record that belong to curves; no mean loss of an epoch where batches are drawn."""
    roles = record.roles
    drawn = record.kind == "batch" or not has_batches
    for name in ROLES:
        value = getattr(roles, name)
        if value is not None and (drawn or name not in ("loss", "step_seconds")):
            yield name, value
    if drawn:
        yield from roles.losses.items()
    yield from roles.validation_losses.items()


class _Open:
    """A block being filled."""

    __slots__ = ("count", "last", "maximum", "minimum", "non_finite", "x_first", "x_last")

    def __init__(self, x: float) -> None:
        self.x_first = self.x_last = x
        self.minimum = self.maximum = self.last = 0.0
        self.count = self.non_finite = 0

    def add(self, x: float, low: float, high: float, last: float, count: int, non_finite: int) -> None:
        if count:
            first = not self.count
            self.minimum = low if first or low < self.minimum else self.minimum
            self.maximum = high if first or high > self.maximum else self.maximum
            self.last = last
            self.count += count
        self.non_finite += non_finite
        self.x_last = x


class CurveBuilder:
    """Pools the points of one log. `add`, then `take` now and then; blocks of one name are in order.

    A curve begins with a block a point; each time it has filled `BLOCKS_A_SIZE` blocks, blocks grow twice
    as long.

    Args:
        source: the log.
        points_a_block: how many points a block holds from the start, where it is known how many will come.
        live: the blocks are of records that come now.
    """

    def __init__(self, source: str, points_a_block: int = 0, *, live: bool = False) -> None:
        self._source = source
        self._points_a_block = points_a_block
        self._live = live
        self._blocks: dict[str, int] = {}
        self._open: dict[str, _Open] = {}
        self._segment = 0
        self._done: list[CurveBlock] = []
        self.has_batches = False

    def add(self, record: TrainRecord) -> None:
        """Take one record (of rank 0; others have no curves)."""
        if record.rank or record.kind == "features":
            return
        if record.kind == "batch":
            self.has_batches = True
        x = progress(record)
        if x is None:
            return
        for name, value in points(record, self.has_batches):
            if isfinite(value):
                self.add_block(name, record.segment, x, x, value, value, value, 1, 0)
            else:
                self.add_block(name, record.segment, x, x, 0.0, 0.0, 0.0, 0, 1)

    def add_block(
        self,
        name: str,
        segment: int,
        x_first: float,
        x_last: float,
        low: float,
        high: float,
        last: float,
        count: int,
        non_finite: int,
    ) -> None:
        """Take what several points of one name amount to."""
        if segment != self._segment:
            self._close_all()
            self._segment = segment
        block = self._open.get(name)
        if block is None:
            if len(self._blocks) >= NAMES_LIMIT and name not in self._blocks:
                return
            block = self._open[name] = _Open(x_first)
        block.add(x_last, low, high, last, count, non_finite)
        held = block.count + block.non_finite
        if self._points_a_block:
            full = held >= self._points_a_block
        else:
            full = bool(held >> (self._blocks.get(name, 0) // BLOCKS_A_SIZE))
        if full:
            self._close(name)

    def _close(self, name: str) -> None:
        block = self._open.pop(name)
        self._blocks[name] = self._blocks.get(name, 0) + 1
        self._done.append(
            CurveBlock(
                ts=0.0,
                source=self._source,
                name=name,
                segment=self._segment,
                x_first=block.x_first,
                x_last=block.x_last,
                minimum=block.minimum,
                maximum=block.maximum,
                last=block.last,
                count=block.count,
                non_finite=block.non_finite,
                live=self._live,
            )
        )

    def _close_all(self) -> None:
        for name in list(self._open):
            self._close(name)

    def take(self) -> list[CurveBlock]:
        """The blocks that are full."""
        done, self._done = self._done, []
        return done

    def flush(self) -> list[CurveBlock]:
        """The blocks so far, also those that are not full."""
        self._close_all()
        return self.take()

    def finish(self) -> list[CurveBlock]:
        """All the rest, and the mark that the backlog is complete."""
        return [*self.flush(), CurveBlock(ts=0.0, source=self._source, name="", ends=True)]
