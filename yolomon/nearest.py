"""The right name that is nearest to a wrong one: for settings, thresholds, codes and commands alike."""

from __future__ import annotations

from collections.abc import Iterable

ENOUGH = 0.6  # of difflib's ratio: two letters swapped, one missing, a word cut


def nearest(name: str, names: Iterable[str], enough: float = ENOUGH) -> str | None:
    """The most similar of `names`, upper and lower case alike; None where none is similar enough."""
    from difflib import get_close_matches  # 5 ms that a right name need not wait for

    known = {known.lower(): known for known in names}
    found = get_close_matches(name.lower(), known, n=1, cutoff=enough)
    return known[found[0]] if found else None
