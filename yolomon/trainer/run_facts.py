"""The settings of an Ultralytics run, as its trainer knows them when training starts."""

from __future__ import annotations

import sys

from yolomon.trainer.foreign import Trainer
from yolomon.trainer.plain import jsonable
from yolomon.trainer.rank import world_size

# name in the stream -> attribute of trainer.args
_ARGUMENTS = {
    "model": "model",
    "task": "task",
    "data": "data",
    "workers": "workers",
    "imgsz": "imgsz",
    "patience": "patience",
    "close_mosaic": "close_mosaic",
    "cache": "cache",
    "device": "device",
    "val": "val",
    "multi_scale": "multi_scale",
    "lr0": "lr0",
    "nbs": "nbs",
    "time": "time",
    "seed": "seed",
    "compile": "compile",
}


def run_facts(trainer: Trainer) -> dict[str, object]:
    """Settings by their name in the stream. `start_epoch` counts from 1. What is missing is left out."""
    arguments = getattr(trainer, "args", None)
    facts: dict[str, object] = {
        "epochs": getattr(trainer, "epochs", None),
        "batch_size": getattr(trainer, "batch_size", None),
    }
    for name, attribute in _ARGUMENTS.items():
        value = getattr(arguments, attribute, None)
        if value is not None:
            facts[name] = jsonable(value if not hasattr(value, "yaml_file") else value.yaml_file)
    facts["world_size"] = world_size()
    facts["batches"] = loader_length(trainer)
    facts["start_epoch"] = int(getattr(trainer, "start_epoch", 0)) + 1
    facts["resume"] = bool(getattr(trainer, "resume", False))
    amp = getattr(trainer, "amp", None)
    facts["amp"] = None if amp is None else bool(amp)
    optimizer = getattr(trainer, "optimizer", None)
    facts["optimizer"] = None if optimizer is None else type(optimizer).__name__
    directory = getattr(trainer, "save_dir", None)
    facts["save_dir"] = None if directory is None else str(directory)
    facts["trainer"] = f"Ultralytics {ultralytics_version()}"
    facts["torch"] = str(getattr(sys.modules.get("torch"), "__version__", "unknown"))
    return facts


def ultralytics_version() -> str:
    """The version of the ultralytics that is loaded."""
    return str(getattr(sys.modules.get("ultralytics"), "__version__", "unknown"))


def loader_length(trainer: Trainer) -> int | None:
    """Batches in an epoch on this rank; it changes when the trainer halves the batch size."""
    try:
        return len(trainer.train_loader)
    except (AttributeError, TypeError):
        return None
