"""Several logs of one run, and several runs in one log."""

from __future__ import annotations

from yolomon.model import RecordKind, Roles, TrainRecord
from yolomon.trainlog.epoch_length import EpochLength
from yolomon.trainlog.run import RunMerger
from yolomon.trainlog.segments import SegmentTracker


def record(kind: RecordKind, source: str = "a", ts: float = 0.0, **more: object) -> TrainRecord:
    return TrainRecord(ts=ts, kind=kind, source=source, **more)  # type: ignore[arg-type]


def segments(*records: TrainRecord, elapsed: str | None = None) -> list[int]:
    tracker = SegmentTracker(elapsed)
    return [tracker.place(entry) for entry in records]


def test_an_epoch_that_two_logs_tell_counts_once_and_the_second_adds_what_is_new() -> None:
    merger = RunMerger()
    ours = record("epoch", "x.jsonl", epoch=3, roles=Roles(map50=0.5))
    table = record("epoch", "results.csv", epoch=3, roles=Roles(map50=0.50001, learning_rate=0.01))
    assert merger.accept(ours, "yolomon-jsonl") == ours
    added = merger.accept(table, "ultralytics-csv")
    assert added is not None
    assert added.roles == Roles(learning_rate=0.01)
    assert merger.accept(table, "ultralytics-csv") is None


def test_batches_of_a_rank_come_from_the_more_exact_log() -> None:
    merger = RunMerger()
    assert merger.accept(record("batch", "console.log", step=1), "ultralytics-console") is not None
    assert merger.accept(record("batch", "x.jsonl", step=1), "yolomon-jsonl") is not None
    assert merger.accept(record("batch", "console.log", step=2), "ultralytics-console") is None


def test_each_rank_has_its_own_batches() -> None:
    merger = RunMerger()
    assert merger.accept(record("batch", "x.jsonl", rank=0), "yolomon-jsonl") is not None
    assert merger.accept(record("batch", "x.rank1.jsonl", rank=1), "yolomon-jsonl") is not None


def test_another_log_takes_over_when_the_first_falls_silent() -> None:
    merger = RunMerger()
    merger.accept(record("batch", "x.jsonl", ts=0.0), "yolomon-jsonl")
    assert merger.accept(record("batch", "console.log", ts=10.0), "ultralytics-console") is None
    assert merger.accept(record("batch", "console.log", ts=100.0), "ultralytics-console") is not None


def test_a_console_of_the_resumed_part_is_put_into_its_segment() -> None:
    merger = RunMerger()
    merger.accept(
        record("epoch", "results.csv", epoch=9, segment=1, roles=Roles(map50=0.4)), "ultralytics-csv"
    )
    added = merger.accept(
        record("epoch", "c.log", epoch=9, roles=Roles(map50=0.4, recall=0.3)), "ultralytics-console"
    )
    assert added is not None
    assert added.segment == 1


def test_an_epoch_that_goes_back_begins_a_segment() -> None:
    assert segments(*(record("epoch", epoch=e) for e in (1, 2, 3, 1, 2))) == [0, 0, 0, 1, 1]


def test_validation_counts_in_epochs_while_training_counts_in_iterations() -> None:
    rows = [record("batch", step=1330), record("validation", step=30), record("batch", step=1331)]
    assert segments(*rows) == [0, 0, 0]


def test_a_validation_before_the_training_of_its_epoch_is_no_step_back() -> None:
    rows = [record("validation", epoch=1), record("epoch", epoch=1), record("validation", epoch=2)]
    assert segments(*rows) == [0, 0, 0]


def test_an_epoch_done_again_is_no_new_segment() -> None:
    rows = [record("start"), *(record("batch", epoch=2, step=s) for s in (48, 96, 48))]
    assert segments(*rows) == [0, 0, 0, 0]


def test_records_one_out_of_order_are_no_new_segment() -> None:
    assert segments(*(record("batch", step=s) for s in (5579, 5599, 5607, 5606, 5019))) == [0, 0, 0, 0, 1]


def test_a_start_after_progress_begins_a_segment_and_two_starts_in_a_row_do_not() -> None:
    rows = [
        record("start"),
        record("start"),
        record("batch", epoch=5),
        record("start"),
        record("batch", epoch=5),
    ]
    assert segments(*rows) == [0, 0, 0, 1, 1]


def test_seconds_that_restart_show_a_resumed_run_though_the_epoch_goes_on() -> None:
    rows = [record("epoch", epoch=e, numbers={"time": t}) for e, t in ((1, 0.7), (2, 1.1), (3, 0.3))]
    assert segments(*rows, elapsed="time") == [0, 0, 1]


def test_the_length_of_an_epoch_is_learned_from_the_one_before() -> None:
    length = EpochLength()
    rows = [length.fill(record("batch", epoch=1 + step // 100, step=step)) for step in range(5, 200, 5)]
    assert (rows[-1].batch, rows[-1].batches) == (100, 100)


def test_a_batch_count_that_is_written_is_left_alone() -> None:
    told = record("batch", epoch=1, batch=3, batches=9)
    assert EpochLength().fill(told) is told
