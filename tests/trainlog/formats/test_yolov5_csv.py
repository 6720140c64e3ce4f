"""results.csv of YOLOv5 and YOLOv9."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, RealLog, Records
from yolomon.trainlog.formats.yolov5_csv import YoloV5Csv

NAMES = (
    "epoch,train/box_loss,train/obj_loss,train/cls_loss,metrics/precision,metrics/recall,metrics/mAP_0.5,"
    "metrics/mAP_0.5:0.95,val/box_loss,val/obj_loss,val/cls_loss,x/lr0,x/lr1,x/lr2"
)


def padded(line: str) -> bytes:
    return ",".join(cell.rjust(20) for cell in line.split(",")).encode() + b"\n"


def test_epochs_count_from_0_and_columns_are_padded(records: Records, format_of: FormatOf) -> None:
    content = padded(NAMES) + padded("0,0.1,0.02,0.08,0.5,0.6,0.4,0.2,0.1,0.01,0.07,0.09,0.0003,0.0003")
    assert format_of("results.csv", content) == "yolov5-csv"
    (row,) = records(YoloV5Csv, content)
    assert (row.kind, row.epoch) == ("epoch", 1)
    assert round(row.roles.loss, 6) == 0.2
    assert (row.roles.map50, row.roles.map50_95) == (0.4, 0.2)
    assert (row.roles.precision, row.roles.recall, row.roles.learning_rate) == (0.5, 0.6, 0.09)
    assert row.roles.validation_losses["val/obj_loss"] == 0.01


def test_v9_has_dfl_instead_of_obj(records: Records) -> None:
    content = padded(NAMES.replace("obj", "dfl")) + padded("4,1,2,3,0.5,0.6,0.4,0.2,1,2,3,0.09,0.1,0.1")
    (row,) = records(YoloV5Csv, content)
    assert row.roles.losses == {"train/box_loss": 1, "train/dfl_loss": 2, "train/cls_loss": 3}
    assert row.epoch == 5


def test_the_last_epoch_again_is_a_validation(records: Records) -> None:
    """On COCO data the last validation appends the last epoch's row a second time."""
    row = "1,0.1,0.02,0.08,0.5,0.6,0.4,0.2,0.1,0.01,0.07,0.09,0.0003,0.0003"
    first, again = records(
        YoloV5Csv, padded(NAMES) + padded(row) + padded(row.replace("0.4,0.2", "0.41,0.21"))
    )
    assert (first.kind, again.kind) == ("epoch", "validation")
    assert first.epoch == again.epoch == 2
    assert again.roles.map50_95 == 0.21


def test_cells_beyond_the_header_are_dropped(records: Records) -> None:
    """The PyPI package adds metrics/<class>_mAP to some rows."""
    row = "1,0.1,0.02,0.08,0.5,0.6,0.4,0.2,0.1,0.01,0.07,0.09,0.0003,0.0004,0.77,0.66"
    (record,) = records(YoloV5Csv, padded(NAMES) + padded(row))
    assert record.numbers["x/lr2"] == 0.0004
    assert 0.77 not in record.numbers.values()


def test_the_classifier_counts_from_0_too(records: Records, format_of: FormatOf) -> None:
    content = padded("epoch,train/loss,test/loss,metrics/accuracy_top1,metrics/accuracy_top5,lr/0")
    content += padded("0,0.95,0.75,0.92,1,0.0009") + padded("1,0.6,0.5,0.95,1,0.0008")
    assert format_of("results.csv", content) == "yolov5-csv"
    first, second = records(YoloV5Csv, content)
    assert (first.epoch, second.epoch) == (1, 2)
    assert (second.roles.loss, second.roles.learning_rate) == (0.6, 0.0008)
    assert second.roles.validation_losses == {"test/loss": 0.5}


def test_real_file(records: Records, format_of: FormatOf, real_log: RealLog) -> None:
    content = real_log("yolov5-long-results.csv")
    assert format_of("results.csv", content) == "yolov5-csv"
    rows = records(YoloV5Csv, content)
    assert [row.epoch for row in rows] == list(range(1, 501))
    assert (rows[-1].roles.map50, rows[-1].roles.map50_95) == (0.995, 0.94375)
