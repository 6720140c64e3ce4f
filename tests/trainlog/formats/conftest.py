"""What the tests of all formats share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Format, Head
from yolomon.trainlog.formats.registry import recognise

Parsed = list[TrainRecord | BrokenLine]
ARRIVAL_TS = 2_000_000_000.0


def pieces_of(content: bytes, reads: str) -> list[bytes]:
    """The content cut as the follower cuts it."""
    if reads == "lines":
        return content.removesuffix(b"\n").split(b"\n")
    return re.split(rb"[\r\n]", content) if reads == "redraws" else [content]


@pytest.fixture
def parse() -> Callable[[Format, bytes], Parsed]:
    """All that a format's parser makes of a content, broken lines too."""

    def run(form: Format, content: bytes) -> Parsed:
        parser = form.parser("log")
        found: Parsed = []
        for piece in pieces_of(content, form.reads):
            found += parser.feed(piece, ARRIVAL_TS)
        found += parser.finish(ARRIVAL_TS)
        return found

    return run


@pytest.fixture
def records(parse: Callable[[Format, bytes], Parsed]) -> Callable[[Format, bytes], list[TrainRecord]]:
    """The records of a content; a broken line fails the test."""

    def run(form: Format, content: bytes) -> list[TrainRecord]:
        found = parse(form, content)
        broken = [item for item in found if isinstance(item, BrokenLine)]
        assert not broken
        return [item for item in found if isinstance(item, TrainRecord)]

    return run


@pytest.fixture
def format_of() -> Callable[[str, bytes], str | None]:
    """The name of the format that a file of this name and content is recognised as."""

    def run(name: str, content: bytes) -> str | None:
        found = recognise(Head(name=name, parent="train", data=content[: 1 << 16]))
        return found.name if found is not None else None

    return run


@pytest.fixture
def real_log(shared: Path) -> Callable[[str], bytes]:
    """The content of a real log beside the repository; the test is skipped where there is none."""

    def read(name: str) -> bytes:
        path = shared / "logs" / name
        if not path.is_file():
            pytest.skip(f"no {name}")
        return path.read_bytes()

    return read
