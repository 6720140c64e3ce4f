"""When yolomon itself fails: a line for the user, the details in a file for a bug report."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import platformdirs

from yolomon.messages import Translate


def told(tr: Translate) -> str:
    """The line about the exception that is being handled; its traceback is written beside other state."""
    error = sys.exc_info()[1]
    words = type(error).__name__ if error is not None else ""
    folder = Path(platformdirs.user_state_dir("yolomon"))
    file = folder / "crash.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(traceback.format_exc(), "utf-8")
    except OSError:  # a read-only home: the line must do
        return tr("yolomon failed ({error}). The training is not affected.", error=words)
    return tr(
        "yolomon failed ({error}). The training is not affected. Details for a bug report: {file}",
        error=words,
        file=str(file),
    )
