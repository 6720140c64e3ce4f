"""Roles by name: what the numbers of any trainer's record mean, in one unit.

Names are compared without case and separators, so that `metrics/mAP50(B)`, `bbox_mAP_50` and `AP50` are one.
What a set of names means is worked out once and kept, so that a record costs a few look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Literal

import msgspec

from yolomon.model import Roles

Phase = Literal["train", "validation"] | None
MIB = float(1 << 20)
GIB = float(1 << 30)
PLANS_LIMIT = 512  # key sets remembered; a log whose keys never repeat must not fill the memory

_SQUASH = re.compile(r"[^a-z0-9]+")
_SPLIT = re.compile(r"[^a-z0-9]+")
_SUFFIX = re.compile(r"\(([bmpo])\)\s*$", re.IGNORECASE)
# What a number belongs to, before its own name: "batch/learning_rate", "epoch/val_loss".
_SCOPE = re.compile(r"(?:batch|epoch|step|iter|iteration|params|profile|system|charts)[/.:](?=\D)")
_MAP_STRICT = re.compile(r"m?ap(?:iou)?(?:50|05|050|5)t?o?(?:95|095)(?:all)?$")
_MAP_50 = re.compile(r"m?ap(?:iou)?(?:50|05|050|5)(?:all)?$")
_MAP_PLAIN = re.compile(r"(?:^|bbox|coco|val|test|eval|metrics?|valid|validation|box|ema|best)m?ap$")
_AP_WORD = re.compile(r"(?:m?ap)?(?:iou)?(?:50|05|0|5|50to95|5095|95)?$")
_AUXILIARY = re.compile(r"_(?:aux|dn|enc|pre|interm)(?:_\d+)?(?:_|$)|_\d+$|unscaled")
_EVALUATION = frozenset({"val", "valid", "validation", "eval", "test"})
_OTHER_TASK = frozenset({"segm", "mask", "keypoints", "pose", "proposal"})
_OF_ALL = _EVALUATION | _OTHER_TASK | {
    "train", "metrics", "metric", "bbox", "box", "ema", "best", "coco", "all", "overall", "mean", "average",
    "precision", "m",
}  # fmt: skip
_PARTS_WITHOUT_WORD = re.compile(r"^(?:train_)?(?:box|cls|obj|dfl|giou|iou|l1|seg|kobj)$")
_NOT_LOSS = frozenset({"scale", "scaler", "weight", "weights", "ratio", "gain", "step", "nan", "count"})

_EXACT: dict[str, tuple[str, int, float]] = {
    # squashed name without train/val prefix -> (role, rank: lower wins, factor)
    "lr": ("learning_rate", 0, 1.0),
    "learningrate": ("learning_rate", 0, 1.0),
    "trainlr": ("learning_rate", 0, 1.0),
    "lrpg0": ("learning_rate", 1, 1.0),
    "xlr0": ("learning_rate", 1, 1.0),
    "lr0": ("learning_rate", 1, 1.0),
    "lrgroup0": ("learning_rate", 1, 1.0),
    "learningrate0": ("learning_rate", 1, 1.0),
    "learningrategroup0": ("learning_rate", 1, 1.0),
    "optlr": ("learning_rate", 1, 1.0),
    "optimizerlr": ("learning_rate", 1, 1.0),
    "lrpg1": ("learning_rate", 2, 1.0),
    "baselr": ("learning_rate", 3, 1.0),
    "precision": ("precision", 0, 1.0),
    "recall": ("recall", 0, 1.0),
    "fitness": ("fitness", 0, 1.0),
    "ips": ("images_per_second", 0, 1.0),
    "imagespersecond": ("images_per_second", 0, 1.0),
    "imagespersec": ("images_per_second", 0, 1.0),
    "imgspersec": ("images_per_second", 0, 1.0),
    "imgpersec": ("images_per_second", 0, 1.0),
    "imgs": ("images_per_second", 1, 1.0),  # img/s
    "imagess": ("images_per_second", 1, 1.0),
    "imgss": ("images_per_second", 1, 1.0),
    "imgsec": ("images_per_second", 1, 1.0),
    "imagessec": ("images_per_second", 1, 1.0),
    "sampless": ("images_per_second", 1, 1.0),
    "samplessec": ("images_per_second", 1, 1.0),
    "samplespers": ("images_per_second", 1, 1.0),
    "imagespers": ("images_per_second", 0, 1.0),
    "imgspers": ("images_per_second", 0, 1.0),
    "samplespersecond": ("images_per_second", 1, 1.0),
    "samplespersec": ("images_per_second", 1, 1.0),
    "throughput": ("images_per_second", 2, 1.0),
    "datatime": ("data_seconds", 0, 1.0),
    "dataseconds": ("data_seconds", 0, 1.0),
    "datawait": ("data_seconds", 1, 1.0),
    "datacost": ("data_seconds", 0, 1.0),
    "timedata": ("data_seconds", 0, 1.0),
    "steptime": ("step_seconds", 0, 1.0),
    "stepseconds": ("step_seconds", 0, 1.0),
    "secondsperstep": ("step_seconds", 0, 1.0),
    "timeperstep": ("step_seconds", 0, 1.0),
    "itertime": ("step_seconds", 0, 1.0),
    "timeperiter": ("step_seconds", 0, 1.0),
    "batchtime": ("step_seconds", 0, 1.0),
    "batchcost": ("step_seconds", 0, 1.0),
    "batchseconds": ("step_seconds", 0, 1.0),
    "epochtime": ("epoch_seconds", 0, 1.0),
    "epochseconds": ("epoch_seconds", 0, 1.0),
    "timeperepoch": ("epoch_seconds", 0, 1.0),
    "trainepochtime": ("epoch_seconds", 1, 1.0),
    "gradnorm": ("gradient_norm", 0, 1.0),
    "gradientnorm": ("gradient_norm", 0, 1.0),
    "gradnormtotal": ("gradient_norm", 1, 1.0),
    "totalnorm": ("gradient_norm", 1, 1.0),
    "etaseconds": ("eta_seconds", 0, 1.0),
    "eta": ("eta_seconds", 1, 1.0),
    "timeremaining": ("eta_seconds", 1, 1.0),
    "images": ("images", 0, 1.0),
    "nimages": ("images", 1, 1.0),
    "batchimages": ("images", 0, 1.0),
    "imgsz": ("image_size", 0, 1.0),
    "imgsize": ("image_size", 0, 1.0),
    "imagesize": ("image_size", 0, 1.0),
}
_TOTAL_LOSS = {
    "loss": 0, "totalloss": 0, "losstotal": 0, "trainloss": 0, "traintotalloss": 0, "traininglossepoch": 1,
    "losssum": 0, "trainingloss": 0, "trainlossepoch": 1, "trainlossstep": 1, "lossstep": 1, "lossall": 1,
    "avgloss": 1, "runningloss": 1, "trainavgloss": 1, "losstrain": 0, "losstrainepoch": 1,
    "trainlosstotal": 0, "lossmean": 1, "meanloss": 1, "overallloss": 0, "lossavg": 1, "trainlossavg": 1,
}  # fmt: skip
_MEMORY = {
    "memory": "memory_allocated_bytes", "mem": "memory_allocated_bytes",
    "memallocated": "memory_allocated_bytes",
    "memoryallocated": "memory_allocated_bytes", "gpumem": "memory_reserved_bytes",
    "gpumemory": "memory_allocated_bytes", "cudamemory": "memory_allocated_bytes",
    "memreserved": "memory_reserved_bytes", "memoryreserved": "memory_reserved_bytes",
    "mempeak": "memory_peak_bytes", "memorypeak": "memory_peak_bytes", "peakmemory": "memory_peak_bytes",
    "maxmem": "memory_peak_bytes", "maxmemory": "memory_peak_bytes",
    "maxmemoryallocated": "memory_peak_bytes",
    "gpumemallocated": "memory_allocated_bytes", "gpumemoryallocated": "memory_allocated_bytes",
    "gpumemused": "memory_reserved_bytes", "gpumemoryused": "memory_reserved_bytes",
    "vram": "memory_reserved_bytes",
    "gpumemreserved": "memory_reserved_bytes", "gpumemoryreserved": "memory_reserved_bytes",
    "cudamem": "memory_allocated_bytes", "cudamaxmem": "memory_peak_bytes",
    "peakmem": "memory_peak_bytes", "peakgpumem": "memory_peak_bytes", "gpumempeak": "memory_peak_bytes",
    "peakgpumemory": "memory_peak_bytes", "gpumemorypeak": "memory_peak_bytes",
    "maxgpumem": "memory_peak_bytes", "maxgpumemory": "memory_peak_bytes",
}  # fmt: skip
_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0}
_UNITS = {"b": 1.0, "bytes": 1.0, "mb": MIB, "mib": MIB, "gb": GIB, "gib": GIB, "kb": 1024.0, "kib": 1024.0}


class Meaning(msgspec.Struct, frozen=True):
    """What one name means. `factor` 0 stands for a unit that only the value's size can tell."""

    role: str  # a field of Roles, "part" (training loss part) or "validation_part"; "" for none
    rank: int = 0
    factor: float = 1.0
    auxiliary: bool = False  # a part that repeats another one (deep supervision)


