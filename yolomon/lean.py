"""Start fast and stay small: keep out what other packages import and this program never uses.

asyncio imports ssl (4 MB resident, 12 ms) for connections nobody makes here; plotext imports Pillow,
OpenSSL's hashes, its own test suite and the text of its manual (8 MB, 0.2 s), none of which draws a line.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_HASHES = ("_md5", "_sha1", "_blake2", "_sha3")
_SHA2, _SHA2_BEFORE_312 = ("_sha2",), ("_sha256", "_sha512")
_M_ARENA_MAX = -8  # malloc.h of glibc
ARENAS = 2
COLLECTED_EVERY = (20_000, 10, 10)  # allocations: a picture makes some thousand lists, none of them a cycle


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """Inside, importing one of these modules is an ImportError, unless it was imported before.

    For imports that the importing package guards, as `try: import ssl`.
    """
    kept_out = [name for name in names if name not in sys.modules]
    for name in kept_out:
        sys.modules[name] = None  # type: ignore[assignment]  # the import system's own sign for this
    try:
        yield
    finally:
        for name in kept_out:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)


@contextmanager
def stand_ins(modules: Mapping[str, Mapping[str, object]]) -> Iterator[None]:
    """Inside, each named module is an empty one with these attributes; afterwards it is forgotten."""
    made: dict[str, ModuleType] = {}
    for name, attributes in modules.items():
        if name not in sys.modules:
            made[name] = sys.modules[name] = ModuleType(name)
            made[name].__dict__.update(attributes)
    try:
        yield
    finally:
        for name, module in made.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def begin_screen() -> None:
    """Before Textual is imported: asyncio without ssl, no garbage collection until `settle`, few arenas."""
    gc.disable()
    _few_arenas()
    with absent("ssl"):
        import asyncio  # noqa: F401


def settle() -> None:
    """Once all is loaded: the collector need not look at it any more, and freed memory goes back."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_EVERY)
    gc.enable()
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def import_plotext() -> Any:  # noqa: ANN401 - plotext has no types
    """The module plotext, without its manual and tests; whole, should a newer one need them."""
    unused = {"plotext._doc.doc": {"docs": None}, "plotext._tests.run": {"test": None}}
    unneeded = ["PIL", "_hashlib"] if _has_own_hashes() else ["PIL"]
    before = set(sys.modules)
    try:
        with absent(*unneeded), stand_ins(unused):
            return importlib.import_module("plotext")
    except (ImportError, AttributeError):
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == "plotext":
                del sys.modules[name]
        return importlib.import_module("plotext")


def _has_own_hashes() -> bool:
    """Whether hashlib works without OpenSSL: some distributions build Python without its own hashes."""
    there = {name: find_spec(name) is not None for name in (*_HASHES, *_SHA2, *_SHA2_BEFORE_312)}
    own_sha2 = all(there[name] for name in _SHA2) or all(there[name] for name in _SHA2_BEFORE_312)
    return own_sha2 and all(there[name] for name in _HASHES)


def _glibc() -> ctypes.CDLL | None:
    """The C library, where it is glibc; musl and macOS have nothing to set or to trim."""
    try:
        libc = ctypes.CDLL(None)
        found = libc.mallopt and libc.malloc_trim
    except (AttributeError, OSError):
        return None
    return libc if found else None


def _few_arenas() -> None:
    """Have the threads share a few arenas: each of its own keeps back what was freed in it."""
    if (libc := _glibc()) is not None:
        libc.mallopt(_M_ARENA_MAX, ARENAS)
