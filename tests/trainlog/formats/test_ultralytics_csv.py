"""Ultralytics results.csv, of all versions and tasks."""

from __future__ import annotations

import math

import pytest

from tests.trainlog.formats.feeding import FormatOf, Parse, RealLog, Records
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.ultralytics_csv import UltralyticsCsv

DETECT = (
    b"epoch,time,train/box_loss,train/cls_loss,train/dfl_loss,metrics/precision(B),metrics/recall(B),"
    b"metrics/mAP50(B),metrics/mAP50-95(B),val/box_loss,val/cls_loss,val/dfl_loss,lr/pg0,lr/pg1,lr/pg2\n"
)


def test_a_row_is_an_epoch_with_its_roles(records: Records) -> None:
    (row,) = records(
        UltralyticsCsv, DETECT + b"2,20.5,1.5,2.25,1.25,0.5,0.6,0.7,0.4,1.1,1.2,1.3,0.01,0.02,0.03\n"
    )
    assert (row.kind, row.epoch) == ("epoch", 2)
    assert row.roles.loss == 5.0
    assert row.roles.losses == {"train/box_loss": 1.5, "train/cls_loss": 2.25, "train/dfl_loss": 1.25}
    assert row.roles.validation_losses == {"val/box_loss": 1.1, "val/cls_loss": 1.2, "val/dfl_loss": 1.3}
    assert (row.roles.map50, row.roles.map50_95) == (0.7, 0.4)
    assert (row.roles.precision, row.roles.recall) == (0.5, 0.6)
    assert row.roles.learning_rate == 0.01
    assert row.numbers["lr/pg2"] == 0.03


def test_padding_of_old_versions_changes_nothing(records: Records, format_of: FormatOf) -> None:
    header = b",".join(name.rjust(23) for name in DETECT.strip().split(b",") if name != b"time") + b"\n"
    row = b",".join(
        cell.rjust(23) for cell in b"1,6.5,3.5,3,0.1,0.2,0.3,0.15,5,3,2,0.01,0.01,0.01".split(b",")
    )
    (record,) = records(UltralyticsCsv, header + row + b"\n")
    assert (record.epoch, record.roles.loss, record.roles.map50_95) == (1, 13.0, 0.15)
    assert record.roles.epoch_seconds is None  # there is no time column
    assert format_of("results.csv", header + row + b"\n") == "ultralytics-csv"


def test_zeros_without_validation_are_not_measured(records: Records) -> None:
    """With val=False metrics and validation losses are 0 until the last epoch."""
    first, last = records(
        UltralyticsCsv,
        DETECT
        + b"1,0.5,1.1,0.9,0.7,0,0,0,0,0,0,0,0.004,0.004,0.064\n"
        + b"2,1.5,1.0,0.8,0.6,0,0,0,0,1.2,1.6,0.7,0.003,0.003,0.003\n",
    )
    assert first.roles.map50 is None
    assert first.roles.map50_95 is None
    assert first.roles.precision is None
    assert first.roles.validation_losses == {}
    assert not any(name.startswith(("val/", "metrics/")) for name in first.numbers)
    assert last.roles.map50 == 0.0  # validated, and nothing found
    assert last.roles.validation_losses["val/cls_loss"] == 1.6


def test_the_learning_rate_of_0_in_the_first_row_is_no_learning_rate(records: Records) -> None:
    first, second = records(
        UltralyticsCsv,
        DETECT
        + b"1,3,1,1,1,0.1,0.1,0.1,0.1,1,1,1,0,0,0\n"
        + b"2,6,1,1,1,0.1,0.1,0.1,0.1,1,1,1,7.9e-07,7.9e-07,7.9e-07\n",
    )
    assert first.roles.learning_rate is None
    assert second.roles.learning_rate == 7.9e-07


