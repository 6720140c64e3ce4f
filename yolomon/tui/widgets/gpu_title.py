"""The line over GPUs that have no frame of their own: which they are, which is worst, what a sign means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from yolomon.history import GpuHistory
from yolomon.tui.canvas import Line, fill, width_of
from yolomon.tui.view import Frame
from yolomon.tui.words import cells_of, fit_words, plain

Judged = tuple[GpuHistory, str, str]  # a GPU, its judgement as "⚠ slow rank", the judgement's ink
_GRAVITY = {"crit": 0, "warn": 1}


def wait_legend(frame: Frame) -> str:
    """The sign of a GPU that is busy and does no work, and what it means."""
    return frame.tr("{sign} only waits", sign=frame.glyphs.wait)


def shows_waits(lines: Iterable[Line]) -> bool:
    """Whether that sign is in a graph."""
    return any(ink == "wait" for line in lines for _, ink in line)


def model_of(gpu: GpuHistory) -> str:
    """A GPU's name without what all names have in common; with its mode when it is partitioned."""
    name = plain(gpu.info.name).removeprefix("NVIDIA ").removeprefix("GeForce ").strip()
    name = "" if name == "GPU" else name
    return f"{name} MIG".lstrip() if gpu.info.mig_enabled and not name.endswith("MIG") else name


def which(frame: Frame, gpus: Sequence[GpuHistory]) -> str:
    """As "GPUs 0–5"; where numbers are left out "GPUs 0, 2, 5", where these are many "6 GPUs"."""
    numbers = [gpu.info.index for gpu in gpus]
    if len(numbers) == 1:
        return f"GPU {numbers[0]}"
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return frame.tr("GPUs {which}", which=f"{numbers[0]}{frame.glyphs.range}{numbers[-1]}")
    if len(numbers) <= 4:
        return frame.tr("GPUs {which}", which=", ".join(str(number) for number in numbers))
    return frame.tr("{n} GPUs", n=len(numbers))


def title_line(
    frame: Frame,
    gpus: Sequence[GpuHistory],
    width: int,
    *,
    unit: str = "",
    waits: bool = False,
    judged: Sequence[Judged] = (),
) -> Line:
    """The heading; what is short of room goes in this order: the model's name, the judgement's words.

    `unit` says what the numbers below are where they do not say so themselves.
    """
    if not gpus:
        return fill([], width)
    glyphs = frame.glyphs
    base = f" {which(frame, gpus)}"
    unit = f" {glyphs.dot} {unit}" if unit else ""
    legend = f" {wait_legend(frame)} " if waits else ""
    room = width - cells_of(base) - cells_of(legend) - 2
    worst, ink = _worst(frame, judged, room)
    room -= cells_of(worst)
    unit = unit if cells_of(unit) + 1 <= room else ""
    room -= cells_of(unit)
    name = ""
    if room >= 9:
        kinds = {(gpu.info.name, gpu.info.mig_enabled): gpu for gpu in gpus}  # mostly one: 64 times the same
        names = dict.fromkeys(filter(None, map(model_of, kinds.values())))
        name = fit_words(", ".join(names), room - 3, glyphs.ellipsis)
    line: Line = [(base, "title")]
    if name:
        line.append((f" {glyphs.dot} {name}", "dim"))
    line += [(unit, "dim"), (" ", "text")]
    rest = width - width_of(line) - cells_of(worst) - cells_of(legend) - (0 if legend else 1)
    line += [(glyphs.horizontal * max(0, rest), "frame"), (worst, ink), (legend, "wait")]
    return fill([span for span in line if span[0]], width, "frame")


def _worst(frame: Frame, judged: Sequence[Judged], room: int) -> tuple[str, str]:
    """As " ⚠ GPU 1: slow rank, 2 more ", shorter where room is short, and its ink."""
    if not judged:
        return "", "text"
    gpu, words, ink = min(judged, key=lambda found: _GRAVITY.get(found[2], 2))
    sign, _, said = words.partition(" ")
    more = f" +{len(judged) - 1}" if len(judged) > 1 else ""
    short = f" {sign} GPU {gpu.info.index}"
    for text in (f"{short}: {said}{more} ", f"{short}{more} ", f"{short} "):
        if cells_of(text) <= room:
            return text, ink
    return "", "text"
