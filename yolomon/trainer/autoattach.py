"""Attach to every Ultralytics training of this process, once Ultralytics is imported.

`yolomon run` starts processes with this in them. It is imported at the start of each, so it imports next
to nothing.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from yolomon.trainer.import_hook import AfterImport

FEATURES_VARIABLE = "YOLOMON_RUN_FEATURES"  # "1": statistics of feature maps too
TRAINER_MODULES = (
    "ultralytics.engine.trainer",
    "ultralytics.yolo.engine.trainer",
)  # the latter before 8.0.137


def install() -> None:
    """Look out for Ultralytics' trainer module from now on."""
    AfterImport(TRAINER_MODULES, _attach).install()


def _attach(module: ModuleType) -> None:
    try:
        from yolomon.trainer.ultralytics import Attachment, patch_trainer

        features = os.environ.get(FEATURES_VARIABLE) == "1"
        patch_trainer(module.BaseTrainer, lambda: Attachment(features=features))
    except Exception as error:  # noqa: BLE001 - inside the user's import of ultralytics, which must succeed
        reason = f"{type(error).__name__}: {error}"
        text = f"yolomon run: nothing is recorded, cannot attach to {module.__name__}: {reason}"
        print(text, file=sys.stderr)  # noqa: T201 - logging may not be set up yet
