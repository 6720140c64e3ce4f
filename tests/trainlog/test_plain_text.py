"""Text of a log made harmless."""

from __future__ import annotations

import pytest

from yolomon.trainlog.plain_text import plain, shown


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[34m\x1b[1mtrain: \x1b[0mok", "train: ok"),
        (b"\x1b[K  1/3", "  1/3"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link", "link"),
        (b"\x1b]52;c;unfinished", ""),
        (b"bell\x07 back\x08space\x00", "bell backspace"),
        ("\x9b31mred".encode(), "red"),
        ("right\u202eleft".encode(), "rightleft"),
        (b"\xff\xfe bad", "\ufffd\ufffd bad"),
        ("Über ━ 🚀".encode(), "Über ━ 🚀"),
        (b"a\tb", "a\tb"),
        (b"end\x1b", "end"),
    ],
)
def test_plain(raw: bytes, text: str) -> None:
    assert plain(raw) == text


def test_shown_is_one_short_line() -> None:
    assert shown("a\tb   c\x1b[31m\n") == "a b c"
    assert shown("x" * 600) == "x" * 499 + "…"
