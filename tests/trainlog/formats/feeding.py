"""Types of the fixtures in conftest.py."""

from __future__ import annotations

from collections.abc import Callable

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Format

Parsed = list[TrainRecord | BrokenLine]
Parse = Callable[[type[Format], bytes], Parsed]
Records = Callable[[type[Format], bytes], list[TrainRecord]]
FormatOf = Callable[[str, bytes], str | None]
RealLog = Callable[[str], bytes]
