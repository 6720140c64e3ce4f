"""Every test here looks at yolomon as a person does: in a tmux of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fake_nvml.build import CompilerMissingError, build
from tests.terminal.tmux import ROOT, YOLOMON, Pane, Tmux

Open = Callable[..., Pane]


@pytest.fixture(scope="session")
def tmux() -> Iterator[Tmux]:
    """The server; it ends with the tests."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed: apt-get install tmux")
    server = Tmux(f"yolomon-test-{os.getpid()}")
    yield server
    server.close()


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a user on a plain UTF-8 terminal, with nothing kept from earlier runs."""
    home = tmp_path_factory.mktemp("home")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "LC_ALL": "",
        "LANGUAGE": "",
        "TZ": "UTC",
    }


@pytest.fixture
def yolomon(tmux: Tmux, surroundings: dict[str, str], tmp_path: Path) -> Iterator[Open]:
    """Opens yolomon with these arguments in a new pane; the pane is closed after the test."""
    panes: list[Pane] = []

    def opened(
        *arguments: str, folder: Path = tmp_path, columns: int = 140, rows: int = 40, **more: str
    ) -> Pane:
        pane = tmux.open(
            [*YOLOMON, *arguments],
            folder=folder,
            environment={**surroundings, **more},
            columns=columns,
            rows=rows,
        )
        panes.append(pane)
        return pane

    yield opened
    for pane in panes:
        pane.close()


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled fake NVML."""
    try:
        return build(tmp_path_factory.mktemp("fake_nvml"))
    except CompilerMissingError as error:
        pytest.skip(str(error))


class Machine:
    """GPUs of a fake NVML for programs in panes."""

    def __init__(self, library: Path, scenario: Path) -> None:
        self._scenario = scenario
        self.environment = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_SCENARIO": str(scenario)}

    def play(self, *lines: str) -> None:
        """Replace the scenario, also in the middle of a run."""
        written = self._scenario.with_suffix(".new")
        written.write_text("\n".join(lines) + "\n")
        written.replace(self._scenario)


@pytest.fixture
def machine(fake_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Two GPUs at work."""
    made = Machine(fake_library, tmp_path_factory.mktemp("scenario") / "scenario")
    made.play("system gpus 2")
    yield made
    made.play("system gpus 2")  # whatever hangs is let go
