"""A Lightning callback: `Trainer(callbacks=[yolomon.trainer.lightning.YolomonCallback()])`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from yolomon.trainer.features import FeatureMonitor
from yolomon.trainer.foreign import Module, Trainer
from yolomon.trainer.plain import jsonable
from yolomon.trainer.writer import JsonlLogger


class CallbackBody:
    """What the callback does; `YolomonCallback` is this together with Lightning's own base class.

    Args:
        path: the stream's file; None: `yolomon.jsonl` in the trainer's log folder.
        features: look at feature maps and gradients every `every` steps.
        every: steps between two looks.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, features: bool = False, every: int = 100
    ) -> None:
        super().__init__()
        self._path = path
        self._features = features
        self._every = every
        self._log: JsonlLogger | None = None
        self._monitor: FeatureMonitor | None = None
        self._step_began = self._batch_began = 0.0

    def on_train_start(self, trainer: Trainer, module: Module) -> None:
        """Begin the stream."""
        folder = Path(trainer.log_dir or trainer.default_root_dir)
        self._log = JsonlLogger(self._path or folder / "yolomon.jsonl", trainer.global_rank)
        batches = trainer.num_training_batches
        self._log.write(
            "train_start",
            model=type(module).__name__,
            epochs=trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None,
            batches=int(batches) if batches != float("inf") else None,
            world_size=trainer.world_size,
            start_epoch=trainer.current_epoch + 1,
            amp="16" in str(trainer.precision),
            save_dir=str(folder),
            trainer=f"Lightning {_version()}",
        )
        if self._features:
            self._monitor = FeatureMonitor(module, every=self._every, log=self._log)

    def on_train_epoch_start(self, trainer: Trainer, _module: Module) -> None:
        """Write epoch_start."""
        self._write("epoch_start", trainer)
        self._step_began = time.perf_counter()

    def on_train_batch_start(self, _trainer: Trainer, _module: Module, _batch: object, _index: int) -> None:
        """The loader gave a batch."""
        self._batch_began = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, _module: Module, outputs: object, _batch: object, index: int
    ) -> None:
        """Write batch, with the loss and what the module logged for this step."""
        if self._log is None:
            return
        now = time.perf_counter()
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        optimizers = trainer.optimizers or ()
        groups = [group for optimizer in optimizers for group in optimizer.param_groups][:4]
        numbers = {f"lr/pg{number}": float(group["lr"]) for number, group in enumerate(groups)}
        logged = {f"train/{name}": value for name, value in trainer.logged_metrics.items()}
        self._log.log(
            step=trainer.global_step,
            epoch=trainer.current_epoch + 1,
            loss=loss,
            epochs=trainer.max_epochs,
            batch=index + 1,
            data_time=round(self._batch_began - self._step_began, 4),
            step_time=round(now - self._step_began, 4),
            **{**numbers, **{name: value for name, value in logged.items() if name != "train/loss"}},
        )
        self._step_began = time.perf_counter()

    def on_validation_start(self, trainer: Trainer, _module: Module) -> None:
        """Write val_start, but for the check before training."""
        if not trainer.sanity_checking:
            self._write("val_start", trainer)

    def on_validation_end(self, trainer: Trainer, _module: Module) -> None:
        """Write val_end, but for the check before training."""
        if not trainer.sanity_checking:
            self._write("val_end", trainer)

    def on_train_epoch_end(self, trainer: Trainer, _module: Module) -> None:
        """Write fit_epoch_end with the metrics of the epoch."""
        metrics = {name: jsonable(value) for name, value in trainer.callback_metrics.items()}
        self._write("fit_epoch_end", trainer, metrics=metrics)

    def on_exception(self, trainer: Trainer, _module: Module, exception: BaseException) -> None:
        """Write aborted."""
        name = type(exception).__name__
        self._write("aborted", trainer, error=name, text=f"{name}: {exception}"[:2000])
        self._finish()

    def on_train_end(self, trainer: Trainer, _module: Module) -> None:
        """Write train_end."""
        if self._monitor is not None:
            self._monitor.close()
        self._write("train_end", trainer)
        self._finish()

    def _write(self, event: str, trainer: Trainer, **fields: object) -> None:
        if self._log is not None:
            self._log.write(event, epoch=trainer.current_epoch + 1, epochs=trainer.max_epochs, **fields)

    def _finish(self) -> None:
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        if self._log is not None:
            self._log.close()


def _version() -> str:
    for name in ("lightning", "pytorch_lightning"):
        if name in sys.modules:
            return str(getattr(sys.modules[name], "__version__", "unknown"))
    return "unknown"


def __getattr__(name: str) -> type:
    """`YolomonCallback`, made when asked for: its base class is Lightning's, whichever package is loaded."""
    if name != "YolomonCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    packages = ("lightning.pytorch", "pytorch_lightning")
    package = next((loaded for loaded in reversed(packages) if loaded in sys.modules), packages[0])
    try:
        base = import_module(package).Callback
    except ModuleNotFoundError:
        base = import_module(packages[1]).Callback
    made = type(name, (CallbackBody, base), {"__module__": __name__})
    globals()[name] = made
    return made
