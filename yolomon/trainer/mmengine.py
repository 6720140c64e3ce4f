"""A hook for MMEngine, MMDetection 3 and MMYOLO.

In a configuration:

    custom_imports = dict(imports=["yolomon.trainer.mmengine"])
    custom_hooks = [dict(type="YolomonHook")]

The hook is registered when this module is imported and MMEngine is installed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from yolomon.trainer.features import FeatureMonitor
from yolomon.trainer.foreign import Json, Tensor
from yolomon.trainer.plain import jsonable
from yolomon.trainer.writer import JsonlLogger


class HookBody:
    """What the hook does; `YolomonHook` is this together with MMEngine's own base class.

    Args:
        path: the stream's file; None: `yolomon.jsonl` in the run's log folder.
        features: look at feature maps and gradients every `every` steps.
        every: steps between two looks.
    """

    priority = "VERY_LOW"

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, features: bool = False, every: int = 100
    ) -> None:
        self._path = path
        self._features = features
        self._every = every
        self._log: JsonlLogger | None = None
        self._monitor: FeatureMonitor | None = None
        self._step_began = self._batch_began = 0.0

    def before_train(self, runner: Json) -> None:
        """Begin the stream."""
        folder = Path(runner.log_dir)
        self._log = JsonlLogger(self._path or folder / "yolomon.jsonl", runner.rank)
        self._log.write(
            "train_start",
            model=type(_inner(runner.model)).__name__,
            epochs=runner.max_epochs,
            batches=len(runner.train_dataloader),
            batch_size=_batch_size(runner),
            world_size=runner.world_size,
            start_epoch=runner.epoch + 1,
            save_dir=str(runner.work_dir),
            trainer=f"MMEngine {import_module('mmengine').__version__}",
        )
        if self._features:
            self._monitor = FeatureMonitor(runner.model, every=self._every, log=self._log)

    def before_train_epoch(self, runner: Json) -> None:
        """Write epoch_start."""
        self._write("epoch_start", runner)
        self._step_began = time.perf_counter()

    def before_train_iter(self, _runner: Json, batch_idx: int, data_batch: object = None) -> None:
        """The loader gave a batch."""
        self._batch_began = time.perf_counter()

    def after_train_iter(
        self,
        runner: Json,
        batch_idx: int,
        data_batch: object = None,
        outputs: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write batch with the losses that the model handed over."""
        if self._log is None:
            return
        now = time.perf_counter()
        losses = {name: value for name, value in (outputs or {}).items() if name != "loss"}
        rates = {f"lr/pg{k}": float(group["lr"]) for k, group in enumerate(_param_groups(runner)[:4])}
        self._log.log(
            step=runner.iter + 1,
            epoch=runner.epoch + 1,
            loss=(outputs or {}).get("loss"),
            epochs=runner.max_epochs,
            batch=batch_idx + 1,
            batches=len(runner.train_dataloader),
            data_time=round(self._batch_began - self._step_began, 4),
            step_time=round(now - self._step_began, 4),
            **{**{f"train/{name}": value for name, value in losses.items()}, **rates},
        )
        self._step_began = time.perf_counter()

    def after_train_epoch(self, runner: Json) -> None:
        """Write epoch_end."""
        self._write("epoch_end", runner)

    def before_val_epoch(self, runner: Json) -> None:
        """Write val_start."""
        self._write("val_start", runner)

    def after_val_epoch(self, runner: Json, metrics: Mapping[str, object] | None = None) -> None:
        """Write val_end and fit_epoch_end with the metrics. Validation comes after the epoch was counted."""
        self._write("val_end", runner, epoch=runner.epoch)
        numbers = {name: jsonable(value) for name, value in (metrics or {}).items()}
        self._write("fit_epoch_end", runner, epoch=runner.epoch, metrics=numbers)

    def after_save_checkpoint(self, runner: Json, checkpoint: object) -> None:
        """Write model_save."""
        self._write("model_save", runner)

    def after_train(self, runner: Json) -> None:
        """Write train_end."""
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        self._write("train_end", runner, epoch=runner.epoch)
        if self._log is not None:
            self._log.close()

    def _write(self, event: str, runner: Json, *, epoch: int | None = None, **fields: object) -> None:
        if self._log is not None:
            counted = runner.epoch + 1 if epoch is None else epoch
            self._log.write(event, epoch=counted, epochs=runner.max_epochs, **fields)


def _inner(model: Json) -> Json:
    return getattr(model, "module", model)


def _batch_size(runner: Json) -> int | None:
    size = getattr(runner.train_dataloader, "batch_size", None)
    return None if size is None else int(size) * int(runner.world_size)


def _param_groups(runner: Json) -> list[dict[str, float]]:
    return list(getattr(runner.optim_wrapper, "param_groups", ()) or ())


def _made() -> type | None:
    try:
        hook = import_module("mmengine.hooks").Hook
        registry = import_module("mmengine.registry").HOOKS
    except ModuleNotFoundError:
        return None
    made = type("YolomonHook", (HookBody, hook), {"__module__": __name__, "priority": HookBody.priority})
    registry.register_module(module=made, force=True)
    return made


YolomonHook = _made()