@lru_cache(maxsize=4096)
def meaning(name: str, phase: Phase = None) -> Meaning:
    """The role of a name. `phase` is what the record says of itself where the name does not."""
    lower = name.lower().strip()
    if scope := _SCOPE.match(lower):
        lower = lower[scope.end() :]
    suffix = _SUFFIX.search(lower)
    rank = 0
    if suffix:
        lower = lower[: suffix.start()]
        rank = 0 if suffix[1] == "b" else 5
    words = [word for word in _SPLIT.split(lower) if word]
    if _OTHER_TASK.intersection(words):
        rank += 5
    if "ema" in words:
        rank += 3
    evaluation = bool(_EVALUATION.intersection(words[:2])) or (phase == "validation" and "train" not in words)
    squashed = _SQUASH.sub("", lower)
    if "mean" in squashed:
        squashed = squashed.replace("meanaverageprecision", "map").replace("meanap", "map")
    bare = "".join(
        w
        for w in words
        if w not in _EVALUATION and w not in ("train", "metrics", "metric", "bbox", "ema", "segm")
    )
    found = _detection_metric(lower, words, squashed, bare, rank)
    if found is not None:
        return found
    if bare in ("precision", "recall", "fitness"):
        return Meaning(bare, rank)
    loss = _loss(lower, words, squashed, evaluation)
    if loss is not None:
        return loss
    if evaluation:
        return Meaning("")
    exact = _EXACT.get(squashed) or _EXACT.get(bare)
    if exact is not None:
        return Meaning(*exact)
    if words and words[-1] in _SECONDS:
        what = "".join(word for word in words[:-1] if word != "train")
        timed = _EXACT.get(what) or _EXACT.get(what + "seconds")
        if timed is not None and timed[0].endswith("_seconds"):
            return Meaning(timed[0], timed[1], _SECONDS[words[-1]])
    if squashed.startswith("lr") and words[0] == "lr" and "bias" not in words:
        return Meaning("learning_rate", 2)
    return _memory(words, squashed)


