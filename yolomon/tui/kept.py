"""The theme and the window that were chosen last, kept between runs in a small state file."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import platformdirs

from yolomon.settings import Settings
from yolomon.tui import theme

SIZE_LIMIT = 4096


class Keep(Protocol):
    """What is told a choice; returns at once."""

    def __call__(self, *, theme: str | None = None, window_seconds: float | None = None) -> object:
        """Note it."""
        ...


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept; None: never chosen."""

    theme: str | None = None
    window_seconds: float | None = None


def state_file() -> Path:
    """Where it lies (it need not exist)."""
    return Path(platformdirs.user_state_dir("yolomon")) / "screen.json"


def read(file: Path) -> Kept:
    """What was kept. A file that is missing, torn or strange keeps nothing: it is a convenience."""
    try:
        with file.open("rb") as stream:
            kept = msgspec.json.decode(stream.read(SIZE_LIMIT), type=Kept)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Kept()
    window = kept.window_seconds
    return Kept(
        theme=kept.theme if kept.theme in theme.NAMES else None,
        window_seconds=window if window is not None and 0 <= window < 1e8 else None,
    )


def applied(settings: Settings, origin: Mapping[str, str], kept: Kept) -> Settings:
    """The settings with what was kept, where the user set nothing in a file, the environment or an option."""
    changes: dict[str, str | float] = {}
    if kept.theme is not None and origin.get("theme") == "default":
        changes["theme"] = kept.theme
    if kept.window_seconds is not None and origin.get("window_seconds") == "default":
        changes["window_seconds"] = kept.window_seconds
    return msgspec.structs.replace(settings, **changes) if changes else settings


class Keeper:
    """Writes what is chosen, on a thread of its own: a home folder may lie on a slow network.

    Args:
        file: written anew as a whole.
        kept: what it holds now.
    """

    def __init__(self, file: Path, kept: Kept | None = None) -> None:
        self._file = file
        self._wanted = self._written = Kept() if kept is None else kept
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def keep(self, *, theme: str | None = None, window_seconds: float | None = None) -> None:
        """Note a choice; returns at once."""
        with self._lock:
            self._wanted = Kept(
                theme=self._wanted.theme if theme is None else theme,
                window_seconds=self._wanted.window_seconds if window_seconds is None else window_seconds,
            )
            if self._thread is None and self._wanted != self._written:
                self._thread = threading.Thread(target=self._run, name="yolomon-keep", daemon=True)
                self._thread.start()

    def close(self, timeout_seconds: float = 0.5) -> None:
        """Wait for the last write for at most that long."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_seconds)

    def _run(self) -> None:
        while True:
            with self._lock:
                wanted = self._wanted
                if wanted == self._written:
                    self._thread = None
                    return
            self._write(wanted)
            with self._lock:
                self._written = wanted

    def _write(self, kept: Kept) -> None:
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(msgspec.json.encode(kept))
            draft.replace(self._file)
        except OSError:  # a read-only home: the choice holds for this run alone
            return
