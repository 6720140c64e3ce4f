"""Keras' CSVLogger."""

from __future__ import annotations

import pytest

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.keras_csv import KerasCsv


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_any_separator(records: Records, format_of: FormatOf, separator: str) -> None:
    content = "epoch,box_loss,loss,val_loss\n0,1.5,2.5,2.25\n1,1.25,2.0,NA\n".replace(",", separator).encode()
    assert format_of("training.log", content) == "keras-csv"
    first, second = records(KerasCsv, content)
    assert (first.kind, first.epoch, first.roles.loss) == ("epoch", 1, 2.5)
    assert first.roles.validation_losses == {"val_loss": 2.25}
    assert second.roles.validation_losses == {}  # NA is missing


def test_lists_are_left_out(records: Records) -> None:
    content = b'epoch,ap,loss,val_loss\n0,"[0.1, 0.2]",2.5,2.25\n'
    (row,) = records(KerasCsv, content)
    assert row.numbers == {"loss": 2.5, "val_loss": 2.25}


def test_a_table_that_begins_with_epoch_1_counts_from_1(records: Records) -> None:
    rows = records(KerasCsv, b"epoch,loss,val_loss\n1,2.5,2.25\n2,2.0,1.75\n")
    assert [row.epoch for row in rows] == [1, 2]
    (resumed,) = records(KerasCsv, b"epoch,loss,val_loss\n7,2.5,2.25\n")
    assert resumed.epoch == 8


def test_columns_in_another_order_are_not_of_keras(format_of: FormatOf) -> None:
    assert format_of("log.csv", b"epoch,learning_rate,train_loss,test_loss\n1,0.1,2.5,2.25\n") == "csv"
    assert format_of("log.csv", b"epoch,loss,accuracy\n1,2.5,0.5\n") == "csv"
