"""A training in one tmux pane, the dashboard in another: what it shows is what the training says."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("ultralytics") is None:
    pytest.skip("torch and ultralytics are not installed: see test_real_training.py", allow_module_level=True)
if importlib.util.find_spec("textual") is None:
    pytest.skip("yolomon's screen is not installed: pip install -e '.[test]'", allow_module_level=True)

from tests.terminal.conftest import surroundings, tmux  # noqa: F401 - fixtures
from tests.terminal.tmux import START_SECONDS, YOLOMON, Pane, Tmux
from tests.trainer.drawn import draw_dataset
from tests.trainer.streams import events, read_stream

pytestmark = [pytest.mark.real_training, pytest.mark.tmux]
EPOCHS = 3
BATCHES = 40
TRAINING_SECONDS = 150.0
YOLO = "from ultralytics.cfg import entrypoint; entrypoint()"
QUIET = {"YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "false", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


@pytest.fixture
def panes(tmux: Tmux, surroundings: dict[str, str], tmp_path: Path) -> Iterator[tuple[Pane, Pane]]:  # noqa: F811
    """`yolomon run yolo detect train ...` and, in the same folder, `yolomon` that finds its log by itself."""
    data = draw_dataset(tmp_path / "drawn", train=2 * BATCHES)
    train = [
        *YOLOMON, "run", "--features", sys.executable, "-c", YOLO, "detect", "train", "model=yolo11n.yaml",
        f"data={data}", f"epochs={EPOCHS}", "imgsz=96", "batch=2", "nbs=2", "device=cpu", "amp=False",
        "optimizer=AdamW", "lr0=0.002", "warmup_epochs=0", "mosaic=0", "scale=0", "translate=0",
        "plots=False", "workers=0", "verbose=False", f"project={tmp_path / 'runs'}", "name=mine",
    ]  # fmt: skip
    dashboard = tmux.open(list(YOLOMON), folder=tmp_path, environment=surroundings)
    training = tmux.open(train, folder=tmp_path, environment={**surroundings, **QUIET})
    yield training, dashboard
    training.close()
    dashboard.close()


def test_epoch_losses_and_map_are_those_of_the_training(panes: tuple[Pane, Pane], tmp_path: Path) -> None:
    training, dashboard = panes
    dashboard.until("No training log yet", START_SECONDS)
    seen = dashboard.until(
        lambda text: re.search(rf"epoch \d/{EPOCHS}", text) and re.search(rf"batch \d+/{BATCHES}", text),
        TRAINING_SECONDS,
    )
    assert "yolo11n" in seen.splitlines()[0]
    assert training.until_left(TRAINING_SECONDS) == 0, training.screen()

    folder = tmp_path / "runs" / "mine"
    records = read_stream(folder / "yolomon.jsonl")
    with open(folder / "results.csv", newline="") as file:
        row = {k.strip(): float(v) for k, v in list(csv.DictReader(file))[-1].items()}
    assert row["epoch"] == EPOCHS
    assert row["metrics/mAP50-95(B)"] > 0, "a training that learnt nothing shows little"
    final = events(records, "fit_epoch_end")[-1]["metrics"]  # best.pt's, validated once more at the end
    batch = events(records, "batch")[-1]

    shown = dashboard.until(lambda text: f"epoch {EPOCHS}/{EPOCHS}" in text and "ended" in text)
    told = _number(_trainer_line(shown), "mAP50-95")
    told_by_training = (row["metrics/mAP50-95(B)"], final["metrics/mAP50-95(B)"])
    assert any(told == pytest.approx(value, rel=0.02) for value in told_by_training)
    for short in ("box", "cls", "dfl"):
        told = _number(_trainer_line(shown), short)
        assert told == pytest.approx(batch[f"train/{short}_loss"], rel=0.01), short
    dashboard.press("5")
    dashboard.until(lambda text: "backbone" in text and "head" in text)
    dashboard.press("q")
    assert dashboard.until_left() == 0


def _trainer_line(shown: str) -> str:
    """The line of the last batch's numbers."""
    return next(line for line in shown.splitlines() if re.search(r"\bloss \d", line))


def _number(line: str, name: str) -> float:
    found = re.search(rf"(?<!\S){re.escape(name)} (\d[\d.e-]*)", line)
    assert found, f"{name} is not in: {line}"
    return float(found[1])
