"""The console of YOLOv6."""

from __future__ import annotations

import pytest

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.yolov6_console import YoloV6Console

SETTINGS = (
    "training args are: Namespace(data_path='d.yaml', conf_file='yolov6s.py', batch_size=32, epochs=5)\n"
)
HEADER = "\n     Epoch        lr  iou_loss  dfl_loss  cls_loss\n"
FRAMES = (
    "  0%|          | 0/40 [00:00<?, ?it/s]"
    "\r       0/4   0.00062       1.5         0       2.5:  50%|█████     | 20/40 [00:10<00:10,  2.00it/s]"
    "\r       0/4   0.00062       1.25        0       2.25: 100%|██████████| 40/40 [00:20<00:00,  2.00it/s]\n"
)
EVALUATION = "Epoch: 0 | mAP@0.5: 0.0341 | mAP@0.50:0.95: 0.0061\n"


def test_epochs_count_from_0_and_the_losses_have_no_total(records: Records, format_of: FormatOf) -> None:
    text = SETTINGS + "Training start...\n" + HEADER + FRAMES + EVALUATION
    assert format_of("nohup.out", text.encode()) == "yolov6-console"
    start, begun, half, full, epoch, validation = records(YoloV6Console, text.encode())
    assert (start.kind, start.run.batch_size, start.run.epochs) == ("start", 32, 5)
    assert (begun.kind, begun.epoch, begun.epochs) == ("epoch_start", 1, 5)
    assert (half.kind, half.batch, half.batches, half.roles.loss) == ("batch", 20, 40, 4.0)
    assert full.roles.losses == {"iou_loss": 1.25, "dfl_loss": 0, "cls_loss": 2.25}
    assert (full.roles.learning_rate, full.roles.step_seconds) == (0.00062, 0.5)
    assert full.roles.images_per_second == 64
    assert (epoch.kind, epoch.epoch, epoch.roles.loss) == ("epoch", 1, 3.5)
    assert (validation.kind, validation.epoch) == ("validation", 1)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.0341, 0.0061)


def test_versions_before_0_4_have_no_learning_rate(records: Records, format_of: FormatOf) -> None:
    old = (HEADER + FRAMES).replace("        lr", "").replace("   0.00062", "")
    assert format_of("nohup.out", old.encode()) == "yolov6-console"
    assert records(YoloV6Console, old.encode())[-1].roles.learning_rate is None
    assert records(YoloV6Console, old.encode())[-1].roles.loss == 3.5


@pytest.mark.parametrize(("width", "loss"), [(100, 3.5), (64, 3.5), (52, 3.5), (44, None), (36, None)])
def test_a_narrow_terminal_cuts_without_a_mark(records: Records, width: int, loss: float | None) -> None:
    frame = (
        "       0/4   0.00062      1.25         0      2.25: 100%|██████████| 40/40 [00:20<00:00,  2.00it/s]"
    )
    found = records(YoloV6Console, (HEADER + frame[:width] + "\n").encode())
    epoch = found[-1]
    assert (epoch.kind, epoch.epoch, epoch.epochs) == ("epoch", 1, 5)
    assert epoch.roles.loss == loss
    assert epoch.roles.losses["iou_loss"] == 1.25


def test_an_epoch_under_way_is_not_complete(records: Records) -> None:
    found = records(YoloV6Console, (HEADER + FRAMES[: FRAMES.rindex("\r")]).encode())
    assert [record.kind for record in found] == ["epoch_start", "batch"]


def test_the_end(records: Records) -> None:
    found = records(YoloV6Console, (HEADER + FRAMES + "\nTraining completed in 0.167 hours.\n").encode())
    assert [record.kind for record in found][-2:] == ["epoch", "end"]
