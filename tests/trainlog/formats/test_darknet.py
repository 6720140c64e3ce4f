"""Darknet's output."""

from __future__ import annotations

import math

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.darknet import Darknet

REGION = (
    "Region 16 Avg IOU: -nan, Class: -nan, Obj: -nan, No Obj: 0.000050, .5R: -nan, .75R: -nan,  count: 0\n"
    "v3 (iou loss, Normalizer: (iou: 0.07, cls: 1.00) Region 139 Avg (IOU: 0.000000), count: 70, "
    "total_loss = nan\n"
)
V3 = " 897: 0.044502, 0.056504 avg, 0.000647 rate, 1.184289 seconds, 57408 images\n"
V4 = " 1400: 6.294297, 7.920310 avg loss, 0.001000 rate, 3.200000 seconds, 89600 images, 24.5 hours left\n"


def test_an_iteration(records: Records, format_of: FormatOf) -> None:
    assert format_of("train.log", (REGION + V3).encode()) == "darknet"
    (batch,) = records(Darknet, (REGION + V3).encode())
    assert (batch.kind, batch.step, batch.epoch) == ("batch", 897, None)
    assert (batch.roles.loss, batch.roles.learning_rate) == (0.044502, 0.000647)
    assert batch.numbers["avg_loss"] == 0.056504
    assert batch.roles.step_seconds == 1.184289


def test_v4_knows_the_hours_left(records: Records) -> None:
    (batch,) = records(Darknet, V4.encode())
    assert batch.roles.eta_seconds == 24.5 * 3600
    assert batch.roles.images_per_second == 20  # 64 images an iteration


def test_minus_one_hour_left_is_not_known_yet(records: Records) -> None:
    (batch,) = records(Darknet, V4.replace("24.5 hours", "-1.000000 hours").encode())
    assert batch.roles.eta_seconds is None


def test_the_title_of_the_terminal_before_the_line_is_dropped(records: Records) -> None:
    """Darknet sets the terminal's title, with the loss in it, between the lines."""
    (batch,) = records(Darknet, b"\x1b]2;1400/500200: loss=0.2 hours left=3631.7\x07" + V4.encode())
    assert batch.step == 1400


def test_nan_of_a_layer_without_objects_is_no_loss(records: Records) -> None:
    assert records(Darknet, REGION.encode()) == []


def test_nan_of_the_iteration_is(records: Records) -> None:
    (batch,) = records(Darknet, V3.replace("0.044502, 0.056504", "-nan, -nan").encode())
    assert math.isnan(batch.roles.loss)


def test_map(records: Records) -> None:
    line = " mean average precision (mAP@0.50) = 0.123456, or 12.35 % \n"
    batch, validation = records(Darknet, (V4 + line).encode())
    assert (validation.kind, validation.step, validation.roles.map50) == ("validation", batch.step, 0.123456)


def test_resizing_explains_a_jump_of_the_loss(records: Records) -> None:
    (words,) = records(Darknet, b"Resizing, random_coef = 1.40 \n")
    assert words.kind == "message"


def test_the_last_map_is_repeated_before_each_iteration(records: Records) -> None:
    last = " Last accuracy mAP@0.5 = {} %, best = 12.50 % \n"
    text = last.format("12.50") * 2 + last.format("25.00")
    text += " mean average precision (mAP@0.50) = 0.375012, or 37.50 % \n" + last.format("37.50")
    found = records(Darknet, text.encode())
    assert [record.roles.map50 for record in found] == [0.125, 0.25, 0.375012]


def test_with_several_gpus_a_line_is_of_as_many_iterations(records: Records) -> None:
    line = " {}: 27.5, 27.5 avg loss, 0.001 rate, 8.0 seconds, {} images, -1.000000 hours left\n"
    text = "".join(line.format(step, step * 64) for step in (402, 404, 406))
    assert [record.roles.images for record in records(Darknet, text.encode())] == [64, 64, 128]


def test_colours_around_a_line_do_not_hide_it(format_of: FormatOf) -> None:
    line = "\x1b[32m 1400: 6.25, 7.5 avg loss, 0.001 rate, 3.2 seconds, 89600 images\x1b[0m\n"
    assert format_of("train.log", line.encode()) == "darknet"
