"""All formats, each a module and a class; imported when the first log is looked at, not at start-up."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import cast

from yolomon.trainlog.formats.base import Format, Head
from yolomon.trainlog.prefixes import unprefixed_text

LEAST_SCORE = 0.3
SURE_SCORE = 0.6  # below it, a console is looked at without its prefixes, too

FORMATS: tuple[tuple[str, str], ...] = (
    # (module in this folder, class): one line a format; the best score wins, of equals the first
    ("yolomon_events", "YolomonEvents"),
    ("mmengine", "Mmengine"),
    ("mmengine", "Mmcv"),
    ("detectron2", "Detectron2"),
    ("detr", "Detr"),
    ("tao", "Tao"),
    ("jsonl", "Jsonl"),
    ("ultralytics_csv", "UltralyticsCsv"),
    ("ultralytics_tune", "UltralyticsTune"),
    ("yolov5_csv", "YoloV5Csv"),
    ("yolov7_txt", "YoloV7Txt"),
    ("lightning_csv", "LightningCsv"),
    ("keras_csv", "KerasCsv"),
    ("timm_csv", "TimmCsv"),
    ("generic_csv", "GenericCsv"),
    ("ultralytics_console", "UltralyticsConsole"),
    ("yolov5_console", "YoloV5Console"),
    ("yolov6_console", "YoloV6Console"),
    ("yolox", "Yolox"),
    ("paddle", "Paddle"),
    ("mmdet_text", "MmdetText"),
    ("darknet", "Darknet"),
    ("detr_console", "DetrConsole"),
    ("detectron2_text", "Detectron2Text"),
    ("hf_console", "HfConsole"),
    ("super_gradients", "SuperGradients"),
    ("keras_console", "KerasConsole"),
    ("lightning_console", "LightningConsole"),
    ("generic_console", "GenericConsole"),
    ("hf_trainer_state", "HfTrainerState"),
    ("tensorboard", "Tensorboard"),
    ("wandb_file", "WandbFile"),
    ("visualdl", "VisualDl"),
)


@lru_cache(maxsize=1)
def formats() -> tuple[Format, ...]:
    """All formats, imported."""
    package = __name__.rpartition(".")[0]
    return tuple(
        cast("Format", getattr(import_module(f"{package}.{module}"), name)) for module, name in FORMATS
    )


def by_name(name: str) -> Format | None:
    """The format of that name."""
    return next((found for found in formats() if found.name == name), None)


def recognise(head: Head) -> Format | None:
    """The format that is surest the content is its own; None where none is sure enough.

    A console whose lines all have something in front of them (a rank, a time) is looked at without that.
    """
    found, score = _best(head)
    if score < SURE_SCORE:
        bare = unprefixed_text(head.data)
        if bare is not head.data:
            without, its_score = _best(Head(head.name, head.parent, bare))
            if its_score > score and without is not None and without.reads == "redraws":
                found, score = without, its_score
    return found if score >= LEAST_SCORE else None


def _best(head: Head) -> tuple[Format | None, float]:
    best, best_score = None, 0.0
    for candidate in formats():
        score = candidate.score(head)
        if score > best_score:
            best, best_score = candidate, score
    return best, best_score
