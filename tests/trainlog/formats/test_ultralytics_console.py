"""The console of Ultralytics: redraws, colours, narrow panes, words."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.trainlog.formats.feeding import FormatOf, RealLog, Records
from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.ultralytics_console import UltralyticsConsole

GREETING = "Ultralytics 8.4.190 🚀 Python-3.12.3 torch-2.11.0+cu130 CUDA:0 (NVIDIA H200, 143156MiB)\n"
SETTINGS = (
    "\x1b[34m\x1b[1mengine/trainer: \x1b[0mamp=True, batch=16, cache=ram, classes=[0, 2], "
    "close_mosaic=10, data=ds.yaml, "
    "device=0, epochs=100, imgsz=640, model=yolo11n.pt, multi_scale=0.0, patience=50, save_dir=/runs/train, "
    "task=detect, val=True, workers=8\n"
)
START = (
    "Using 8 dataloader workers\n"
    "Logging results to \x1b[1m/runs/train-2\x1b[0m\n"
    "Starting training for 100 epochs...\n"
)
HEADER = "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
VALIDATION = (
    "\r\x1b[K                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): "
    "100% ━━━━━━━━━━━━ 1/1 28.6it/s 0.0s\n"
)
ALL = "                   all          6         12        0.9        0.8        0.7        0.6\n"


def redraw(row: str, bar: str) -> str:
    return f"\r\x1b[K{row}: {bar}"


def epoch(number: int, losses: str = "1.5       2.25       1.25", rate: str = "10.0it/s") -> str:
    row = f"      {number}/100      2.31G      {losses}         42        640"
    return (
        HEADER
        + redraw(row, f"40% ━━━━──────── 2/5 {rate} 0.2s<0.3s")
        + redraw(row, f"100% ━━━ 5/5 {rate} 0.5s\n")
    )


def of(found: list[TrainRecord], kind: str) -> list[TrainRecord]:
    return [record for record in found if record.kind == kind]


def test_a_redraw_is_a_batch_of_means_so_far(records: Records) -> None:
    found = records(UltralyticsConsole, (GREETING + SETTINGS + START + epoch(1)).encode())
    first, last = of(found, "batch")
    assert (first.epoch, first.epochs, first.batch, first.batches, first.step) == (1, 100, 2, 5, 2)
    assert last.batch == 5
    assert first.roles.losses == {"box_loss": 1.5, "cls_loss": 2.25, "dfl_loss": 1.25}
    assert first.roles.loss == 5.0
    assert first.roles.memory_reserved_bytes == 2.31 * 2**30
    assert first.roles.image_size == 640
    assert first.numbers["Instances"] == 42
    assert first.roles.step_seconds == 0.1
    assert first.roles.images_per_second == 160  # 10 batches of 16


def test_a_redraw_with_the_same_count_is_no_new_batch(records: Records) -> None:
    row = "      1/100      2.31G      1.5       2.25       1.25         42        640"
    drawn = [redraw(row, f"40% ━━━━ 2/5 10.0it/s {tenth / 10}s<0.3s") for tenth in range(5)]
    found = records(UltralyticsConsole, (HEADER + "".join(drawn)).encode())
    assert [record.batch for record in of(found, "batch")] == [2]


def test_start_carries_the_settings(records: Records) -> None:
    (start,) = of(records(UltralyticsConsole, (GREETING + SETTINGS + START).encode()), "start")
    run = start.run
    assert run is not None
    assert (run.trainer, run.model, run.task) == ("Ultralytics 8.4.190", "yolo11n.pt", "detect")
    assert (run.epochs, run.batch_size, run.image_size, run.workers) == (100, 16, 640, 8)
    assert (run.patience, run.close_mosaic, run.cache, run.amp) == (50, 10, "ram", True)
    assert run.save_directory == "/runs/train-2"


def test_settings_of_8_0(records: Records) -> None:
    line = "\x1b[34m\x1b[1myolo/engine/trainer: \x1b[0mtask=detect, model=yolov8n.pt, epochs=3, batch=8\n"
    greeting = "Ultralytics YOLOv8.0.20 🚀 Python-3.8.10 torch-1.13.1+cu117 CUDA:0 (RTX 3090, 24268MiB)\n"
    (start,) = of(records(UltralyticsConsole, (greeting + line + START).encode()), "start")
    assert (start.run.trainer, start.run.batch_size) == ("Ultralytics 8.0.20", 8)


def test_the_all_row_makes_the_epoch(records: Records) -> None:
    found = records(UltralyticsConsole, (START + epoch(3) + VALIDATION + ALL).encode())
    (row,) = of(found, "epoch")
    assert (row.epoch, row.roles.loss) == (3, 5.0)
    assert (row.roles.precision, row.roles.recall) == (0.9, 0.8)
    assert (row.roles.map50, row.roles.map50_95) == (0.7, 0.6)
    assert row.numbers["metrics/mAP50-95(B)"] == 0.6
    assert row.numbers["train/box_loss"] == 1.5


def test_an_epoch_without_validation_ends_with_the_next(records: Records) -> None:
    found = records(UltralyticsConsole, (START + epoch(1) + epoch(2) + epoch(3)).encode())
    assert [record.epoch for record in of(found, "epoch")] == [1, 2, 3]
    assert all(record.roles.map50 is None for record in of(found, "epoch"))


def test_an_epoch_under_way_is_not_complete(records: Records) -> None:
    row = "      1/100      2.31G      1.5       2.25       1.25         42        640"
    found = records(UltralyticsConsole, (HEADER + redraw(row, "40% ━━━━ 2/5 10.0it/s 0.2s<0.3s")).encode())
    assert of(found, "epoch") == []


def test_masks_and_poses_have_metrics_of_their_own(records: Records) -> None:
    head = VALIDATION.replace("mAP50-95): ", "mAP50-95)     Pose(P          R      mAP50  mAP50-95): ")
    row = "                   all    6    12    0.9    0.8    0.7    0.6    0.5    0.4    0.3    0.2\n"
    (record,) = of(records(UltralyticsConsole, (epoch(1) + head + row).encode()), "epoch")
    assert record.roles.map50_95 == 0.6
    assert record.numbers["metrics/mAP50-95(P)"] == 0.2


def test_classification(records: Records) -> None:
    content = (
        "\n      Epoch    GPU_mem       loss  Instances       Size\n"
        + redraw("      1/10      0.5G      2.345         16        224", "100% ━━━ 5/5 9.0it/s 0.5s\n")
        + "\r\x1b[K               classes   top1_acc   top5_acc: 100% ━━━━ 1/1 10it/s 0.1s\n"
        + "                   all      0.833          1\n"
    )
    (row,) = of(records(UltralyticsConsole, content.encode()), "epoch")
    assert row.roles.loss == 2.345
    assert row.numbers["metrics/accuracy_top1"] == 0.833
    assert row.roles.map50 is None


def test_a_narrow_pane_cuts_rows_and_numbers(records: Records) -> None:
    """The trainer itself cuts a row to the terminal's width: what stands before `…` is half a number."""
    content = (
        "\n      Epoch    GPU_mem   box_loss   cls_l…\n"
        "\r\x1b[K  1/3  2.5G  1.177  0.9…\x1b[0m: 40% ━━ 2/5 16.2it/s 0.3s<0.2s"
        "\r\x1b[K  1/3  2.5…\x1b[0m: 60% ━━ 3/5 16.2it/s 0.3s<0.2s"
        "\r\x1b[K  1/3…\x1b[0m: 80% ━━ 4/5 16.2it/s 0.3s<0.2s"
    )
    found = of(records(UltralyticsConsole, content.encode()), "batch")
    assert [record.batch for record in found] == [2]
    assert found[0].numbers == {"box_loss": 1.177}
    assert found[0].roles.loss is None  # a part is not the whole
    assert found[0].roles.image_size is None


