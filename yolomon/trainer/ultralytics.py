"""attach: yolomon's callbacks for an Ultralytics YOLO or trainer, versions 8.0 to the newest.

The callbacks hold no open file, lock or thread, so they survive the pickling with which Ultralytics
8.4.140 and later hand them to the ranks of a DDP run (ultralytics#26062). Earlier versions drop callbacks
under DDP (ultralytics#6168); there

    model.train(trainer=yolomon.trainer.ultralytics.trainer_class("detect"), device=[0, 1], ...)

or `yolomon run` works: the ranks then attach by themselves.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from yolomon.trainer.autoattach import TRAINER_MODULES
from yolomon.trainer.foreign import Model, Trainer, Validator
from yolomon.trainer.run_stream import RunStream

logger = logging.getLogger("yolomon")
T = TypeVar("T")

ERRORS_LIMIT = 3  # of one callback, before it is called no more
_CLAIM = "_yolomon_attachment"  # on the trainer: which attachment writes for it


def _guarded(callback: Callable[[Attachment, T], None]) -> Callable[[Attachment, T], None]:
    """A callback that never raises into training."""

    @functools.wraps(callback)
    def call(self: Attachment, subject: T) -> None:
        if self._errors.get(callback.__name__, 0) >= ERRORS_LIMIT:
            return
        try:
            callback(self, subject)
        except Exception as error:  # noqa: BLE001 - training must go on, whatever a future version renamed
            self._failed(callback.__name__, error)

    return call


class Attachment:
    """The callbacks. Pickles to its settings; the run's stream begins in the process that trains.

    Args:
        features: look at feature maps and gradients every `every` steps.
        path: the stream's file; None: `yolomon.jsonl` in the run's folder.
        every: steps between two looks.
        layers: patterns of dotted module names to look at; None: a default choice.
    """

    def __init__(
        self,
        *,
        features: bool = False,
        path: str | os.PathLike[str] | None = None,
        every: int = 100,
        layers: Sequence[str] | None = None,
    ) -> None:
        self.features = features
        self.path = None if path is None else Path(path)
        self.every = every
        self.layers = None if layers is None else tuple(layers)
        self._stream: RunStream | None = None
        self._errors: dict[str, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Settings only."""
        return {"features": self.features, "path": self.path, "every": self.every, "layers": self.layers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def stream_path(self) -> Path | None:
        """The file this process writes, once training has started."""
        return None if self._stream is None else self._stream.log.path

    @_guarded
    def on_train_start(self, trainer: Trainer) -> None:
        """Begin the run's stream."""
        self._begin(trainer)

    @_guarded
    def on_train_epoch_start(self, trainer: Trainer) -> None:
        """Write epoch_start, or what made the epoch start again."""
        if self._stream is None:
            self._begin(trainer)  # attached while training was under way
        stream = self._of(trainer)
        if stream is not None:
            stream.epoch_start()

    @_guarded
    def on_train_batch_start(self, trainer: Trainer) -> None:
        """The loader gave a batch."""
        stream = self._of(trainer)
        if stream is not None:
            stream.batch_start()

    @_guarded
    def on_train_batch_end(self, trainer: Trainer) -> None:
        """Write batch."""
        stream = self._of(trainer)
        if stream is not None:
            stream.batch_end()

    @_guarded
    def on_train_epoch_end(self, trainer: Trainer) -> None:
        """Write epoch_end."""
        stream = self._of(trainer)
        if stream is not None:
            stream.epoch_end()

    @_guarded
    def on_val_start(self, _validator: Validator) -> None:
        """Write val_start, while training."""
        if self._stream is not None:
            self._stream.val_start()

    @_guarded
    def on_val_end(self, _validator: Validator) -> None:
        """Write val_end, while training."""
        if self._stream is not None:
            self._stream.val_end()

    @_guarded
    def on_model_save(self, trainer: Trainer) -> None:
        """Write model_save."""
        stream = self._of(trainer)
        if stream is not None:
            stream.model_save()

    @_guarded
    def on_fit_epoch_end(self, trainer: Trainer) -> None:
        """Write fit_epoch_end, and stopping."""
        stream = self._of(trainer)
        if stream is not None:
            stream.fit_epoch_end()

    @_guarded
    def on_train_end(self, trainer: Trainer) -> None:
        """Write train_end."""
        stream = self._of(trainer)
        if stream is not None:
            stream.train_end()

    @_guarded
    def teardown(self, trainer: Trainer) -> None:
        """Write aborted after an exception; let go of the trainer."""
        stream = self._of(trainer)
        if stream is not None:
            self._stream = None
            stream.teardown()

    def _begin(self, trainer: Trainer) -> None:
        claimed = getattr(trainer, _CLAIM, None)
        if claimed is not None and claimed is not self:
            return  # attached twice, e.g. in the script and by `yolomon run`
        setattr(trainer, _CLAIM, self)
        self._errors.clear()
        self._stream = RunStream(
            trainer, path=self.path, features=self.features, every=self.every, layers=self.layers
        )
        self._stream.train_start()

    def _of(self, trainer: Trainer) -> RunStream | None:
        return self._stream if self._stream is not None and self._stream.trainer is trainer else None

    def _failed(self, name: str, error: Exception) -> None:
        self._errors[name] = self._errors.get(name, 0) + 1
        text = f"{name} failed: {type(error).__name__}: {error}"
        if self._errors[name] == ERRORS_LIMIT:
            text += ", and is called no more"
        if self._stream is not None:
            self._stream.log.warn(text)
        elif self._errors[name] == 1:
            logger.warning("yolomon: %s. Training goes on.", text)


EVENTS = (
    "on_train_start",
    "on_train_epoch_start",
    "on_train_batch_start",
    "on_train_batch_end",
    "on_train_epoch_end",
    "on_val_start",
    "on_val_end",
    "on_model_save",
    "on_fit_epoch_end",
    "on_train_end",
    "teardown",
)


def attach(
    model: Model,
    features: bool = False,
    path: str | os.PathLike[str] | None = None,
    *,
    every: int = 100,
    layers: Sequence[str] | None = None,
) -> Attachment:
    """Let `model`'s next training write a stream that yolomon follows: one line of code in a training script.

    Args:
        model: an Ultralytics `YOLO` (or `RTDETR`, ...) or a trainer.
        features: also write statistics of feature maps and gradient norms every `every` steps.
        path: the stream's file; None: `yolomon.jsonl` in the run's folder. Rank N > 0 of a DDP run writes
            `yolomon.rankN.jsonl` beside it.
        every: steps between two looks at feature maps.
        layers: shell-style patterns of dotted module names to look at; None: a default choice.

    Returns:
        The callbacks, which tell where they write; attaching twice hands back the first.

    Raises:
        TypeError: `model` takes no callbacks; use `JsonlLogger` in a training loop of your own.
    """
    callbacks = getattr(model, "callbacks", None)
    for listed in callbacks.values() if isinstance(callbacks, dict) else ():
        for callback in listed if isinstance(listed, list) else (listed,):
            owner = getattr(callback, "__self__", None)
            if isinstance(owner, Attachment):
                return owner
    attachment = Attachment(features=features, path=path, every=every, layers=layers)
    add = getattr(model, "add_callback", None)
    if add is not None:
        for event in EVENTS:
            add(event, getattr(attachment, event))
        return attachment
    if type(model).__module__.split(".")[0] == "ultralytics" and hasattr(model, "train"):
        _next_trainers.append(attachment)  # 8.0.0: a model has no callbacks, its trainer has
        attach_to_new_trainers(lambda: _next_trainers[-1])
        return attachment
    raise TypeError(
        f"attach() takes an Ultralytics model or trainer, not {type(model).__name__}: "
        "use yolomon.JsonlLogger in a training loop of your own"
    )


_next_trainers: list[Attachment] = []


def attach_to_new_trainers(make: Callable[[], Attachment]) -> None:
    """Let every trainer made from now on in this process have callbacks. Works once a process.

    Raises:
        ImportError: no Ultralytics trainer module can be found.
    """
    for name in TRAINER_MODULES:
        module = sys.modules.get(name)
        if module is not None:
            break
    else:
        module = import_module(TRAINER_MODULES[0])
    patch_trainer(module.BaseTrainer, make)


def patch_trainer(base: type, make: Callable[[], Attachment]) -> None:
    """Let `base.train` attach first. `train` is called once a run, in the process (or rank) that trains."""
    train = base.train  # type: ignore[attr-defined]
    if getattr(train, "_yolomon", False):
        return

    @functools.wraps(train)
    def attached_train(self: Trainer, *args: object, **kwargs: object) -> object:
        callbacks = getattr(self, "callbacks", {})
        known = any(
            isinstance(getattr(callback, "__self__", None), Attachment)
            for listed in callbacks.values()
            for callback in (listed if isinstance(listed, list) else ())
        )
        if not known:
            attachment = make()
            for event in EVENTS:
                self.add_callback(event, getattr(attachment, event))
        return train(self, *args, **kwargs)

    attached_train._yolomon = True  # type: ignore[attr-defined]
    base.train = attached_train  # type: ignore[attr-defined]


class TrainerMixin:
    """For a trainer of your own in an importable module: `class Mine(TrainerMixin, DetectionTrainer)`."""

    yolomon_features = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        attach(self, features=self.yolomon_features)


_TASKS = {
    "detect": "DetectionTrainer",
    "segment": "SegmentationTrainer",
    "pose": "PoseTrainer",
    "obb": "OBBTrainer",
    "classify": "ClassificationTrainer",
}
_FEATURES = "WithFeatures"


def trainer_class(task: str = "detect", *, features: bool = False) -> type:
    """A trainer for `model.train(trainer=...)` that attaches in every rank, also where callbacks are dropped.

    Args:
        task: detect, segment, pose, obb or classify.
        features: also write statistics of feature maps.

    Raises:
        ValueError: no such task.
        ImportError: ultralytics is not installed, or too old to import a trainer by module (before about
        8.0.100).
    """
    if task not in _TASKS:
        raise ValueError(f"no trainer for task {task!r}: one of {', '.join(_TASKS)}")
    made: type = getattr(sys.modules[__name__], _TASKS[task] + (_FEATURES if features else ""))
    return made


def __getattr__(name: str) -> type:
    """`DetectionTrainer`, `DetectionTrainerWithFeatures`, ...: the ranks of a DDP run import them by name."""
    plain = name.removesuffix(_FEATURES)
    task = next((task for task, trainer in _TASKS.items() if trainer == plain), None)
    if task is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        base = getattr(import_module(f"ultralytics.models.yolo.{task}"), plain)
    except ModuleNotFoundError:
        base = getattr(import_module(f"ultralytics.yolo.v8.{task}"), plain)
    body = {"__module__": __name__, "__qualname__": name, "yolomon_features": name != plain}
    made = type(name, (TrainerMixin, base), body)
    globals()[name] = made
    return made
