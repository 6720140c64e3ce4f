"""Which log a folder stands for: chosen like the dashboard does, and told."""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolomon import live
from yolomon.commands.printed import say
from yolomon.messages import Translate, UserError, msg
from yolomon.trainlog.discover import Candidate, find_logs

SHOWN = 5


def files(names: Sequence[str], tr: Translate) -> list[str]:
    """The names, each folder replaced by the logs of the run in it that is taken; that is told on stderr.

    Raises:
        UserError: there is no log in a folder.
    """
    found: list[str] = []
    for name in names:
        if not live.is_folder(name):
            found.append(name)
            continue
        candidates = find_logs(name)
        if not candidates:
            raise UserError(msg("{path} holds no log that yolomon knows", path=name))
        tell(candidates, tr)
        found += candidates[0].paths
    return list(dict.fromkeys(found))


def tell(candidates: Sequence[Candidate], tr: Translate) -> None:
    """Say that the first of these is read, and what else is there."""
    if not candidates:
        return
    first, others = candidates[0], candidates[1:]
    say(tr("reading {log}", log=_described(first, tr)), err=True)
    offer(others, tr)


def offer(candidates: Sequence[Candidate], tr: Translate) -> None:
    """Say what is there and is not read."""
    for other in candidates[:SHOWN]:
        say(tr("not read: {log}", log=_described(other, tr)), err=True)
    if len(candidates) > SHOWN:
        say(tr("not read: {count} more", count=len(candidates) - SHOWN), err=True)


def tell_found(session: live.Session, tr: Translate) -> None:
    """Where no log was named: say which one was found, or that the user has to name one."""
    candidates = session.candidates()
    if session.followed:
        followed = [c for c in candidates if c.paths and c.paths[0] == str(session.followed[0])]
        tell([*followed, *(c for c in candidates if c not in followed)], tr)
    elif candidates:
        say(tr("Several logs fit equally well; name the one that is meant:"), err=True)
        offer(candidates, tr)
    else:
        say(tr("No training log was found in this folder; name one."), err=True)


def _described(candidate: Candidate, tr: Translate) -> str:
    """The logs of one run, with their format and why they are offered."""
    first, *others = candidate.paths
    with_others = "".join(f" + {os.path.basename(path)}" for path in others)  # noqa: PTH119
    return f"{first + with_others} ({candidate.format}, {tr(candidate.reason)})"
