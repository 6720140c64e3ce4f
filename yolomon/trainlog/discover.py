"""Finding the trainer's logs: in the usual folders, and by what the processes that use a GPU have open.

Bounded in depth, in the number of entries and in time, so that a home folder on a slow network file system
costs
half a second at most. It never looks into folders of weights, images or packages.
"""

# Paths are strings here: they are looked at several times a second.
# ruff: noqa: PTH113, PTH116, PTH118, PTH119, PTH120, PTH208

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from yolomon.messages import Message, msg
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.registry import recognise

FOLDERS = ("runs", "work_dirs", "output", "outputs", "YOLOX_outputs", "lightning_logs", "log", "logs", ".")
DEPTH = 6
ENTRIES_LIMIT = 20_000
SECONDS_LIMIT = 0.5
CANDIDATES_LIMIT = 40
GROWING_SECONDS = (
    120.0  # written to within: a log of a run that is alive, also with a network's attribute cache
)
SAME_RUN_SECONDS = 24 * 3600.0
HEAD_BYTES = 1 << 16
_SKIPPED = frozenset(
    {"weights", "images", "labels", "datasets", "dataset", "node_modules", "site-packages", "__pycache__",
     "venv",
     "checkpoints_images", "vis_image", "media", "annotations", "proc", "sys", "dev"}
)  # fmt: skip
_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".log", ".log.json", ".wandb", ".out")
_NAMES = re.compile(
    r"results\.(?:csv|txt)|metrics\.(?:csv|json)|scalars\.json|\d{8}_\d{6}\.json|log\.txt|train_log\.txt|status\.json"
    r"|trainer_state\.json|summary\.csv|nohup\.out|slurm-.*\.out|workerlog\.\d+|events\.out\.tfevents\..*|output\.log"
)
_NOT_LOGS = re.compile(
    r"(?:debug|pip|npm|install|tune_results)|^labels?\.csv$|^train\.csv$|^val\.csv$", re.IGNORECASE
)
_RANK = re.compile(r"[._-]?rank[._-]?(\d+)")
_EXACT = ("yolomon-jsonl", "mmengine-json", "mmcv-json", "detectron2-json", "detr-json", "tao-json")


class Candidate(msgspec.Struct, frozen=True):
    """A log that was found, with the other logs of its run."""

    path: str
    reason: Message  # why it is offered
    format: str  # the format's title
    modified_ts: float
    growing: bool
    paths: tuple[str, ...]  # all logs of the run, this one first
    pid: int | None = None  # the process that has it open


class ProcessHint(msgspec.Struct, frozen=True):
    """A process of the trainer: its working folder and the files that it has open."""

    pid: int
    cwd: str | None = None
    files: tuple[str, ...] = ()


class _Search:
    """Counts what the search has cost so far."""

    def __init__(self) -> None:
        self.entries = 0
        self.until = time.monotonic() + SECONDS_LIMIT

    @property
    def spent(self) -> bool:
        return self.entries > ENTRIES_LIMIT or time.monotonic() > self.until


def find_logs(
    folder: str | os.PathLike[str] = ".", processes: Sequence[ProcessHint] = (), now: float | None = None
) -> list[Candidate]:
    """Logs that may be meant, best first: what a GPU process has open, then what grew last.

    Args:
        folder: where to look, with `runs/`, `work_dirs/` and the like in it.
        processes: the processes that use a GPU.
        now: UNIX seconds; the time now unless given.
    """
    now = time.time() if now is None else now
    search = _Search()
    found: dict[str, tuple[float, int | None]] = {}
    for process in processes:
        for path in process.files:
            _note(found, path, process.pid)
    roots = [os.fspath(folder)]
    roots += [
        process.cwd
        for process in processes
        if process.cwd and os.path.realpath(process.cwd) != os.path.realpath(roots[0])
    ]
    owners: dict[str, int | None] = {roots[0]: None}
    owners.update({process.cwd: process.pid for process in processes if process.cwd in roots[1:]})
    for root in roots:
        for path in _walk_roots(root, search):
            _note(found, path, None)
    newest = sorted(found.items(), key=lambda entry: -entry[1][0])[: 3 * CANDIDATES_LIMIT]
    known = [
        (path, modified, pid, title)
        for path, (modified, pid) in newest
        if (title := _title(path)) is not None
    ]
    return _ranked(known, owners, now)


def _walk_roots(root: str, search: _Search) -> Iterator[str]:
    seen = set()
    for name in FOLDERS:
        start = os.path.join(root, name) if name != "." else root
        real = os.path.realpath(start)
        if real in seen:
            continue
        seen.add(real)
        yield from _walk(start, DEPTH if name != "." else 1, search)


def _walk(folder: str, depth: int, search: _Search) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            inner = []
            for entry in entries:
                search.entries += 1
                if search.spent:
                    return
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if depth > 0 and not entry.name.startswith(".") and entry.name not in _SKIPPED:
                            inner.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
                    elif may_be_log(entry.name):
                        yield entry.path
                except OSError:
                    continue
    except OSError:
        return
    for _, path in sorted(inner, reverse=True):  # the newest folders first, should the time run out
        if search.spent:
            return
        yield from _walk(path, depth - 1, search)


def may_be_log(name: str) -> bool:
    """Whether a file of that name may be a training log."""
    if _NOT_LOGS.search(name):
        return False
    return _NAMES.fullmatch(name) is not None or name.endswith(_SUFFIXES)


