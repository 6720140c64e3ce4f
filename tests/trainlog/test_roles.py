"""What the names of numbers mean, for any trainer."""

from __future__ import annotations

from math import inf, isnan, nan

import pytest

from yolomon.trainlog.roles import GIB, MIB, RoleResolver, loss_is_broken, meaning


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("loss", "loss"),
        ("total_loss", "loss"),
        ("train_loss", "loss"),
        ("train/box_loss", "part"),
        ("loss_rpn_cls", "part"),
        ("val/box_loss", "validation_part"),
        ("test_loss", "validation_part"),
        ("loss_scale", ""),
        ("lr", "learning_rate"),
        ("train_lr", "learning_rate"),
        ("lr/pg0", "learning_rate"),
        ("x/lr0", "learning_rate"),
        ("metrics/mAP50(B)", "map50"),
        ("metrics/mAP50-95(B)", "map50_95"),
        ("metrics/mAP_0.5", "map50"),
        ("metrics/mAP_0.5:0.95", "map50_95"),
        ("coco/bbox_mAP", "map50_95"),
        ("coco/bbox_mAP_50", "map50"),
        ("coco/bbox_mAP_75", ""),
        ("bbox_mAP_s", ""),
        ("bbox/AP", "map50_95"),
        ("bbox/AP50", "map50"),
        ("bbox/AP-person", ""),
        ("val/AP/cat", ""),
        ("eval_map", "map50_95"),
        ("val/mAP_50_95", "map50_95"),
        ("imgs_per_sec", "images_per_second"),
        ("ips", "images_per_second"),
        ("iter_time", "step_seconds"),
        ("data_time", "data_seconds"),
        ("grad_norm", "gradient_norm"),
        ("epoch_time", "epoch_seconds"),
        ("batch/learning_rate", "learning_rate"),
        ("batch/total_loss", "loss"),
        ("epoch/val_loss", "validation_part"),
        ("Loss/train", "loss"),
        ("learning_rate/group0", "learning_rate"),
        ("mAP@.5:.95", "map50_95"),
        ("AP@[ IoU=0.50:0.95 ]", "map50_95"),
        ("coco/AP .5", "map50"),
        ("Mean Average Precision", "map50_95"),
        ("samples/s", "images_per_second"),
        ("train/step_time_s", "step_seconds"),
        ("peak_gpu_mem_gb", "memory_peak_bytes"),
        ("heatmap", ""),
        ("capacity", ""),
        ("snapshot", ""),
    ],
)
def test_a_name_has_its_role(name: str, role: str) -> None:
    assert meaning(name).role == role


def test_a_total_is_taken_where_there_is_one_and_summed_where_not() -> None:
    resolver = RoleResolver()
    assert resolver.roles({"loss": 3.0, "loss_cls": 1.0, "loss_bbox": 5.0}).loss == 3.0
    assert resolver.roles({"loss_cls": 1.0, "loss_bbox": 5.0}).loss == 6.0


def test_a_box_metric_wins_over_a_mask_metric_and_the_model_over_its_average() -> None:
    resolver = RoleResolver()
    assert resolver.roles({"metrics/mAP50-95(M)": 0.1, "metrics/mAP50-95(B)": 0.2}).map50_95 == 0.2
    assert resolver.roles({"val/ema_mAP_50_95": 0.1, "val/mAP_50_95": 0.2}).map50_95 == 0.2


def test_the_map_of_all_classes_on_validation_images_wins() -> None:
    numbers = {
        "train/mAP50": 0.9,
        "cat/AP50": 0.8,
        "test/mAP50": 0.7,
        "val/mAP50": 0.5,
        "val/mAP50-95": 0.3,
        "val/dog/mAP50-95": 0.2,
    }
    roles = RoleResolver().roles(numbers)
    assert (roles.map50, roles.map50_95) == (0.5, 0.3)
    assert RoleResolver().roles({"nuts_val/bbox/AP50": 0.6}).map50 == 0.6


def test_map_of_0_to_100_becomes_0_to_1_and_stays_so() -> None:
    resolver = RoleResolver()
    assert resolver.roles({"bbox/AP": 38.5}).map50_95 == pytest.approx(0.385)
    assert resolver.roles({"bbox/AP": 0.9}).map50_95 == pytest.approx(0.009)


@pytest.mark.parametrize("absent", [-1.0, nan])
def test_a_map_of_absent_objects_is_no_measurement(absent: float) -> None:
    assert RoleResolver().roles({"eval_map": absent}).map50_95 is None


def test_zeros_in_all_metrics_and_validation_losses_are_not_measured() -> None:
    zeros = {"train/box_loss": 1.0, "metrics/mAP50(B)": 0.0, "val/box_loss": 0.0, "metrics/recall(B)": 0.0}
    roles = RoleResolver().roles(zeros)
    assert (roles.map50, roles.recall, roles.validation_losses, roles.loss) == (None, None, {}, 1.0)


def test_a_real_zero_beside_a_validation_loss_is_a_value() -> None:
    assert RoleResolver().roles({"metrics/mAP50(B)": 0.0, "val/box_loss": 2.0}).map50 == 0.0


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("memory_mb", 2000.0, 2000 * MIB),
        ("gpu_mem_gb", 3.5, 3.5 * GIB),
        ("memory", 3711.0, 3711 * MIB),
        ("mem_allocated", 1538858496.0, 1538858496.0),
        ("memory", 11.5, 11.5 * GIB),
    ],
)
def test_memory_is_bytes_whatever_its_unit(name: str, value: float, expected: float) -> None:
    roles = RoleResolver().roles({name: value})
    assert expected in (roles.memory_allocated_bytes, roles.memory_reserved_bytes)


def test_milliseconds_become_seconds() -> None:
    assert RoleResolver().roles({"step_time_ms": 250.0}).step_seconds == 0.25


def test_nan_is_a_value_and_a_missing_number_is_absent() -> None:
    roles = RoleResolver().roles({"train/box_loss": nan})
    assert roles.loss is not None
    assert isnan(roles.loss)
    assert roles.learning_rate is None


def test_a_loss_that_is_not_finite_is_broken_but_a_metric_is_not() -> None:
    resolver = RoleResolver()
    assert loss_is_broken(resolver.roles({"loss": inf}))
    assert loss_is_broken(resolver.roles({"loss": 1.0, "loss_cls": nan}))
    assert not loss_is_broken(resolver.roles({"loss": 1.0, "grad_norm": nan, "bbox/AP": nan}))
