"""Real trainings of a small YOLO on the CPU, watched by attach and by `yolomon run`.

They need torch and ultralytics in the environment that runs pytest, and are skipped where those are missing:

    python3 -m venv /tmp/training
    /tmp/training/bin/pip install torch==2.14.1 torchvision==0.29.1 ultralytics cloudpickle \\
        pytest pytest-asyncio msgspec
    /tmp/training/bin/python -m pytest tests/trainer

An older Ultralytics (`pip install --no-deps --target FOLDER ultralytics==8.4.139`) goes first on PYTHONPATH.
"""

from __future__ import annotations

import csv
import importlib.util
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("ultralytics") is None:
    pytest.skip("torch and ultralytics are not installed: see the text of this file", allow_module_level=True)

os.environ.update(YOLO_OFFLINE="1", YOLO_AUTOINSTALL="false", OMP_NUM_THREADS="2", MPLBACKEND="agg")
os.environ.setdefault(
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"
)  # Ultralytics before 8.3.x loads its own checkpoints

import yolomon
from tests.trainer.drawn import draw_classes, draw_dataset
from tests.trainer.streams import events, read_stream

pytestmark = pytest.mark.real_training
REPOSITORY = Path(__file__).resolve().parents[2]
RUN = "import sys; from yolomon.trainer.launch import run; sys.exit(run(sys.argv[1:], features=True))"
Callback = Callable[[Any], None]


def version() -> tuple[int, ...]:
    import ultralytics

    return tuple(int(part) for part in ultralytics.__version__.split(".")[:3])


def model_name() -> str:
    return "yolo11n" if version() >= (8, 3, 0) else "yolov8n"


def settings(data: Path, folder: Path, **more: object) -> dict[str, Any]:
    return {
        "data": str(data),
        "imgsz": 160,
        "batch": 8,
        "epochs": 2,
        "device": "cpu",
        "amp": False,
        "plots": False,
        "workers": 0,
        "verbose": False,
        "project": str(folder),
        "name": "run",
        "exist_ok": True,
        **more,
    }


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_dataset(tmp_path_factory.mktemp("drawn"))


def train(
    data: Path,
    folder: Path,
    *before: tuple[str, Callback],
    attach: dict[str, Any] | None = None,
    **more: object,
) -> list[dict[str, Any]]:
    """Train in this process, with other callbacks registered first, and hand back the stream."""
    from ultralytics import YOLO

    model = YOLO(f"{model_name()}.yaml")
    for event, callback in before:
        model.add_callback(event, callback)
    yolomon.attach(model, **(attach or {}))
    model.train(**settings(data, folder, **more))
    return read_stream(folder / "run" / "yolomon.jsonl")


def results(folder: Path) -> list[dict[str, str]]:
    with open(folder / "run" / "results.csv", newline="") as file:
        return [{k.strip(): v.strip() for k, v in row.items()} for row in csv.DictReader(file)]


