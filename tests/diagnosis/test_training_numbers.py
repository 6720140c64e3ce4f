"""Losses, metrics, features and silent logs: what the numbers of the training itself say."""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import exp, inf, nan

import pytest

from tests.synthetic.plan import Plan
from tests.synthetic.scenarios import simulate
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import Finding, Item, LogStatus, Roles, RunInfo, Telemetry, TrainRecord

START = 1000.0


def said(items: Iterable[Item], *codes: str) -> list[Finding]:
    return [f for f in diagnose(items) if f.code in codes]


def steps(losses: Iterable[float], norms: Iterable[float] | None = None) -> list[Item]:
    out: list[Item] = [TrainRecord(ts=START, kind="start", rank=0, run=RunInfo(epochs=10), epochs=10)]
    given = iter(norms) if norms is not None else None
    for step, loss in enumerate(losses, 1):
        roles = Roles(loss=loss, losses={"box": loss}, step_seconds=0.5,
                      gradient_norm=next(given) if given is not None else None)  # fmt: skip
        out.append(
            TrainRecord(ts=START + step / 2, kind="batch", rank=0, epoch=1, epochs=10, step=step, roles=roles)
        )
    return out


def noisy(count: int, level: float = 2.0, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [level * exp(rng.gauss(0, 0.08)) for _ in range(count)]


def epochs(rows: Iterable[dict[str, float]], *, patience: int = 100, total: int = 300) -> list[Item]:
    out: list[Item] = [
        TrainRecord(
            ts=START, kind="start", rank=0, epochs=total, run=RunInfo(epochs=total, patience=patience)
        )
    ]
    for epoch, row in enumerate(rows, 1):
        roles = Roles(
            losses={"box": row.get("train", 1.0)},
            validation_losses={"box": row.get("val", 1.0)},
            **{k: v for k, v in row.items() if k not in ("train", "val")},
        )
        out.append(
            TrainRecord(ts=START + 60 * epoch, own_ts=START + 60 * epoch, kind="epoch", rank=0, epoch=epoch,
                        epochs=total, roles=roles)
        )  # fmt: skip
    out.append(Telemetry(ts=out[-1].ts + 1))
    out.append(Telemetry(ts=out[-1].ts + 3))
    return out


def test_healthy_noise_is_no_spike() -> None:
    assert not said(steps(noisy(1500)), "loss-spike", "loss-divergence")


def test_one_spike_is_information_several_are_a_warning() -> None:
    losses = noisy(600)
    losses[300] *= 8
    (finding,) = said(steps(losses), "loss-spike")
    assert finding.severity == "info"
    for place in (400, 430, 460):
        losses[place] *= 8
    assert said(steps(losses), "loss-spike")[-1].severity == "warning"


def test_a_nan_does_not_poison_the_level() -> None:
    """OLMo-core: a NaN inside the window spoilt its statistics for 129 steps."""
    losses = noisy(500)
    losses[300] = nan
    losses[330] *= 20
    assert said(steps(losses), "loss-spike")


def test_a_finite_blow_up_is_critical_at_once() -> None:
    """1e8 and more without NaN counts."""
    losses = [*noisy(300), 2e8, 5e8, 9e8, 3e9]
    (finding,) = said(steps(losses), "loss-divergence")
    assert finding.severity == "critical"
    assert finding.raised_ts <= START + 150 + 3


def test_a_loss_that_does_not_come_back_diverges() -> None:
    losses = noisy(400) + noisy(700, level=4.0, seed=2)
    assert [f.severity for f in said(steps(losses), "loss-divergence")] == ["warning"]


def test_a_loss_far_above_its_best_diverges_within_a_hundred_steps() -> None:
    """Steps of a second each: 500 of them are too long to wait."""
    losses = noisy(400) + noisy(120, level=24.0, seed=2)
    assert [f.severity for f in said(steps(losses), "loss-divergence")] == ["warning"]


def test_a_short_stretch_of_high_losses_is_no_divergence() -> None:
    losses = noisy(400) + noisy(25, level=24.0, seed=2) + noisy(400, seed=3)
    assert not said(steps(losses), "loss-divergence")


def test_validation_that_explodes_alone_is_broken_statistics() -> None:
    """Validation obj_loss from 231 to 4.2e8 with a flat training loss and mAP 2e-4."""
    rows = [{"train": 1.0, "val": v, "map50": 2e-4} for v in (2.0, 1.9, 2.1, 231.0, 9e4, 4.2e8)]
    (finding,) = said(epochs(rows), "loss-divergence")
    assert "Batch norm" in str(finding.cause)
    infinite_first = [{"train": 1.0, "val": v} for v in (inf, 2.0, 1.9, 1.8, 1.8)]
    assert not said(epochs(infinite_first), "loss-divergence")


def test_patience_tells_when_early_stopping_comes() -> None:
    scores = [0.02 * e if e <= 20 else 0.39 + 0.0001 * (e % 7) for e in range(1, 92)]
    rows = [{"map50_95": score, "map50": 0.5, "fitness": score} for score in scores]
    (finding,) = said(epochs(rows, patience=100), "no-progress")
    assert finding.severity == "info"
    assert finding.evidence["best_epoch"] == 20
    assert finding.evidence["stops_at_epoch"] == 120
    assert finding.evidence["seconds_to_stop"] == pytest.approx(29 * 60, rel=0.05)
    assert not said(epochs(rows[:60], patience=100), "no-progress")


def test_map_that_stays_zero_points_at_the_labels() -> None:
    (finding,) = said(epochs([{"map50": 0.0002, "map50_95": 0.0}] * 12), "no-progress")
    assert "labels" in str(finding.cause)


def test_metrics_that_repeat_exactly_are_frozen() -> None:
    """ultralytics#19357: losses are NaN and the metrics do not change any more."""
    moving = [{"map50_95": 0.3 + e / 100, "map50": 0.5 + e / 100, "precision": 0.6} for e in range(5)]
    frozen = moving + [{"map50_95": 0.31234, "map50": 0.51234, "precision": 0.6123}] * 5
    (finding,) = said(epochs(frozen), "no-progress")
    assert "same to the last digit" in str(finding.summary)
    assert not said(epochs(moving), "no-progress")


def test_a_slow_down_names_the_loader_when_the_added_time_is_waiting() -> None:
    """ultralytics#18275: epochs of 10 minutes became 47; the wait for data grew with the step."""
    plan = Plan(name="loader", seed=3, fault="slow", amount=1.5, seconds=260.0)
    run = simulate(plan)
    onset = run.items[0].ts + plan.onset

    def waits(item: Item) -> Item:
        if isinstance(item, TrainRecord) and item.kind == "batch" and item.ts > onset:
            import msgspec

            step = item.roles.step_seconds or 0.0
            roles = msgspec.structs.replace(item.roles, data_seconds=step / 3)
            return msgspec.structs.replace(item, roles=roles)
        return item

    unknown = said(run.items, "slowdown")
    assert [f.severity for f in unknown] == ["warning"]
    assert unknown[0].evidence["ratio"] == pytest.approx(1.5, abs=0.1)
    found = diagnose([waits(item) for item in run.items])
    causes = [str(f.cause) for f in found if f.code == "slowdown"]
    starving = [f for f in found if f.code == "data-starvation"]
    assert starving or "wait for data" in causes[0]


def features(rows: Iterable[dict[str, dict[str, float]]]) -> list[Item]:
    out: list[Item] = [TrainRecord(ts=START, kind="start", rank=0, run=RunInfo(epochs=10, batch_size=2.0))]
    for place, layers in enumerate(rows):
        out.append(
            TrainRecord(ts=START + 10 * place, kind="features", rank=0, step=100 * place, features=layers)
        )
    out.append(Telemetry(ts=out[-1].ts + 1))
    out.append(Telemetry(ts=out[-1].ts + 3))
    return out


def layer(dead: float = 0.02, sparsity: float = 0.1, std: float = 1.0, bad: float = 0.0) -> dict[str, float]:
    return {
        "mean": 0.1,
        "std": std,
        "sparsity": sparsity,
        "absmax": 5 * std,
        "nonfinite": bad,
        "dead_channels": dead,
    }


def test_the_first_dead_layer_in_depth_is_named() -> None:
    healthy = [{"model.4": layer(), "model.9": layer(), "model.22": layer()}] * 10
    dying = [{"model.4": layer(), "model.9": layer(dead=0.71), "model.22": layer(dead=0.95)}] * 4
    (finding,) = said(features(healthy + dying), "dead-features")
    assert finding.evidence["layer"] == "model.9"
    assert "71 %" in str(finding.summary)
    assert "batch norm" in str(finding.remedy)
    assert finding.severity == "warning"


def test_a_layer_that_was_sparse_from_the_start_is_no_finding() -> None:
    """ReLU layers are half zero by nature, and some channels never fire: each layer is its own baseline."""
    rows = [{"model.1": layer(dead=0.55, sparsity=0.92)} for _ in range(20)]
    found = said(features([{"model.1": layer(dead=0.4, sparsity=0.85)}] * 6 + rows), "dead-features")
    assert not found


def test_values_that_spread_or_overflow() -> None:
    healthy = [{"model.4": layer()}] * 8
    (finding,) = said(features(healthy + [{"model.4": layer(std=40.0)}] * 6), "exploding-features")
    assert finding.severity == "warning"
    (finding,) = said(features([*healthy, {"model.4": layer(bad=0.001)}]), "exploding-features")
    assert finding.severity == "critical"


def test_a_gradient_norm_that_stays_a_hundred_times_higher() -> None:
    norms = [5.0] * 300 + [900.0] * 30
    (finding,) = said(steps(noisy(330), norms), "exploding-features")
    assert "gradient norm" in str(finding.summary)
    clipped = [5.0] * 300 + [900.0] + [5.0] * 29
    assert not said(steps(noisy(330), clipped), "exploding-features")


def test_a_log_held_back_in_blocks_is_silent_while_the_gpu_works() -> None:
    run = simulate(Plan(name="buffered", seed=5, fault="silent-log", seconds=420.0, validation_seconds=0.0))
    found = [f for f in diagnose(run.items) if f.severity != "info"]
    assert not [f for f in found if f.code not in ("stall",)]
    (finding,) = said(run.items, "log-silent")
    assert "PYTHONUNBUFFERED" in str(finding.remedy)


def test_a_log_that_is_gone_is_not_called_silent() -> None:
    run = simulate(Plan(name="gone", seed=5, fault="silent-log", seconds=400.0, validation_seconds=0.0))
    last = max(r.ts for r in run.items if isinstance(r, TrainRecord))
    sources = {r.source for r in run.items if isinstance(r, TrainRecord)}
    gone: list[Item] = [LogStatus(ts=last + 1, source=name, state="gone") for name in sources]
    items = sorted([*run.items, *gone], key=lambda item: item.ts)
    assert not said(items, "log-silent")
