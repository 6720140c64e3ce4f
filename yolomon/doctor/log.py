"""The log that the user named: whether it can be read, and what is in it."""

from __future__ import annotations

import stat
import time
from pathlib import Path

from yolomon.doctor.check import Check
from yolomon.messages import msg
from yolomon.trainlog.formats.base import Head
from yolomon.trainlog.formats.registry import recognise
from yolomon.units import duration

HEAD_BYTES = 64 * 1024


def log_check(path: str) -> Check:
    """Look at one file as the dashboard would before it follows it."""
    file = Path(path)
    try:
        found = file.stat()
        if stat.S_ISDIR(found.st_mode):
            return Check(
                "log",
                "FAIL",
                msg("{path} holds no log that yolomon knows", path=path),
                msg("Name the log itself, for example results.csv or a .jsonl file"),
            )
        if not stat.S_ISREG(found.st_mode):
            return Check(
                "log",
                "WARN",
                msg("{path} is no regular file: its format is seen only while it is read", path=path),
            )
        with file.open("rb") as opened:
            data = opened.read(HEAD_BYTES)
    except FileNotFoundError:
        return Check(
            "log",
            "FAIL",
            msg("{path} does not exist (yet)", path=path),
            msg("The dashboard waits for it; check the path if the training runs already"),
        )
    except OSError as error:
        return Check(
            "log",
            "FAIL",
            msg("{path} cannot be read: {why}", path=path, why=error.strerror or str(error)),
            msg("Check its permissions and those of the folders above"),
        )
    if not data.strip():
        return Check("log", "WARN", msg("{path} is empty", path=path))
    known = recognise(Head(file.name, file.absolute().parent.name, data))
    if known is None:
        return Check(
            "log",
            "FAIL",
            msg("{path} is in no format that yolomon knows", path=path),
            msg("Write JSON lines beside it: `yolomon run COMMAND`, or yolomon.attach(model) in the script"),
        )
    age = max(0.0, time.time() - found.st_mtime)
    return Check(
        "log",
        "PASS",
        msg("{format}; last written {age} ago", format=known.title, age=duration(age)),
    )