def test_the_stream_says_what_results_csv_says_and_more(data: Path, tmp_path: Path) -> None:
    records = train(data, tmp_path, attach={"features": True, "every": 2}, epochs=3, nbs=8)
    order = [record["event"] for record in records if record["event"] not in {"batch", "features"}]
    epoch = ["epoch_start", "epoch_end", "val_start", "val_end", "model_save", "fit_epoch_end"]
    final = order[1 + 3 * len(epoch) : -1]
    assert order[: 1 + 3 * len(epoch)] == ["train_start", *epoch * 3]
    assert order[-1] == "train_end"
    assert [name for name in final if not name.startswith("val_")] == ["fit_epoch_end"]

    start = records[0]
    assert (start["epochs"], start["batch_size"], start["batches"], start["imgsz"]) == (3, 8, 3, 160)
    assert start["model"] == f"{model_name()}.yaml"
    assert start["world_size"] == 1
    assert start["trainer"].startswith("Ultralytics 8.")

    batches = events(records, "batch")
    assert [record["step"] for record in batches] == list(range(1, 10))
    assert [(record["epoch"], record["batch"]) for record in batches] == [
        (e, b) for e in (1, 2, 3) for b in (1, 2, 3)
    ]
    for record in batches:
        assert 0 <= record["data_time"] < record["step_time"]
        assert record["images"] == 8
        assert record["imgsz"] == 160
        assert math.isfinite(record["train/box_loss"])

    rows = results(tmp_path)
    for row, done, trained in zip(
        rows, events(records, "fit_epoch_end"), events(records, "epoch_end"), strict=False
    ):
        first = 0 if version() < (8, 0, 150) else 1  # early versions counted from 0 in results.csv
        assert int(row["epoch"]) == done["epoch"] - 1 + first
        for name, value in done["metrics"].items():
            assert float(row[name]) == pytest.approx(value, abs=2e-5, rel=1e-4)
        assert float(row["train/box_loss"]) == pytest.approx(trained["train/box_loss"], rel=1e-4)
        of_epoch = [r["train/box_loss"] for r in batches if r["epoch"] == done["epoch"]]
        assert sum(of_epoch) / 3 == pytest.approx(trained["train/box_loss"], rel=1e-3)
        assert trained["images_per_second"] == pytest.approx(24 / trained["train_seconds"], rel=1e-3)
    last = events(records, "fit_epoch_end")[-1]
    assert last["final"] is True
    assert len(rows) == 3

    looks = events(records, "features")
    assert [record["step"] for record in looks] == [1, 3, 5, 7, 9]
    layers = looks[0]["layers"]
    for part in ("backbone.", "neck.", "head.box.", "head.class."):
        assert sum(name.startswith(part) for name in layers) >= 3, layers.keys()
    assert all(0 <= row["dead_channels"] <= 1 and row["std"] >= 0 for row in layers.values())
    assert set(looks[0]["grad_norms"]) == {"backbone", "neck", "head"}
    assert looks[0]["grad_norm"] > 0


def test_nan_is_written_and_the_replayed_epoch_is_told(data: Path, tmp_path: Path) -> None:
    import torch

    poisoned = []

    def poison(trainer: Any) -> None:
        if trainer.epoch == 1 and not poisoned:
            poisoned.append(True)
            with torch.no_grad():
                next(trainer.model.parameters()).fill_(math.nan)

    records = train(data, tmp_path, ("on_train_batch_start", poison), attach={"features": True, "every": 1})
    losses = [(r["epoch"], r["train/box_loss"]) for r in events(records, "batch")]
    assert all(math.isfinite(loss) for epoch, loss in losses[:3])
    assert [math.isnan(loss) for epoch, loss in losses[3:6]] == [True] * 3
    sick = [
        r
        for r in events(records, "features")
        if r["layers"]["backbone.2." + _stage(records)]["nonfinite"] > 0
    ]
    assert sick[0]["step"] == 4
    if version() < (8, 3, 215):
        return  # no recovery yet
    told = events(records, "nan_recovery")
    assert [(r["epoch"], r["attempt"]) for r in told] == [(2, 1)]
    assert "NaN" in told[0]["text"]
    assert [r["epoch"] for r in events(records, "epoch_start")] == [1, 2, 2]
    assert [r["epoch"] for r in events(records, "fit_epoch_end")] == [1, 2, 3]
    assert all(math.isfinite(loss) for _, loss in losses[6:])
    assert len(results(tmp_path)) == 2


def _stage(records: list[dict[str, Any]]) -> str:
    name = next(name for name in events(records, "features")[0]["layers"] if name.startswith("backbone.2."))
    return name.split(".")[2]


def test_early_stopping_is_told_with_its_reason(data: Path, tmp_path: Path) -> None:
    if version() < (8, 1, 0):
        pytest.skip("the trainer saves no best.pt for a fitness that was put in")

    def worse(trainer: Any) -> None:
        """Let fitness fall from epoch to epoch, as the trainer's stopper sees it."""
        validate = type(trainer).validate

        def validated() -> tuple[Any, float]:
            return validate(trainer)[0], 1.0 / (1 + trainer.epoch)

        trainer.validate = validated

    records = train(data, tmp_path, ("on_train_start", worse), epochs=9, patience=1)
    stopping = events(records, "stopping")
    assert len(stopping) == 1
    assert stopping[0]["reason"] == "early stopping"
    assert stopping[0]["epoch"] == len(results(tmp_path)) < 9
    assert "best was epoch 1" in stopping[0]["text"]
    assert records[-1]["event"] == "train_end"


