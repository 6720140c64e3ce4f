"""Looks for the log of the running training until one is followed, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from yolomon.sources.identity import cwd
from yolomon.sources.processes import open_files
from yolomon.trainlog.discover import Candidate, ProcessHint, find_logs

SEARCH_SECONDS = 3.0
PIDS_LIMIT = 64


class LogFinder:
    """Searches the working folder, and the folders and open files of processes that use a GPU.

    Args:
        folder: where the user started yolomon, or the folder that the user named.
        search_seconds: between two searches.
        only_there: look nowhere but in the folder.
    """

    def __init__(
        self, folder: Path, search_seconds: float = SEARCH_SECONDS, *, only_there: bool = False
    ) -> None:
        self._folder = folder
        self._only_there = only_there
        self._search_seconds = search_seconds
        self._pids: tuple[int, ...] = ()
        self._found: tuple[Candidate, ...] = ()
        self.searched = False  # once at least
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yolomon-find-log", daemon=True)

    def start(self) -> None:
        """Begin to search; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that hangs in a dead network file system is left (daemon)."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(0.2)

    def watch_pids(self, pids: Iterable[int]) -> None:
        """Processes whose folders and open files are searched too; a new one starts a search at once."""
        new = () if self._only_there else tuple(pids)[:PIDS_LIMIT]
        if new != self._pids:
            self._pids = new
            self._wake.set()

    @property
    def candidates(self) -> list[Candidate]:
        """What the newest search found, best first."""
        return list(self._found)

    @property
    def ambiguous(self) -> bool:
        """Several runs fit about equally well: the user should pick."""
        return len(self._sure()) > 1

    def take_sure(self) -> tuple[Path, ...] | None:
        """The files of the one run that is surely meant; None where there is none or the user should pick."""
        sure = self._sure()
        return tuple(Path(path) for path in sure[0].paths) if len(sure) == 1 else None

    def _sure(self) -> list[Candidate]:
        """The runs that grow or that a process has open; without one, all there are."""
        growing = [candidate for candidate in self._found if candidate.growing or candidate.pid is not None]
        return growing or list(self._found)

    def _run(self) -> None:
        while not self._stopping.is_set():
            trainers = [ProcessHint(pid=pid, cwd=cwd(pid), files=open_files(pid)) for pid in self._pids]
            self._found = tuple(find_logs(self._folder, trainers))
            self.searched = True
            self._wake.wait(self._search_seconds)
            self._wake.clear()
