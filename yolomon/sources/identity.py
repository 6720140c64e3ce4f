"""What a process is, read once in its life: command, user, folder, and its place in a distributed job."""

from __future__ import annotations

import os
import pwd
import threading

import msgspec

from yolomon.sources.procfs import REAL, Roots, printable, read_bytes

COMMAND_CHARACTERS = 1024


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What stays the same while a process lives. None: not allowed to read, or not set."""

    user_id: int | None = None
    command: str | None = None
    cwd: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    master_port: str | None = None
    cuda_visible_devices: str | None = None
    cuda_device_order: str | None = None


def read_identity(pid: int, roots: Roots = REAL) -> Identity:
    """Read what we are allowed to read of one process."""
    environment = environment_of(pid, roots)
    return Identity(
        user_id=_user_id(pid, roots),
        command=command_of(pid, roots),
        cwd=cwd(pid, roots),
        rank=_integer(environment.get("RANK")),
        local_rank=_integer(environment.get("LOCAL_RANK")),
        world_size=_integer(environment.get("WORLD_SIZE")),
        master_port=environment.get("MASTER_PORT"),
        cuda_visible_devices=environment.get("CUDA_VISIBLE_DEVICES"),
        cuda_device_order=environment.get("CUDA_DEVICE_ORDER"),
    )


def command_of(pid: int, roots: Roots = REAL) -> str | None:
    """The command line with spaces between its words; None for a kernel thread or one we may not read."""
    try:
        raw = read_bytes(f"{roots.proc}/{pid}/cmdline", 16 * 1024)
    except OSError:
        return None
    words = raw.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    return printable(words, COMMAND_CHARACTERS) or None


_WANTED = frozenset(
    ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
)


def environment_of(pid: int, roots: Roots = REAL) -> dict[str, str]:
    """The few variables that tell a process's place in its job, as set when it was started.

    All others are dropped unread: an environment holds secrets. Empty where we may not read it.
    """
    try:
        raw = read_bytes(f"{roots.proc}/{pid}/environ")
    except OSError:
        return {}
    found = {}
    for entry in raw.split(b"\0"):
        name, separator, value = entry.partition(b"=")
        key = name.decode("ascii", "replace")
        if separator and key in _WANTED:
            found[key] = printable(value.decode("utf-8", "replace"), 1024)
    return found


def cwd(pid: int, roots: Roots = REAL) -> str | None:
    """The working folder of a process; None where it is gone or we may not look."""
    try:
        return os.readlink(f"{roots.proc}/{pid}/cwd")  # noqa: PTH115
    except OSError:
        return None


def _user_id(pid: int, roots: Roots) -> int | None:
    try:
        return os.stat(f"{roots.proc}/{pid}").st_uid  # noqa: PTH116
    except OSError:
        return None


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


class UserNames:
    """Names of users, looked up off the reader's thread: a directory server may take seconds to answer."""

    LIMIT = 64

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._asked: set[int] = set()

    def name(self, user_id: int | None) -> str | None:
        """The user's name; the number while the name is not known (yet)."""
        if user_id is None:
            return None
        if user_id not in self._asked and len(self._asked) < self.LIMIT:
            self._asked.add(user_id)
            threading.Thread(target=self._ask, args=(user_id,), name="yolomon-user", daemon=True).start()
        return self._names.get(user_id, str(user_id))

    def _ask(self, user_id: int) -> None:
        try:
            self._names[user_id] = pwd.getpwuid(user_id).pw_name
        except (KeyError, OSError):
            return  # no such user here (a container's): the number stands