def test_running_out_of_memory_is_told_with_both_batch_sizes(data: Path, tmp_path: Path) -> None:
    if version() < (8, 4, 20):
        pytest.skip("Ultralytics halves the batch size since 8.4.11-20")
    failed = []

    def run_out(trainer: Any) -> None:
        preprocess = trainer.preprocess_batch

        def raising(batch: Any) -> Any:
            if not failed:
                failed.append(True)
                raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return preprocess(batch)

        trainer.preprocess_batch = raising

    records = train(data, tmp_path, ("on_pretrain_routine_end", run_out), epochs=1)
    told = events(records, "oom_retry")
    assert [(r["previous_batch_size"], r["batch_size"]) for r in told] == [(8, 4)]
    assert {r["batches"] for r in events(records, "batch")} == {6}
    assert {r["images"] for r in events(records, "batch")} == {4}


def test_an_attribute_that_went_away_is_one_warning_and_training_goes_on(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def rename(trainer: Any) -> None:
        trainer.losses_of_the_future = trainer.__dict__.pop("loss_items")

    def give_back(trainer: Any) -> None:
        trainer.loss_items = trainer.losses_of_the_future  # Ultralytics' own validator reads it

    callbacks = ("on_train_batch_end", rename), ("on_train_epoch_end", give_back)
    with caplog.at_level(logging.WARNING, logger="yolomon"):
        records = train(data, tmp_path, *callbacks, epochs=1)
    assert [r.name for r in caplog.records].count("yolomon") == 1
    assert "loss_items" in events(records, "warning")[0]["text"]
    assert len(events(records, "batch")) == 3
    assert records[-1]["event"] == "train_end"


def test_a_place_that_cannot_be_written_does_not_stop_training(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from ultralytics import YOLO

    (tmp_path / "file").write_text("")
    model = YOLO(f"{model_name()}.yaml")
    yolomon.attach(model, path=tmp_path / "file" / "yolomon.jsonl")
    with caplog.at_level(logging.WARNING, logger="yolomon"):
        model.train(**settings(data, tmp_path, epochs=1))
    assert len(results(tmp_path)) == 1
    assert [r.name for r in caplog.records].count("yolomon") == 1


def test_attaching_twice_writes_once(data: Path, tmp_path: Path) -> None:
    from ultralytics import YOLO

    model = YOLO(f"{model_name()}.yaml")
    assert yolomon.attach(model) is yolomon.attach(model)
    model.train(**settings(data, tmp_path, epochs=1))
    assert len(events(read_stream(tmp_path / "run" / "yolomon.jsonl"), "batch")) == 3


def test_something_that_takes_no_callbacks_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match="JsonlLogger"):
        yolomon.attach(object())


@pytest.mark.parametrize("task", ["segment", "pose", "obb", "classify"])
def test_other_tasks(task: str, tmp_path: Path) -> None:
    from ultralytics import YOLO

    suffix = {"segment": "-seg", "pose": "-pose", "obb": "-obb", "classify": "-cls"}[task]
    if version() < (8, 1, 0) and task == "obb":
        pytest.skip("oriented boxes came with 8.1")
    if version() < (8, 0, 150) and task == "classify":
        pytest.skip("this version needs a Pillow before 10")
    if task == "classify":
        data, size = draw_classes(tmp_path / "data"), 64
    else:
        data, size = draw_dataset(tmp_path / "data", task=task, train=8, val=4), 160
    model = YOLO(f"{model_name()}{suffix}.yaml")
    yolomon.attach(model, features=True)
    model.train(**settings(data, tmp_path, epochs=1, imgsz=size))
    records = read_stream(tmp_path / "run" / "yolomon.jsonl")
    assert not events(records, "warning")
    loss = {"segment": "seg_loss", "pose": "pose_loss", "obb": "box_loss", "classify": "loss"}[task]
    assert math.isfinite(events(records, "batch")[0][f"train/{loss}"])
    assert math.isfinite(events(records, "epoch_end")[0][f"train/{loss}"])
    assert events(records, "fit_epoch_end")[0]["metrics"]
    assert events(records, "features")[0]["layers"] or events(records, "features")[0]["grad_norm"]


# ------------------------------------------------------------ in processes of their own


def test_yolomon_run_needs_no_code_and_keeps_another_sitecustomize(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import os; open(os.environ['SEEN'], 'a').write('seen\\n')\n")
    command = [f"{key}={value}" for key, value in settings(data, tmp_path, epochs=1).items()]
    yolo = "from ultralytics.cfg import entrypoint; entrypoint()"
    if version() < (8, 0, 137):
        yolo = "from ultralytics.yolo.cfg import entrypoint; entrypoint()"
    path = os.pathsep.join([str(other), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n" + RUN,
         sys.executable, "-c", yolo, "detect", "train", f"model={model_name()}.yaml", *command],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path, "SEEN": str(tmp_path / "seen")},
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    records = read_stream(tmp_path / "run" / "yolomon.jsonl")
    assert len(events(records, "batch")) == 3
    assert events(records, "features")[0]["layers"]
    assert records[-1]["event"] == "train_end"
    assert (tmp_path / "seen").read_text().startswith("seen\n")


SCRIPT = """
import sys
from ultralytics import YOLO
import yolomon
model = YOLO(sys.argv[1])
yolomon.attach(model)
model.train(**eval(sys.argv[2]))
"""


def start(
    model: str, arguments: dict[str, Any], folder: Path, script: str = SCRIPT
) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    with open(folder / "output.txt", "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", script, model, repr(arguments)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


FAILING = """
def fail(trainer):
    raise ValueError("labels went missing")

model.add_callback("on_train_epoch_end", fail)
"""


def test_an_exception_in_training_is_named_in_the_stream(data: Path, tmp_path: Path) -> None:
    """Newer versions call teardown in a `finally`; in older ones it is told when the process exits."""
    script = SCRIPT.replace("model.train", FAILING + "model.train")
    process = start(f"{model_name()}.yaml", settings(data, tmp_path), tmp_path, script)
    assert process.wait(120) == 1
    records = read_stream(tmp_path / "run" / "yolomon.jsonl")
    assert records[-1]["event"] == "aborted"
    assert records[-1]["text"] == "ValueError: labels went missing"
    assert not events(records, "train_end")


def test_killed_and_resumed(data: Path, tmp_path: Path) -> None:
    process = start(f"{model_name()}.yaml", settings(data, tmp_path, epochs=4, save_period=1), tmp_path)
    stream = tmp_path / "run" / "yolomon.jsonl"
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        text = stream.read_text() if stream.exists() else ""
        if '"event": "batch", "epoch": 3' in text:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL, (tmp_path / "output.txt").read_text()[-2000:]
    records = read_stream(stream)
    assert not events(records, "train_end", "aborted")

    resumed = start(str(tmp_path / "run" / "weights" / "last.pt"), {"resume": True}, tmp_path)
    assert resumed.wait(180) == 0, (tmp_path / "output.txt").read_text()[-2000:]
    records = read_stream(stream)
    starts = events(records, "train_start")
    assert [(r["start_epoch"], r["resume"]) for r in starts] == [(1, False), (3, True)]
    assert starts[0]["pid"] != starts[1]["pid"]
    after = records[records.index(starts[1]) :]
    assert [r["epoch"] for r in events(after, "epoch_start")] == [3, 4]
    assert [r["step"] for r in events(after, "batch")] == [7, 8, 9, 10, 11, 12]
    assert records[-1]["event"] == "train_end"


def test_callbacks_reach_the_process_of_a_rank(data: Path, tmp_path: Path) -> None:
    """Run the file that Ultralytics hands to torchrun: callbacks, or before 8.4.140 a trainer's name."""
    if version() < (8, 0, 137):
        pytest.skip("this version runs the script itself in each rank")
    from ultralytics.utils.dist import generate_ddp_file

    from yolomon.trainer.ultralytics import Attachment, trainer_class

    arguments = settings(data, tmp_path, epochs=1, model=f"{model_name()}.yaml")
    if version() >= (8, 4, 140):
        from ultralytics.models.yolo.detect import DetectionTrainer

        trainer = DetectionTrainer(overrides=arguments)
        yolomon.attach(trainer, features=True)
    else:
        trainer = trainer_class("detect", features=True)(overrides=arguments)
    assert any(
        isinstance(getattr(c, "__self__", None), Attachment) for c in trainer.callbacks["on_train_start"]
    )
    file = generate_ddp_file(trainer)
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [sys.executable, file],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=180,
        )
    finally:
        Path(file).unlink()
        Path(file).with_suffix(".pt").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr[-2000:]
    records = read_stream(tmp_path / "run" / "yolomon.jsonl")
    assert len(events(records, "batch")) == 3
    assert events(records, "features")[0]["layers"]
    assert records[0]["pid"] != os.getpid()