def _detection_metric(lower: str, words: list[str], squashed: str, bare: str, rank: int) -> Meaning | None:
    if "ap" not in squashed or ("ap-" in lower.replace("ap-50", "ap50") and "95" not in lower):
        return None
    if "best" in lower:
        rank += 8
    if "train" in words:
        rank += 6  # of the training images
    if "test" in words:
        rank += 1  # beside a validation
    if not all(word in _OF_ALL or _AP_WORD.match(word) for word in words):
        rank += 2  # of one class or one data set, beside that of all
    if _MAP_STRICT.search(squashed):
        return Meaning("map50_95", rank)
    if _MAP_50.search(squashed):
        return Meaning("map50", rank)
    if bare in ("ap", "map", "cocomap", "boxmap", "bestmap") or _MAP_PLAIN.search(squashed):
        return Meaning("map50_95", rank + 1)
    return None


def _loss(lower: str, words: list[str], squashed: str, evaluation: bool) -> Meaning | None:
    named = any(word.endswith("loss") or word == "losses" for word in words) or "loss" in words
    if not named and not _PARTS_WITHOUT_WORD.match("_".join(words)):
        return None
    if _NOT_LOSS.intersection(words) and squashed not in _TOTAL_LOSS:
        return Meaning("")
    auxiliary = _AUXILIARY.search("_".join(words)) is not None
    if evaluation:
        return Meaning("validation_part", auxiliary=auxiliary)
    total = _TOTAL_LOSS.get(squashed)
    if total is not None:
        return Meaning("loss", total)
    return Meaning("part", auxiliary=auxiliary)


def _memory(words: list[str], squashed: str) -> Meaning:
    factor = 0.0
    if words and words[-1] in _UNITS and len(words) > 1:
        factor = _UNITS[words[-1]]
        squashed = "".join(words[:-1])
    field = _MEMORY.get(squashed) or _MEMORY.get(squashed.removeprefix("train"))
    return Meaning("") if field is None else Meaning(field, 0, factor)


def memory_bytes(value: float, factor: float) -> float:
    """Bytes. Without a unit in the name the size tells it: a training process holds 0.2 GB to 1 TB."""
    if factor:
        return value * factor
    if value >= 1e8:
        return value
    return value * (MIB if value >= 200 else GIB)


class Plan(msgspec.Struct, frozen=True):
    """What one set of names means: the name (and factor) for each role."""

    single: tuple[tuple[str, str, float], ...]  # (role, name, factor), one name a role
    memory: tuple[tuple[str, str, float], ...]
    parts: tuple[str, ...]  # training losses to show
    summed: tuple[str, ...]  # parts whose sum is the loss; () where a total is written
    validation: tuple[str, ...]
    maps: tuple[tuple[str, str], ...]  # (role, name) of mAP
    measured: tuple[str, ...]  # if all of these are 0, nothing was measured


