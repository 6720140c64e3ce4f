"""yolomon: a terminal dashboard for YOLO training on remote NVIDIA machines.

What runs inside a training process is here, imported only when asked for:

    import yolomon
    yolomon.attach(model)                      # an Ultralytics YOLO or trainer
    log = yolomon.JsonlLogger("yolomon.jsonl")   # any other training loop
    yolomon.FeatureMonitor(model, log=log)     # statistics of feature maps

It needs the standard library alone; torch and ultralytics are the training script's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yolomon.trainer.features import FeatureMonitor
    from yolomon.trainer.ultralytics import attach
    from yolomon.trainer.writer import JsonlLogger

    __version__: str

__all__ = ["FeatureMonitor", "JsonlLogger", "__version__", "attach"]

_HOME = {
    "attach": "yolomon.trainer.ultralytics",
    "FeatureMonitor": "yolomon.trainer.features",
    "JsonlLogger": "yolomon.trainer.writer",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("yolomon")
        except metadata.PackageNotFoundError:  # run from a checkout, or lent to another environment's Python
            return "0.1.0"
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'yolomon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
