"""What writers, rotations and file systems do to a log, one oddity a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainlog.following import Watched, line
from yolomon.trainlog.lines import LineSplitter


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path / "log.jsonl")
    yield watched
    watched.log.close()


def test_a_file_that_appears_later_is_waited_for(log: Watched) -> None:
    assert log.look() == []
    assert log.log.status(log.now).state == "waiting"
    log.append(line(1))
    assert log.look() == [1]
    assert log.log.status(log.now).state == "following"


def test_a_torn_last_line_waits_for_its_end(log: Watched) -> None:
    record = line(2)
    log.append(line(1) + record[:9])
    assert log.look() == [1]
    assert log.look(60) == []
    log.append(record[9:])
    assert log.look() == [2]
    assert log.log.counts.broken_lines == 0


def test_an_object_without_a_line_end_is_complete_after_two_quiet_seconds(log: Watched) -> None:
    log.append(line(1).strip())
    assert log.look() == []
    assert log.look(1.0) == []
    assert log.look(2.5) == [1]
    log.append(b"\n" + line(2))
    assert log.look() == [2]


def test_a_broken_line_is_counted_and_nothing_after_it_is_lost(log: Watched) -> None:
    log.append(line(1) + b'{"step": 2, "loss": \n' + line(3))
    assert log.look() == [1, 3]
    assert log.log.counts.broken_lines == 1


def test_truncation_and_a_new_run_are_read_from_the_start(log: Watched) -> None:
    log.append(line(1) + line(2))
    log.look()
    log.path.write_bytes(line(5))
    assert log.look() == [5]
    assert log.log.status(log.now).state == "restarted"
    assert log.log.status(log.now).state == "following"


def test_the_half_line_that_a_truncation_destroyed_is_told_as_lost(log: Watched) -> None:
    log.append(line(1) + b'{"step": 2')
    log.look()
    log.path.write_bytes(line(5))
    log.look()
    assert log.log.counts.lost_records == 1


def test_a_rename_and_recreate_loses_nothing_of_the_old_file(log: Watched) -> None:
    log.append(line(1))
    log.look()
    log.append(line(2) + line(3).strip())  # the last line has no end and never gets one
    log.path.rename(log.path.with_suffix(".1"))
    log.append(line(4))
    assert log.look() == [2, 3, 4]


def test_copytruncate_that_grew_past_the_old_size_is_seen_by_the_first_bytes(log: Watched) -> None:
    log.append(line(1) + line(2))
    log.look()
    log.path.write_bytes(b"".join(line(step) for step in range(10, 30)))
    assert log.look() == list(range(10, 30))


def test_a_rewrite_in_place_with_a_new_key_gives_each_record_once(log: Watched) -> None:
    log.append(b"".join(line(step) for step in range(5)))
    log.look()
    log.path.write_bytes(b"".join(line(step, extra=0) for step in range(8)))
    assert log.look() == [5, 6, 7]


def test_a_rewrite_that_leaves_the_first_bytes_alone_is_seen_by_the_last_ones(log: Watched) -> None:
    first = [line(step, pad="x" * 40) for step in range(40)]
    log.append(b"".join(first))
    log.look()
    log.path.write_bytes(b"".join(first[:35] + [line(step, pad="y" * 50) for step in range(100, 120)]))
    assert log.look() == list(range(100, 120))


def test_nul_bytes_that_copytruncate_leaves_are_no_line(log: Watched) -> None:
    log.append(line(1))
    log.look()
    with open(log.path, "r+b") as file:
        file.truncate(0)
        file.seek(5000)
        file.write(line(2))
    assert log.look() == [2]
    assert log.log.counts.broken_lines == 0


def test_a_large_hole_is_jumped_over(log: Watched) -> None:
    log.append(line(1))
    log.look()
    with open(log.path, "r+b") as file:
        file.truncate(0)
        file.seek(8 << 30)
        file.write(line(2))
    steps = []
    for _ in range(4):
        steps += log.look()
    assert steps == [2]


def test_a_folder_deleted_and_made_again_is_found_by_path(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    log = Watched(folder / "log.jsonl")
    log.append(line(1))
    assert log.look() == [1]
    log.path.unlink()
    folder.rmdir()
    assert log.look() == []
    assert log.log.status(log.now).state == "gone"
    folder.mkdir()
    log.append(line(2))
    assert log.look() == [2]
    log.log.close()


def test_a_symbolic_link_that_moves_leads_to_the_new_file(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"run{number}.jsonl").write_bytes(line(number))
    latest = tmp_path / "latest.jsonl"
    latest.symlink_to(tmp_path / "run1.jsonl")
    log = Watched(latest)
    assert log.look() == [1]
    latest.unlink()
    latest.symlink_to(tmp_path / "run2.jsonl")
    assert log.look() == [2]
    log.log.close()


def test_a_quiet_file_is_opened_anew_as_a_network_file_system_needs_it(log: Watched) -> None:
    log.append(line(1))
    log.look()
    assert log.look(10) == []
    log.append(line(2))
    assert log.look(10) == [2]


def test_two_records_glued_by_two_writers_are_two(log: Watched) -> None:
    log.append(line(1).strip() + line(2))
    assert log.look() == [1, 2]
    assert log.log.counts.broken_lines == 0


def test_a_half_record_before_a_whole_one_costs_the_half_alone(log: Watched) -> None:
    log.append(b'{"step": 1, "lo' + line(2))
    assert log.look() == [2]
    assert log.log.counts.broken_lines == 1


def test_an_object_inside_a_torn_record_is_no_record(log: Watched) -> None:
    log.append(line(1) + b'{"step": 2, "metrics": {"a": 1}\n' + line(3))
    assert log.look() == [1, 3]


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbf" + line(1) + line(2), line(1).replace(b"\n", b"\r\n") + line(2).replace(b"\n", b"\r\n")],
    ids=["byte order mark", "CRLF"],
)
def test_marks_of_other_systems_are_no_part_of_a_record(log: Watched, content: bytes) -> None:
    log.append(content)
    assert log.look() == [1, 2]
    assert log.log.counts.broken_lines == 0


def test_invalid_utf8_is_shown_as_replacement_and_read(log: Watched) -> None:
    log.append(line(1) + b'{"step": 2, "loss": 1.0, "name": "\xff\xfe"}\n')
    assert log.look() == [1, 2]


def test_a_line_of_a_megabyte_is_a_record(log: Watched) -> None:
    log.append(line(1, pad="x" * (1 << 20)) + line(2))
    assert log.look() == [1, 2]


def test_a_line_without_end_is_given_up_and_the_next_is_read() -> None:
    splitter = LineSplitter(limit=100)
    lines = [got for _ in range(50) for got in splitter.feed(b"x" * 10)] + splitter.feed(b"\nnext\n")
    assert lines == [b"next"]
    assert splitter.overlong == 1


def test_carriage_returns_end_the_pieces_of_a_console() -> None:
    splitter = LineSplitter(redraws=True)
    assert splitter.feed(b"a\rb\r\nc\nd") == [b"a", b"b", b"c"]
    assert splitter.pending == b"d"


def test_what_is_no_file_is_told_in_words(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    link = tmp_path / "loop"
    link.symlink_to(link)
    for path, words in (
        (tmp_path, "folder"),
        (fifo, "pipe"),
        (Path("/dev/null"), "no regular file"),
        (link, "link"),
    ):
        log = Watched(path)
        assert log.look() == []
        status = log.log.status(log.now)
        assert status.state == "unreadable"
        assert words in str(status.detail)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read all files")
def test_a_file_without_permission_is_told_and_read_once_it_may_be(log: Watched) -> None:
    log.append(line(1))
    log.path.chmod(0)
    assert log.look() == []
    assert "permission" in str(log.log.status(log.now).detail)
    log.path.chmod(0o600)
    assert log.look() == [1]


def test_a_binary_file_is_told(log: Watched) -> None:
    log.append(bytes(range(256)) * 20 + b"\n")
    assert log.look() == []
    assert "binary" in str(log.log.status(log.now).detail)
