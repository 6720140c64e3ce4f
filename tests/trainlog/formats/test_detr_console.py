"""The console of the DETR family."""

from __future__ import annotations

import math

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.detr_console import DetrConsole

ITERATION = (
    "Epoch: [0]  [150/225]  eta: 0:00:25  lr: 0.000100  class_error: 90.00  loss: 19.4377 (25.4237)  "
    "loss_ce: 0.6484 (0.7362)  loss_bbox: 1.1630 (1.5634)  loss_ce_0: 0.6593 (0.7312)  "
    "loss_ce_unscaled: 0.6484 (0.7362)  time: 0.6446  data: 0.0123  max mem: 5123\n"
)
COCO = (
    "IoU metric: bbox\n"
    " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.233\n"
    " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.434\n"
    " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.601\n"
)


def test_an_iteration(records: Records, format_of: FormatOf) -> None:
    assert format_of("nohup.out", ITERATION.encode()) == "detr-console"
    (batch,) = records(DetrConsole, ITERATION.encode())
    assert (batch.kind, batch.epoch, batch.batch, batch.batches, batch.step) == ("batch", 1, 151, 225, 151)
    roles = batch.roles
    assert (roles.loss, roles.learning_rate) == (19.4377, 0.0001)
    assert roles.losses == {"loss_ce": 0.6484, "loss_bbox": 1.163}  # not those of other layers, not unscaled
    assert (roles.step_seconds, roles.data_seconds) == (0.6446, 0.0123)
    assert roles.memory_peak_bytes == 5123 * 2**20
    assert roles.eta_seconds is None  # what is printed is of the epoch


def test_the_coco_table_is_of_the_epoch_before(records: Records) -> None:
    validation = records(DetrConsole, (ITERATION + COCO).encode())[-1]
    assert (validation.kind, validation.epoch, validation.roles.map50_95) == ("validation", 1, 0.233)


def test_the_engine_stops_at_nan(records: Records) -> None:
    nan = ITERATION.replace("loss: 19.4377", "loss: nan")
    batch, words = records(DetrConsole, (nan + "Loss is nan, stopping training\n").encode())
    assert math.isnan(batch.roles.loss)
    assert words.text == "Loss is nan, stopping training"


def test_heirs_write_how_many_epochs_there_are_and_other_losses(
    records: Records, format_of: FormatOf
) -> None:
    line = "    Epoch: [2/50]  [20/80]  eta: 0:01:55  lr: 0.5  edge_loss: 0.25 (0.5)  time: 1.5\n"
    assert format_of("logs.log", line.encode()) == "detr-console"
    (record,) = records(DetrConsole, line.encode())
    assert (record.epoch, record.epochs, record.batch) == (3, 50, 21)
    assert record.roles.loss == 0.25
