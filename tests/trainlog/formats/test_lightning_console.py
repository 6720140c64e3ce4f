"""Lightning's progress bars."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.lightning_console import LightningConsole

TQDM = (
    "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  4.00it/s]\r"
    "Epoch 3:  50%|██  | 100/200 [00:20<00:20,  5.00it/s, v_num=0, loss=1.25, val_map=0.25, val_map_50=0.5]"
    "\rEpoch 3: 100%|████| 200/200 [00:40<00:00,  5.00it/s, v_num=0, loss=1.0, val_map=0.25, val_map_50=0.5]"
    "\rValidation DataLoader 0: 100%|██████████| 9/9 [00:02<00:00,  4.00it/s]"
    "\rEpoch 3: 100%|████| 200/200 [00:42<0:00,  5.00it/s, v_num=0, loss=1.0, val_map=0.375, val_map_50=0.75]"
    "\n"
)
RICH = "Epoch 3/19 ━━━━━╸━━━━ 100/200 0:00:20 • 0:00:20 5.0it/s v_num: 0 train/loss: 0.5\n"


def test_epochs_count_from_0_and_the_validation_is_what_changes(
    records: Records, format_of: FormatOf
) -> None:
    assert format_of("slurm.out", TQDM.encode()) == "lightning-console"
    half, full, validation = records(LightningConsole, TQDM.encode())
    assert (half.kind, half.epoch, half.batch, half.batches) == ("batch", 4, 100, 200)
    assert (half.roles.loss, half.roles.step_seconds, half.roles.map50) == (1.25, 0.2, None)
    assert (full.batch, full.roles.loss) == (200, 1.0)
    assert (validation.kind, validation.epoch) == ("validation", 4)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.75, 0.375)


def test_values_that_stay_in_the_bar_of_the_next_epoch_are_of_the_one_before(records: Records) -> None:
    frame = "Epoch {}:  50%|█████     | {}/8 [00:20<00:20,  5.00it/s, v_num=0, loss=1.5, val_loss={}]\r"
    text = frame.format(0, 4, 9.5) + frame.format(1, 4, 2.5) + frame.format(1, 5, 2.5)
    found = [r for r in records(LightningConsole, text.encode()) if r.kind == "validation"]
    assert [(r.epoch, r.roles.validation_losses) for r in found] == [(1, {"val_loss": 2.5})]


def test_the_bar_of_rich(records: Records, format_of: FormatOf) -> None:
    assert format_of("slurm.out", RICH.encode()) == "lightning-console"
    (batch,) = records(LightningConsole, RICH.encode())
    assert (batch.epoch, batch.epochs, batch.batch, batch.batches) == (4, 20, 100, 200)
    assert (batch.roles.loss, batch.roles.step_seconds) == (0.5, 0.2)
