"""What the tests of following share: a log under a writer's hands."""

from __future__ import annotations

import json
from pathlib import Path

from yolomon.model import TrainRecord
from yolomon.trainlog.log import Log


def line(step: int, **more: object) -> bytes:
    """A record that is unlike any other."""
    return json.dumps({"step": step, "loss": 1.0 + step, **more}).encode() + b"\n"


class Watched:
    """A log file and its follower, looked at by hand with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = Log(str(path))
        self.now = 1000.0
        self.records: list[TrainRecord] = []

    def append(self, data: bytes) -> None:
        with open(self.path, "ab") as file:
            file.write(data)

    def look(self, seconds: float = 0.25) -> list[int | None]:
        """Look once, `seconds` later; the steps of what came."""
        self.now += seconds
        found = self.log.look(self.now)
        self.records.extend(found)
        return [record.step for record in found]

    @property
    def steps(self) -> list[int | None]:
        return [record.step for record in self.records]
