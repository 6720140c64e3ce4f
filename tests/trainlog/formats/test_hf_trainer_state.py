"""trainer_state.json, rewritten at each checkpoint."""

from __future__ import annotations

import json
import math
from typing import Any

from tests.trainlog.formats.feeding import FormatOf, Parse, Records
from yolomon.trainlog.formats.base import BrokenLine
from yolomon.trainlog.formats.hf_trainer_state import HfTrainerState

TRAIN = {"epoch": 0.5, "grad_norm": 3.5, "learning_rate": 4.9e-05, "loss": 1.25, "step": 500}
EVAL = {
    "epoch": 1.0,
    "eval_loss": 0.9,
    "eval_map": 0.31,
    "eval_map_50": 0.52,
    "eval_map_large": -1.0,
    "step": 1000,
}


def state(*history: dict[str, Any]) -> bytes:
    return json.dumps(
        {
            "best_metric": None,
            "epoch": 1.0,
            "global_step": 1000,
            "is_world_process_zero": True,
            "log_history": history,
            "num_train_epochs": 10,
            "train_batch_size": 8,
        }
    ).encode()


def test_entries(records: Records, format_of: FormatOf) -> None:
    assert format_of("trainer_state.json", state(TRAIN, EVAL)) == "hf-trainer-state"
    batch, validation = records(HfTrainerState, state(TRAIN, EVAL))
    assert (batch.run.epochs, batch.run.batch_size) == (10, 8)
    assert validation.run is None
    assert (batch.kind, batch.epoch, batch.epochs, batch.step) == ("batch", 1, 10, 500)
    assert (batch.roles.loss, batch.roles.learning_rate) == (1.25, 4.9e-05)
    assert (validation.kind, validation.step) == ("validation", 1000)
    assert validation.roles.map50_95 == 0.31


def test_only_what_is_new_comes_after_a_rewrite() -> None:
    parser = HfTrainerState.parser("log")
    assert len(list(parser.feed(state(TRAIN), 1.0))) == 1
    (new,) = parser.feed(state(TRAIN, EVAL), 2.0)
    assert new.step == 1000
    assert list(parser.feed(state(TRAIN, EVAL), 3.0)) == []


def test_a_resume_from_an_older_checkpoint_reads_what_differs() -> None:
    parser = HfTrainerState.parser("log")
    list(parser.feed(state(TRAIN, EVAL), 1.0))
    (again,) = parser.feed(state(TRAIN, {**EVAL, "eval_map": 0.33}), 2.0)
    assert again.roles.map50_95 == 0.33


def test_bare_nan_is_a_value(records: Records) -> None:
    batch = records(HfTrainerState, state({**TRAIN, "loss": math.nan}))[0]
    assert math.isnan(batch.roles.loss)


def test_a_byte_order_mark(records: Records, format_of: FormatOf) -> None:
    content = b"\xef\xbb\xbf" + state(TRAIN)
    assert format_of("trainer_state.json", content) == "hf-trainer-state"
    assert len(records(HfTrainerState, content)) == 1


def test_half_a_file_is_broken(parse: Parse) -> None:
    (broken,) = parse(HfTrainerState, state(TRAIN)[:60])
    assert isinstance(broken, BrokenLine)
