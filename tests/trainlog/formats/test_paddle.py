"""PaddleDetection's standard output and workerlog."""

from __future__ import annotations

import math

from tests.trainlog.formats.feeding import FormatOf, RealLog, Records
from yolomon.model import TrainRecord
from yolomon.trainlog.formats.paddle import Paddle

ITERATION = (
    "[06/24 11:20:46] ppdet.engine INFO: Epoch: [0] [ 20/134] learning_rate: 0.000200 loss_class: 1.5 "
    "loss_bbox: 1.25 "
    "loss: 57.5 eta: 1 day, 7:39:28 batch_cost: 2.5000 data_cost: 0.0028 ips: 2.7997 images/s\n"
)
COCO = (
    " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.233\n"
    " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.434\n"
    " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.601\n"
)


def test_an_iteration(records: Records, format_of: FormatOf) -> None:
    assert format_of("workerlog.0", ITERATION.encode()) == "paddle"
    (batch,) = records(Paddle, ITERATION.encode())
    assert (batch.kind, batch.epoch, batch.batch, batch.batches, batch.step) == ("batch", 1, 21, 134, 21)
    roles = batch.roles
    assert (roles.loss, roles.learning_rate, roles.images_per_second) == (57.5, 0.0002, 2.7997)
    assert roles.losses == {"loss_class": 1.5, "loss_bbox": 1.25}
    assert (roles.step_seconds, roles.data_seconds) == (2.5, 0.0028)
    assert roles.eta_seconds == 86400 + 7 * 3600 + 39 * 60 + 28
    assert batch.own_ts is None  # a date without a year


def test_memory_of_newer_versions(records: Records) -> None:
    newer = ITERATION.replace("images/s", "images/s, max_mem_reserved: 5000 MB, max_mem_allocated: 4000 MB")
    (batch,) = records(Paddle, newer.encode())
    assert batch.roles.memory_reserved_bytes == 5000 * 2**20
    assert batch.roles.memory_peak_bytes == 4000 * 2**20


def test_nan_of_a_loss_is_a_value(records: Records) -> None:
    (batch,) = records(Paddle, ITERATION.replace("loss: 57.5", "loss: nan").encode())
    assert math.isnan(batch.roles.loss)


def test_loss_scaling_of_amp_is_no_problem(records: Records) -> None:
    line = "Found inf or nan, current scale is: 16384.0, decrease to: 16384.0*0.5\n"
    assert records(Paddle, line.encode()) == []


def test_the_coco_table_is_of_the_epoch_before(records: Records) -> None:
    validation = records(Paddle, (ITERATION + COCO).encode())[-1]
    assert (validation.kind, validation.epoch) == ("validation", 1)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.434, 0.233)


def test_a_failed_assertion_of_many_threads_is_said_once(records: Records) -> None:
    error = "OSError: (External) CUDA error(719), unspecified launch failure. \n"
    assert [record.kind for record in records(Paddle, (error * 300).encode())] == ["message"]


def test_weights_loaded_again_are_a_new_start(records: Records) -> None:
    loaded = "[06/24 11:20:43] ppdet.utils.checkpoint INFO: Finish loading model weights: a.pdparams\n"
    kinds = [
        record.kind for record in records(Paddle, (loaded + ITERATION + loaded + loaded + ITERATION).encode())
    ]
    assert kinds == ["start", "batch", "start", "batch"]


def test_a_rank_above_0_holds_warnings_only(records: Records, format_of: FormatOf) -> None:
    content = b"W0624 11:20:31.323387   766 gpu_resources.cc:61] Please NOTE: paddle device: 1\n"
    assert format_of("workerlog.1", content) == "paddle"
    assert records(Paddle, content) == []


