"""One frame of a progress bar: tqdm's own and the look-alike of Ultralytics 8.3.180 and later."""

from __future__ import annotations

import re
from typing import NamedTuple

from yolomon.trainlog.formats.numbers import duration

_BAR = re.compile(
    r"(?:^|:) *(\d{1,3})%"
    r"(?:\|[^|]*\|| [━─╸]*|(?= ))"
    r" *(\d{1,12}(?:\.\d*)?)([kKMG]?)/(\d{1,12}(?:\.\d*)?)([kKMG]?) *(.*)$"
)
_RATE = re.compile(r"(\d{1,12}(?:\.\d*)?)([KMk]?)(it/s|s/it)")
_ELAPSED = re.compile(r"\[([\d:.]+)<|(?:^| )([\d:.]+s?)(?:<\S*)?$")
_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}


class Frame(NamedTuple):
    """A redraw of a bar: `done` of `total` steps, and the words before it."""

    words: str
    done: int
    total: int
    steps_per_second: float | None
    elapsed_seconds: float | None
    postfix: str  # what follows the total: rate, times, and tqdm's postfix


def frame(text: str) -> Frame | None:
    """Read a frame; None where the text holds no bar or the bar itself was cut off by a narrow terminal."""
    if "%" not in text:
        return None
    match = _BAR.search(text)
    if match is None:
        return None
    percent, done, done_unit, total, total_unit, rest = match.groups()
    if not rest and (total := _whole_total(percent, done, total)) == "":
        return None
    rate = _RATE.search(rest)
    steps_per_second = None
    if rate is not None:
        value = float(rate[1]) * _SCALE[rate[2]]
        steps_per_second = value if rate[3] == "it/s" else (1.0 / value if value > 0 else None)
    elapsed = _ELAPSED.search(rest)
    return Frame(
        words=text[: match.start()],
        done=int(float(done) * _SCALE[done_unit]),
        total=int(float(total) * _SCALE[total_unit]),
        steps_per_second=steps_per_second,
        elapsed_seconds=duration(elapsed[1] or elapsed[2]) if elapsed is not None else None,
        postfix=rest,
    )


def _whole_total(percent: str, done: str, total: str) -> str:
    """The total where nothing follows it: a narrow terminal may have cut its last digits. "" for unknown."""
    if percent == "100":
        return done
    share = 100 * float(done) / float(total) if float(total) else -1.0
    return total if abs(share - int(percent)) <= 1 else ""


def whole_words(words: str) -> list[str]:
    """The words that are complete.

    One directly followed by `…` was cut by the terminal's width and is dropped, with all that comes after it.
    """
    complete = []
    for word in words.split():
        if "…" in word:
            break
        complete.append(word)
    return complete


def whole_postfix(postfix: str) -> str:
    """The postfix without its last value where the terminal cut it: it may be half a number."""
    if "[" not in postfix or postfix.rstrip().endswith("]"):
        return postfix
    return postfix[: max(0, postfix.rfind(", "))]
