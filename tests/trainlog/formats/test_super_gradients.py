"""super-gradients (YOLO-NAS)."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.super_gradients import SuperGradients

BAR = (
    "\rTrain epoch 1:  50%|█████     | 5/10 [00:01<00:01,  2.00it/s, PPYoloELoss/loss=2.17, "
    "PPYoloELoss/loss_cls=1.15, "
    "gpu_mem=8.68]"
)
SUMMARY = (
    "\n===========================================================\nSUMMARY OF EPOCH 1\n├── Training\n"
    "│   ├── Ppyoloeloss/loss = 2.1742\n│   │   ├── Best until now = 2.2521 (↘ -0.0779)\n"
    "│   │   └── Epoch N-1      = 2.2521 (↘ -0.0779)\n│   └── Ppyoloeloss/loss_cls = 1.1544\n"
    "│       └── Epoch N-1      = 1.1971 (↘ -0.0428)\n└── Validation\n    ├── Map@0.50 = 0.6063\n"
    "    │   └── Epoch N-1      = 0.6509 (↘ -0.0445)\n    ├── Map@0.50:0.95 = 0.4063\n"
    "    └── Ppyoloeloss/loss = 1.512\n\n===========================================================\n"
)


def test_bar(records: Records, format_of: FormatOf) -> None:
    assert format_of("console.txt", BAR[1:].encode() + b"\n") == "super-gradients"
    (batch,) = records(SuperGradients, BAR.encode())
    assert (batch.kind, batch.epoch, batch.batch, batch.batches) == ("batch", 2, 5, 10)
    assert (batch.roles.loss, batch.roles.losses) == (2.17, {"PPYoloELoss/loss_cls": 1.15})
    assert batch.roles.memory_reserved_bytes == 8.68e9
    assert batch.roles.step_seconds == 0.5


def test_summary(records: Records) -> None:
    (epoch,) = records(SuperGradients, SUMMARY.encode())
    assert (epoch.kind, epoch.epoch, epoch.roles.loss) == ("epoch", 2, 2.1742)
    assert (epoch.roles.map50, epoch.roles.map50_95) == (0.6063, 0.4063)
    assert epoch.roles.validation_losses == {"Ppyoloeloss/loss": 1.512}


def test_the_experiment_log_counts_from_0_and_from_1_in_one_line(
    records: Records, format_of: FormatOf
) -> None:
    line = (
        b"Epoch 0 (1/300)  - Train_PPYoloELoss/loss: 1.25\tTrain_PPYoloELoss/loss_cls: "
        b"0.5\tValid_mAP@0.50: 0.3\n"
    )
    assert format_of("experiment_logs_Aug21.txt", line) == "super-gradients"
    (epoch,) = records(SuperGradients, line)
    assert (epoch.epoch, epoch.epochs) == (1, 300)
    assert (epoch.roles.loss, epoch.roles.map50) == (1.25, 0.3)


def test_how_many_epochs_is_said_at_the_start(records: Records) -> None:
    text = "[2023-10-29 15:29:45] INFO - sg_trainer.py - Started training for 100 epochs (0/99)\n\n" + BAR
    start, batch = records(SuperGradients, text.encode())[:2]
    assert (start.kind, start.run.epochs) == ("start", 100)
    assert (batch.kind, batch.epochs) == ("batch", 100)


def test_the_summary_of_older_versions_says_train(records: Records) -> None:
    old = SUMMARY.replace("Training", "Train")
    assert (
        records(SuperGradients, old.encode())[-1].roles == records(SuperGradients, SUMMARY.encode())[-1].roles
    )


def test_a_value_cut_by_a_narrow_terminal_is_dropped(records: Records) -> None:
    bar = (
        "Train epoch 1:  50%|█| 1/2 [00:01<00:00,  1.00it/s, PPYoloELoss/loss=2.25, PPYoloELoss/loss_cls=1.2"
    )
    (batch,) = records(SuperGradients, bar.encode())
    assert batch.roles.loss == 2.25
    assert batch.roles.losses == {}


def test_a_warning_within_the_summary_does_not_end_it(records: Records) -> None:
    lines = SUMMARY.splitlines(keepends=True)
    noisy = "UserWarning: something is deprecated\n".join(lines)
    assert (
        records(SuperGradients, noisy.encode())[-1].numbers
        == records(SuperGradients, SUMMARY.encode())[-1].numbers
    )
