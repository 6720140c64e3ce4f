"""A callback for the Hugging Face Trainer.

    Trainer(..., callbacks=[yolomon.trainer.transformers.YolomonCallback()])

The trainer hands losses over every `logging_steps`; step times and the wait for data are not among what it
tells its callbacks, so a "batch" event here is one log interval with its mean step time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from yolomon.trainer.features import FeatureMonitor
from yolomon.trainer.foreign import Json, Module
from yolomon.trainer.plain import jsonable
from yolomon.trainer.writer import JsonlLogger


class CallbackBody:
    """What the callback does; `YolomonCallback` is this together with the library's own base class.

    Args:
        path: the stream's file; None: `yolomon.jsonl` in the output folder.
        features: look at feature maps and gradients every `every` steps.
        every: steps between two looks.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, features: bool = False, every: int = 100
    ) -> None:
        self._path = path
        self._features = features
        self._every = every
        self._log: JsonlLogger | None = None
        self._monitor: FeatureMonitor | None = None
        self._interval_began = 0.0
        self._interval_step = 0

    def on_train_begin(
        self, args: Json, state: Json, _control: Json, model: Module = None, **_: object
    ) -> None:
        """Begin the stream."""
        rank = getattr(args, "process_index", None)
        self._log = JsonlLogger(self._path or Path(args.output_dir) / "yolomon.jsonl", rank)
        self._log.write(
            "train_start",
            model=type(model).__name__,
            epochs=float(args.num_train_epochs),
            batch_size=int(args.train_batch_size) * int(getattr(args, "world_size", 1)),
            steps=state.max_steps,
            world_size=getattr(args, "world_size", None),
            workers=args.dataloader_num_workers,
            amp=bool(args.fp16 or args.bf16),
            save_dir=str(args.output_dir),
            trainer=f"Transformers {import_module('transformers').__version__}",
        )
        if self._features and model is not None:
            self._monitor = FeatureMonitor(model, every=self._every, log=self._log)
        self._interval_began, self._interval_step = time.perf_counter(), state.global_step

    def on_step_end(self, _args: Json, state: Json, _control: Json, **_: object) -> None:
        """Drive the feature statistics."""
        if self._monitor is not None:
            self._monitor.step(state.global_step, _epoch(state))

    def on_epoch_begin(self, _args: Json, state: Json, _control: Json, **_: object) -> None:
        """Write epoch_start."""
        if self._log is not None:
            self._log.write("epoch_start", epoch=int(state.epoch or 0) + 1)

    def on_log(
        self, _args: Json, state: Json, _control: Json, logs: Mapping[str, object] | None = None, **_: object
    ) -> None:
        """Write batch for a log interval of training."""
        if self._log is None or not logs or "loss" not in logs:
            return
        now, steps = time.perf_counter(), state.global_step - self._interval_step
        seconds = round((now - self._interval_began) / steps, 4) if steps > 0 else None
        self._interval_began, self._interval_step = now, state.global_step
        fields = {name: jsonable(value) for name, value in logs.items() if name != "epoch"}
        fields.setdefault("lr/pg0", fields.pop("learning_rate", None))
        self._log.write("batch", epoch=_epoch(state), step=state.global_step, step_time=seconds, **fields)

    def on_evaluate(
        self,
        _args: Json,
        state: Json,
        _control: Json,
        metrics: Mapping[str, object] | None = None,
        **_: object,
    ) -> None:
        """Write fit_epoch_end with the evaluation's metrics."""
        if self._log is not None:
            numbers = {name: value for name, value in (metrics or {}).items() if name != "epoch"}
            self._log.epoch_end(_epoch(state), numbers, step=state.global_step)

    def on_save(self, _args: Json, state: Json, _control: Json, **_: object) -> None:
        """Write model_save."""
        if self._log is not None:
            self._log.write("model_save", epoch=_epoch(state), step=state.global_step)

    def on_train_end(self, _args: Json, state: Json, _control: Json, **_: object) -> None:
        """Write train_end."""
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        if self._log is not None:
            self._log.write("train_end", epoch=_epoch(state), step=state.global_step)
            self._log.close()


def _epoch(state: Json) -> int:
    """The epoch under way or just over, from 1: `state.epoch` counts those done, with their parts."""
    done = float(state.epoch or 0)
    return max(1, int(done) + (done % 1 > 0))


def __getattr__(name: str) -> type:
    """`YolomonCallback`, made when asked for with the library's base class."""
    if name != "YolomonCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = type(name, (CallbackBody, import_module("transformers").TrainerCallback), {"__module__": __name__})
    globals()[name] = made
    return made
