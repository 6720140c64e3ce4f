"""Settings of a run from the files beside its log.

Ultralytics' args.yaml, YOLOv5's opt.yaml, Lightning's hparams.yaml, MMDetection's and MMEngine's config in
Python.

Trainers write these as flat `key: value` lines, so a flat reader is enough; nested blocks are skipped. A
config in Python is read as syntax, never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from yolomon.model import RunInfo
from yolomon.trainlog.plain_text import plain, shown

SETTINGS_NAMES = ("args.yaml", "opt.yaml", "hparams.yaml")
_SIZE_LIMIT = 1 << 20  # bytes; a settings file is some kB
_LINE = re.compile(r"([A-Za-z_][\w.\-]*)\s*:(?:\s+(.*))?$")
_NOTHING = frozenset({"", "null", "None", "~", "none"})


def flat_yaml(text: str) -> dict[str, str]:
    """Top-level `key: value` lines as text, quotes removed. Nested blocks and lists are left out."""
    values = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or match[2] is None:
            continue
        value = match[2].strip()
        if value[:1] in ("'", '"'):
            end = value.find(value[0], 1)
            value = value[1:end] if end > 0 else value[1:]
        else:
            value = value.split(" #")[0].rstrip()
        values[match[1]] = value
    return values


def run_info_of_settings(settings: Mapping[str, str]) -> RunInfo:
    """What the settings of Ultralytics, YOLOv5, v7 or v9 say about a run; what they do not say is None."""

    def text(*names: str) -> str | None:
        value = next((settings[name] for name in names if name in settings), "")
        return None if value in _NOTHING else shown(value, 200)

    def real(*names: str) -> float | None:
        value = text(*names)
        try:
            return float(value) if value is not None else None
        except ValueError:
            return None

    def integer(*names: str) -> int | None:
        value = real(*names)
        return int(value) if value is not None and abs(value) < 1e9 else None

    def flag(name: str) -> bool | None:
        value = (settings.get(name) or "").lower()
        return value == "true" if value in ("true", "false") else None

    multi_scale = flag("multi_scale")
    validates = flag("val")
    if validates is None and flag("noval") is not None:
        validates = not flag("noval")
    cache = text("cache")
    return RunInfo(
        model=text("model") or text("cfg") or text("weights"),
        task=text("task"),
        data=text("data"),
        trainer="Ultralytics"
        if "imgsz" in settings and "close_mosaic" in settings and "task" in settings
        else None,
        epochs=integer("epochs", "max_epochs", "max_epoch", "num_epochs"),
        batch_size=real("batch", "batch_size", "total_batch_size"),
        image_size=integer("imgsz", "img_size", "image_size") or _first_of_list(text("imgsz", "img_size")),
        workers=integer("workers", "num_workers"),
        world_size=integer("world_size"),
        patience=integer("patience"),
        close_mosaic=integer("close_mosaic"),
        cache=None if cache in ("false", "False") else cache,
        amp=flag("amp"),
        device=text("device"),
        optimizer=text("optimizer"),
        validates=validates,
        # a flag in old versions (±50 %), a share from 8.4 on
        multi_scale=(0.5 if multi_scale else 0.0) if multi_scale is not None else real("multi_scale"),
        save_directory=text("save_dir"),
    )


def _first_of_list(value: str | None) -> int | None:
    """The first number of "[640, 640]"; YOLOv7 writes its image size as a list."""
    match = re.match(r"[\[(]\s*(\d+)", value or "")
    return int(match[1]) if match else None


def run_info_of_mm_config(source: str) -> RunInfo | None:
    """What an MMDetection or MMEngine config says: epochs, batch size a GPU, workers, image size, model.

    The config is parsed, not run; names that point at other names of the same file are followed one step.
    None where the text is no Python, or a script of another kind.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: dict[str, object] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            names[statement.targets[0].id] = _literal(statement.value, names)

    if not _looks_like_mm_config(names):
        return None

    def at(*path: str) -> object:
        value: object = names
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def integer(*candidates: object) -> int | None:
        return next(
            (int(c) for c in candidates if isinstance(c, int | float) and not isinstance(c, bool)), None
        )

    batch = integer(at("train_dataloader", "batch_size"), at("data", "samples_per_gpu"))
    scale = next((s for s in (at("img_scale"), at("img_size"), at("image_size")) if s is not None), None)
    if isinstance(scale, tuple | list) and scale:
        scale = scale[0]
    model, data = at("model", "type"), at("dataset_type")
    return RunInfo(
        model=shown(model, 200) if isinstance(model, str) else None,
        data=shown(data, 200) if isinstance(data, str) else None,
        trainer="MMEngine" if "train_dataloader" in names else ("mmcv" if "runner" in names else None),
        epochs=integer(
            at("train_cfg", "max_epochs"), at("runner", "max_epochs"), at("total_epochs"), at("max_epochs")
        ),
        batch_size=float(batch) if batch is not None else None,  # a GPU; the job's is this times the ranks
        image_size=integer(scale),
        workers=integer(at("train_dataloader", "num_workers"), at("data", "workers_per_gpu")),
    )


def _looks_like_mm_config(names: Mapping[str, object]) -> bool:
    """Whether a module of these names is a config: scripts may lie beside a log too."""
    loops = ("train_dataloader", "train_cfg", "data", "runner")
    return any(isinstance(names.get(name), dict) for name in loops) and (
        isinstance(names.get("model"), dict)
        or not {"_base_", "default_scope", "optim_wrapper"}.isdisjoint(names)
    )


def _literal(node: ast.expr, names: Mapping[str, object]) -> object:
    """The value of a literal, `dict(...)` call or name; None for anything that would have to run."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {word.arg: _literal(word.value, names) for word in node.keywords if word.arg}
    if isinstance(node, ast.Dict):
        return {
            key.value: _literal(value, names)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    if isinstance(node, ast.Name):
        return names.get(node.id)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def settings_beside(log: Path) -> RunInfo | None:
    """The settings file in the log's folder, or the one above; None where there is none to read."""
    for folder in (log.parent, log.parent.parent):
        for name in SETTINGS_NAMES:
            text = _read(folder / name)
            if text is not None:
                return run_info_of_settings(flat_yaml(text))
        try:
            configs = sorted(folder.glob("*.py"))
        except OSError:
            configs = []
        for config in configs[:5]:
            text = _read(config)
            info = run_info_of_mm_config(text) if text is not None else None
            if info is not None and info.epochs is not None:
                return info
    return None


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(_SIZE_LIMIT)
    except OSError:
        return None
    return "\n".join(plain(line) for line in data.splitlines())
