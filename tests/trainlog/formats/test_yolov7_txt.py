"""results.txt: no header, fifteen columns by position."""

from __future__ import annotations

import math

from tests.trainlog.formats.feeding import FormatOf, Parse, RealLog, Records
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.yolov7_txt import YoloV7Txt

ROW = (
    b"      0/99     3.97G   0.09    0.02    0.03    0.14   193   640   0.5  0.6  0.4  0.2  0.11 0.03 0.02\n"
)


def test_a_row(records: Records, format_of: FormatOf) -> None:
    assert format_of("results.txt", ROW) == "yolov7-txt"
    (row,) = records(YoloV7Txt, ROW)
    assert (row.kind, row.epoch, row.epochs) == ("epoch", 1, 100)
    assert row.roles.loss == 0.14  # the total that is written, not a sum
    assert row.roles.losses == {"train/box": 0.09, "train/obj": 0.02, "train/cls": 0.03}
    assert (row.roles.precision, row.roles.recall) == (0.5, 0.6)
    assert (row.roles.map50, row.roles.map50_95) == (0.4, 0.2)
    assert row.roles.validation_losses == {"val/box": 0.11, "val/obj": 0.03, "val/cls": 0.02}
    assert row.roles.memory_reserved_bytes == 3.97e9
    assert row.roles.image_size == 640


def test_seven_zeros_are_no_validation(records: Records) -> None:
    (row,) = records(YoloV7Txt, b"  5/99  9.2G  0.09 0.02 0.03 0.14 193 640 0 0 0 0 0 0 0\n")
    assert row.roles.map50 is None
    assert row.roles.validation_losses == {}


def test_nan_and_a_fork_with_more_losses(records: Records) -> None:
    nan, keypoints = records(
        YoloV7Txt,
        b"  5/99  9.2G  nan 0.02 0.03 nan 193 640 0.1 0.1 0.1 0.1 nan 1 1\n"
        b"  6/99  9.2G  0.09 0.02 0.03 0.4 0.54 193 640 0.1 0.1 0.1 0.1 1 1 1\n",
    )
    assert math.isnan(nan.roles.loss)
    assert keypoints.roles.losses["train/loss_4"] == 0.4
    assert keypoints.roles.loss == 0.54


def test_a_fork_with_more_losses_of_validation_too(records: Records) -> None:
    (row,) = records(
        YoloV7Txt, b"  6/99  0.5G  0.09 0.02 0 0.4 0.54 10 416 0.28 0.41 0.31 0.24 0.02 0.01 0.03 0.04 0.1\n"
    )
    assert (row.roles.loss, row.roles.map50, row.roles.map50_95) == (0.54, 0.31, 0.24)
    assert row.roles.image_size == 416
    assert list(row.roles.validation_losses) == ["val/box", "val/obj", "val/cls", "val/loss_4", "val/total"]


def test_many_labels_are_written_with_an_exponent(records: Records) -> None:
    (row,) = records(YoloV7Txt, ROW.replace(b"193", b"1.234e+04"))
    assert (row.roles.loss, row.roles.map50) == (0.14, 0.4)


def columns(*cells: str) -> bytes:
    return "".join(cell.rjust(10) for cell in cells).encode() + b"\n"


def test_yolov3_has_f1_where_the_others_have_map50_95(records: Records) -> None:
    """Its numbers have three digits (ultralytics/yolov3 train.py, `%10.3g`), those of the others four."""
    row = ("3/99", "4.1G", "1.38", "0.71", "0.046", "2.14", "31", "416",
           "0.81", "0.62", "0.7", "0.703", "1.95", "0.8", "0.41")  # fmt: skip
    (old,) = records(YoloV7Txt, columns(*row))
    assert (old.roles.map50, old.roles.map50_95) == (0.7, None)
    assert old.numbers["metrics/F1"] == 0.703
    four, same_file = records(YoloV7Txt, columns(*row[:5], "2.136", *row[6:]) + columns(*row))
    assert four.roles.map50_95 == same_file.roles.map50_95 == 0.703


def test_a_torn_row_is_told(parse: Parse) -> None:
    (broken,) = parse(YoloV7Txt, b"  5/99  9.2G  0.09 0.02\n")
    assert isinstance(broken, BrokenLine)


def test_real_file(records: Records, format_of: FormatOf, real_log: RealLog) -> None:
    content = real_log("yolov7-results.txt")
    assert format_of("results.txt", content) == "yolov7-txt"
    rows = records(YoloV7Txt, content)
    assert [row.epoch for row in rows] == list(range(1, 101))
    assert (rows[-1].roles.loss, rows[-1].roles.map50, rows[-1].roles.map50_95) == (0.06361, 0.4084, 0.2943)