def plan_of(names: tuple[str, ...], phase: Phase, overrides: Mapping[str, Meaning] = {}) -> Plan:
    """What a set of names means; of several names for a role the best-ranked wins, then the first."""
    best: dict[str, tuple[int, str, float]] = {}
    parts: list[tuple[str, bool]] = []
    validation: list[tuple[str, bool]] = []
    metrics: list[str] = []
    for name in names:
        found = overrides.get(name) or meaning(name, phase)
        if found.role == "part":
            parts.append((name, found.auxiliary))
        elif found.role == "validation_part":
            validation.append((name, found.auxiliary))
        elif found.role:
            if found.role in ("map50", "map50_95", "precision", "recall"):
                metrics.append(name)
            if found.role not in best or found.rank < best[found.role][0]:
                best[found.role] = (found.rank, name, found.factor)
    main = tuple(name for name, auxiliary in parts if not auxiliary)
    single, memory, maps = [], [], []
    for role, (_, name, factor) in best.items():
        if role in ("map50", "map50_95"):
            maps.append((role, name))
        elif role.startswith("memory_"):
            memory.append((role, name, factor))
        else:
            single.append((role, name, factor))
    summed = () if "loss" in best else (main or tuple(name for name, _ in parts))
    shown = tuple(name for name, auxiliary in validation if not auxiliary)
    return Plan(
        single=tuple(single),
        memory=tuple(memory),
        parts=main,
        summed=summed,
        validation=shown,
        maps=tuple(maps),
        measured=(*shown, *metrics) if shown and metrics else (),
    )


class RoleResolver:
    """Roles of the records of one file. Keeps what it learned: plans by names, and mAP written as 0 to 100.

    Args:
        overrides: what a format knows better than the names tell ("time" is seconds a step, ...).
        map_factor: 0.01 where the format writes mAP as 0 to 100; None: a value above 1 tells.
    """

    def __init__(
        self, overrides: Mapping[str, Meaning] | None = None, map_factor: float | None = None
    ) -> None:
        self._overrides = dict(overrides or {})
        self._plans: dict[tuple[str, ...], dict[Phase, Plan]] = {}
        self._map_factor = map_factor
        self._percent_names: set[str] = set()

    def plan(self, names: tuple[str, ...], phase: Phase = None) -> Plan:
        """The plan for these names, remembered."""
        by_phase = self._plans.get(names)
        if by_phase is None:
            if len(self._plans) >= PLANS_LIMIT:
                self._plans.clear()
            by_phase = self._plans[names] = {}
        plan = by_phase.get(phase)
        if plan is None:
            plan = by_phase[phase] = plan_of(names, phase, self._overrides)
        return plan

    def map_value(self, name: str, value: float) -> float | None:
        """MAP as 0 to 1; None for -1 ("no such objects", pycocotools) and for NaN (COCO averages)."""
        if not 0.0 <= value <= 100.0:
            return None
        if self._map_factor is not None:
            return value * self._map_factor
        if value > 1.0:
            self._percent_names.add(name)
        return value * 0.01 if name in self._percent_names else value

    def roles(self, numbers: Mapping[str, float], phase: Phase = None) -> Roles:
        """The roles of one record's numbers."""
        plan = self.plan(tuple(numbers), phase)
        values: dict[str, float | dict[str, float] | None] = {}
        for role, name, factor in plan.single:
            values[role] = numbers[name] * factor if factor != 1.0 else numbers[name]
        for role, name, factor in plan.memory:
            values[role] = memory_bytes(numbers[name], factor)
        if plan.parts:
            values["losses"] = {name: numbers[name] for name in plan.parts}
        if plan.summed:
            values["loss"] = sum([numbers[name] for name in plan.summed])
        # Zeros in all of them are "not measured": Ultralytics with val=False writes 0 until the last epoch.
        if not (plan.measured and not any(numbers[name] for name in plan.measured)):
            if plan.validation:
                values["validation_losses"] = {name: numbers[name] for name in plan.validation}
            for role, name in plan.maps:
                values[role] = self.map_value(name, numbers[name])
        else:
            values.pop("precision", None)
            values.pop("recall", None)
            values.pop("fitness", None)
        return Roles(**values)  # type: ignore[arg-type]


def loss_is_broken(roles: Roles) -> bool:
    """Whether a training or validation loss is NaN or infinite (metrics that are NaN are often benign)."""
    if roles.loss is not None and not isfinite(roles.loss):
        return True
    return any(not isfinite(v) for v in roles.losses.values()) or any(
        not isfinite(v) for v in roles.validation_losses.values()
    )
