"""Records from scalars that come one by one (TensorBoard) or as a dict a step (W&B): by their tags' names."""

from __future__ import annotations

from collections.abc import Mapping

from yolomon.model import RecordKind, TrainRecord
from yolomon.trainlog.roles import Phase, RoleResolver
from yolomon.trainlog.timestamps import place_in_time

LOGGED_EPOCH = ("epoch", "train/epoch")  # the epoch as a scalar: Lightning, Hugging Face's Trainer


def yolo_epoch_base(tags: Mapping[str, float]) -> int | None:
    """The first epoch's number where steps are epochs: Ultralytics and YOLOv6 1, YOLOv5 to v9 0.

    None for iterations. Ultralytics (utils/callbacks/tensorboard.py) and YOLOv6 (yolov6/utils/events.py) log
    at epoch + 1, YOLOv5 at epoch.
    """
    if any(tag in ("metrics/mAP50-95(B)", "lr/pg0", "metrics/accuracy_top1", "val/mAP@0.5") for tag in tags):
        return 1
    if any(tag in ("metrics/mAP_0.5", "metrics/mAP_0.5:0.95", "x/lr0", "val/obj_loss") for tag in tags):
        return 0
    return None


def record_of_scalars(
    source: str,
    resolver: RoleResolver,
    numbers: dict[str, float],
    step: int | None,
    own_ts: float | None,
    arrival_ts: float,
    epoch: int | None = None,
) -> TrainRecord:
    """One record of the scalars of one step. `epoch` counts from 1."""
    plan = resolver.plan(tuple(numbers))
    trains = bool(plan.parts or plan.summed) or any(r in ("loss", "learning_rate") for r, _, _ in plan.single)
    evaluates = bool(plan.maps or plan.validation)
    kind: RecordKind = "validation" if evaluates and not trains else "epoch" if evaluates else "batch"
    if kind == "batch" and epoch is not None and step is None:
        kind = "epoch"
    phase: Phase = "validation" if kind == "validation" else None
    return TrainRecord(
        ts=place_in_time(own_ts, arrival_ts),
        own_ts=own_ts,
        kind=kind,
        source=source,
        epoch=epoch,
        step=step,
        numbers=numbers,
        roles=resolver.roles(numbers, phase),
    )
