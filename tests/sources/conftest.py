"""A small fake of the kernel's file systems, for readers that take their roots as a parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolomon.sources.procfs import Roots


class FakeMachine:
    """Writes files below a folder and knows the `Roots` that lead there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots = Roots(*(str(folder / name) for name in ("proc", "sys", "etc", "run", "top")))
        for root in self.roots:
            Path(root).mkdir()

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def process(
        self,
        pid: int,
        *,
        parent: int = 1,
        name: str = "python",
        start_ticks: int = 1000,
        cpu_ticks: tuple[int, int] = (150, 50),
        rss_pages: int = 10,
        children: tuple[int, ...] | None = (),
        command: tuple[str, ...] = ("python", "train.py"),
        environment: dict[str, str] | None = None,
        state: str = "S",
    ) -> None:
        user, system = cpu_ticks
        fields = [state, parent, 0, 0, 0, -1, 0, 0, 0, 0, 0, user, system, 0, 0, 20, 0, 4, 0, start_ticks]
        self.write(
            f"proc/{pid}/stat", f"{pid} ({name}) {' '.join(map(str, [*fields, 99, rss_pages, 0, 0]))}\n"
        )
        self.write(f"proc/{pid}/cmdline", "".join(f"{word}\0" for word in command))
        entries = {"HOME": "/root", "SECRET_TOKEN": "hunter2", **(environment or {})}
        self.write(f"proc/{pid}/environ", "".join(f"{k}={v}\0" for k, v in entries.items()))
        self.write(f"proc/{pid}/io", "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 512\n")
        (self.folder / f"proc/{pid}/task/{pid}").mkdir(parents=True, exist_ok=True)
        if children is not None:
            self.write(f"proc/{pid}/task/{pid}/children", "".join(f"{child} " for child in children))

    def end(self, pid: int) -> None:
        (self.folder / f"proc/{pid}/stat").unlink()


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    made = FakeMachine(tmp_path)
    made.write("proc/stat", "cpu  1 2 3 4\nbtime 1700000000\n")
    return made
