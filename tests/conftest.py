"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("yolomon", deadline=None)  # a busy machine is no failure
settings.load_profile("yolomon")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of labelled traces and real logs beside the repository, where there is one."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "traces").is_dir():
        pytest.skip("no folder of recordings beside the repository")
    return folder
