"""The text log of OpenMMLab trainers."""

from __future__ import annotations

import math
import time

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.mmdet_text import MmdetText

MMCV = (
    "2020-05-08 18:44:23,494 - mmdet - INFO - Epoch [1][1200/7517]\tlr: 2.000e-02, eta: 1 day, 4:44:04, "
    "time: 0.593, "
    "data_time: 0.031, memory: 6836, loss_cls: 0.1861, acc: 94.0625, loss_bbox: 0.1375, loss: 0.4606\n"
)
MMENGINE = (
    "2023/05/24 20:17:36 - mmengine - INFO - Epoch(train)  [2][  10/1051]  base_lr: 2.0000e-04 lr: "
    "9.0530e-09  "
    "eta: 8 days, 4:44:34  time: 33.6969  data_time: 31.8698  memory: 17929  grad_norm: nan  loss: 7.6343  "
    "loss_cls: 3.1140  loss_bbox: 2.1904\n"
)
PROGRESS = (
    "2024/05/22 11:08:03 - mmengine - INFO - Epoch(val) [113][350/416]    eta: 0:00:00  time: 0.0119  "
    "memory: 758\n"
)
VALIDATION = (
    "2024/05/22 11:08:04 - mmengine - INFO - bbox_mAP_copypaste: 0.753 0.987 0.865 -1.000 0.680 0.753\n"
    "2024/05/22 11:08:04 - mmengine - INFO - Epoch(val) [113][416/416]    coco/bbox_mAP: 0.7530  "
    "coco/bbox_mAP_50: "
    "0.9870  coco/bbox_mAP_s: -1.0000  data_time: 0.0002  time: 0.0115\n"
)


def test_mmcv(records: Records, format_of: FormatOf) -> None:
    assert format_of("20200508_184300.log", MMCV.encode()) == "mmdet-text"
    (batch,) = records(MmdetText, MMCV.encode())
    assert (batch.kind, batch.epoch, batch.batch, batch.batches, batch.step) == ("batch", 1, 1200, 7517, 1200)
    roles = batch.roles
    assert (roles.loss, roles.learning_rate) == (0.4606, 0.02)
    assert roles.losses == {"loss_cls": 0.1861, "loss_bbox": 0.1375}
    assert (roles.step_seconds, roles.data_seconds) == (0.593, 0.031)
    assert roles.memory_peak_bytes == 6836 * 2**20
    assert roles.eta_seconds == 86400 + 4 * 3600 + 44 * 60 + 4
    assert batch.own_ts == time.mktime((2020, 5, 8, 18, 44, 23, 0, 0, -1))


def test_mmengine(records: Records, format_of: FormatOf) -> None:
    assert format_of("20230524_201700.log", MMENGINE.encode()) == "mmdet-text"
    (batch,) = records(MmdetText, MMENGINE.encode())
    assert (batch.epoch, batch.batch, batch.step) == (2, 10, 1061)
    assert batch.roles.learning_rate == 9.053e-09
    assert batch.roles.loss == 7.6343
    assert math.isnan(batch.roles.gradient_norm)  # normal in AMP's first steps: no loss
    assert batch.roles.eta_seconds == 8 * 86400 + 4 * 3600 + 44 * 60 + 34


def test_early_mmengine_has_no_year(records: Records) -> None:
    (batch,) = records(MmdetText, MMENGINE.replace("2023/05/24", "05/24").encode())
    assert batch.own_ts is None
    assert batch.roles.loss == 7.6343


def test_validation(records: Records) -> None:
    (validation,) = records(MmdetText, (PROGRESS + VALIDATION).encode())
    assert (validation.kind, validation.epoch) == ("validation", 113)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.987, 0.753)
    assert "coco/bbox_mAP_s" not in validation.numbers  # -1: no such objects


def test_by_iterations(records: Records) -> None:
    line = (
        "2024/05/22 11:08:13 - mmengine - INFO - Iter(train) [  50/90000]  lr: 2.0e-05  time: 0.1873  "
        "loss: nan\n"
    )
    (batch,) = records(MmdetText, line.encode())
    assert (batch.epoch, batch.step) == (None, 50)
    assert math.isnan(batch.roles.loss)


def test_start_and_limit(records: Records) -> None:
    lines = (
        "2020-05-08 18:40:00,000 - mmdet - INFO - Start running, host: me@node, work_dir: /work_dirs/a\n"
        "2020-05-08 18:40:00,000 - mmdet - INFO - workflow: [('train', 1)], max: 12 epochs\n"
    )
    start, batch = records(MmdetText, (lines + MMCV).encode())
    assert start.kind == "start"
    assert batch.epochs == 12


def test_the_loop_in_the_dump_of_the_config_says_how_many_epochs(records: Records) -> None:
    dump = (
        "param_scheduler = dict(max_epochs=300, type='YOLOv5ParamSchedulerHook')\n"
        "train_cfg = dict(\n    max_epochs=40, type='EpochBasedTrainLoop', val_interval=10)\n"
        "val_cfg = dict(type='ValLoop')\n"
        "visualizer = dict(max_epochs=7)\n"
    )
    assert records(MmdetText, (dump + MMENGINE).encode())[0].epochs == 40
    assert records(MmdetText, ("total_epochs = 12\n" + MMCV).encode())[0].epochs == 12


def test_the_epoch_may_come_with_their_number(records: Records) -> None:
    record = records(MmdetText, MMCV.replace("Epoch [1]", "Epoch [1/20]").encode())[0]
    assert (record.epoch, record.epochs) == (1, 20)


def test_an_indented_copy_is_read_too(records: Records) -> None:
    text = "".join(f"    {line}\n" for line in MMCV.splitlines())
    assert [r.numbers for r in records(MmdetText, text.encode())] == [
        r.numbers for r in records(MmdetText, MMCV.encode())
    ]
