"""metrics.csv of Lightning and RF-DETR."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, RealLog, Records
from yolomon.trainlog.formats.lightning_csv import LightningCsv

HEADER = "epoch,step,train/loss,train/loss_bbox,train/lr,val/AP/cat,val/loss,val/mAP_50,val/mAP_50_95"


def table(*rows: str) -> bytes:
    return "\r\n".join((HEADER, *rows, "")).encode()


def test_sparse_rows_with_crlf(records: Records, format_of: FormatOf) -> None:
    content = table("0,49,,,0.0001,,,,", "0,99,,,0.0002,,,,")
    assert format_of("metrics.csv", content) == "lightning-csv"
    first, second = records(LightningCsv, content)
    assert (first.kind, first.epoch, first.step) == ("batch", 1, 50)
    assert first.numbers == {"train/lr": 0.0001}  # an empty cell is missing, not 0
    assert first.roles.loss is None
    assert second.roles.learning_rate == 0.0002


def test_validation_before_the_training_means_of_its_epoch(records: Records) -> None:
    validation, epoch = records(
        LightningCsv, table("3,399,,,,0.3,5.5,0.6,0.4", "3,399,2.5,0.5,,,,,", "4,449,,,0.0001,,,,")
    )[:2]
    assert (validation.kind, validation.epoch) == ("validation", 4)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.6, 0.4)
    assert (epoch.kind, epoch.epoch) == ("epoch", 4)
    assert epoch.roles.loss == 2.5
    assert epoch.roles.map50_95 == 0.4  # of the same epoch and step
    assert epoch.roles.validation_losses == {"val/loss": 5.5}


def test_the_validation_after_training_belongs_to_the_last_epoch(records: Records) -> None:
    rows = records(
        LightningCsv, table("1,99,,,,0.3,5.5,0.6,0.4", "1,99,2.5,0.5,,,,,", "2,99,,,,0.3,5.4,0.7,0.5")
    )
    assert [row.epoch for row in rows] == [2, 2, 2]
    assert rows[-1].roles.map50_95 == 0.5


def test_rows_at_one_step_are_of_one_epoch(records: Records) -> None:
    """Some log an `epoch` of their own that counts from 1; the validation's is Lightning's."""
    rows = records(
        LightningCsv, table("0,73,,,,0.3,5.5,0.6,0.4", "1,73,2.5,0.5,,,,,", "1,147,,,,0.3,5,0.7,0.5")
    )
    assert [(row.kind, row.epoch) for row in rows] == [("validation", 1), ("epoch", 1), ("validation", 2)]


def test_a_dense_table_of_another_name_is_anybodys(format_of: FormatOf) -> None:
    content = b"epoch,step,loss\n1,50,2.5\n1,100,2.25\n"
    assert format_of("my_log.csv", content) == "csv"
    assert format_of("metrics.csv", content) == "lightning-csv"


def test_columns_may_move_when_the_file_is_rewritten(records: Records) -> None:
    """CSVLogger sorts the columns anew when a key comes late."""
    content = b"step,epoch,a_late_key,train/lr,train/loss\r\n49,0,,0.1,\r\n99,0,7,,1.5\r\n"
    _, second = records(LightningCsv, content)
    assert (second.epoch, second.step) == (1, 100)
    assert second.numbers == {"a_late_key": 7, "train/loss": 1.5}


def test_losses_logged_within_an_epoch_are_batches(records: Records) -> None:
    content = b"epoch,step,train_loss_step,train_loss_epoch,val_loss\n0,9,1.5,,\n0,19,1.2,,\n0,19,,1.4,\n"
    kinds = [(row.kind, row.roles.loss) for row in records(LightningCsv, content)]
    assert kinds[:3] == [("batch", 1.5), ("batch", 1.2), ("epoch", 1.4)]


def test_real_file(records: Records, format_of: FormatOf, real_log: RealLog) -> None:
    content = real_log("rfdetr-small-metrics.csv")
    assert format_of("metrics.csv", content) == "lightning-csv"
    rows = records(LightningCsv, content)
    assert len(rows) == 589
    epochs = [row for row in rows if row.kind == "epoch"]
    assert [row.epoch for row in epochs] == list(range(1, 21))
    assert round(epochs[-1].roles.map50_95, 4) == 0.4635
    assert round(epochs[-1].roles.loss, 4) == 3.7058
