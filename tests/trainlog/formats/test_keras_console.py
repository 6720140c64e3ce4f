"""Keras' console."""

from __future__ import annotations

import pytest

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.keras_console import KerasConsole

KERAS_2 = (
    "Epoch 1/50\n\n"
    " 24/110 [====>.........................] - ETA: 8:47 - loss: 18.5 - box_loss: 1.5\b\b\b\b"
    "\r110/110 [==============================] - ETA: 0s - loss: 18.25 - box_loss: 1.25"
    "\r110/110 [==============================] - 19s 175ms/step"
    " - loss: 18.25 - box_loss: 1.25 - val_loss: 17.5\n"
)
KERAS_3 = (
    "Epoch 2/50\n"
    "\x1b[1m  1/150\x1b[0m \x1b[37m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m45:12\x1b[0m 18s/step - loss: 5.5\r"
    "\x1b[1m150/150\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m45s\x1b[0m 300ms/step"
    " - loss: 3.25 - val_loss: 3.0 - learning_rate: 1.0000e-04\n"
)


def test_keras_2(records: Records, format_of: FormatOf) -> None:
    assert format_of("nohup.out", KERAS_2.encode()) == "keras-console"
    begun, batch, full, epoch = records(KerasConsole, KERAS_2.encode())
    assert (begun.kind, begun.epoch, begun.epochs) == ("epoch_start", 1, 50)
    assert (batch.kind, batch.batch, batch.batches, batch.roles.loss) == ("batch", 24, 110, 18.5)
    assert (full.kind, full.step) == ("batch", 110)
    assert (epoch.kind, epoch.epoch, epoch.roles.loss) == ("epoch", 1, 18.25)
    assert epoch.roles.losses == {"box_loss": 1.25}
    assert epoch.roles.validation_losses == {"val_loss": 17.5}
    assert epoch.roles.step_seconds == 0.175


def test_keras_3(records: Records, format_of: FormatOf) -> None:
    assert format_of("train.log", KERAS_3.encode()) == "keras-console"
    epoch = records(KerasConsole, KERAS_3.encode())[-1]
    assert (epoch.epoch, epoch.epochs, epoch.roles.loss) == (2, 50, 3.25)
    assert (epoch.roles.learning_rate, epoch.roles.step_seconds) == (1e-4, 0.3)


def test_without_bars_an_epoch_is_one_line(records: Records, format_of: FormatOf) -> None:
    text = "Epoch 3/50\n110/110 - 19s - loss: 18.5 - val_loss: 17.5 - 19s/epoch - 175ms/step\n"
    assert format_of("train.log", text.encode()) == "keras-console"
    epoch = records(KerasConsole, text.encode())[-1]
    assert (epoch.kind, epoch.epoch, epoch.roles.loss, epoch.roles.step_seconds) == ("epoch", 3, 18.5, 0.175)


@pytest.mark.parametrize(
    "line", ["1/1 [==============================] - 0s 20ms/step\n", "5/5 ━━━━ 0s 2ms/step\n"]
)
def test_a_prediction_is_no_batch(records: Records, line: str) -> None:
    assert [r.kind for r in records(KerasConsole, ("Epoch 1/2\n" + line).encode())] == ["epoch_start"]


def test_an_epoch_under_way_is_not_complete(records: Records) -> None:
    found = records(KerasConsole, KERAS_2[: KERAS_2.index("\r")].encode())
    assert [record.kind for record in found] == ["epoch_start", "batch"]