def _note(found: dict[str, tuple[float, int | None]], path: str, pid: int | None) -> None:
    name = os.path.basename(path)
    if not may_be_log(name) or (path in found and pid is None):
        return
    try:
        status = os.stat(path)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode) and status.st_size:
        found[os.path.normpath(path)] = (status.st_mtime, pid)


def _title(path: str) -> tuple[str, str] | None:
    try:
        with open(path, "rb") as file:
            data = file.read(HEAD_BYTES)
    except OSError:
        return None
    where = Path(path)
    found = recognise(Head(where.name, where.parent.name, data))
    return None if found is None else (found.name, found.title)


def _ranked(
    known: list[tuple[str, float, int | None, tuple[str, str]]], owners: dict[str, int | None], now: float
) -> list[Candidate]:
    runs: dict[str, list[tuple[str, float, int | None, tuple[str, str]]]] = {}
    for entry in known:
        runs.setdefault(_run_folder(entry[0]), []).append(entry)
    candidates = []
    for group in runs.values():
        for logs in _split(group):
            logs.sort(key=lambda entry: (_preference(entry[0], entry[3][0]), -entry[1]))
            path, _, pid, (_, title) = logs[0]
            modified = max(entry[1] for entry in logs)
            pid = next((entry[2] for entry in logs if entry[2] is not None), pid)
            growing = now - modified < GROWING_SECONDS
            candidates.append(
                Candidate(
                    path=path,
                    reason=_reason(pid, growing, max(0.0, now - modified)),
                    format=title,
                    modified_ts=modified,
                    growing=growing,
                    paths=tuple(entry[0] for entry in logs),
                    pid=pid,
                )
            )
    candidates.sort(key=lambda c: (c.pid is None, not c.growing, -c.modified_ts))
    return candidates[:CANDIDATES_LIMIT]


def _reason(pid: int | None, growing: bool, age_seconds: float) -> Message:
    if pid is not None:
        return msg("open in process {pid}, which uses a GPU", pid=pid)
    if growing:
        return msg("growing now")
    if age_seconds < 3600:
        return msg("last written {minutes} min ago", minutes=round(age_seconds / 60))
    return msg("last written {hours} h ago", hours=round(age_seconds / 3600))


def _run_folder(path: str) -> str:
    folder = os.path.dirname(path)
    # MMEngine writes <run>/<time>/vis_data/<time>.json beside <run>/<time>/<time>.log.
    return os.path.dirname(folder) if os.path.basename(folder) == "vis_data" else folder


def _split(
    group: list[tuple[str, float, int | None, tuple[str, str]]],
) -> Iterator[list[tuple[str, float, int | None, tuple[str, str]]]]:
    """The runs among one folder's logs: files a rank and a table beside them are one, two streams two."""
    streams: dict[str, list[tuple[str, float, int | None, tuple[str, str]]]] = {}
    beside = []
    for entry in group:
        name = os.path.basename(entry[0])
        if entry[3][0] in _EXACT or name.endswith((".jsonl", ".ndjson")):
            stem = _RANK.sub("", name)
            if stem == "scalars.json" and any(_is_double(other[0]) for other in group):
                continue  # the same records once more
            streams.setdefault(stem, []).append(entry)
        else:
            beside.append(entry)
    if not streams:
        newest = max((entry[1] for entry in beside), default=0.0)
        together = [e for e in beside if newest - e[1] < SAME_RUN_SECONDS and os.path.basename(e[0]) != ""]
        if len({e[3][0] for e in together}) == len(together):  # one of each format: one run
            yield together
            beside = [e for e in beside if e not in together]
        yield from ([entry] for entry in beside)
        return
    if len({entry[3][0] for entry in beside}) < len(beside):  # two tables: whose are they?
        yield from ([entry] for entry in beside)
        beside = []
    first = max(streams.values(), key=lambda entries: max(e[1] for e in entries))
    for entries in streams.values():
        yield entries + beside if entries is first else entries


def _is_double(path: str) -> bool:
    """Whether this is MMEngine's `<time>.json`, which `scalars.json` repeats."""
    return re.fullmatch(r"\d{8}_\d{6}\.json", os.path.basename(path)) is not None


def _preference(path: str, format_name: str) -> tuple[int, int]:
    rank = _RANK.search(os.path.basename(path))
    return (0 if format_name in _EXACT else 1 if "csv" not in format_name else 2), int(rank[1]) if rank else 0


def logs_of_run(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The given log and the other logs of its run that lie beside it (a file a rank, results.csv)."""
    path = os.path.normpath(os.fspath(path))
    if not os.path.isfile(path) or _title(path) is None:
        return (path,)
    folder = os.path.dirname(path) or "."
    found: dict[str, tuple[float, int | None]] = {}
    for name in _names(folder):
        _note(found, os.path.join(folder, name), None)
    known = [(p, modified, pid, t) for p, (modified, pid) in found.items() if (t := _title(p)) is not None]
    for logs in _split(known):
        paths = [entry[0] for entry in logs]
        if path in paths:
            return (path, *(other for other in sorted(paths) if other != path))
    return (path,)


def logs_in(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """All logs of the newest run in a folder, the most telling first; none where there is no log."""
    found = find_logs(folder)
    return found[0].paths if found else ()


def _names(folder: str) -> Iterable[str]:
    try:
        return sorted(os.listdir(folder))[:1000]
    except OSError:
        return []
