"""W&B's .wandb files."""

from __future__ import annotations

import json
import math
import struct

import pytest

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.wandb_file import WandbFile

MAGIC = b":W&B\xe1\xbe\x00"
BLOCK = 32768
WALL_TS = 1_700_000_000.5


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def history(**values: object) -> bytes:
    items = b"".join(
        field(1, field(1, name.encode()) + field(16, json.dumps(value).encode()))
        for name, value in values.items()
    )
    return b"\x08\x01" + field(2, items)  # num = 1, history


def log(*records: bytes) -> bytes:
    """A LevelDB log after the header: records cut at the blocks' ends."""
    out = bytearray(MAGIC)
    for data in records:
        first = True
        while True:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += bytes(left)
                continue
            piece, data = data[: left - 7], data[left - 7 :]
            kind = (1 if not data else 2) if first else (4 if not data else 3)
            out += struct.pack("<IHB", 0, len(piece), kind) + piece
            first = False
            if not data:
                break
    return bytes(out)


def test_history(records: Records, format_of: FormatOf) -> None:
    content = log(
        b"\x08\x02" + field(17, b"run"),
        history(
            **{
                "train/loss": 2.5,
                "lr": 0.01,
                "_step": 7,
                "_timestamp": WALL_TS,
                "_runtime": 3,
                "image": {"a": 1},
            }
        ),
        history(**{"train/loss": math.nan, "_step": 8, "_timestamp": WALL_TS + 1}),
    )
    assert format_of("run-abc.wandb", content) == "wandb"
    first, second = records(WandbFile, content)
    assert (first.kind, first.step, first.ts) == ("batch", 7, WALL_TS)
    assert (first.roles.loss, first.roles.learning_rate) == (2.5, 0.01)
    assert set(first.numbers) == {"train/loss", "lr"}
    assert math.isnan(second.roles.loss)


def test_steps_of_ultralytics_are_epochs(records: Records) -> None:
    values = {"train/box_loss": 1.5, "metrics/mAP50-95(B)": 0.5, "lr/pg0": 0.01, "_step": 3}
    (row,) = records(WandbFile, log(history(**values)))
    assert (row.kind, row.epoch, row.roles.map50_95) == ("epoch", 3, 0.5)


def test_epochs_that_are_logged_count_from_0_from_1_or_in_shares(records: Records) -> None:
    def epochs(name: str, *values: float) -> list[int | None]:
        rows = [history(**{name: value, "train/loss": 1.5, "_step": 9}) for value in values]
        return [row.epoch for row in records(WandbFile, log(*rows))]

    assert epochs("epoch", 0, 1) == [1, 2]  # Lightning
    assert epochs("epoch", 1, 2) == [1, 2]
    assert epochs("train/epoch", 0.5, 1.0, 1.5, 2.0) == [1, 1, 2, 2]  # Hugging Face's Trainer


@pytest.mark.parametrize("chunk", [11, 4096, 100_000])
def test_records_over_the_end_of_blocks_in_any_chopping(chunk: int) -> None:
    padding = "x" * 20_000
    content = log(*(history(loss=step / 4, _step=step, note=padding) for step in range(12)))
    assert len(content) > 6 * BLOCK
    parser = WandbFile.parser("log")
    found: list[TrainRecord | BrokenLine] = []
    for start in range(0, len(content), chunk):
        found += parser.feed(content[start : start + chunk], WALL_TS)
    assert [record.step for record in found if isinstance(record, TrainRecord)] == list(range(12))


def test_a_damaged_block_is_skipped(records: Records) -> None:
    content = bytearray(log(*(history(loss=1.0, _step=step, note="x" * 20_000) for step in range(6))))
    content[BLOCK + 100 : BLOCK + 20_000] = bytes(19_900)
    steps = [item.step for item in records_of(bytes(content))]
    assert steps[0] == 0
    assert steps[-1] == 5


def records_of(content: bytes) -> list[TrainRecord]:
    return [item for item in WandbFile.parser("log").feed(content, WALL_TS) if isinstance(item, TrainRecord)]
