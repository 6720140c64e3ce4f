"""timm's summary.csv."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.timm_csv import TimmCsv


def test_epochs_from_0(records: Records, format_of: FormatOf) -> None:
    content = b"epoch,train_loss,eval_loss,eval_top1,lr\n0,6.9,6.8,0.5,0.001\n1,6.5,6.4,1.5,0.002\n"
    assert format_of("summary.csv", content) == "timm-csv"
    rows = records(TimmCsv, content)
    assert [row.epoch for row in rows] == [1, 2]
    assert rows[1].roles.loss == 6.5
    assert rows[1].roles.validation_losses == {"eval_loss": 6.4}
    assert rows[1].roles.learning_rate == 0.002
