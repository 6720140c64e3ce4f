"""The keys as the bindings have them: one source for help and the command palette."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual.binding import Binding

_WORDS = {
    "question_mark": "?", "plus": "+", "equals_sign": "=", "minus": "-", "slash": "/", "escape": "Esc",
    "left_square_bracket": "[", "right_square_bracket": "]",
    "left": "←", "right": "→", "up": "↑", "down": "↓",
    "pageup": "PgUp", "pagedown": "PgDn", "enter": "Enter", "space": "Space", "tab": "Tab", "end": "End",
    "home": "Home", "shift+tab": "Shift+Tab", "less_than_sign": "<", "greater_than_sign": ">",
    "comma": ",", "full_stop": ".",
}  # fmt: skip
_ASCII = {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down"}


def key_words(keys: str, *, ascii_only: bool = False) -> str:
    """The keys of a binding as they are printed on a keyboard: "plus,equals_sign" as "+ =" ."""
    words = []
    for key in keys.split(","):
        word = _WORDS.get(key, key)
        if word.startswith("ctrl+"):
            word = "Ctrl-" + word.removeprefix("ctrl+").upper()
        words.append(_ASCII.get(word, word) if ascii_only else word)
    return " ".join(words)


def own_bindings(kind: type[Any]) -> Iterator[Binding]:
    """The bindings of a class and of those of ours that it extends, with a tooltip, the class's own first."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("yolomon."):
            continue
        for binding in base.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.tooltip and binding.key not in seen:
                seen.add(binding.key)
                yield binding
