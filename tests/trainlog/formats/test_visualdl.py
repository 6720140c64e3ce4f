"""VisualDL's records."""

from __future__ import annotations

import struct

import pytest

from tests.trainlog.formats.feeding import FormatOf, Parse, Records
from tests.trainlog.formats.test_tensorboard import field, varint
from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.visualdl import VisualDl

WALL_MS = 1_700_000_000_500
NAME = "vdlrecords.1700000000.log"


def value(tag: str, number: float, step: int) -> bytes:
    return (
        field(1, 0, varint(step))
        + field(2, 2, tag.encode())
        + field(3, 0, varint(WALL_MS))
        + field(4, 5, struct.pack("<f", number))
    )


def record(*values: bytes) -> bytes:
    data = b"".join(field(1, 2, entry) for entry in values)
    return struct.pack("<Q", len(data)) + data


IMAGE = field(1, 0, varint(2)) + field(2, 2, b"picture") + field(5, 2, field(4, 2, b"PNG"))
CONTENT = (
    record(field(2, 2, b"meta_data_tag"))
    + record(value("loss", 2.5, 1))
    + record(value("loss_cls", 1.5, 1))
    + record(IMAGE)
    + record(value("loss", 2.25, 2))
    + record(value("bbox-mAP", 0.25, 0))
)


def test_scalars_of_one_step_are_one_record_with_a_clock(records: Records, format_of: FormatOf) -> None:
    assert format_of(NAME, CONTENT) == "visualdl"
    first, second, validation = records(VisualDl, CONTENT)
    assert (first.kind, first.step, first.own_ts) == ("batch", 1, WALL_MS / 1000)
    assert (first.roles.loss, first.roles.losses) == (2.5, {"loss_cls": 1.5})
    assert (second.step, second.roles.loss) == (2, 2.25)
    assert (validation.kind, validation.roles.map50_95) == ("validation", 0.25)


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_any_chopping(chunk: int) -> None:
    parser = VisualDl.parser("log")
    numbers: list[tuple[str, float]] = []
    for at in range(0, len(CONTENT), chunk):
        for found in parser.feed(CONTENT[at : at + chunk], 2e9):
            assert isinstance(found, TrainRecord)
            numbers += found.numbers.items()
    assert numbers == [("loss", 2.5), ("loss_cls", 1.5), ("loss", 2.25), ("bbox-mAP", 0.25)]


def test_a_step_is_one_record_where_a_piece_ends_within_its_next_scalar() -> None:
    second = record(value("lr", 0.25, 3))
    content = record(value("loss", 2.5, 3)) + second
    for cut in range(len(content) - len(second) + 1, len(content)):
        parser = VisualDl.parser("log")
        assert not list(parser.feed(content[:cut], 2e9))
        (row,) = parser.feed(content[cut:], 2e9)
        assert isinstance(row, TrainRecord)
        assert (row.step, row.roles.loss, row.roles.learning_rate) == (3, 2.5, 0.25)


def test_damage_is_told(parse: Parse) -> None:
    first, broken = parse(VisualDl, record(value("loss", 2.5, 1)) + b"\xff" * 12)
    assert isinstance(first, TrainRecord)
    assert isinstance(broken, BrokenLine)


def test_only_by_its_name(format_of: FormatOf) -> None:
    assert format_of("data.bin", CONTENT) is None
    assert format_of(NAME, b"epoch,loss\n1,2.5\n") != "visualdl"