def test_nan_and_its_recovery(records: Records) -> None:
    content = (
        START
        + epoch(3, losses="nan        nan        nan")
        + VALIDATION
        + ALL
        + "WARNING ⚠️ Loss NaN/Inf detected (attempt 1/3), recovering from last.pt...\n"
        + epoch(3)
        + VALIDATION
        + ALL
    )
    found = records(UltralyticsConsole, content.encode())
    broken, good = of(found, "epoch")
    assert broken.epoch == good.epoch == 3
    assert math.isnan(broken.roles.loss)
    assert good.roles.loss == 5.0
    (words,) = of(found, "message")
    assert words.text == "WARNING ⚠️ Loss NaN/Inf detected (attempt 1/3), recovering from last.pt..."
    assert words.epoch == 3
    assert len(of(found, "epoch_start")) == 2  # the epoch begins again


def test_a_smaller_batch_after_out_of_memory(records: Records) -> None:
    content = (
        SETTINGS
        + START
        + "WARNING ⚠️ CUDA out of memory with batch=16. Reducing to batch=8 and retrying (1/3).\n"
        + epoch(1)
    )
    found = records(UltralyticsConsole, content.encode())
    assert of(found, "batch")[0].roles.images_per_second == 80
    assert of(found, "message")[0].text.startswith("WARNING ⚠️ CUDA out of memory")


