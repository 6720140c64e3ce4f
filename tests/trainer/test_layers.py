"""The default choice of layers, found in the model itself."""

from __future__ import annotations

import importlib.util
import os

import pytest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("ultralytics") is None:
    pytest.skip("torch and ultralytics are not installed", allow_module_level=True)

os.environ.update(YOLO_OFFLINE="1", YOLO_AUTOINSTALL="false")

import torch

from yolomon.trainer.layers import choose, unwrap

pytestmark = pytest.mark.real_training

STAGES = {
    "yolov5n.yaml": ["backbone.2.C3", "backbone.4.C3", "backbone.6.C3", "backbone.9.SPPF"],
    "yolov8n.yaml": ["backbone.2.C2f", "backbone.4.C2f", "backbone.6.C2f", "backbone.9.SPPF"],
    "yolo11n.yaml": ["backbone.2.C3k2", "backbone.4.C3k2", "backbone.6.C3k2", "backbone.10.C2PSA"],
    "yolo26n.yaml": ["backbone.2.C3k2", "backbone.4.C3k2", "backbone.6.C3k2", "backbone.10.C2PSA"],
}


@pytest.mark.parametrize("name", STAGES)
def test_stages_neck_outputs_and_head_branches_of_a_yolo(name: str) -> None:
    from ultralytics.nn.tasks import DetectionModel

    try:
        model = DetectionModel(name, verbose=False)
    except FileNotFoundError:
        pytest.skip(f"this Ultralytics has no {name}")
    chosen = choose(model)
    hooked = list(chosen.hooked)
    assert [layer for layer in hooked if layer.startswith("backbone.")] == STAGES[name]
    assert sum(layer.startswith("neck.") for layer in hooked) == 3
    for branch in ("box", "class"):
        assert [f"head.{branch}.{scale}" in hooked for scale in range(3)] == [True] * 3
    assert ("head.box.one2one.0" in hooked) == (name == "yolo26n.yaml")
    assert list(chosen.groups) == ["backbone", "neck", "head"]
    in_groups = sum(p.numel() for part in chosen.groups.values() for m in part for p in m.parameters())
    assert in_groups == sum(p.numel() for p in model.parameters())


def test_another_model_is_looked_at_by_its_parts_inside_its_wrappers() -> None:
    inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    wrapped = torch.nn.DataParallel(torch.nn.Sequential(inner))
    assert list(choose(unwrap(wrapped)).hooked) == ["0.0", "0.2"]
