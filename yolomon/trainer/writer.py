"""JsonlLogger: the stream of any training loop, one JSON object a line, one file a rank."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from yolomon.trainer.line_file import LineFile
from yolomon.trainer.memory import allocator_numbers
from yolomon.trainer.plain import encode, jsonable, number, short
from yolomon.trainer.rank import process_rank, rank_path
from yolomon.trainer.readings import Held, on_device, snapshot
from yolomon.trainer.step_lines import StepLines

logger = logging.getLogger("yolomon")
UNHURRIED = frozenset({"features"})  # told behind steps that are held: reading those now would wait
Batch = TypeVar("Batch")


class StepObserver(Protocol):
    """Something that wants to know when a training step is over, such as a FeatureMonitor."""

    def step(self, step: int | None = None, epoch: int | None = None) -> object:
        """The step is over."""
        ...


class Phase:
    """A phase under way; what is added goes into its end event."""

    def __init__(self) -> None:
        self.fields: dict[str, object] = {}

    def add(self, **fields: object) -> None:
        """Numbers or words for the end event."""
        self.fields.update(fields)


class JsonlLogger:
    """Writes what a training loop tells, one line an event, so that yolomon can follow it.

        log = JsonlLogger("yolomon.jsonl")
        with log.phase("train", epochs=10, batch_size=16):
            for epoch in range(1, 11):
                for images, targets in log.batches(loader):
                    ...
                    log(step=step, epoch=epoch, loss=loss, images=len(images))
                with log.phase("val"):
                    ...
                log.epoch_end(epoch, {"mAP50": 0.51, "mAP50-95": 0.33})

    Ranks other than 0 write files of their own (`yolomon.rank1.jsonl`). It may be used from several threads
    and after a fork, and may be pickled: the file is opened at the first line, in the process that writes it.
    It never raises: what cannot be written is kept in a bounded queue, then dropped and counted, with one
    warning.

    A step whose numbers are at hand is on the disk when `log` comes back. Steps with tensors on a GPU are
    held and written together five times a second, so that reading them costs next to nothing however short
    a step is; every other event writes them first.

    Args:
        path: the file of rank 0. It is appended to.
        rank: this process's rank; None: torch.distributed or the launcher's environment tells.
        epochs: how many epochs there will be, written with every step.
        memory: write torch's allocator figures with a step, five times a second at most, where CUDA is in
            use.
        fsync: force every line to the disk. Not needed against a killed process, only against a lost machine.
        gather: hold all steps as if they had tensors on a GPU: the least cost where a step lasts a few
            milliseconds. A process that is killed then takes up to 0.2 s of steps with it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "yolomon.jsonl",
        rank: int | None = None,
        *,
        epochs: int | None = None,
        memory: bool = True,
        fsync: bool = False,
        gather: bool = False,
    ) -> None:
        self.base_path = Path(path)
        self.epochs = epochs
        self.memory = memory
        self.fsync = fsync
        self.gather = gather
        self._given_rank = rank
        self._begin()

    def _begin(self) -> None:
        self._file: LineFile | None = None
        self._rank = -1
        self._lines = StepLines(self._append, gather=self.gather)
        self._observers: list[StepObserver] = []
        self._batch = 0
        self._batches: int | None = None
        self._interval_steps = 0  # gone through by `batches` since the last logged step
        self._interval_began = 0.0
        self._interval_waited = 0.0
        self._told: set[str] = set()

    @property
    def rank(self) -> int:
        """The rank in whose name lines are written."""
        self._opened()
        return self._rank

    @property
    def path(self) -> Path:
        """The file of this rank."""
        return self._opened().path

    @property
    def dropped(self) -> int:
        """Lines lost because they could not be written for too long."""
        return 0 if self._file is None else self._file.dropped_in_all

    def observe(self, observer: StepObserver) -> None:
        """Tell `observer` after every logged step."""
        self._observers.append(observer)

    def forget(self, observer: StepObserver) -> None:
        """Tell `observer` no more."""
        if observer in self._observers:
            self._observers.remove(observer)

    # ------------------------------------------------------------ what happened

    def write(self, event: str, **fields: object) -> None:
        """Write one event, after the steps before it. Fields that are None are left out."""
        record = self._record(event, fields, time.time())
        if event in UNHURRIED:
            self._lines.follow(record)
            return
        self._lines.settle()
        self._append((encode(record),))

    def due(self) -> bool:
        """Whether a step told now is written now: the moment to add what costs more than a step may."""
        return self._lines.due()

    def note_step(
        self, event: str, make: Callable[[], tuple[Mapping[str, object], Held | None]], *, due: bool
    ) -> None:
        """A step is over, told by code that measures for itself.

        Args:
            event: "batch" in most cases.
            make: gives its fields (None is left out) and the values still on a device; it is called when
                the line is written, up to 0.2 s later.
            due: what `due()` said; the fields may then have what costs more.
        """
        ts = time.time()

        def made() -> tuple[dict[str, object], Held | None]:
            fields, held = make()
            return self._record(event, fields, ts), held

        self._lines.note(made, due=due)

    def poll(self) -> None:
        """Write steps whose values have arrived from the device meanwhile."""
        self._lines.poll()

    def log(
        self,
        *,
        step: int | None = None,
        epoch: int | None = None,
        loss: object = None,
        event: str = "batch",
        **numbers: object,
    ) -> None:
        """One training step (or log interval).

        Args:
            step: over the whole run, from 1 (or 0).
            epoch: from 1.
            loss: the total. It and all other numbers may be tensors: those on a GPU are read without
                waiting, together with those of the steps around. Where they are not there in time, a later
                line has them, and names their step in `loss_step`.
            event: another event's name.
            numbers: any other names: loss parts, learning rates, `images`, `data_time`, `step_time` in
                seconds.
        """
        try:
            self._log(step, epoch, loss, event, numbers)
        except Exception as error:  # noqa: BLE001 - the training loop must go on whatever a value turns out to be
            self.warn(f"a step could not be logged: {type(error).__name__}: {error}")

    __call__ = log

    def _log(
        self, step: int | None, epoch: int | None, loss: object, event: str, numbers: dict[str, object]
    ) -> None:
        now = time.perf_counter()
        due = self._lines.due()
        fields: dict[str, object] = {"epoch": epoch, "epochs": self.epochs}
        if self._batch:
            fields.update(batch=self._batch, batches=self._batches)
        fields["step"] = step
        if self._interval_steps:
            fields["data_time"] = round(self._interval_waited / self._interval_steps, 4)
            fields["step_time"] = round((now - self._interval_began) / self._interval_steps, 4)
            self._interval_steps, self._interval_began, self._interval_waited = 0, now, 0.0
        away: dict[str, Any] = {}
        for name, value in numbers.items() if loss is None else {"loss": loss, **numbers}.items():
            if isinstance(value, (str, Mapping, list, tuple)):
                fields[name] = value
            elif on_device(value):
                away[name] = value
            elif (found := number(value)) is not None:
                fields[name] = found if isinstance(found, int) else short(found)
        if self.memory and due:
            fields.update(allocator_numbers())
        record = self._record(event, fields, time.time())
        self._lines.add(record, snapshot(away) if away else None, due=due)
        for observer in self._observers:
            observer.step(step, epoch)

    def batches(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """Go through `loader`, measuring the wait for batches: `log` then writes data_time and step_time."""
        self._batches = len(loader) if hasattr(loader, "__len__") else None  # type: ignore[arg-type]
        self._batch = 0
        waiting_since = self._interval_began = time.perf_counter()
        self._interval_waited, self._interval_steps = 0.0, 0
        try:
            for batch in loader:
                self._batch += 1
                self._interval_steps += 1
                self._interval_waited += time.perf_counter() - waiting_since
                yield batch
                waiting_since = time.perf_counter()
        finally:
            self._batch, self._batches, self._interval_steps = 0, None, 0

    @contextmanager
    def phase(self, name: str, **facts: object) -> Iterator[Phase]:
        """A phase such as "train" or "val": writes `<name>_start` and `<name>_end` with its seconds.

        An exception inside goes on; the end event then names it in `error`.
        """
        began = time.perf_counter()
        phase = Phase()
        error: str | None = None
        self.write(f"{name}_start", **facts)
        try:
            yield phase
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        finally:
            self.write(
                f"{name}_end",
                seconds=round(time.perf_counter() - began, 4),
                error=error,
                **{k: jsonable(v) for k, v in phase.fields.items()},
            )

    def epoch_end(self, epoch: int, metrics: Mapping[str, object] | None = None, **numbers: object) -> None:
        """An epoch (from 1) is complete, with its validation: metrics by their own names."""
        self.write(
            "fit_epoch_end",
            epoch=epoch,
            epochs=self.epochs,
            metrics={k: jsonable(v) for k, v in (metrics or {}).items()},
            **{k: jsonable(v) for k, v in numbers.items()},
        )

    def warn(self, text: str) -> None:
        """Say once what went wrong or is missing: one warning in the log and a line in the stream."""
        if text in self._told:
            return
        self._told.add(text)
        logger.warning("yolomon: %s. Training goes on.", text)
        self.write("warning", text=text)

    def close(self) -> None:
        """Write what still waits and close the file."""
        self._lines.close()
        if self._file is not None:
            self._file.close()

    # ------------------------------------------------------------ the file, in this process

    def _opened(self) -> LineFile:
        if self._file is None:
            self._rank = process_rank() if self._given_rank is None else self._given_rank
            self._file = LineFile(
                rank_path(self.base_path, self._rank), fsync=self.fsync, describe_drop=self._describe_drop
            )
        return self._file

    def _append(self, lines: Sequence[bytes]) -> None:
        self._opened().append_all(lines)

    def _describe_drop(self, lines: int, reason: str) -> bytes:
        text = f"{lines} lines could not be written and were dropped: {reason}"
        return encode(self._record("dropped", {"lines": lines, "text": text}, time.time()))

    def _record(self, event: str, fields: Mapping[str, object], ts: float) -> dict[str, object]:
        record: dict[str, object] = {
            "ts": round(ts, 4),
            "rank": self.rank,
            "pid": os.getpid(),
            "event": event,
        }
        record.update([item for item in fields.items() if item[1] is not None])
        return record

    def __getstate__(self) -> dict[str, Any]:
        """Settings only: open files and locks stay in their process."""
        return {
            "path": self.base_path,
            "rank": self._given_rank,
            "epochs": self.epochs,
            "memory": self.memory,
            "fsync": self.fsync,
            "gather": self.gather,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
