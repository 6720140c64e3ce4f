"""Settings from the files beside a log."""

from __future__ import annotations

from pathlib import Path

from yolomon.trainlog.settings_files import (
    flat_yaml,
    run_info_of_mm_config,
    run_info_of_settings,
    settings_beside,
)

ARGS = """task: detect
mode: train
model: yolo11n.pt
data: "coco8.yaml"  # quoted
epochs: 3
time: null
patience: 100
batch: -1
imgsz: 640
cache: false
device: null
workers: 8
val: true
close_mosaic: 10
amp: true
optimizer: auto
multi_scale: false
classes:
- 0
- 2
nested:
  epochs: 99
save_dir: runs\\detect\\train2
"""


def test_flat_yaml_reads_the_top_level_only() -> None:
    values = flat_yaml(ARGS)
    assert values["epochs"] == "3"
    assert values["data"] == "coco8.yaml"
    assert "classes" not in values
    assert "nested" not in values


def test_args_of_ultralytics() -> None:
    run = run_info_of_settings(flat_yaml(ARGS))
    assert (run.trainer, run.task, run.model, run.data) == (
        "Ultralytics",
        "detect",
        "yolo11n.pt",
        "coco8.yaml",
    )
    assert (run.epochs, run.batch_size, run.image_size, run.workers) == (3, -1, 640, 8)
    assert (run.patience, run.close_mosaic, run.amp, run.validates) == (100, 10, True, True)
    assert (run.cache, run.device, run.multi_scale) == (None, None, 0.0)
    assert run.save_directory == "runs\\detect\\train2"


def test_opt_of_yolov5_and_v7() -> None:
    run = run_info_of_settings(
        flat_yaml("weights: yolov5s.pt\nepochs: 300\nbatch_size: 64\nimgsz: 640\nnoval: true\n")
    )
    assert (run.model, run.epochs, run.batch_size, run.validates, run.trainer) == (
        "yolov5s.pt",
        300,
        64,
        False,
        None,
    )
    run = run_info_of_settings({"img_size": "[640, 480]", "total_batch_size": "32", "world_size": "2"})
    assert (run.image_size, run.batch_size, run.world_size) == (640, 32, 2)


def test_an_mm_config_is_read_and_never_run() -> None:
    config = """
import os
os.abort()
_base_ = ['../base.py']
max_epochs = 40
img_scale = (640, 512)
model = dict(type='YOLODetector', backbone=dict(depth=0.33))
train_dataloader = dict(batch_size=12, num_workers=4, dataset=dict(type=unknown(1)))
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=max_epochs, val_interval=1)
"""
    run = run_info_of_mm_config(config)
    assert run is not None
    assert (run.trainer, run.model, run.epochs) == ("MMEngine", "YOLODetector", 40)
    assert (run.batch_size, run.workers, run.image_size) == (12, 4, 640)


def test_an_mm_config_of_mmcv() -> None:
    run = run_info_of_mm_config(
        "model = dict(type='FCOS')\ndata = dict(samples_per_gpu=2, workers_per_gpu=2)\nrunner = "
        "dict(type='EpochBasedRunner', "
        "max_epochs=12)\n"
    )
    assert run is not None
    assert (run.trainer, run.epochs, run.batch_size, run.workers) == ("mmcv", 12, 2, 2)


def test_a_script_beside_the_log_is_no_config() -> None:
    assert run_info_of_mm_config("max_epochs = 40\ndata = dict(samples_per_gpu=2)\nmodel = load()\n") is None


def test_what_is_no_python_is_no_config() -> None:
    assert run_info_of_mm_config("model = dict(") is None


def test_the_file_beside_the_log_or_above_it(tmp_path: Path) -> None:
    log = tmp_path / "vis_data" / "scalars.json"
    log.parent.mkdir()
    assert settings_beside(log) is None
    (tmp_path / "yolov8_s.py").write_text("_base_ = 'a.py'\ntrain_cfg = dict(max_epochs=40)\n")
    run = settings_beside(log)
    assert run is not None
    assert run.epochs == 40
    (log.parent / "args.yaml").write_text("epochs: 7\n")
    run = settings_beside(log)
    assert run is not None
    assert run.epochs == 7


def test_escape_sequences_do_not_get_through(tmp_path: Path) -> None:
    (tmp_path / "args.yaml").write_bytes(b"model: \x1b[31mred\x1b[0m.pt\nepochs: 2\n")
    run = settings_beside(tmp_path / "results.csv")
    assert run is not None
    assert run.model == "red.pt"


def test_real_args(shared: Path) -> None:
    run = run_info_of_settings(flat_yaml((shared / "logs" / "ul83-args.yaml").read_text()))
    assert (run.model, run.epochs, run.batch_size, run.workers) == ("yolo11n.pt", 3, 16, 8)
