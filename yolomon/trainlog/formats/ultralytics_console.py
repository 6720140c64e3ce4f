"""The console of Ultralytics 8.x: from `nohup`, `tee`, Slurm's output file, or piped in.

`GPU_mem` is torch's reserved memory in GiB (`memory_reserved() / 2**30`), of rank 0's GPU. The bar's rate
is in batches of the whole job, so images per second are rate times `batch`. Facts read in ultralytics
8.4.190, engine/trainer.py and utils/tqdm.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.yolo_console import YoloConsole
from yolomon.trainlog.plain_text import plain
from yolomon.trainlog.settings_files import run_info_of_settings

_HEADER = re.compile(r"^ *Epoch +GPU_mem .*\b(?:Instances +Size|Instances…|loss.*…)", re.MULTILINE)
_VERSION = re.compile(r"Ultralytics (?:YOLOv?)?(\d+\.\d+\.\d+)")
_SETTINGS = re.compile(r"(?:yolo[/\\])?engine[/\\]trainer: ")  # with yolo/ up to 8.0.145; Windows: \
_ARGUMENT = re.compile(r"(\w+)=((?:[^,(\[]|\([^)]*\)|\[[^\]]*\])*)(?:, |$)")
_OBJECTNESS = re.compile(r"\bobj_loss\b")  # YOLOv5's; a pose model has kobj_loss
_RESUMING = re.compile(r"Resuming training .* from epoch (\d{1,9}) to (\d{1,9}) total epochs")
_STARTING = re.compile(r"Starting training for (\d{1,9}) epochs")
_AUTOBATCH = re.compile(r"AutoBatch: Using batch-size (\d{1,9})")
_REDUCED = re.compile(r"Reducing to batch=(\d{1,9})")
_WORKERS = re.compile(r"Using (\d{1,9}) dataloader workers")
_SAVE = re.compile(r"Logging results to (.+)$")
_TELLING = re.compile(  # lines worth a message that are no alarm
    r"Using \d+ train, |AutoBatch: |Closing dataloader mosaic|EarlyStopping: |Resuming training "
    r"|^optimizer: |Slow image access|no labels found|DDP: "
    r"|Transferred \d+/|(?:train|val): .*corrupt|Results saved to "
)


class UltralyticsConsoleParser(YoloConsole):
    """Adds the settings line, the batch size that AutoBatch or an OOM retry chose, and early stopping."""

    _epochs_before = 0

    def line(self, text: str, arrival_ts: float) -> Iterable[TrainRecord | BrokenLine]:
        """A line of words of Ultralytics."""
        if (settings := _SETTINGS.match(text)) is not None:
            self._settings(text[settings.end() :])
            return ()
        if (version := _VERSION.match(text)) is not None:
            self._set(trainer=f"Ultralytics {version[1]}")
            return ()
        if (starting := _STARTING.match(text)) is not None:
            self._set(epochs=int(starting[1]))
            before, self._epochs_before = self._epochs_before, 0
            return [self.start(arrival_ts, before)]
        if (resuming := _RESUMING.match(text)) is not None:
            self._epochs_before = int(resuming[1]) - 1
            return [self.message(text, arrival_ts)]
        if (save := _SAVE.match(text)) is not None:
            self._set(save_directory=save[1].strip())
            return ()
        if (workers := _WORKERS.match(text)) is not None:
            self._set(workers=int(workers[1]))
            return ()
        if (batch := _AUTOBATCH.search(text) or _REDUCED.search(text)) is not None:
            self._set(batch_size=float(batch[1]))
            return [self.message(text, arrival_ts)]
        if "EarlyStopping: Training stopped" in text:
            stopping = self.message(text, arrival_ts)
            return [msgspec.structs.replace(stopping, kind="stopping")]
        if _TELLING.search(text) is not None:
            return [self.message(text, arrival_ts)]
        return super().line(text, arrival_ts)

    def _set(self, **changes: object) -> None:
        self.run = msgspec.structs.replace(self.run, **changes)

    def _settings(self, text: str) -> None:
        settings = {name: value.strip() for name, value in _ARGUMENT.findall(text)}
        version = self.run.trainer
        self.run = run_info_of_settings(settings)
        self._set(trainer=version or self.run.trainer)


class UltralyticsConsole:
    """Format: Ultralytics' console text."""

    name: ClassVar[str] = "ultralytics-console"
    title: ClassVar[str] = "Ultralytics console"
    reads: ClassVar[Literal["lines", "redraws", "whole", "bytes"]] = "redraws"

    @staticmethod
    def score(head: Head) -> float:
        """By the trainer's greeting, its settings line or its table header (YOLOv5's has obj_loss)."""
        text = "\n".join(plain(line) for line in head.data.replace(b"\r", b"\n").split(b"\n"))
        greets = _VERSION.search(text) is not None and "torch-" in text
        if greets and _SETTINGS.search(text) is not None:
            return 0.95
        header = _HEADER.search(text)
        if header is not None and _OBJECTNESS.search(header[0]) is None:
            return 0.95 if greets else 0.9
        return 0.8 if greets else 0.0

    @staticmethod
    def parser(source: str) -> UltralyticsConsoleParser:
        """A parser for one console."""
        return UltralyticsConsoleParser(source)
