"""The console of YOLOv5, YOLOv7 and YOLOv9."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.yolov5_console import YoloV5Console

V6 = (
    "\x1b[34m\x1b[1mtrain: \x1b[0mweights=yolov5s.pt, cfg=, data=coco128.yaml, epochs=3, batch_size=16, "
    "imgsz=640, "
    "noval=False, workers=8, patience=100\n"
    "YOLOv5 🚀 v7.0-0-g915bbf2 Python-3.10.6 torch-1.13.1 CUDA:0 (Tesla T4, 15110MiB)\n"
    "Logging results to \x1b[1mruns/train/exp\x1b[0m\nStarting training for 3 epochs...\n"
    "\n      Epoch    GPU_mem   box_loss   obj_loss   cls_loss  Instances       Size\n"
    "\r        0/2      3.76G    0.04529    0.07073    0.01896        237        640:  50%|█████     | 4/8 "
    "[00:02<00:02,  2.00it/s]"
    "\r        0/2      3.76G    0.04529    0.07073    0.01896        237        640: 100%|██████████| 8/8 "
    "[00:04<00:00,  2.00it/s]\n"
    "                 Class     Images  Instances          P          R      mAP50   mAP50-95: 100%|███| 4/4 "
    "[00:01<00:00,  3.00it/s]\n"
    "                   all        128        929      0.667      0.602       0.68       0.44\n"
)
V7 = (
    "     Epoch   gpu_mem       box       obj       cls     total    labels  img_size\n"
    "   32/4999     55.1G   0.05461   0.01017   0.03715    0.1019        26      1856: 100%|██████████| "
    "295/295 "
    "[12:51<00:00,  2.62s/it]\n"
    "                 all         787        2054       0.736      0.0185     0.00493     0.00334\n"
)


def test_epochs_from_0_and_a_gigabyte_of_1e9(records: Records, format_of: FormatOf) -> None:
    assert format_of("nohup.out", V6.encode()) == "yolov5-console"
    found = records(YoloV5Console, V6.encode())
    assert [record.kind for record in found] == ["start", "epoch_start", "batch", "batch", "epoch"]
    start, _, batch, _, epoch = found
    assert start.run.epochs == 3
    assert (start.run.batch_size, start.run.validates) == (16, True)
    assert start.run.save_directory == "runs/train/exp"
    assert (batch.epoch, batch.epochs, batch.batch, batch.batches) == (1, 3, 4, 8)
    assert batch.roles.memory_reserved_bytes == 3.76e9
    assert batch.roles.images_per_second == 32
    assert (epoch.epoch, epoch.roles.map50, epoch.roles.map50_95) == (1, 0.68, 0.44)
    assert epoch.roles.losses == {"box_loss": 0.04529, "obj_loss": 0.07073, "cls_loss": 0.01896}


def test_v7_prints_a_total(records: Records, format_of: FormatOf) -> None:
    assert format_of("slurm.out", V7.encode()) == "yolov5-console"
    batch, epoch = records(YoloV5Console, V7.encode())[1:]
    assert (batch.epoch, batch.epochs) == (33, 5000)
    assert batch.roles.loss == 0.1019
    assert batch.roles.losses == {"box": 0.05461, "obj": 0.01017, "cls": 0.03715}
    assert batch.roles.step_seconds == 2.62
    assert batch.roles.image_size == 1856
    assert (epoch.roles.map50, epoch.roles.map50_95) == (0.00493, 0.00334)


def test_v9_is_known_by_its_epochs_from_0(format_of: FormatOf) -> None:
    v9 = V6.replace("obj_loss   cls_loss", "cls_loss   dfl_loss")
    assert format_of("nohup.out", v9.encode()) == "yolov5-console"


V7_BAR = "   {}/9   12G   0.05   0.03   0   0.08   161   640: 100%|██████████| 8/8 [00:04<00:00,  2.00it/s]\n"
V7_VALIDATION = (
    "   Class   Images   Labels   P   R   mAP@.5  mAP@.5:.95: 100%|████| 4/4 [00:01<00:00,  3.00it/s]\n"
)


def test_rows_that_a_buffer_held_back_belong_to_the_epochs_that_were_validated(records: Records) -> None:
    """YOLOv7 prints its `all` rows: redirected to a file they come a buffer at a time, epochs late."""
    rows = "".join(f"       all   100   479   0.9   0.8   0.{epoch}   0.{epoch}5\n" for epoch in range(1, 6))
    text = V7.splitlines(keepends=True)[0] + "".join(
        V7_BAR.format(epoch) + V7_VALIDATION for epoch in range(5)
    )
    found = records(YoloV5Console, (text + "5 epochs completed in 0.1 hours.\n" + rows).encode())
    told = {record.epoch: record.roles.map50 for record in found if record.roles.map50 is not None}
    assert told == {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4, 5: 0.5}


def test_a_row_that_was_lost_does_not_move_the_others(records: Records) -> None:
    row = "       all   100   479   0.9   0.8   0.{}   0.05\n"
    text = V7.splitlines(keepends=True)[0]
    text += V7_BAR.format(0) + V7_VALIDATION + V7_BAR.format(1) + V7_VALIDATION + row.format(2)
    text += V7_BAR.format(2) + V7_VALIDATION + row.format(3)
    found = records(YoloV5Console, text.encode())
    told = {record.epoch: record.roles.map50 for record in found if record.roles.map50 is not None}
    assert told == {2: 0.2, 3: 0.3}


def test_the_first_versions_have_giou(records: Records, format_of: FormatOf) -> None:
    first = V7.replace("   box  ", "  GIoU  ").encode()
    assert format_of("train.log", first) == "yolov5-console"
    assert records(YoloV5Console, first)[1].roles.losses == {"GIoU": 0.05461, "obj": 0.01017, "cls": 0.03715}


def test_yolov3_of_the_same_authors_is_known_by_its_greeting(format_of: FormatOf) -> None:
    assert (
        format_of("a.log", b"YOLOv3 \xf0\x9f\x9a\x80 v9.6.0 Python-3.10.1 torch-2.2.2+cu121 CPU\n")
        == "yolov5-console"
    )


def test_v9_from_the_middle_of_a_run_is_known_by_its_validation(format_of: FormatOf) -> None:
    v9 = V6.replace("obj_loss   cls_loss", "cls_loss   dfl_loss").replace("0/2", "2/2")
    v9 = v9[v9.index("      Epoch") :]
    assert format_of("slurm.out", v9.encode()) == "yolov5-console"
    assert format_of("slurm.out", v9.replace(" P ", " Box(P ").encode()) == "ultralytics-console"


def test_frames_without_carriage_returns_between_them(records: Records) -> None:
    """As a copy from a browser has them."""
    frame = "   0/9   12G   0.05   0.03   0   0.0{}   161   640:  {}%|███  | {}/8 [00:04<00:00,  2.00it/s]"
    glued = "".join(frame.format(n, n * 100 // 8, n) for n in (2, 4, 8))
    found = records(YoloV5Console, (V7.splitlines(keepends=True)[0] + glued + V7_VALIDATION).encode())
    assert [r.batch for r in found if r.kind == "batch"] == [2, 4, 8]
    assert found[-1].roles.loss == 0.08


def test_the_greeting_names_the_trainer(records: Records) -> None:
    seven = "YOLOR 🚀 3aa2656 torch 1.12.1+cu102 CUDA:0 (Tesla T4)\nStarting training for 3 epochs...\n"
    assert records(YoloV5Console, seven.encode())[0].run.trainer == "YOLOv7"
    assert records(YoloV5Console, V6.encode())[0].run.trainer == "YOLOv5"
