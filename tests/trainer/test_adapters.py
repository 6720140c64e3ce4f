"""The adapters, with the real libraries; each is skipped where its library is not installed."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.streams import events, read_stream

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
pytestmark = pytest.mark.real_training


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed: pip install {package}")


@needs("lightning")
def test_lightning(tmp_path: Path) -> None:
    import lightning.pytorch as pl

    from yolomon.trainer.lightning import YolomonCallback  # type: ignore[attr-defined]

    class Net(pl.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch: Any, _index: int) -> Any:
            loss = self.layer(batch[0]).square().mean()
            self.log("box_loss", loss)
            return loss

        def validation_step(self, batch: Any, _index: int) -> None:
            self.log("mAP50", 0.25)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 4)), batch_size=4)
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        callbacks=[YolomonCallback(features=True)],
    )
    trainer.fit(Net(), loader, loader)
    records = read_stream(tmp_path / "yolomon.jsonl")
    assert records[0]["event"] == "train_start"
    assert records[0]["epochs"] == 2
    assert [r["step"] for r in events(records, "batch")] == [1, 2, 3, 4, 5, 6]
    assert all(r["loss"] > 0 and r["train/box_loss"] > 0 for r in events(records, "batch"))
    assert [r["epoch"] for r in events(records, "val_start")] == [1, 2], "the check before training is none"
    assert [r["metrics"]["mAP50"] for r in events(records, "fit_epoch_end")] == [0.25, 0.25]
    assert events(records, "features")[0]["grad_norm"] > 0
    assert [r["event"] for r in records][-1] == "train_end"


@needs("transformers")
def test_transformers(tmp_path: Path) -> None:
    import transformers

    from yolomon.trainer.transformers import YolomonCallback  # type: ignore[attr-defined]

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": (self.layer(x) - labels).square().mean()}

    rows = [{"x": torch.randn(4), "labels": torch.ones(1)} for _ in range(8)]
    trainer = transformers.Trainer(
        model=Net(),
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=2,
            per_device_train_batch_size=4,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            eval_strategy="epoch",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=rows,
        eval_dataset=rows,
        callbacks=[YolomonCallback(features=True)],
    )
    trainer.train()
    records = read_stream(tmp_path / "yolomon.jsonl")
    batches = events(records, "batch")
    assert [(r["epoch"], r["step"]) for r in batches] == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert all(math.isfinite(r["loss"]) and r["lr/pg0"] >= 0 for r in batches)
    assert [r["epoch"] for r in events(records, "fit_epoch_end")] == [1, 2]
    assert "eval_loss" in events(records, "fit_epoch_end")[0]["metrics"]
    assert events(records, "features")[0]["grad_norm"] > 0
    assert records[-1]["event"] == "train_end"


@needs("mmengine")
def test_mmengine(tmp_path: Path) -> None:
    from mmengine.evaluator import BaseMetric, Evaluator
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    import yolomon.trainer.mmengine  # noqa: F401 - registers the hook

    class Net(BaseModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, mode: str = "tensor") -> Any:
            out = self.layer(x)
            return {"loss_bbox": out.square().mean()} if mode == "loss" else [out]

    class Metric(BaseMetric):  # type: ignore[misc]
        def process(self, data_batch: Any, data_samples: Any) -> None:
            self.results.append(1)

        def compute_metrics(self, results: list[int]) -> dict[str, float]:
            return {"bbox_mAP": 0.3}

    loader = {
        "batch_size": 4,
        "sampler": {"type": "DefaultSampler", "shuffle": False},
        "dataset": [{"x": torch.randn(4)} for _ in range(12)],
        "collate_fn": {"type": "default_collate"},
    }
    runner = Runner(
        model=Net(),
        work_dir=str(tmp_path),
        train_dataloader=dict(loader),
        val_dataloader=dict(loader),
        val_evaluator=Evaluator([Metric()]),
        train_cfg={"by_epoch": True, "max_epochs": 2, "val_interval": 1},
        val_cfg={},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
        custom_hooks=[{"type": "YolomonHook", "features": True}],
        log_level="ERROR",
    )
    runner.train()
    records = read_stream(next(tmp_path.rglob("yolomon.jsonl")))
    assert records[0]["epochs"] == 2
    assert [(r["epoch"], r["step"]) for r in events(records, "batch")] == [
        (1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6),
    ]  # fmt: skip
    assert all(r["loss"] > 0 and r["train/loss_bbox"] > 0 for r in events(records, "batch"))
    assert [r["epoch"] for r in events(records, "fit_epoch_end")] == [1, 2]
    assert "bbox_mAP" in str(events(records, "fit_epoch_end")[0]["metrics"])
    assert events(records, "features")[0]["grad_norm"] > 0
    assert records[-1]["event"] == "train_end"
