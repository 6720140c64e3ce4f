"""YOLOX's train_log.txt."""

from __future__ import annotations

import time

from tests.trainlog.formats.feeding import FormatOf, RealLog, Records
from yolomon.trainlog.formats.yolox import Yolox

HEAD = (
    "2021-12-06 19:41:45.382 | INFO     | yolox.core.trainer:before_train:124 - args: "
    "Namespace(batch_size=64, "
    "ckpt=None, devices=2, experiment_name='yolox_s', fp16=True, name='yolox-s', resume=False)\n"
    "2021-12-06 19:41:45.384 | INFO     | yolox.core.trainer:before_train:125 - exp value:\n"
    "╒══════════════════╤════════════════════════════╕\n"
    "│ keys             │ values                     │\n"
    "│ data_num_workers │ 4                          │\n"
    "│ input_size       │ (640, 640)                 │\n"
    "│ max_epoch        │ 300                        │\n"
    "│ no_aug_epochs    │ 15                         │\n"
    "╘══════════════════╧════════════════════════════╛\n"
)
ITERATION = (
    "2021-12-06 19:42:45.500 | INFO     | yolox.core.trainer:after_iter:282 - epoch: 2/300, iter: "
    "10/1849, gpu mem: "
    "8345Mb, mem: 12.3Gb, iter_time: 0.500s, data_time: 0.012s, total_loss: 12.3, iou_loss: 4.5, "
    "l1_loss: 0.0, "
    "conf_loss: 5.8, cls_loss: 2.0, lr: 1.2e-05, size: 640, ETA: 1 day, 2:03:04\n"
)
COCO = (
    "2021-12-06 20:00:00.000 | INFO     | yolox.core.trainer:evaluate_and_save_model:307 - \n"
    "Average forward time: 3.14 ms, Average NMS time: 0.75 ms, Average inference time: 3.89 ms\n"
    " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.233\n"
    " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.434\n"
    " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000\n"
    " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.601\n"
)


def test_an_iteration(records: Records, format_of: FormatOf) -> None:
    assert format_of("train_log.txt", (HEAD + ITERATION).encode()) == "yolox"
    start, batch = records(Yolox, (HEAD + ITERATION).encode())
    assert start.kind == "start"
    assert (start.run.epochs, start.run.batch_size, start.run.workers, start.run.image_size) == (
        300,
        64,
        4,
        640,
    )
    assert (start.run.model, start.run.world_size, start.run.amp) == ("yolox-s", 2, True)
    assert (batch.kind, batch.epoch, batch.epochs, batch.batch, batch.batches) == ("batch", 2, 300, 10, 1849)
    assert batch.step == 1859
    roles = batch.roles
    assert (roles.loss, roles.learning_rate, roles.image_size) == (12.3, 1.2e-05, 640)
    assert roles.losses == {"iou_loss": 4.5, "l1_loss": 0.0, "conf_loss": 5.8, "cls_loss": 2.0}
    assert (roles.step_seconds, roles.data_seconds, roles.images_per_second) == (0.5, 0.012, 128)
    assert roles.memory_peak_bytes == 8345 * 2**20
    assert roles.eta_seconds == 86400 + 2 * 3600 + 3 * 60 + 4


def test_memory_of_versions_before_0_3(records: Records) -> None:
    old = ITERATION.replace("gpu mem: 8345Mb, mem: 12.3Gb", "mem: 6736Mb")
    (batch,) = records(Yolox, old.encode())
    assert batch.roles.memory_peak_bytes == 6736 * 2**20


def test_the_stamp_is_local_time(records: Records) -> None:
    (batch,) = records(Yolox, ITERATION.encode())
    assert batch.own_ts == batch.ts == time.mktime((2021, 12, 6, 19, 42, 45, 0, 0, -1)) + 0.5


def test_the_coco_table_is_a_validation(records: Records) -> None:
    validation = records(Yolox, (ITERATION + COCO).encode())[-1]
    assert (validation.kind, validation.epoch) == ("validation", 2)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.434, 0.233)
    assert "coco/bbox_mAP_s" not in validation.numbers  # -1: there are no small objects


def test_done_is_said_after_a_crash_too(records: Records) -> None:
    """It is printed in a `finally` block."""
    done = (
        "2021-12-06 20:00:00.000 | INFO     | yolox.core.trainer:after_train:200 - Training of "
        "experiment is done "
        "and the best AP is 23.30\n"
    )
    assert records(Yolox, (ITERATION + done).encode())[-1].kind == "message"
    last = ITERATION.replace("epoch: 2/300", "epoch: 300/300")
    assert records(Yolox, (last + done).encode())[-1].kind == "end"


def test_starts_appended_to_one_file(records: Records) -> None:
    error = (
        "2021-12-07 14:05:08.984 | ERROR    | yolox.core.launch:launch:68 - An error has been caught in "
        "function "
        "'launch', process 'MainProcess' (8934)\nTraceback (most recent call last):\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n"
    )
    kinds = [record.kind for record in records(Yolox, (HEAD + error + HEAD + ITERATION).encode())]
    assert kinds == ["start", "message", "message", "message", "start", "batch"]


def test_real_file_without_a_single_iteration(
    records: Records, format_of: FormatOf, real_log: RealLog
) -> None:
    content = real_log("yolox-train_log.txt")
    assert format_of("train_log.txt", content) == "yolox"
    found = records(Yolox, content)
    assert sum(record.kind == "start" for record in found) == 27
    assert not any(record.kind == "batch" for record in found)
    assert any("out of memory" in record.text for record in found)


def test_the_voc_evaluator_has_two_lines(records: Records) -> None:
    (record,) = records(Yolox, b"Mean AP = 0.5\nmap_5095: 0.25\nmap_50: 0.5\n")
    assert (record.kind, record.roles.map50, record.roles.map50_95) == ("validation", 0.5, 0.25)


def test_blanks_around_a_line_do_not_matter(records: Records) -> None:
    (batch,) = (r for r in records(Yolox, ITERATION.encode()) if r.kind == "batch")
    spaced = "".join(f"    {line}   \n" for line in ITERATION.splitlines())
    (again,) = (r for r in records(Yolox, spaced.encode()) if r.kind == "batch")
    assert again.numbers == batch.numbers
