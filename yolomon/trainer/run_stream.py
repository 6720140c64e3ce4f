"""One Ultralytics training run in this process: what its callbacks tell becomes events in the stream.

Event and field names: train_start, epoch_start, batch, epoch_end, val_start, val_end, model_save,
fit_epoch_end, stopping, train_end; and oom_retry, nan_recovery, epoch_restart, aborted, warning, each with
its `text`.
"""

from __future__ import annotations

import atexit
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from yolomon.trainer.features import FeatureMonitor
from yolomon.trainer.foreign import Trainer
from yolomon.trainer.layers import unwrap
from yolomon.trainer.memory import BlockCensus, allocator_numbers
from yolomon.trainer.plain import jsonable, number, short
from yolomon.trainer.run_facts import loader_length, run_facts
from yolomon.trainer.step_numbers import cut_off, gradient_scale, learning_rates, step_fields
from yolomon.trainer.writer import JsonlLogger

STREAM_NAME = "yolomon.jsonl"


class RunStream:
    """Writes the events of one run. Lives in the process that trains and is never pickled.

    Args:
        trainer: the Ultralytics trainer.
        path: the stream's file; None: `yolomon.jsonl` in the run's folder.
        features: look at feature maps and gradients.
        every: steps between two looks.
        layers: patterns of the layers to look at; None: the default choice.
    """

    def __init__(
        self,
        trainer: Trainer,
        *,
        path: Path | None = None,
        features: bool = False,
        every: int = 100,
        layers: tuple[str, ...] | None = None,
    ) -> None:
        self.trainer = trainer
        self.log = JsonlLogger(path or Path(str(trainer.save_dir)) / STREAM_NAME, gather=True)
        self._features = features
        self._every = every
        self._layers = layers
        self._monitor: FeatureMonitor | None = None
        self._census = BlockCensus()
        self._restore: list[Callable[[], None]] = []
        self._epoch: int | None = None  # from 1; of the epoch under way or last under way
        self._epoch_open = False  # epoch_start written, fit_epoch_end not
        self._train_part_over = False
        self._batch_size = getattr(trainer, "batch_size", None)
        self._batches = loader_length(trainer)
        self._in_validate = False
        self._ended = False
        self._forget_epoch()

    def _forget_epoch(self) -> None:
        self._batch = 0
        self._step = 0
        self._images_in_batch: int | None = None
        self._image_size: int | None = None
        self._epoch_images = 0
        self._epoch_waited = 0.0
        self._epoch_began = self._step_began = self._batch_began = time.perf_counter()

    # ------------------------------------------------------------ training

    def train_start(self) -> None:
        """Training starts: the run's settings."""
        self.log.write("train_start", **run_facts(self.trainer))
        alive = weakref.ref(self)

        def at_exit() -> None:
            stream = alive()
            if stream is not None:
                stream.left_open()

        atexit.register(at_exit)
        self._restore.append(lambda: atexit.unregister(at_exit))
        self._wrap("preprocess_batch", self._seeing_batch)
        self._wrap("validate", self._validating)
        if self._features:
            self._watch_features()
            self._wrap("optimizer_step", self._measuring)

    def epoch_start(self) -> None:
        """An epoch starts, or starts again after running out of memory or into NaN."""
        epoch = self._trainer_epoch()
        if self._epoch_open and epoch == self._epoch:
            self._tell_restart(epoch)
        self._batch_size = getattr(self.trainer, "batch_size", None)
        self._batches = loader_length(self.trainer)
        self._epoch, self._epoch_open, self._train_part_over = epoch, True, False
        if self._monitor is not None and unwrap(self.trainer.model) is not self._monitor.model:
            self._watch_features()  # the trainer made another model
        self.log.write("epoch_start", epoch=epoch, epochs=self._epochs())
        self._forget_epoch()

    def batch_start(self) -> None:
        """The loader gave a batch: what passed since the last one ended was waiting for it."""
        self._batch_began = time.perf_counter()
        self.log.poll()

    def batch_end(self) -> None:
        """A batch is done. Only host-side things happen here, but for the few steps a second that are due."""
        now = time.perf_counter()
        waited = self._batch_began - self._step_began
        self._batch += 1
        self._step = ((self._epoch or 1) - 1) * (self._batches or 0) + self._batch
        images = self._images_in_batch
        due = self.log.due()
        step = {
            "epoch": self._epoch,
            "epochs": self._epochs(),
            "batch": self._batch,
            "batches": self._batches,
            "step": self._step,
            "data_time": waited,
            "step_time": now - self._step_began,
            "images": images,
            "imgsz": self._image_size,
        }
        items = cut_off(self._need("loss_items"))
        more = allocator_numbers() if due else {}
        make = partial(step_fields, self.trainer, step, items, learning_rates(self.trainer), more)
        self.log.note_step("batch", make, due=due)
        self._epoch_images += images or 0
        self._epoch_waited += waited
        self._step_began = self._batch_began = now
        if self._monitor is not None:
            self._monitor.step(self._step, self._epoch)

    def epoch_end(self) -> None:
        """The training part of an epoch is over: means, speed, where the time went, memory blocks."""
        seconds = time.perf_counter() - self._epoch_began
        self._train_part_over = True
        means: dict[str, object] = {}
        label = self._need("label_loss_items")
        if label is not None and getattr(self.trainer, "tloss", None) is not None:
            labelled = label(self.trainer.tloss, prefix="train")
            if isinstance(labelled, Mapping):
                means = {name: _short(value) for name, value in labelled.items()}
        self.log.write(
            "epoch_end",
            epoch=self._epoch,
            epochs=self._epochs(),
            batches=self._batch,
            images=self._epoch_images or None,
            images_per_second=short(self._epoch_images / seconds, 5)
            if self._epoch_images and seconds > 0
            else None,
            train_seconds=round(seconds, 4),
            data_seconds=round(self._epoch_waited, 4),
            **means,
            **allocator_numbers(),
            **self._census.numbers(),
        )

    def fit_epoch_end(self) -> None:
        """An epoch is complete; or, without an epoch under way, the last look at the best weights."""
        final = not self._epoch_open
        epoch = (self._epoch or 0) + 1 if final else self._epoch
        metrics = self._need("metrics")
        rates = getattr(self.trainer, "lr", None)
        self.log.write(
            "fit_epoch_end",
            epoch=epoch,
            epochs=self._epochs(),
            final=True if final else None,
            metrics={k: _short(v) for k, v in metrics.items()} if isinstance(metrics, Mapping) else {},
            epoch_time=_short(getattr(self.trainer, "epoch_time", None)),
            fitness=_short(getattr(self.trainer, "fitness", None)),
            best_fitness=_short(getattr(self.trainer, "best_fitness", None)),
            **({k: _short(v) for k, v in rates.items()} if isinstance(rates, Mapping) and not final else {}),
        )
        self._epoch_open = False
        if not final and getattr(self.trainer, "stop", False) is True:
            self._tell_stopping()

    def model_save(self) -> None:
        """A checkpoint was written."""
        self.log.write("model_save", epoch=self._epoch)

    def val_start(self) -> None:
        """Validation starts, told by the validator itself."""
        if not self._in_validate:
            self.log.write("val_start", epoch=self._epoch)

    def val_end(self) -> None:
        """Validation is over, told by the validator itself."""
        if not self._in_validate:
            self.log.write("val_end", epoch=self._epoch)

    def train_end(self) -> None:
        """A proper end."""
        if not self._ended:
            self._ended = True
            self._close_features()
            self.log.write("train_end", epoch=self._epoch, epochs=self._epochs())

    def teardown(self) -> None:
        """The trainer lets go, after a proper end or an exception, which is named."""
        error = sys.exc_info()[1]  # newer versions call teardown in a `finally`
        if error is not None:
            self._tell_abort(error)
        self.train_end()  # ranks other than 0 are told of no end of their own
        for restore in reversed(self._restore):
            restore()
        self._restore.clear()
        self.log.close()

    def left_open(self) -> None:
        """The process exits while training was under way: versions without a `finally` call no teardown."""
        self._tell_abort(getattr(sys, "last_value", None))

    def _tell_abort(self, error: BaseException | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._close_features()
        name = type(error).__name__ if error is not None else "exit"
        text = f"{name}: {error}" if error is not None else "the process ended during training"
        self.log.write("aborted", epoch=self._epoch, error=name, text=text[:2000])

    # ------------------------------------------------------------ what happened between

    def _tell_restart(self, epoch: int) -> None:
        batch_size = getattr(self.trainer, "batch_size", None)
        if not self._train_part_over and batch_size != self._batch_size:
            text = f"out of memory with batch={self._batch_size}: trying again with batch={batch_size}"
            self.log.write(
                "oom_retry",
                epoch=epoch,
                batch_size=batch_size,
                previous_batch_size=self._batch_size,
                text=text,
            )
        elif self._train_part_over:
            attempt = number(getattr(self.trainer, "nan_recovery_attempts", None))
            text = f"NaN or Inf in epoch {epoch}: last checkpoint restored, the epoch starts again"
            self.log.write("nan_recovery", epoch=epoch, attempt=attempt, text=text)
        else:
            self.log.write("epoch_restart", epoch=epoch, text=f"epoch {epoch} starts again")

    def _tell_stopping(self) -> None:
        epochs = self._epochs()
        if self._epoch is None or epochs is None or self._epoch >= epochs:
            return
        stopper = getattr(self.trainer, "stopper", None)
        patience, best = (
            number(getattr(stopper, "patience", None)),
            number(getattr(stopper, "best_epoch", None)),
        )
        waited = best is not None and patience is not None and self._epoch - best >= patience
        reason = "early stopping" if waited else "stopped"
        text = f"{reason} after epoch {self._epoch} of {epochs}"
        if waited:
            text += f": no better fitness for {patience} epochs, best was epoch {best}"
        self.log.write("stopping", epoch=self._epoch, epochs=epochs, reason=reason, text=text)

    # ------------------------------------------------------------ what the trainer knows

    def _need(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the trainer has under that name
        value = getattr(self.trainer, attribute, None)
        if value is None and not hasattr(self.trainer, attribute):
            self.log.warn(f"this version of Ultralytics has no trainer.{attribute}: what it tells is missing")
        return value

    def _trainer_epoch(self) -> int:
        epoch = self._need("epoch")
        return int(epoch) + 1 if epoch is not None else (self._epoch or 0) + (not self._epoch_open)

    def _epochs(self) -> int | None:
        epochs = getattr(self.trainer, "epochs", None)
        return None if epochs is None else int(epochs)

    # ------------------------------------------------------------ methods of the trainer, listened to

    def _wrap(self, name: str, listener: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Put `listener(method)` in the place of this trainer's method, until teardown."""
        method = self._need(name)
        if method is None:
            return
        own = vars(self.trainer)
        before, had = own.get(name), name in own
        wrapped = listener(method)
        setattr(self.trainer, name, wrapped)

        def restore() -> None:
            if own.get(name) is not wrapped:
                return  # somebody put another one over it
            if had:
                setattr(self.trainer, name, before)
            else:
                delattr(self.trainer, name)

        self._restore.append(restore)

    def _seeing_batch(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def preprocess_batch(*args: object, **kwargs: object) -> object:
            batch = method(*args, **kwargs)
            shape = getattr(batch.get("img"), "shape", None) if isinstance(batch, Mapping) else None
            if shape is not None and len(shape) == 4:
                self._images_in_batch, self._image_size = int(shape[0]), int(max(shape[2:]))
            return batch

        return preprocess_batch

    def _validating(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Early versions give the validator no callbacks; `validate` is called in all."""

        def validate(*args: object, **kwargs: object) -> object:
            self.val_start()
            self._in_validate = True
            try:
                return method(*args, **kwargs)
            finally:
                self._in_validate = False
                self.val_end()

        return validate

    def _measuring(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Gradients are measured before the trainer unscales and clips them."""

        def optimizer_step(*args: object, **kwargs: object) -> object:
            if self._monitor is not None and self._monitor.wants_gradients:
                self._monitor.measure_gradients(gradient_scale(self.trainer))
            return method(*args, **kwargs)

        return optimizer_step

    def _watch_features(self) -> None:
        self._close_features()
        try:
            self._monitor = FeatureMonitor(
                self.trainer.model, self._layers, self._every, self.log, watch_optimizer=False
            )
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            self.log.warn(f"feature statistics are missing: {type(error).__name__}: {error}")

    def _close_features(self) -> None:
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None


def _short(value: object) -> object:
    found = number(value)
    return jsonable(value) if found is None else short(found)
