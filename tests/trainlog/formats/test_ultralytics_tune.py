"""Tune results are trials, not epochs."""

from __future__ import annotations

from tests.trainlog.formats.feeding import FormatOf, RealLog, Records
from yolomon.trainlog.formats.ultralytics_tune import UltralyticsTune

CSV = b"fitness,lr0,lrf,momentum,box\n0.25,0.01,0.01,0.937,7.5\n 0.5,0.011,0.008,0.937,6.5\n"
NDJSON = b'{"iteration": 7, "fitness": 0.31, "hyperparameters": {"lr0": 0.01, "box": null}, "datasets": {}}\n'


def test_a_trial_is_a_message_without_epoch_and_roles(records: Records, format_of: FormatOf) -> None:
    assert format_of("tune_results.csv", CSV) == "ultralytics-tune"
    first, second = records(UltralyticsTune, CSV)
    assert (first.kind, first.epoch, first.roles.loss) == ("message", None, None)
    assert first.text == "trial 1: fitness 0.25"
    assert second.text == "trial 2: fitness 0.5"
    assert second.numbers["lr0"] == 0.011


def test_ndjson_of_8_4(records: Records, format_of: FormatOf) -> None:
    assert format_of("tune_results.ndjson", NDJSON) == "ultralytics-tune"
    assert format_of("tune_results.ndjson", b"\xef\xbb\xbf" + NDJSON) == "ultralytics-tune"
    (trial,) = records(UltralyticsTune, NDJSON)
    assert trial.text == "trial 7: fitness 0.31"
    assert trial.numbers == {"lr0": 0.01, "fitness": 0.31}


def test_real_file(records: Records, format_of: FormatOf, real_log: RealLog) -> None:
    content = real_log("ul82-tune_results.csv")
    assert format_of("tune_results.csv", content) == "ultralytics-tune"
    assert [record.kind for record in records(UltralyticsTune, content)] == ["message", "message"]
