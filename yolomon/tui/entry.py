"""A line of text that the user types at the bottom of the screen: a filter, a path."""

from __future__ import annotations

from collections.abc import Callable

LENGTH_LIMIT = 1024


class Entry:
    """What is typed so far.

    Args:
        prompt: shown before it, e.g. "/".
        text: what it begins with.
        on_change: called with the text after every key.
        on_done: called with the text on Enter, with None on Escape.
    """

    def __init__(
        self,
        prompt: str,
        text: str = "",
        *,
        on_change: Callable[[str], object] | None = None,
        on_done: Callable[[str | None], object] | None = None,
    ) -> None:
        self.prompt = prompt
        self.text = text
        self._on_change = on_change
        self._on_done = on_done

    @property
    def shown(self) -> str:
        """Prompt and text."""
        return self.prompt + self.text

    def key(self, key: str, character: str | None) -> bool:
        """Take one key; False once the typing is over."""
        if key in ("enter", "escape"):
            if self._on_done is not None:
                self._on_done(self.text if key == "enter" else None)
            return False
        before = self.text
        if key in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif key == "ctrl+u":
            self.text = ""
        elif key == "ctrl+w":
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif character is not None and character.isprintable() and len(self.text) < LENGTH_LIMIT:
            self.text += character
        if self.text != before and self._on_change is not None:
            self._on_change(self.text)
        return True
