"""The console of a training loop that no other format knows."""

from __future__ import annotations

import pytest

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.generic_console import GenericConsole


def test_steps_of_epochs(records: Records, format_of: FormatOf) -> None:
    text = "".join(f"Epoch [2/100], Step [{n}/600], Loss: 0.5, lr: 0.001\n" for n in (20, 40, 60)).encode()
    assert format_of("train.log", text) == "console"
    record = records(GenericConsole, text)[-1]
    assert (record.kind, record.epoch, record.epochs) == ("batch", 2, 100)
    assert (record.batch, record.batches, record.step) == (60, 600, 660)
    assert (record.roles.loss, record.roles.learning_rate) == (0.5, 0.001)


@pytest.mark.parametrize(
    "line",
    [
        "[Epoch {}/50] train_loss: 0.5 val_loss: 0.75 mAP@0.5: 0.25 mAP@0.5:0.95: 0.125\n",
        "epoch {} | train loss 0.5 | val loss 0.75 | AP50 = 0.25 | AP50-95 = 0.125\n",
        "Epoch {} {{'train_loss': 0.5, 'val_loss': 0.75, 'map_50': 0.25, 'map': 0.125}}\n",
        "2026-12-01 05:21:45 INFO Epoch: {} - train_loss=0.5 - val_loss=0.75 - map_50=0.25 - map=0.125\n",
    ],
)
def test_a_line_an_epoch(records: Records, format_of: FormatOf, line: str) -> None:
    text = "".join(line.format(number) for number in (1, 2, 3)).encode()
    assert format_of("train.log", text) == "console"
    record = records(GenericConsole, text)[-1]
    assert (record.kind, record.epoch) == ("epoch", 3)
    assert (record.roles.loss, record.roles.map50, record.roles.map50_95) == (0.5, 0.25, 0.125)
    assert list(record.roles.validation_losses.values()) == [0.75]


def test_epochs_count_from_0_where_the_first_is_0(records: Records) -> None:
    text = "".join(f"epoch {number} loss: 0.5\n" for number in range(3)).encode()
    assert [record.epoch for record in records(GenericConsole, text)] == [1, 2, 3]


def test_bars_of_tqdm_with_the_loss_behind(records: Records, format_of: FormatOf) -> None:
    bar = "Epoch 3/10: {:3d}%|█████     | {}/8 [00:10<00:10,  4.00it/s, loss=0.5, lr=0.001]\r"
    text = "".join(bar.format(100 * n // 8, n) for n in (2, 4, 4, 6)) + "\n"
    text += "Epoch 3/10: 100%|██████████| 2/2 [00:10<00:00,  4.00it/s, val_loss=0.75]\n"
    assert format_of("nohup.out", text.encode()) == "console"
    found = records(GenericConsole, text.encode())
    assert [(r.kind, r.batch) for r in found] == [
        ("batch", 2),
        ("batch", 4),
        ("batch", 6),
        ("validation", None),
    ]
    assert (found[0].epoch, found[0].epochs, found[0].roles.step_seconds) == (3, 10, 0.25)


def test_an_evaluation_is_told_by_its_words(records: Records) -> None:
    text = b"Epoch: 0, Step: 5/9, Loss: 0.5\nEpoch: 0, Validation Loss: 1.5, Validation Regression Loss 0.5\n"
    batch, validation = records(GenericConsole, text)
    assert (batch.kind, batch.roles.loss) == ("batch", 0.5)
    assert (validation.kind, validation.epoch, validation.roles.loss) == ("validation", 1, None)
    assert "Validation Loss" in validation.roles.validation_losses


def test_tensorflows_object_detection_counts_steps_and_says_them_twice(records: Records) -> None:
    line = "Step {} per-step time 0.250s loss=1.5\n"
    text = "".join(
        f"INFO:tensorflow:{line.format(n)}I0912 11:41:51.976096 139 model_lib_v2.py:652] {line.format(n)}"
        for n in (100, 200)
    )
    found = records(GenericConsole, text.encode())
    assert [(r.step, r.roles.loss, r.roles.step_seconds) for r in found] == [
        (100, 1.5, 0.25),
        (200, 1.5, 0.25),
    ]


def test_a_decimal_comma_is_not_half_a_number(records: Records) -> None:
    assert records(GenericConsole, b"Epoch 1 loss: 0,512\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 1 loss: 0.5\nEpoch 2 loss: 0.25\n",  # too few
        "In epoch 3 we lost the loss.\n" * 5,
        'print(f"Epoch {epoch} loss: {loss}")\n' * 5,
        "loss: 0.5\n" * 5,
    ],
)
def test_other_texts_are_none(format_of: FormatOf, text: str) -> None:
    assert format_of("notes.txt", text.encode()) is None
