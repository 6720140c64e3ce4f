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
