"""Read a stream back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_stream(path: Path) -> list[dict[str, Any]]:
    """All records; a torn line fails the test that asks."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def events(records: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """The records of these events."""
    return [record for record in records if record["event"] in names]
