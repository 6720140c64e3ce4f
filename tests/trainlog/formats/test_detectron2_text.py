"""Detectron2's log.txt."""

from __future__ import annotations

import math

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.detectron2_text import Detectron2Text

ITERATION = (
    "[08/07 00:36:32] d2.utils.events INFO:  eta: 15:32:55  iter: 14999  total_loss: 0.6601  loss_cls: "
    "0.2847  "
    "loss_box_reg: 0.3831  time: 1.8881  last_time: 1.7  data_time: 0.0777  lr: 0.06  max_mem: 18165M\n"
)
EVALUATION = (
    "[08/07 00:52:11] d2.evaluation.testing INFO: copypaste: Task: bbox\n"
    "[08/07 00:52:11] d2.evaluation.testing INFO: copypaste: AP,AP50,AP75,APs,APm,APl\n"
    "[08/07 00:52:11] d2.evaluation.testing INFO: copypaste: 38.6,57.9,41.2,nan,40.0,50.0\n"
)


def test_an_iteration(records: Records, format_of: FormatOf) -> None:
    assert format_of("log.txt", ITERATION.encode()) == "detectron2-text"
    (batch,) = records(Detectron2Text, ITERATION.encode())
    assert (batch.kind, batch.step, batch.epoch) == ("batch", 15000, None)
    roles = batch.roles
    assert (roles.loss, roles.learning_rate) == (0.6601, 0.06)
    assert roles.losses == {"loss_cls": 0.2847, "loss_box_reg": 0.3831}
    assert (roles.step_seconds, roles.data_seconds) == (1.8881, 0.0777)
    assert roles.memory_peak_bytes == 18165 * 2**20
    assert roles.eta_seconds == 15 * 3600 + 32 * 60 + 55


def test_the_console_has_the_logger_in_the_brackets(records: Records) -> None:
    console = ITERATION.replace("] d2.utils.events INFO:", " d2.utils.events]:").replace(
        "15:32:55", "1 day, 15:32:55"
    )
    (batch,) = records(Detectron2Text, console.encode())
    assert batch.roles.eta_seconds == 86400 + 15 * 3600 + 32 * 60 + 55


def test_the_first_lines_have_no_eta(records: Records) -> None:
    (batch,) = records(
        Detectron2Text, ITERATION.replace("eta: 15:32:55  ", "").replace("0.6601", "nan").encode()
    )
    assert math.isnan(batch.roles.loss)


def test_ap_is_0_to_100_and_nan_where_there_is_no_such_object(records: Records) -> None:
    validation = records(Detectron2Text, (ITERATION + EVALUATION).encode())[-1]
    assert (validation.kind, validation.step) == ("validation", 15000)
    assert (validation.roles.map50_95, validation.roles.map50) == (0.386, 0.579)
    assert "bbox/APs" not in validation.numbers


def test_maskrcnn_benchmark_writes_the_mean_in_parentheses(records: Records, format_of: FormatOf) -> None:
    text = (
        "2019-05-27 10:48:54,461 maskrcnn_benchmark.trainer INFO: eta: 0:17:37  iter: 900  loss: 0.5 (0.75)  "
        "loss_mask: 0.25 (0.5)  time: 0.5 (0.6)  data: 0.125 (0.25)  lr: 0.000025  max mem: 4358\n"
    )
    assert format_of("log.txt", text.encode()) == "detectron2-text"
    (record,) = records(Detectron2Text, text.encode())
    assert (record.roles.loss, record.roles.losses) == (0.5, {"loss_mask": 0.25})
    assert (record.roles.step_seconds, record.roles.data_seconds) == (0.5, 0.125)
    assert record.roles.memory_peak_bytes == 4358 * 2**20
