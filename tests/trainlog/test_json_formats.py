"""JSON-lines logs of each trainer: recognised by content, with the oddities that each is known for."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path

import pytest

from yolomon.history import TrainHistory
from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Head
from yolomon.trainlog.formats.registry import recognise
from yolomon.trainlog.inspect import inspect


def read(*bodies: object, name: str = "x.json") -> tuple[str, list[TrainRecord]]:
    """The format's name and the records of these objects, a line each (a str is a line as it stands)."""
    lines = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    found = recognise(Head(name, "run", ("\n".join(lines) + "\n").encode()))
    assert found is not None
    parser = found.parser(name)
    entries = [entry for line in lines for entry in parser.feed(line.encode(), 2e9)]
    return found.name, [entry for entry in entries if not isinstance(entry, BrokenLine)]


def test_epochs_that_begin_at_0_are_counted_from_1() -> None:
    _, records = read({"epoch": 0, "loss": 1.0}, {"epoch": 1, "loss": 0.9})
    assert [record.epoch for record in records] == [1, 2]


def test_epochs_that_begin_at_1_stay() -> None:
    _, records = read({"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.9})
    assert [record.epoch for record in records] == [1, 2]


def test_with_shares_of_epochs_a_whole_number_is_an_end() -> None:
    """Hugging Face's Trainer and those who write its log as JSON lines."""
    _, records = read(
        {"step": 0, "epoch": 0, "eval_loss": 2.0},
        {"step": 10, "epoch": 0.03, "loss": 1.5},
        {"step": 400, "epoch": 1.0, "eval_loss": 1.25},
        {"step": 410, "epoch": 1.03, "loss": 1.0},
        {"step": 800, "epoch": 2.0, "eval_loss": 1.125},
    )
    assert [record.epoch for record in records] == [1, 1, 1, 2, 2]


def test_a_share_under_epochs_is_how_many_are_done() -> None:
    """LeRobot's `epochs`."""
    _, (record,) = read({"step": 3000, "epochs": 1.98, "loss": 0.7, "step_s": 0.3, "samples_per_s": 26})
    assert (record.epoch, record.epochs) == (2, None)
    assert (record.roles.step_seconds, record.roles.images_per_second) == (0.3, 26)


def test_numbers_as_strings_and_words_for_non_finite_are_numbers() -> None:
    _, (record,) = read({"epoch": 1, "loss": "0.5", "grad_norm": "NaN", "note": "fine", "done": True})
    assert record.roles.loss == 0.5
    assert record.roles.gradient_norm is not None
    assert isnan(record.roles.gradient_norm)
    assert set(record.numbers) == {"loss", "grad_norm"}


def test_numbers_with_their_units_in_a_string() -> None:
    _, (record,) = read({"epoch": 1, "loss": 1.5, "mAP50": "45.5%", "gpu_mem": "5.5G", "version": "8.4M1"})
    assert (record.roles.map50, record.roles.memory_reserved_bytes) == (0.455, 5.5 * 2**30)
    assert "version" not in record.numbers


def test_bare_nan_and_infinity_are_values() -> None:
    _, (record,) = read('{"epoch": 1, "loss": NaN, "lr": Infinity}')
    assert isnan(record.numbers["loss"])
    assert record.numbers["lr"] == float("inf")


def test_loguru_records_are_opened() -> None:
    body = {
        "text": "step done\n",
        "record": {
            "extra": {"epoch": 2, "step": 10, "loss": 0.5},
            "message": "step done",
            "time": {"repr": "x", "timestamp": 1.7e9},
        },
    }
    _, (record,) = read(body)
    assert (record.epoch, record.step, record.roles.loss, record.own_ts) == (2, 10, 0.5, 1.7e9)


def test_structlog_records_keep_their_time() -> None:
    body = {
        "event": "train_step",
        "level": "info",
        "timestamp": "2023-11-14T22:13:20Z",
        "step": 3,
        "loss": 0.5,
    }
    _, (record,) = read(body)
    assert (record.kind, record.step, record.own_ts) == ("batch", 3, 1.7e9)


def test_a_clock_that_is_ahead_does_not_place_the_record() -> None:
    _, (record,) = read({"ts": 2.1e9, "step": 1, "loss": 1.0})
    assert record.own_ts == 2.1e9
    assert record.ts == 2e9


def test_yolomon_events() -> None:
    base = {"ts": 1.7e9, "rank": 1, "pid": 7}
    name, records = read(
        base | {"event": "train_start", "epochs": 10, "batch_size": 64, "imgsz": 640, "workers": 8},
        base
        | {
            "event": "batch",
            "epoch": 1,
            "batch": 3,
            "batches": 9,
            "step": 3,
            "mem_peak": 5000,
            "step_time": 0.2,
        },
        base | {"event": "features", "step": 3, "layers": {"model.0": {"mean": 0.5}}},
        base | {"event": "fit_epoch_end", "epoch": 1, "metrics": {"metrics/mAP50(B)": 0.5}},
        base | {"event": "train_end"},
    )
    assert name == "yolomon-jsonl"
    assert [record.kind for record in records] == ["start", "batch", "features", "epoch", "end"]
    start, batch, features, epoch, _ = records
    assert start.run is not None
    assert (start.run.epochs, start.run.image_size) == (10, 640)
    assert (batch.rank, batch.batches, batch.roles.step_seconds, batch.roles.memory_peak_bytes) == (
        1,
        9,
        0.2,
        5000,
    )
    assert features.features == {"model.0": {"mean": 0.5}}
    assert epoch.roles.map50 == 0.5


def test_mmengine_validation_has_the_epoch_in_step() -> None:
    train = {
        "lr": 0.1,
        "data_time": 0.1,
        "loss": 1.0,
        "time": 0.3,
        "epoch": 10,
        "iter": 1000,
        "memory": 2,
        "step": 1000,
    }
    name, records = read(
        train, {"coco/bbox_mAP": 0.4, "coco/bbox_mAP_50": 0.6, "data_time": 1, "time": 2, "step": 10}
    )
    assert name == "mmengine-json"
    assert (records[1].kind, records[1].epoch, records[1].step) == ("validation", 10, None)
    assert records[1].roles.step_seconds is None
    assert records[0].roles.memory_peak_bytes == 2 * 2**20


def test_mmengine_validations_are_told_alike_when_a_long_log_is_read_in_columns() -> None:
    """There the training records between two validations are not read one by one."""
    train = {"lr": 0.1, "data_time": 0.1, "loss": 1.0, "time": 0.3, "epoch": 1, "iter": 50, "step": 50}
    validations = [{"coco/bbox_mAP": 0.4, "data_time": 1, "time": 2, "step": step} for step in (1, 2, 90)]
    _, records = read(train, *validations)
    assert [(record.epoch, record.step) for record in records[1:]] == [(1, None), (2, None), (90, None)]


def test_mmengine_validation_may_have_the_iteration_in_step() -> None:
    """LoggerHook's log_metric_by_epoch=False."""
    train = {"lr": 0.1, "data_time": 0.1, "loss": 1.0, "time": 0.3, "epoch": 1, "iter": 50, "step": 50}
    _, records = read(train, {"coco/bbox_mAP": 0.4, "data_time": 1, "time": 2, "step": 60})
    assert (records[1].epoch, records[1].step) == (None, 60)


def test_mmengine_validation_of_a_run_without_epochs_has_the_iteration_or_0_in_step() -> None:
    train = {"lr": 0.1, "data_time": 0.1, "loss": 1.0, "time": 0.3, "iter": 500, "memory": 2, "step": 500}
    _, records = read(
        train,
        {"coco/bbox_mAP": 0.4, "data_time": 1, "time": 2, "step": 500},
        {"coco/bbox_mAP": 0.4, "data_time": 1, "time": 2, "step": 0},
    )
    assert [(r.kind, r.epoch, r.step) for r in records] == [
        ("batch", None, 500),
        ("validation", None, 500),
        ("validation", None, None),
    ]


def test_mmengine_metrics_of_any_task_are_no_training() -> None:
    train = {"lr": 0.1, "data_time": 0.1, "loss": 1.0, "time": 0.3, "iter": 500, "memory": 2, "step": 500}
    _, records = read(train, {"NME": 0.05, "mIoU": 60.0, "data_time": 1, "time": 2, "step": 500})
    assert (records[1].kind, records[1].roles.step_seconds) == ("validation", None)


def test_map_of_voc_has_one_threshold() -> None:
    """VOCMetric and eval_map average over IoU thresholds, by default over 0.5 alone."""
    train = {"mode": "train", "epoch": 1, "iter": 50, "lr": 0.1, "loss": 1.0, "time": 0.5}
    _, records = read(train, {"mode": "val", "epoch": 1, "iter": 50, "AP50": 0.75, "mAP": 0.7514})
    assert (records[1].roles.map50, records[1].roles.map50_95) == (0.75, None)
    train = {"lr": 0.1, "data_time": 0.1, "loss": 1.0, "time": 0.3, "epoch": 1, "iter": 50, "step": 50}
    _, records = read(
        train,
        {"pascal_voc/mAP": 0.61, "data_time": 1, "time": 2, "step": 1},
        {"dota/mAP": 0.4, "dota/AP50": 0.7, "dota/AP75": 0.3, "data_time": 1, "time": 2, "step": 1},
    )
    assert [(r.roles.map50, r.roles.map50_95) for r in records[1:]] == [(0.61, None), (0.7, 0.4)]


def test_mmcv_iterations_are_batches_of_an_epoch_and_the_header_is_a_start() -> None:
    name, records = read(
        {"env_info": "x" * 9000, "seed": None, "exp_name": "faster_rcnn.py"},
        {"mode": "train", "epoch": 5, "iter": 50, "lr": 0.1, "loss": 1.0, "time": 0.5, "data_time": 0.1},
        {"mode": "val", "epoch": 5, "iter": 50, "lr": 0.1, "bbox_mAP": 0.2, "bbox_mAP_s": -1.0},
    )
    assert name == "mmcv-json"
    assert [(r.kind, r.epoch, r.batch) for r in records] == [
        ("start", None, None),
        ("batch", 5, 50),
        ("validation", 5, None),
    ]


def test_detectron2_ap_is_0_to_100() -> None:
    name, records = read(
        {"iteration": 19, "total_loss": 2.0, "lr": 0.1, "time": 0.4}, {"iteration": 39, "bbox/AP": 0.9}
    )
    assert name == "detectron2-json"
    assert records[1].roles.map50_95 == pytest.approx(0.009)
    assert records[0].roles.step_seconds == 0.4


def test_detectron2_metrics_of_a_named_data_set_alone() -> None:
    name, (record,) = read({"iteration": 39, "nuts_val/bbox/AP": 40.0, "nuts_val/bbox/AP50": 60.0})
    assert name == "detectron2-json"
    assert (record.roles.map50_95, record.roles.map50) == (pytest.approx(0.4), pytest.approx(0.6))


def test_detr_lists_and_epochs_from_0() -> None:
    name, (record,) = read(
        {
            "train_lr": 1e-4,
            "train_loss": 9.0,
            "test_coco_eval_bbox": [0.3, 0.5] + [0.0] * 10,
            "epoch": 0,
            "n_parameters": 1,
        }
    )
    assert name == "detr-json"
    assert (record.epoch, record.roles.map50_95, record.roles.map50, record.roles.loss) == (1, 0.3, 0.5, 9.0)


def test_a_train_lr_alone_is_not_of_detr() -> None:
    name, records = read({"epoch": 1, "train_loss": 2.0, "train_lr": 0.1}, {"epoch": 2, "train_loss": 1.5})
    assert name == "jsonl"
    assert [record.epoch for record in records] == [1, 2]


def test_tao_kpi_that_are_repeated_are_no_news() -> None:
    stamp = {"date": "8/28/2026", "time": "8:50:8", "verbosity": "INFO"}
    name, records = read(
        stamp | {"status": "STARTED", "message": "Starting"},
        stamp
        | {"status": "RUNNING", "message": "m", "epoch": 0, "max_epoch": 9, "kpi": {"train_loss": "0.5"}},
        stamp | {"status": "RUNNING", "message": "done", "kpi": {"train_loss": "0.5"}},
    )
    assert name == "tao-json"
    assert (records[1].epoch, records[1].epochs, records[1].roles.loss) == (1, 10, 0.5)
    assert (records[2].kind, records[2].numbers) == ("message", {})


def test_tao_without_steps_counts_from_1_and_has_its_numbers_in_graphical() -> None:
    """The Keras backends (tao_tensorflow1_backend cv/common/callbacks/loggers.py)."""
    stamp = {"date": "5/5/2023", "time": "7:1:2", "status": "RUNNING", "verbosity": "INFO"}
    graphical = {"loss": "9.25", "learning_rate": "0.0002", "validation_loss": "8.5"}
    precision = {"mean average precision": "0.42"}
    _, records = read(
        stamp | {"status": "STARTED", "message": "Starting Training"},
        stamp | {"status": "STARTED", "message": "Starting Training Loop."},
        stamp | {"epoch": 1, "max_epoch": 80, "graphical": {"loss": "12.5", "learning_rate": "0.0001"}},
        stamp | {"epoch": 2, "max_epoch": 80, "graphical": graphical | precision, "kpi": precision},
        stamp | {"message": "Training loop complete.", "graphical": graphical | precision},
    )
    assert [(r.kind, r.epoch, r.epochs) for r in records] == [
        ("start", None, None),
        ("message", None, None),
        ("epoch", 1, 80),
        ("epoch", 2, 80),
        ("message", None, None),
    ]
    roles = records[3].roles
    assert (roles.loss, roles.learning_rate, roles.map50, roles.map50_95) == (9.25, 0.0002, 0.42, None)
    assert roles.validation_losses == {"validation_loss": 8.5}


def test_of_a_list_of_learning_rates_the_first_is_taken() -> None:
    _, (record,) = read({"epoch": 1, "loss": 1.5, "lr": [0.01, 0.001], "sizes": [1, 2]})
    assert record.roles.learning_rate == 0.01
    assert set(record.numbers) == {"loss", "lr"}


EXPECTED = {
    "detectron2-nyu-metrics-splices.json": ("detectron2-json", 70, 0, 3),
    "detectron2-pothole-metrics.json": ("detectron2-json", 90, 0, 1),
    "mmdet2-grad_norm-nan-first.log.json": ("mmcv-json", 24, 13, 1),
    "mmdet2-header-only.log.json": ("mmcv-json", 1, 0, 1),
    "mmdet2-resumed-epoch5.log.json": ("mmcv-json", 609, 0, 1),
    "mmyolo-visdata.json": ("mmengine-json", 246, 0, 1),
    "mmyolo-test.json": ("mmengine-json", 1, 0, 1),
    "rtdetr-r18-log.txt": ("detr-json", 42, 0, 2),
    "tao-rtdetr-status.json": ("tao-json", 18, 0, 1),
    "own-ul84190-results-killed-resumed.csv": ("ultralytics-csv", 5, 0, 2),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_real_logs(name: str, shared: Path) -> None:
    found = inspect(shared / "logs" / name)
    assert (found.format, found.records, found.nan_losses, len(found.segments)) == EXPECTED[name]
    assert found.broken_lines == 0


def test_all_traces_are_read_whole(shared: Path) -> None:
    for path in sorted((shared / "traces").glob("*/train*.jsonl")):
        found = inspect(path)
        lines = path.read_bytes().count(b"\n")
        assert (found.format, found.records, found.broken_lines) == ("yolomon-jsonl", lines, 0), path
        assert len(found.segments) == 1


def test_yolomon_events_of_a_run_that_goes_wrong() -> None:
    base = {"ts": 1.7e9, "rank": 0, "pid": 7}
    name, records = read(
        base | {"event": "batch", "epoch": 3, "step": 9, "images": 16, "step_time": 0.5, "loss_step": 8},
        *(
            base | {"event": event, "epoch": 3, "text": f"words of {event}"}
            for event in ("oom_retry", "nan_recovery", "epoch_restart", "warning", "dropped", "aborted")
        ),
    )
    assert name == "yolomon-jsonl"
    batch, *told = records
    assert batch.roles.images_per_second == 32.0
    assert batch.numbers["loss_step"] == 8  # the losses are of an earlier step; no loss themselves
    assert batch.roles.loss is None
    assert {record.kind for record in told} == {"message"}
    assert [record.text for record in told][:2] == ["words of oom_retry", "words of nan_recovery"]


def test_the_last_look_at_the_best_weights_is_no_epoch() -> None:
    base = {"ts": 1.7e9, "rank": 0, "pid": 7, "epochs": 100}
    _, records = read(
        base | {"event": "fit_epoch_end", "epoch": 10, "metrics": {"metrics/mAP50-95(B)": 0.4}},
        base | {"event": "stopping", "epoch": 10, "text": "early stopping after epoch 10 of 100"},
        base
        | {"event": "fit_epoch_end", "epoch": 11, "final": True, "metrics": {"metrics/mAP50-95(B)": 0.41}},
    )
    history = TrainHistory()
    for record in records:
        history.add(record)
    assert (history.epoch, history.best_epoch, len(history.epochs)) == (10, 10, 1)
    assert records[-1].roles.map50_95 == 0.41