def test_real_file(records: Records, format_of: FormatOf, real_log: RealLog) -> None:
    content = real_log("paddle-workerlog.0")
    assert format_of("workerlog.0", content) == "paddle"
    found = records(Paddle, content)
    batches = [record for record in found if record.kind == "batch"]
    assert len(batches) == 365
    assert batches[-1].epoch == 116
    validations = [record for record in found if record.kind == "validation"]
    assert len(validations) == 23
    assert validations[-1].roles.map50_95 == 0.231
    assert all(math.isfinite(record.roles.loss) for record in batches)


def test_the_file_name_tells_the_rank() -> None:
    (batch,) = Paddle.parser("log/workerlog.3").feed(ITERATION.encode(), 1.0)
    assert isinstance(batch, TrainRecord)
    assert batch.rank == 3
    (batch,) = Paddle.parser("nohup.out").feed(ITERATION.encode(), 1.0)
    assert isinstance(batch, TrainRecord)
    assert batch.rank is None


STATIC = (
    "2021-04-29 06:19:48,726-INFO: iter: 1400, lr: 0.000070, 'loss': '88.5', 'loss_cls': '26.5', "
    "'loss_xy': '4.25', eta: 4:27:31, batch_cost: 0.25 sec, ips: 16.00 images/sec\n"
)


def test_the_static_graph_counts_iterations_alone(records: Records, format_of: FormatOf) -> None:
    assert format_of("train.log", STATIC.encode()) == "paddle"
    (record,) = records(Paddle, STATIC.encode())
    assert (record.epoch, record.step) == (None, 1400)
    assert (record.roles.loss, record.roles.learning_rate) == (88.5, 7e-05)
    assert record.roles.losses == {"loss_cls": 26.5, "loss_xy": 4.25}
    assert (record.roles.step_seconds, record.roles.images_per_second) == (0.25, 16)
    assert record.roles.eta_seconds == 4 * 3600 + 27 * 60 + 31
    (older,) = records(
        Paddle, STATIC.replace("batch_cost: 0.25 sec, ips: 16.00 images/sec", "time: 0.5").encode()
    )
    assert older.roles.step_seconds == 0.5


def test_the_kin_of_paddle_detection(records: Records, format_of: FormatOf) -> None:
    seg = (
        "2023-03-06 19:38:22 [INFO]\t[TRAIN] epoch: 2, iter: 20/1600, loss: 0.5, lr: 0.01, batch_cost: 0.25, "
    )
    seg += "reader_cost: 0.125, ips: 32.0 samples/sec | ETA 12:01:05\n"
    ocr = "[2022/10/10 14:37:01] ppocr INFO: epoch: [2/50], global_step: 20, lr: 0.01, loss: 0.5, "
    ocr += "avg_reader_cost: 0.125 s, avg_batch_cost: 0.25 s, ips: 32.0 samples/s, eta: 12:01:05\n"
    x = "2021-03-30 06:55:57 [INFO]\t[TRAIN] Epoch=2/50, Step=8/12, loss=0.5, lr=0.01, "
    x += "time_each_step=0.25s, eta=12:1:5\n"
    for text in (seg, ocr, x):
        assert format_of("workerlog.0", text.encode()) == "paddle", text
        (record,) = records(Paddle, text.encode())
        assert (record.epoch, record.step) == (2, 20), text
        assert (record.roles.loss, record.roles.learning_rate) == (0.5, 0.01), text
        assert (record.roles.step_seconds, record.roles.eta_seconds) == (0.25, 43265), text
    assert records(Paddle, ocr.encode())[0].epochs == 50
    assert records(Paddle, x.encode())[0].epochs == 50
    assert records(Paddle, seg.encode())[0].roles.images_per_second == 32


def test_voc_is_in_percent(records: Records) -> None:
    (record,) = records(Paddle, b"[06/24 12:20:46] ppdet.metrics.metrics INFO: mAP(0.50, 11point) = 45.50%\n")
    assert (record.kind, record.roles.map50, record.roles.map50_95) == ("validation", 0.455, None)
