"""TensorBoard event files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.trainlog.formats.feeding import FormatOf, Parse, Records
from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.tensorboard import Tensorboard, masked_crc
from yolomon.trainlog.log import QUIET_SECONDS, Log

WALL_TS = 1_700_000_000.5


def field(number: int, wire: int, data: bytes) -> bytes:
    return varint(number << 3 | wire) + (varint(len(data)) if wire == 2 else b"") + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def scalar(tag: str, value: float) -> bytes:
    return field(1, 2, field(1, 2, tag.encode()) + field(2, 5, struct.pack("<f", value)))


def tensor_scalar(tag: str, value: float) -> bytes:
    tensor = field(1, 0, varint(1)) + field(2, 2, b"") + field(5, 2, struct.pack("<f", value))
    return field(1, 2, field(1, 2, tag.encode()) + field(8, 2, tensor))


def event(*summaries: bytes, step: int = 0, wall: float = WALL_TS, version: str = "") -> bytes:
    data = field(1, 1, struct.pack("<d", wall)) + field(2, 0, varint(step))
    if version:
        data += field(3, 2, version.encode())
    if summaries:
        data += field(5, 2, b"".join(summaries))
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


FIRST = event(version="brain.Event:2")


def test_the_checksum_is_crc_32c() -> None:
    """The check value of CRC-32C for "123456789" is E3069283 (RFC 3720, B.4), masked as TFRecord does."""
    crc = 0xE3069283
    assert masked_crc(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_scalars_of_one_step_are_one_record_with_a_clock(records: Records, format_of: FormatOf) -> None:
    content = (
        FIRST
        + event(scalar("train/loss", 2.5), step=100)
        + event(tensor_scalar("train/lr", 0.25), step=100)
        + event(scalar("train/loss", 2.25), step=200, wall=WALL_TS + 60)
    )
    assert format_of("events.out.tfevents.1700000000.host.1.0", content) == "tensorboard"
    first, second = records(Tensorboard, content)
    assert (first.kind, first.step, first.ts) == ("batch", 100, WALL_TS)
    assert (first.roles.loss, first.roles.learning_rate) == (2.5, 0.25)
    assert (second.step, second.own_ts) == (200, WALL_TS + 60)


def test_steps_of_yolo_are_epochs(records: Records) -> None:
    ultralytics = event(scalar("train/box_loss", 1.5), scalar("metrics/mAP50-95(B)", 0.5), step=1)
    (row,) = records(Tensorboard, FIRST + ultralytics)
    assert (row.kind, row.epoch, row.roles.map50_95) == ("epoch", 1, 0.5)
    yolov5 = event(scalar("train/box_loss", 1.5), scalar("metrics/mAP_0.5:0.95", 0.5), step=0)
    (row,) = records(Tensorboard, FIRST + yolov5)
    assert (row.epoch, row.roles.map50_95) == (1, 0.5)


def test_steps_of_yolov6_are_epochs_from_1(records: Records) -> None:
    """It has `x/lr0` as YOLOv5 has, which counts from 0."""
    scalars = (scalar("val/mAP@0.5", 0.4), scalar("val/mAP@0.50:0.95", 0.25), scalar("train/iou_loss", 1.5))
    (record,) = records(Tensorboard, FIRST + event(*scalars, scalar("x/lr0", 0.01), step=1))
    assert (record.epoch, record.step) == (1, None)
    assert record.roles.map50_95 == 0.25


def test_epochs_that_are_logged(records: Records) -> None:
    content = FIRST + event(scalar("train/epoch", 0.5), scalar("train/loss", 2.5), step=10)
    content += event(scalar("train/epoch", 1.0), scalar("train/loss", 2.0), step=20)
    assert [(row.epoch, row.step) for row in records(Tensorboard, content)] == [(1, 10), (1, 20)]


def test_a_file_of_a_dead_run_holds_nothing(records: Records, format_of: FormatOf) -> None:
    assert format_of("events.out.tfevents.1", FIRST) == "tensorboard"
    assert records(Tensorboard, FIRST) == []


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_any_chopping(chunk: int) -> None:
    content = FIRST + b"".join(event(scalar("loss", step / 4), step=step) for step in range(5))
    parser = Tensorboard.parser("log")
    found: list[TrainRecord | BrokenLine] = []
    for start in range(0, len(content), chunk):
        found += parser.feed(content[start : start + chunk], WALL_TS)
    assert [record.step for record in found if isinstance(record, TrainRecord)] == list(range(5))


def test_a_step_is_one_record_where_a_piece_ends_within_its_next_event() -> None:
    """A writer's buffer, or a piece of a long file with pictures in it, ends anywhere."""
    second = event(scalar("train/lr", 0.25), step=3)
    content = FIRST + event(scalar("train/loss", 2.5), step=3) + second
    for cut in range(len(content) - len(second) + 1, len(content)):
        parser = Tensorboard.parser("log")
        assert not list(parser.feed(content[:cut], WALL_TS))
        (row,) = parser.feed(content[cut:], WALL_TS)
        assert isinstance(row, TrainRecord)
        assert (row.step, row.roles.loss, row.roles.learning_rate) == (3, 2.5, 0.25)
        assert not list(parser.finish(WALL_TS))


def test_a_step_whose_next_event_stays_torn_is_told_when_all_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1700000000.host.1.0"
    path.write_bytes(FIRST + event(scalar("train/loss", 2.5), step=3) + event(step=4)[:-6])
    log = Log(str(path))
    assert log.look(WALL_TS, 0.0) == []
    assert log.look(WALL_TS, QUIET_SECONDS / 2) == []
    (row,) = log.look(WALL_TS, QUIET_SECONDS)
    assert (row.step, row.roles.loss) == (3, 2.5)
    assert log.look(WALL_TS, 2 * QUIET_SECONDS) == []
    log.close()


def test_a_torn_last_event_waits() -> None:
    parser = Tensorboard.parser("log")
    whole = event(scalar("loss", 2.5), step=1)
    assert list(parser.feed(FIRST + whole[:-6], WALL_TS)) == []
    (record,) = parser.feed(whole[-6:], WALL_TS)
    assert isinstance(record, TrainRecord)
    assert record.roles.loss == 2.5


def test_damage_is_told(parse: Parse) -> None:
    good = event(scalar("loss", 2.5), step=1)
    found = parse(Tensorboard, FIRST + good + b"\x07" + good)
    assert sum(isinstance(item, TrainRecord) for item in found) == 1
    assert sum(isinstance(item, BrokenLine) for item in found) == 1


def test_other_binaries_are_no_event_files(format_of: FormatOf) -> None:
    assert format_of("last.pt", b"PK\x03\x04" + bytes(range(256))) is None
    assert format_of("events.out.tfevents.1", bytes(64)) is None
