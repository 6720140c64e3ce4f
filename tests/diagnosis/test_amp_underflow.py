"""amp-underflow: the loss scale falls to nothing, or gradients are zero or not finite for many steps."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import msgspec
import pytest

from tests.diagnosis.scene import Scene
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import Roles, TrainRecord


def said(
    norm: Callable[[int], float] | None = None,
    scale: Callable[[int], float] | None = None,
    name: str = "amp_scale",
) -> list[str]:
    """What is told of a run of 200 steps with these gradient norms and loss scales."""
    scene = Scene(1).start()
    scene.batches = 10**6
    items = []
    for item in scene.train(40).items:
        if isinstance(item, TrainRecord) and item.kind == "batch" and item.step is not None:
            roles: Roles = item.roles
            if norm is not None:
                roles = msgspec.structs.replace(roles, gradient_norm=norm(item.step))
            numbers = {} if scale is None else {name: scale(item.step)}
            item = msgspec.structs.replace(item, roles=roles, numbers=numbers)
        items.append(item)
    return [str(f.summary) for f in diagnose(items) if f.code == "amp-underflow"]


@pytest.mark.parametrize(
    "name", ["amp_scale", "loss_scale", "train/loss_scale", "scaler.scale", "grad_scale"]
)
def test_a_scale_that_falls_on_and_on(name: str) -> None:
    assert len(said(scale=lambda step: 65536.0 * 0.5 ** max(step - 100, 0), name=name)) == 1


@pytest.mark.parametrize(
    "scale",
    [
        lambda step: 65536.0 * 0.5 ** min(step, 8),  # the search at the start
        lambda step: 65536.0 * 0.5 ** (step // 60),  # a skip now and then
        lambda _: 1.0,  # bfloat16
        lambda _: 0.25,  # a fixed one that is small by design
        lambda step: max(2.0**16 * 0.5 ** max(step - 100, 0), 64.0),  # it finds its level
    ],
)
def test_scales_of_healthy_runs(scale: Callable[[int], float]) -> None:
    assert said(scale=scale) == []


@pytest.mark.parametrize("value", [0.0, nan, inf])
def test_gradients_that_are_lost_for_many_steps(value: float) -> None:
    assert len(said(norm=lambda step: 3.0 if step < 120 else value)) == 1


@pytest.mark.parametrize(
    "norm",
    [
        lambda step: nan if step in (3, 4, 80) else 3.0,  # skipped steps
        lambda step: 3.0 if step % 32 == 0 else 0.0,  # accumulation: zero between updates
        lambda step: 1e-5 if step < 100 else 0.0,  # rounded
        lambda _: 0.0,  # never told
    ],
)
def test_gradient_norms_of_healthy_runs(norm: Callable[[int], float]) -> None:
    assert said(norm=norm) == []


def test_a_number_whose_name_only_sounds_alike_is_no_loss_scale() -> None:
    assert said(scale=lambda step: 0.9 * 0.5 ** max(step - 50, 0), name="multi_scale_size") == []
    assert said(scale=lambda step: 900 * 0.5 ** max(step - 50, 0), name="timescale") == []