def test_autobatch_sets_the_batch(records: Records) -> None:
    content = (
        SETTINGS.replace("batch=16", "batch=-1")
        + "\x1b[34m\x1b[1mAutoBatch: \x1b[0mUsing batch-size 73 for CUDA:0 14.20G/22.00G (65%) ✅\n"
        + START
        + epoch(1)
    )
    found = records(UltralyticsConsole, content.encode())
    assert of(found, "start")[0].run.batch_size == 73
    assert of(found, "batch")[0].roles.images_per_second == 730


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[34m\x1b[1mtrain: \x1b[0mWARNING ⚠️ Slow image access detected (ping: 9.0±4.0 ms)",
        "Closing dataloader mosaic",
        "Using 3584 train, 448 val images for fraction=1.0 at imgsz=640",
        "RuntimeError: Training failed: NaN persisted for 4 epochs",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "Traceback (most recent call last):",
        "WARNING ⚠️ no labels found in detect set, can not compute metrics without labels",
    ],
)
def test_words_worth_keeping(records: Records, line: str) -> None:
    (words,) = records(UltralyticsConsole, line.encode() + b"\n")
    assert words.kind == "message"
    assert "\x1b" not in words.text
    assert words.text.split()[-1] == line.split()[-1]


def test_the_end_and_the_validation_of_the_best(records: Records) -> None:
    content = (
        START
        + epoch(100)
        + VALIDATION
        + ALL
        + "\n100 epochs completed in 0.112 hours.\nValidating /runs/train/weights/best.pt...\n"
        + VALIDATION
        + ALL.replace("0.6", "0.65")
        + "                     a          3          5        0.9        0.8        0.7        0.1\n"
    )
    found = records(UltralyticsConsole, content.encode())
    assert len(of(found, "epoch")) == 1
    assert of(found, "end")[0].text == "100 epochs completed in 0.112 hours."
    (best,) = of(found, "validation")
    assert best.epoch is None  # it is of whichever epoch was best
    assert best.roles.map50_95 == 0.65


def test_early_stopping(records: Records) -> None:
    line = "\x1b[34m\x1b[1mEarlyStopping: \x1b[0mTraining stopped early as no improvement in 50 epochs.\n"
    (record,) = records(UltralyticsConsole, line.encode())
    assert record.kind == "stopping"


def test_bars_of_tqdm_in_versions_before_8_3_180(records: Records) -> None:
    row = "      1/100      2.31G      1.5       2.25       1.25         42        640"
    content = (
        HEADER
        + f"\r{row}:  29%|██▉       | 4/14 [00:01<00:04,  2.00it/s]"
        + f"\r{row}: 100%|██████████| 14/14 [00:35<00:00,  2.50s/it]\n"
    )
    first, last = of(records(UltralyticsConsole, content.encode()), "batch")
    assert (first.batch, first.batches, first.roles.step_seconds) == (4, 14, 0.5)
    assert (last.batch, last.roles.step_seconds) == (14, 2.5)


def test_rows_logged_without_a_bar(records: Records) -> None:
    row = "       {}/40      2.06G      2.072      3.219      1.735         26        640\n"
    head = "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95)\n"
    content = "".join(HEADER + row.format(number) + head + ALL for number in (1, 2))
    found = records(UltralyticsConsole, content.encode())
    assert [record.kind for record in found] == ["epoch_start", "epoch"] * 2
    assert [record.epoch for record in of(found, "epoch")] == [1, 2]
    assert of(found, "epoch")[0].roles.losses["cls_loss"] == 3.219
    assert of(found, "epoch")[0].roles.map50_95 == 0.6


def test_the_bar_of_the_scan_is_no_batch(records: Records) -> None:
    line = "\r\x1b[K\x1b[34mtrain: \x1b[0mScanning /ds/train... 18 images: 100% ━━ 18/18 4.2Kit/s 0.0s\n"
    assert records(UltralyticsConsole, line.encode()) == []


def test_a_second_training_in_the_same_file_starts_again(records: Records) -> None:
    found = records(UltralyticsConsole, (START + epoch(1) + epoch(2) + START + epoch(1)).encode())
    assert len(of(found, "start")) == 2
    assert [record.epoch for record in of(found, "epoch_start")] == [1, 2, 1]


def test_recognised_by_greeting_settings_or_header() -> None:
    def score(text: str) -> float:
        return UltralyticsConsole.score(Head(name="slurm-1.out", parent="", data=text.encode()))

    assert score(GREETING + SETTINGS) > 0.9
    assert score(epoch(1)) > 0.8
    assert score(HEADER.replace("cls_loss", "obj_loss")) == 0  # YOLOv5
    assert score("Epoch 1: loss 2.5\n") == 0


def test_real_console(records: Records, format_of: FormatOf, real_log: RealLog) -> None:
    content = real_log("ul84-console-train.log")
    assert format_of("train.log", content) == "ultralytics-console"
    found = records(UltralyticsConsole, content)
    assert [record.roles.map50_95 for record in of(found, "epoch")][-3:] == [0.64, 0.636, 0.648]
    assert of(found, "batch")[-1].roles.memory_reserved_bytes == 5.92 * 2**30
    assert sum("Disk quota exceeded" in record.text for record in of(found, "message")) == 3


def test_real_console_with_nan(records: Records, real_log: RealLog) -> None:
    found = records(UltralyticsConsole, real_log("own-ul84190-console-nan-recovered.log"))
    assert [record.epoch for record in of(found, "epoch")] == [1, 2, 3, 3, 4, 5]
    assert [math.isnan(record.roles.loss) for record in of(found, "epoch")] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    assert all(record.roles.memory_reserved_bytes is None for record in of(found, "batch"))  # 0G: on the CPU


def test_real_console_of_a_long_run(records: Records, shared: Path) -> None:
    found = records(UltralyticsConsole, (shared / "traces" / "healthy_long" / "console.log").read_bytes())
    assert [record.epoch for record in of(found, "epoch")] == list(range(1, 45))
    assert of(found, "epoch")[-1].roles.map50_95 == 0.968
    assert of(found, "start")[0].run.epochs == 44


POSE_HEADER = (
    "      Epoch    GPU_mem   box_loss  pose_loss  kobj_loss   cls_loss   dfl_loss  Instances       Size\n"
)


def test_pose_without_a_greeting_is_not_yolov5s(format_of: FormatOf) -> None:
    """Its `kobj_loss` is not YOLOv5's `obj_loss`."""
    row = (
        "       3/10      2.5G        0.5        1.5       0.25        0.5       1.25          7        640\n"
    )
    assert format_of("pose.log", (POSE_HEADER + row).encode()) == "ultralytics-console"


def test_with_verbose_false_the_headers_count_the_epochs(records: Records) -> None:
    row = "      all     20     31    0.9    0.8    0.7      {}      0.5      0.5      0.5      0.25\n"
    text = "Starting training for 50 epochs...\n" + "".join(
        POSE_HEADER + row.format(m) for m in ("0.25", "0.5")
    )
    found = [record for record in records(UltralyticsConsole, text.encode()) if record.kind == "validation"]
    assert [(r.epoch, r.epochs, r.roles.map50_95) for r in found] == [(1, 50, 0.25), (2, 50, 0.5)]
    resumed = "Resuming training runs/last.pt from epoch 31 to 50 total epochs\n" + text
    found = [
        record for record in records(UltralyticsConsole, resumed.encode()) if record.kind == "validation"
    ]
    assert [r.epoch for r in found] == [31, 32]


def test_a_bar_of_tqdm_in_a_narrow_terminal_is_cut_without_a_mark(records: Records) -> None:
    header = "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
    row = (
        "      13/30      13.1G      1.825      21.5     0.5235          9        576: 100%|██| 99/99 [01:52"
    )
    row_end = (
        "                   all         48         28          0.1          0.2          0.3          0.4\n"
    )
    for width, loss in ((40, None), (48, None), (60, 23.8485), (76, 23.8485), (80, 23.8485), (100, 23.8485)):
        found = records(UltralyticsConsole, (header + "\r" + row[:width] + "\n" + row_end).encode())
        epoch = next(record for record in found if record.kind == "epoch")
        assert (epoch.epoch, epoch.epochs, epoch.roles.map50) == (13, 30, 0.3), width
        assert epoch.roles.memory_reserved_bytes == 13.1 * 2**30, width
        assert epoch.roles.loss == (pytest.approx(loss) if loss else None), width


def test_windows_writes_the_settings_with_a_backslash(records: Records) -> None:
    text = "engine\\trainer: task=detect, model=yolo11n.pt, epochs=20, batch=8, imgsz=640\n"
    text += "Starting training for 20 epochs...\n"
    start = records(UltralyticsConsole, text.encode())[0]
    assert (start.run.batch_size, start.run.model) == (8, "yolo11n.pt")


def test_out_of_memory_while_autobatch_probes_is_no_alarm(records: Records) -> None:
    oom = "CUDA out of memory. Tried to allocate 20.00 MiB.\n"
    text = "AutoBatch: Computing optimal batch size for imgsz=640 at 60.0% CUDA memory utilization.\n" + oom
    text += "AutoBatch: Using batch-size 15 for CUDA:0 12.59G/22.03G (57%)\n"
    assert not any("Tried" in record.text for record in records(UltralyticsConsole, text.encode()))
    assert records(UltralyticsConsole, (text + oom).encode())[-1].text.startswith("CUDA out of memory")
