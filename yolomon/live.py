"""Sessions: which sources, which logs and which clock stand behind the screen, a recorder or one reading."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.thresholds import Thresholds
from yolomon.history import History, TrainHistory
from yolomon.log_finder import LogFinder
from yolomon.messages import UserError, msg
from yolomon.monitor import Monitor, Tap
from yolomon.record import demo_path
from yolomon.settings import Settings
from yolomon.sources.base import Clock, Source
from yolomon.sources.host import HostSource
from yolomon.sources.nvml import NvmlSource
from yolomon.sources.recording import RecordingError, RecordingReader
from yolomon.sources.replay import ReplaySource
from yolomon.trainlog.after import LogError, read_log
from yolomon.trainlog.discover import Candidate, logs_in
from yolomon.trainlog.source import LogSource
from yolomon.trainlog.stream import StreamSource


class InputError(UserError):
    """Something the user named that cannot be used. `message` says why."""


def engine(settings: Settings, history: History | None = None) -> Engine:
    """The diagnosis under these settings, over a new history unless one is given.

    Raises:
        InputError: a threshold that no rule has.
    """
    try:
        thresholds = Thresholds(settings.thresholds)
    except KeyError as error:
        raise InputError(
            msg("{why}; `yolomon config --thresholds` lists them", why=str(error.args[0]))
        ) from error
    return Engine(thresholds, settings.silenced, history)


class Session(Monitor):
    """A monitor that knows which logs it follows and which others it could follow."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        clock: Clock = time.time,
        settings: Settings,
        finder: LogFinder | None = None,
        demo: bool = False,
        playback: ReplaySource | None = None,
        host: HostSource | None = None,
        taps: Sequence[Tap] = (),
    ) -> None:
        super().__init__(
            sources,
            engine(settings),
            clock=clock,
            demo=demo,
            playback=playback,
            on_pids=self._see_pids,
            taps=taps,
        )
        self._settings = settings
        self._finder = finder
        self._host = host
        self._log: LogSource | None = None
        self._started = False
        self.followed: tuple[Path, ...] = ()

    def start(self) -> None:
        """Start all sources and, where no log was named, the search for one."""
        super().start()
        self._started = True
        if self._finder is not None:
            self._finder.start()

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """Stop the search and all sources."""
        if self._finder is not None:
            self._finder.stop()
        super().stop(timeout_seconds)

    def drain(self, budget_seconds: float = 0.02) -> bool:
        """As the monitor's; also attaches to the log that the search found, once it is sure."""
        changed = super().drain(budget_seconds)
        if self._finder is not None and not self.followed:
            found = self._finder.take_sure()
            if found is not None:
                self.attach(found)
                changed = True
        return changed

    @property
    def needs_choice(self) -> bool:
        """Several logs fit equally well and none is followed yet: the user should pick."""
        return not self.followed and self._finder is not None and self._finder.ambiguous

    @property
    def searched(self) -> bool:
        """Whether it is known which logs there are to pick from."""
        return self._finder is None or self._finder.searched

    def candidates(self) -> list[Candidate]:
        """Logs to pick from, best first."""
        return [] if self._finder is None else self._finder.candidates

    def attach(self, paths: Sequence[Path]) -> None:
        """Follow these logs (of one run) instead of those before."""
        if self._log is not None:
            self.remove_source(self._log)
            self.history.train = TrainHistory()  # the machine's history goes on, the other run's is over
            self.engine = engine(self._settings, self.history)
        self.followed = tuple(paths)
        self._log = LogSource(paths, clock=self.clock)
        if self._started:
            self.add_source(self._log)
        else:
            self.sources.append(self._log)
        if self._host is not None and paths:
            self._host.watch_folder(str(paths[0].parent))

    def _see_pids(self, pids: Iterable[int]) -> None:
        found = tuple(pids)
        if self._host is not None:
            self._host.watch_pids(found)
        if self._finder is not None:
            self._finder.watch_pids(found)


# ---------------------------------------------------------------- the kinds of session


def attach(
    logs: Sequence[str], settings: Settings, *, tee: Path | None = None, taps: Sequence[Tap] = ()
) -> Session:
    """This machine, live, with the named logs ("-": standard input); without a name the search begins.

    A folder stands for the newest run in it, and for the first one where there is none yet.
    """
    nvml = NvmlSource(
        interval_seconds=settings.interval_seconds, slow_interval_seconds=settings.slow_interval_seconds
    )
    host = HostSource(settings.interval_seconds, settings.slow_interval_seconds)
    folder = Path(logs[0]) if len(logs) == 1 and is_folder(logs[0]) else None
    finder = None if logs else LogFinder(Path.cwd())
    if folder is not None:
        finder = LogFinder(folder, only_there=True)
    session = Session([nvml, host], settings=settings, finder=finder, host=host, taps=taps)
    if list(logs) == ["-"]:
        session.sources.append(StreamSource(tee=None if tee is None else str(tee)))
    elif logs and (files := files_named(logs)) != [folder]:
        session.attach(files)
    return session


def replay(
    recording: str,
    logs: Sequence[str],
    speed: float,
    settings: Settings,
    *,
    demo: bool = False,
    told: Callable[[str, float], object] | None = None,
) -> Session:
    """A recording, and logs beside it.

    Args:
        recording: the file.
        logs: logs, read as a whole before it begins.
        speed: recorded seconds a second.
        settings: for the diagnosis.
        demo: play it again and again.
        told: is told, while a log is read, its name and the percentage.

    Raises:
        InputError: the recording cannot be played.
    """
    try:
        next(iter(RecordingReader(recording)), None)
        records = [read_log(path, None if told is None else partial(told, path)) for path in logs]
    except (RecordingError, LogError) as error:
        raise InputError(error.message) from error
    source = ReplaySource(recording, records=records, speed=speed, loop=demo)
    return Session([source], settings=settings, clock=source.clock, demo=demo, playback=source)


def demo(speed: float, settings: Settings) -> Session:
    """The recording that ships with yolomon, again and again."""
    return replay(str(demo_path()), (), speed, settings, demo=True)


def is_folder(path: str | Path) -> bool:
    """Whether it is a folder. What this user may not look at is taken for a file, which says why."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a folder above may not be entered


def files_named(names: Sequence[str]) -> list[Path]:
    """The log files that the user named; a folder stands for the logs of the run in it."""
    files: list[Path] = []
    for name in names:
        path = Path(name)
        found = logs_in(path) if is_folder(path) else ()
        files += [Path(file) for file in found] or [path]
    return list(dict.fromkeys(files))
