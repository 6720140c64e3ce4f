"""How many batches an epoch has, learned from the log where the trainer does not write it.

MMEngine counts iterations over the run, mmcv within the epoch; neither says how many there are. What the
epoch
before reached is taken, so that curves run evenly through the epochs from the second on.
"""

from __future__ import annotations

import msgspec

from yolomon.model import TrainRecord


class EpochLength:
    """Fills in `batch` and `batches` of batch records. One log, one rank."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._before: int | None = None  # the last step of the epoch before
        self._newest: int | None = None  # step or batch
        self.batches: int | None = None

    def fill(self, record: TrainRecord) -> TrainRecord:
        """The record with its batch and the epoch's number of batches, where they can be told."""
        if record.kind != "batch" or record.epoch is None or record.batches is not None:
            return record
        within = record.batch is not None
        count = record.batch if within else record.step
        if count is None:
            return record
        if self._epoch is None:
            self._before = 0 if within or record.epoch == 1 else None
        elif record.epoch == self._epoch + 1:
            if self._newest is not None and self._before is not None and self._newest > self._before:
                self.batches = self._newest - (0 if within else self._before)
            self._before = 0 if within else self._newest
        elif record.epoch != self._epoch:
            self._before = 0 if within else None
        self._epoch, self._newest = record.epoch, count
        if self._before is None or count < self._before:
            return record
        batch = count - self._before
        batches = max(self.batches, batch) if self.batches else None
        if record.batch == batch and batches is None:
            return record
        return msgspec.structs.replace(record, batch=batch, batches=batches)
