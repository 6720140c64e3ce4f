"""`yolomon run COMMAND...`: run any command so that Ultralytics trainings in it write a stream, with no code.

The command runs with a folder in front of PYTHONPATH whose `sitecustomize` looks out for Ultralytics' trainer
module and attaches when it is imported. The environment is inherited, so the ranks of a DDP run, a tuner's
trainings and scripts that start scripts are reached too. Other packages of the command's Python are
untouched, and yolomon need not be installed there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from yolomon.trainer.autoattach import FEATURES_VARIABLE

SHIM = Path(__file__).resolve().parent / "shim"
COMMAND_NOT_FOUND = 127
COMMAND_NOT_STARTED = 126


def run(argv: Sequence[str], *, features: bool = False) -> int:
    """Become `argv`: signals, the terminal and the exit status are then the command's own.

    Args:
        argv: the command and its arguments, e.g. ["yolo", "detect", "train", "data=coco8.yaml"].
        features: statistics of feature maps and gradients too.

    Returns:
        Only where the command cannot be started, after saying why: 127 not found, 126 not executable, 2 no
        command.
    """
    if not argv:
        sys.stderr.write("yolomon run: no command, e.g. yolomon run yolo detect train data=coco8.yaml\n")
        return 2
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these; a command expects the default
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(argv[0], list(argv), environment(os.environ, features=features))
    except OSError as error:
        sys.stderr.write(f"yolomon run: cannot start {argv[0]!r}: {error.strerror}\n")
        return COMMAND_NOT_FOUND if isinstance(error, FileNotFoundError) else COMMAND_NOT_STARTED


def environment(base: Mapping[str, str], *, features: bool = False) -> dict[str, str]:
    """`base` with what makes Python processes started in it attach to Ultralytics."""
    given = base.get("PYTHONPATH", "")
    paths = [path for path in given.split(os.pathsep) if path != str(SHIM)] if given else []
    return {
        **base,
        "PYTHONPATH": os.pathsep.join([str(SHIM), *paths]),
        FEATURES_VARIABLE: "1" if features else "0",
    }
