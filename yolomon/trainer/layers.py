"""Which layers of a model to look at, and which parameters belong together.

Ultralytics, YOLOv5 and YOLOv7 build a model as `model.model`, a sequence whose members know their index
(`i`) and where their input comes from (`f`); the last member is the head. Backbone, neck and head are read
off that sequence, so no model name is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from yolomon.trainer.foreign import Module

BOX_BRANCHES = ("cv2", "one2one_cv2", "dec_bbox_head")  # Ultralytics' Detect family, end-to-end, RT-DETR
CLASS_BRANCHES = ("cv3", "one2one_cv3", "dec_score_head")
JOINT_BRANCHES = ("m",)  # YOLOv5's and YOLOv7's Detect: box, objectness and class in one convolution a scale
GENERIC_LIMIT = 24  # layers of a model that is no YOLO


@dataclass(frozen=True)
class Layers:
    """Modules to look at, and the groups of the model, both by the name that goes into the stream."""

    hooked: dict[str, Module] = field(default_factory=dict)
    groups: dict[str, tuple[Module, ...]] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()  # patterns that fit no module


def unwrap(model: Module) -> Module:
    """The model inside DataParallel, DistributedDataParallel and torch.compile wrappers."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in {"DataParallel", "DistributedDataParallel"}:
            inner = model.module
        if inner is None:
            return model
        model = inner


def choose(model: Module, patterns: Sequence[str] | None = None) -> Layers:
    """Layers of `model` (unwrapped) whose dotted names fit `patterns` (shell style), or a default choice.

    The default for a YOLO is the end of each backbone stage, what the neck hands to the head, and the
    head's box and class branches, one a scale; for another model its direct parts.
    """
    members = yolo_sequence(model)
    split = backbone_length(model, members) if members is not None else 0
    parts = _yolo_groups(members, split) if members is not None else _generic_parts(model)
    groups = {name: modules for name, modules in parts.items() if any(map(_has_parameters, modules))}
    if patterns is not None:
        named = list(model.named_modules())
        hooked = {name: module for name, module in named if name and _fits(name, patterns)}
        unmatched = tuple(p for p in patterns if not any(_fits(name, (p,)) for name, _ in named))
        return Layers(hooked, groups, unmatched)
    if members is not None:
        return Layers(dict(_yolo_layers(members, split)), groups)
    return Layers({name: modules[0] for name, modules in list(groups.items())[:GENERIC_LIMIT]}, groups)


def yolo_sequence(model: Module) -> list[Module] | None:
    """The members of a YOLO-style `model.model`, or None for any other model."""
    inner = getattr(model, "model", None)
    if inner is None or not hasattr(inner, "__len__"):
        return None
    members = list(inner)
    if len(members) < 3 or not all(hasattr(m, "f") and hasattr(m, "i") for m in members):
        return None
    return members


def backbone_length(model: Module, members: Sequence[Module]) -> int:
    """How many members are backbone: by the model's own configuration, else all before an upsampling.

    A classifier has no neck: all before its head is backbone.
    """
    configuration = getattr(model, "yaml", None)
    rows = configuration.get("backbone") if isinstance(configuration, dict) else None
    if isinstance(rows, list) and 0 < len(rows) < len(members):
        return len(rows)
    for index, member in enumerate(members):
        if type(member).__name__ == "Upsample":
            return index
    return len(members) - 1


def _yolo_groups(members: Sequence[Module], split: int) -> dict[str, tuple[Module, ...]]:
    return {
        "backbone": tuple(members[:split]),
        "neck": tuple(members[split:-1]),
        "head": (members[-1],),
    }


def _yolo_layers(members: Sequence[Module], split: int) -> Iterator[tuple[str, Module]]:
    head = members[-1]
    for index in range(1, split):
        ends_stage = _downsamples(members[index + 1]) and not _only_downsamples(members[index])
        if index == split - 1 or ends_stage:
            yield _named("backbone", members[index]), members[index]
    sources = head.f if isinstance(head.f, (list, tuple)) else [head.f]
    for source in sources:
        index = source if source >= 0 else len(members) - 1 + source
        if split <= index < len(members) - 1:
            yield _named("neck", members[index]), members[index]
    yield from _head_layers(head)


def _head_layers(head: Module) -> Iterator[tuple[str, Module]]:
    found = False
    kinds = (("box", BOX_BRANCHES), ("class", CLASS_BRANCHES), ("out", JOINT_BRANCHES))
    for kind, attributes in kinds:
        for attribute in attributes:
            branch = getattr(head, attribute, None)
            if branch is None or not hasattr(branch, "__len__") or not hasattr(branch, "parameters"):
                continue
            suffix = ".one2one" if attribute.startswith("one2one") else ""
            for scale, module in enumerate(branch):
                found = True
                yield f"head.{kind}{suffix}.{scale}", module
    if not found:
        yield _named("head", head), head


def _named(part: str, member: Module) -> str:
    return f"{part}.{member.i}.{type(member).__name__}"


def _downsamples(member: Module) -> bool:
    """Whether the member halves the resolution: a convolution or pooling in it has stride 2."""
    return any(_stride(module) == 2 for module in member.modules())


def _only_downsamples(member: Module) -> bool:
    """Whether it is no more than the step between two stages: one or two convolutions, one of stride 2."""
    strides = [stride for stride in map(_stride, member.modules()) if stride is not None]
    return len(strides) <= 2 and 2 in strides


def _stride(module: Module) -> int | None:
    stride = getattr(module, "stride", None)
    if stride is None or not hasattr(module, "kernel_size"):
        return None
    return int(stride[0]) if isinstance(stride, (tuple, list)) else int(stride)


def _generic_parts(model: Module) -> dict[str, tuple[Module, ...]]:
    prefix = ""
    while True:
        children = [(name, child) for name, child in model.named_children() if _has_parameters(child)]
        if len(children) != 1:
            break
        name, model = children[0]
        prefix += name + "."
    if not children:
        return {prefix.rstrip(".") or "model": (model,)}
    return {prefix + name: (child,) for name, child in children}


def _has_parameters(module: Module) -> bool:
    return next(iter(module.parameters()), None) is not None


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
