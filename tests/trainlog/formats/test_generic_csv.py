"""Any other table with a header."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.generic_csv import GenericCsv


def test_by_the_names_of_columns(records: Records, format_of: FormatOf) -> None:
    content = b"iter\ttotal_loss\tlr\ttimestamp\n100\t2.5\t0.01\t1700000000\n200\tnan\t0.01\t1700000060.5\n"
    assert format_of("my.tsv", content) == "csv"
    first, second = records(GenericCsv, content)
    assert (first.kind, first.step, first.roles.loss, first.ts) == ("batch", 100, 2.5, 1700000000)
    assert second.roles.loss != second.roles.loss
    assert second.own_ts == 1700000060.5


def test_the_first_epoch_tells_where_counting_begins(records: Records) -> None:
    rows = records(GenericCsv, b"Epoch,Train Loss,Val mAP50\n0,2.5,0.1\n1,2.25,0.2\n")
    assert [row.epoch for row in rows] == [1, 2]
    rows = records(GenericCsv, b"Epoch,Train Loss,Val mAP50\n1,2.5,0.1\n2,2.25,0.2\n")
    assert [row.epoch for row in rows] == [1, 2]
    assert rows[1].roles.map50 == 0.2


def test_shares_of_epochs(records: Records) -> None:
    rows = records(GenericCsv, b"step,epoch,loss\n10,0.25,2.5\n40,1.0,2.25\n50,1.25,2\n80,2.0,1.75\n")
    assert [row.epoch for row in rows] == [1, 1, 2, 2]


def test_rows_of_batches_are_no_epochs_of_keras(format_of: FormatOf) -> None:
    assert format_of("training_log.csv", b"epoch,batch,loss\n0,0,1.5\n0,1,1.25\n") == "csv"


def test_tables_of_something_else_are_none(format_of: FormatOf) -> None:
    assert format_of("people.csv", b"name,age\nann,31\n") is None
    assert format_of("gpu.csv", b"index,power.draw [W]\n0,220\n") is None
    assert format_of("numbers.csv", b"1,2,3\n4,5,6\n") is None