def test_time_counts_per_process_and_begins_anew_on_resume(records: Records) -> None:
    row = b"%d,%g,1,1,1,0.1,0.1,0.1,0.1,1,1,1,0.01,0.01,0.01\n"
    rows = [row % pair for pair in ((1, 10.0), (2, 18.0), (3, 9.0), (4, 16.5), (6, 40.0))]
    seconds = [record.roles.epoch_seconds for record in records(UltralyticsCsv, DETECT + b"".join(rows))]
    assert seconds == [10.0, 8.0, 9.0, 7.5, None]  # a row is missing before the last


def test_nan_is_a_value(records: Records) -> None:
    (row,) = records(UltralyticsCsv, DETECT + b"1,3,nan,1,inf,0,0,0,0,nan,nan,nan,0.01,0.01,0.01\n")
    assert math.isnan(row.roles.losses["train/box_loss"])
    assert row.roles.losses["train/dfl_loss"] == math.inf
    assert row.roles.loss is not None
    assert not math.isfinite(row.roles.loss)
    assert math.isnan(row.roles.validation_losses["val/box_loss"])
    assert row.roles.map50 == 0.0  # NaN in val/ is measured


@pytest.mark.parametrize(
    ("losses", "metrics", "parts"),
    [
        ("box_loss,seg_loss,cls_loss,dfl_loss", "mAP50(B) mAP50-95(B) mAP50(M) mAP50-95(M)", 4),
        ("box_loss,pose_loss,kobj_loss,cls_loss,dfl_loss", "mAP50(B) mAP50-95(B) mAP50(P) mAP50-95(P)", 5),
        ("box_loss,cls_loss,dfl_loss,angle_loss", "mAP50(B) mAP50-95(B)", 4),
        ("giou_loss,cls_loss,l1_loss", "mAP50(B) mAP50-95(B)", 3),
        ("box_loss,cls_loss,l1_loss", "mAP50(B) mAP50-95(B)", 3),
    ],
    ids=["segment", "pose", "obb", "rtdetr", "yolo26"],
)
def test_columns_of_every_task(
    records: Records, format_of: FormatOf, losses: str, metrics: str, parts: int
) -> None:
    names = [f"train/{name}" for name in losses.split(",")]
    names += [f"metrics/{name}" for name in metrics.split()] + [f"val/{name}" for name in losses.split(",")]
    values = ["1.5"] * parts + [f"0.{place + 1}" for place in range(len(metrics.split()))] + ["2"] * parts
    content = f"epoch,time,{','.join(names)},lr/pg0\n1,9,{','.join(values)},0.01\n".encode()
    assert format_of("results.csv", content) == "ultralytics-csv"
    (row,) = records(UltralyticsCsv, content)
    assert row.roles.loss == 1.5 * parts
    assert len(row.roles.validation_losses) == parts
    assert (row.roles.map50, row.roles.map50_95) == (0.1, 0.2)  # of boxes, not of masks or poses


def test_classification_has_one_loss_and_no_map(records: Records, format_of: FormatOf) -> None:
    content = (
        b"epoch,time,train/loss,metrics/accuracy_top1,metrics/accuracy_top5,val/loss,lr/pg0\n"
        b"1,9,2.5,0.6,0.9,2.25,0.01\n"
    )
    assert format_of("results.csv", content) == "ultralytics-csv"
    (row,) = records(UltralyticsCsv, content)
    assert row.roles.loss == 2.5
    assert row.roles.validation_losses == {"val/loss": 2.25}
    assert row.roles.map50 is None
    assert row.numbers["metrics/accuracy_top1"] == 0.6


def test_custom_and_leaked_columns_are_kept_by_name(records: Records) -> None:
    content = (
        b"epoch,time,train/box_loss,train/mixture_aux_loss,metrics/mAP50-95(B),val/box_loss,"
        b"lr/pg0,lr/pg1,lr/pg2,lr/pg3,lr/pg4,_timestamp,_runtime\n"
        b"3,9,1.5,0.25,0.3,1.4,0.01,0.02,0.03,0.04,0.05,1.7153e+09,47\n"
    )
    (row,) = records(UltralyticsCsv, content)
    assert row.numbers["train/mixture_aux_loss"] == 0.25
    assert row.roles.loss == 1.75  # all losses of the criterion, whatever they are called
    assert row.numbers["_runtime"] == 47
    assert row.ts == 2_000_000_000.0  # %.6g leaves a time stamp hundreds of seconds wide


