"""What launchers and log collectors put in front of each line of a console, taken off again.

    [rank0]:       1/100      2.31G ...              torchrun (PyTorch 2.4 and later, on errors)
    [default0]:Epoch: [0]  [150/225]  eta: ...       torchrun --tee, --redirects
    [1,0]<stdout>: ...                               mpirun --tag-output
    0: Epoch: [0] ...                                srun --label
    (RayTrainWorker pid=4242) ...                    Ray
    2026-12-01T05:21:45.123456789Z ...               docker logs -t, kubectl logs --timestamps, GitHub Actions
    Dec 01 05:21:45 ..., [2026-12-01 05:21:45] ...   ts, journalctl
    [05:21:45.123456] ...                            scripts that print the time themselves

A stamp that belongs to the trainer's own line (`2026-12-01 05:21:45,123 - mmdet - INFO`, `... | INFO |`)
stays. Where ranks share a console, rank 0 tells how the run goes; of the others only what is wrong is kept,
so that nothing counts twice.
"""

from __future__ import annotations

import re

from yolomon.trainlog.formats.console_lines import is_alarming
from yolomon.trainlog.plain_text import plain

_PREFIX = re.compile(
    rb"[ \t]{0,16}(?:\x1b\[[0-9;]*m)*(?:"
    rb"\[(?:rank|default)(\d{1,5})\]: ?"
    rb"|\[\d{1,5},(\d{1,5})\]<std(?:out|err)>: ?"
    rb"| {0,3}0: (?!-?[\d.]+, )"  # Darknet counts its iterations so
    rb"| {0,3}([1-9]\d{0,3}): (?=  |[A-Z\[{]|\d{4}-\d\d-)"
    rb"|\(\w{1,60} pid=\d{1,9}[^)\r\n]{0,80}\) ?"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?![-|] )"
    rb"|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \| "
    rb"|\[\d\d:\d\d:\d\d(?:\.\d{1,9})?\] "
    rb"|\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\] "
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.\-]{1,80} [\w.\-/]{1,80}\[\d{1,9}\]: )?"
    rb"|\d\d:\d\d:\d\d(?:\.\d{1,9})? "
    rb")(?:(?:\x1b\[[0-9;]*m)+ ?)?"
)
_COLOURS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_MOST = 3  # a stamp, a rank and a label


def unprefixed(line: bytes) -> bytes:
    """The line without what was put in front of it; b"" where another rank says that nothing is wrong."""
    rank = 0
    for _ in range(_MOST):
        match = _PREFIX.match(line)
        if match is None:
            break
        rank = rank or int(match[1] or match[2] or match[3] or 0)
        line = line[match.end() :]
    return b"" if rank and not is_alarming(plain(line)) else line


def unprefixed_text(data: bytes) -> bytes:
    """`unprefixed` of each line of a text, and without colours; the same bytes where there is neither."""
    if b"\x1b" in data:
        data = _COLOURS.sub(b"", data)
    lines = re.split(rb"\r\n|\n|\r", data)
    if not any(_PREFIX.match(line) for line in lines):
        return data
    return b"\n".join(unprefixed(line) for line in lines)
