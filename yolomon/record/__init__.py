"""Recordings: written, compared, and the one that ships inside the package."""

from __future__ import annotations

from pathlib import Path


def demo_path() -> Path:
    """The recording that `yolomon demo` plays. How it was made: `yolomon.record.make_demo`."""
    return Path(__file__).with_name("demo") / "demo.jsonl.gz"