def test_losses_need_no_word_for_it(records: Records, format_of: FormatOf) -> None:
    """YOLOv10's one-to-many and one-to-one heads."""
    content = (
        b"epoch,train/box_om,train/cls_om,train/box_oo,train/cls_oo,metrics/mAP50(B),metrics/mAP50-95(B),"
        b"val/box_om,val/cls_oo,lr/pg0\n"
        b"2,1.5,2.5,1.25,4.75,0.4,0.2,2.25,3.5,0.001\n"
    )
    assert format_of("results.csv", content) == "ultralytics-csv"
    (row,) = records(UltralyticsCsv, content)
    assert row.roles.loss == 10
    assert row.roles.losses["train/box_oo"] == 1.25
    assert row.roles.validation_losses == {"val/box_om": 2.25, "val/cls_oo": 3.5}


def test_what_is_no_loss_by_its_name_is_none(records: Records) -> None:
    content = b"epoch,train/loss,train/accuracy,train/time,metrics/accuracy_top1,val/loss,lr/pg0\n"
    (row,) = records(UltralyticsCsv, content + b"2,1.5,0.75,30,0.6,2.25,0.001\n")
    assert (row.roles.loss, row.roles.losses) == (1.5, {})


def test_a_second_run_under_the_old_header_goes_on(records: Records) -> None:
    """Up to 8.3.200 exist_ok=True appended another run; ultralytics PR #22364."""
    row = b"%d,%d,1,1,1,0.1,0.1,0.1,0.1,1,1,1,0.01,0.01,0.01\n"
    rows = records(UltralyticsCsv, DETECT + b"".join(row % (n, 10 * n) for n in (1, 2, 3, 1, 2)))
    assert [record.epoch for record in rows] == [1, 2, 3, 1, 2]


def test_crlf_and_a_byte_order_mark(records: Records, format_of: FormatOf) -> None:
    content = b"\xef\xbb\xbf" + DETECT.replace(b"\n", b"\r\n") + b"1,3,1,1,1,0,0,0,0,1,1,1,0.1,0.1,0.1\r\n"
    assert format_of("results.csv", content) == "ultralytics-csv"
    assert records(UltralyticsCsv, content)[0].numbers["lr/pg2"] == 0.1


def test_a_torn_row_is_told(parse: Parse) -> None:
    broken, whole = parse(
        UltralyticsCsv,
        DETECT + b"1,3,1,1\n" + b"2,6,1,1,1,0,0,0,0,1,1,1,0.1,0.1,0.1\n",
    )
    assert isinstance(broken, BrokenLine)
    assert broken.reason == "4 cells under 15 columns"
    assert whole.epoch == 2


@pytest.mark.parametrize(
    ("name", "epochs", "map50_95"),
    [
        ("ul82-padded-results.csv", 10, 0.00277),
        ("ul83-detect-results.csv", 3, 0.61616),
        ("ul83-pose-results.csv", 10, 0.00679),
        ("ul83-obb-results.csv", 10, 0.0),
        ("ul84-detect-results.csv", 50, 0.79488),
        ("own-ul84190-results-killed-resumed.csv", 5, 0.0),
        ("own-ul84190-results-val-false.csv", 3, 0.0),
    ],
)
def test_real_files(
    records: Records, format_of: FormatOf, real_log: RealLog, name: str, epochs: int, map50_95: float
) -> None:
    content = real_log(name)
    assert format_of(name, content) == "ultralytics-csv"
    rows = records(UltralyticsCsv, content)
    assert [row.epoch for row in rows] == list(range(1, epochs + 1))
    assert rows[-1].roles.map50_95 == map50_95
    assert rows[-1].roles.learning_rate
