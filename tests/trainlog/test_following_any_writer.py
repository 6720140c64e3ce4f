"""Any records, in any pieces, under any fault: each arrives once and in order, or is told as lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.trainlog.following import Watched, line

FAULTS = ("none", "truncate", "rotate", "rewrite", "remove", "nul", "junk")


@st.composite
def actions(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """(fault, records, where the last write is cut) in a row."""
    return draw(
        st.lists(
            st.tuples(st.sampled_from(FAULTS), st.integers(0, 4), st.integers(0, 60)), min_size=1, max_size=12
        )
    )


@settings(max_examples=100, deadline=None)
@given(actions())
@example([("junk", 0, 0), ("junk", 0, 0)])  # more junk than records is still a .jsonl
def test_each_complete_record_arrives_once_and_in_order(plan: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Watched(Path(folder) / "log.jsonl")
        step = 0
        expected: list[int] = []
        destroyed = 0  # half lines that the writer took away
        kept: list[bytes] = []
        half = b""  # the beginning of a line that was written; the rest comes with the next write
        rest = b""
        junk = 0
        for fault, count, cut in plan:
            if fault in ("truncate", "remove", "rotate", "rewrite") and half:
                if fault != "rewrite":
                    destroyed += 1
                    expected.remove(step)
                half, rest = b"", b""
            if fault == "truncate" and log.path.exists():
                log.path.write_bytes(b"")
                kept = []
                log.look()
            elif fault == "remove" and log.path.exists():
                log.path.unlink()
                kept = []
                log.look()
            elif fault == "rotate" and log.path.exists():
                log.path.rename(log.path.with_suffix(".1"))
                kept = []
            elif fault == "rewrite" and log.path.exists():
                # All records again, with one more key and the torn one made whole.
                kept = [content.replace(b"{", b'{"new": 1, ', 1) for content in kept]
                log.path.write_bytes(b"".join(kept))
            elif fault == "nul":
                log.append(b"\0" * 30)
            elif fault == "junk" and not half:
                log.append(b"no record at all\n")
                junk += 1
                kept.append(b"no record at all\n")
            data = rest
            half, rest = b"", b""
            for _ in range(count):
                step += 1
                expected.append(step)
                kept.append(line(step))
                data += line(step)
            if count and 1 < cut < len(line(step)):
                data, rest = data[:-cut], data[-cut:]
                half = data
            if data:
                log.append(data)
            log.look()
        step += 1  # whatever became of the file, one more record comes
        expected.append(step)
        log.append(rest + line(step))
        log.look()
        log.look(3.0)
        log.log.close()
        told_lost = log.log.counts.lost_records + log.log.counts.broken_lines
        arrived = [s for s in log.steps if s is not None]
        assert arrived == sorted(set(arrived))
        missing = [s for s in expected if s not in arrived]
        assert not missing
        assert set(arrived) - set(expected) == set()
        assert told_lost >= destroyed


WRITES = ("lf", "crlf", "nul", "torn", "glued", "copytruncate", "copytruncate-hole")


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.lists(st.sampled_from(WRITES), min_size=1, max_size=15), st.integers(1, 7))
def test_odd_bytes_and_several_writers_cost_no_whole_record(bom: bool, writes: list[str], piece: int) -> None:
    """BOM, CRLF, padding, a writer's half before another's record, and copies that empty the file."""
    with tempfile.TemporaryDirectory() as folder:
        log = Watched(Path(folder) / "log.jsonl")
        log.append((b"\xef\xbb\xbf" if bom else b"") + line(1))
        step, halves, restarts = 1, 0, 0
        log.look()
        for place, kind in enumerate(writes):
            step += 1
            data = line(step)
            if kind == "crlf":
                data = data[:-1] + b"\r\n"
            elif kind == "nul":
                data = b"\0" * 16 + data
            elif kind == "torn":  # a writer was killed; another goes on behind its half
                data = line(900)[:11] + data
                halves += 1
            elif kind == "glued":  # two writers, one line
                data = data[:-1] + line(step + 1)
                step += 1
            elif kind.startswith("copytruncate"):
                log.look()
                before = log.path.stat().st_size
                with open(log.path, "r+b") as file:
                    file.truncate(0)
                    if kind.endswith("hole"):
                        file.seek(before)
                    else:
                        log.look()
                    file.write(data)
                restarts += 1
                log.look()
                continue
            log.append(data[:piece])
            if place % 2:
                log.look()
            log.append(data[piece:])
            log.look()
        log.look()
        log.look(3.0)
        log.log.close()
        assert log.steps == list(range(1, step + 1))
        assert log.log.counts.broken_lines == halves
        assert log.log.counts.restarts == restarts
