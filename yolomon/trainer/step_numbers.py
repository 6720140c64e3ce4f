"""What an Ultralytics trainer knows of a step, without waiting: losses, learning rates, gradient scale."""

from __future__ import annotations

from collections.abc import Mapping

from yolomon.trainer.foreign import Json, Tensor, Trainer
from yolomon.trainer.plain import number, short
from yolomon.trainer.readings import Held, on_device, without_graph

RATES = ("lr/pg0", "lr/pg1", "lr/pg2", "lr/pg3")  # written with a step; all of them are in fit_epoch_end
TIMES = ("data_time", "step_time")


def step_fields(
    trainer: Trainer,
    step: Mapping[str, float | None],
    items: Json,
    rates: Mapping[str, Json],
    more: Mapping[str, object],
) -> tuple[dict[str, object], Held | None]:
    """The fields of a step's line, and the losses still to be read, of what was noted when it was over.

    Args:
        trainer: names the losses of a vector.
        step: counts, and times in seconds.
        items: its `loss_items` as `cut_off` gave them.
        rates: as `learning_rates` gave them.
        more: what was read because the line was due; else nothing, and nothing is read from a device now.
    """
    numbers, held = losses(trainer, items)
    times = {name: None if step[name] is None else round(step[name] or 0.0, 5) for name in TIMES}
    known = {name: float(rate) for name, rate in rates.items() if more or not on_device(rate)}
    return {**step, **times, **numbers, **known, **more}, held


def cut_off(items: Json) -> Json:
    """The losses without the graph that made them: it must not live until they are written."""
    if isinstance(items, Mapping):
        if any(getattr(value, "requires_grad", False) for value in items.values()):
            return {name: without_graph(value) for name, value in items.items()}
        return dict(items)
    return without_graph(items)


def losses(trainer: Trainer, items: Json) -> tuple[dict[str, float], Held | None]:
    """A step's losses: those that are plain numbers, and those in tensors, which are not read here.

    Args:
        trainer: names the parts of a vector.
        items: its `loss_items`: a vector or a scalar, since 8.4.101-8.4.120 a dict of scalars.
    """
    if items is None:
        return {}, None
    if not isinstance(items, Mapping):
        if hasattr(items, "requires_grad"):
            return {}, Held(_names(trainer, items), (items,))
        items = {"loss": items}
    tensors = {
        f"train/{name}": value
        for name, value in items.items()
        if hasattr(value, "requires_grad") and value.numel() == 1
    }
    numbers: dict[str, float] = {}
    for name, value in items.items() if len(tensors) < len(items) else ():
        if f"train/{name}" not in tensors and (found := number(value)) is not None:
            numbers[f"train/{name}"] = short(found)
    return numbers, Held(tuple(tensors), tuple(tensors.values())) if tensors else None


def _names(trainer: Trainer, items: Tensor) -> tuple[str, ...]:
    names = [str(name) for name in getattr(trainer, "loss_names", ()) or ()]
    if items.ndim == 0:
        return (f"train/{names[0]}" if len(names) == 1 else "train/loss",)
    count = items.numel()
    if len(names) != count:
        names = [f"loss_{index}" for index in range(count)]
    return tuple(f"train/{name}" for name in names)


def learning_rates(trainer: Trainer) -> dict[str, Json]:
    """By parameter group: numbers, or tensors where the optimizer keeps them on the device."""
    groups = getattr(getattr(trainer, "optimizer", None), "param_groups", None) or ()
    return {name: group["lr"] for name, group in zip(RATES, groups, strict=False)}


def gradient_scale(trainer: Trainer) -> Tensor | float | None:
    """What AMP multiplied the loss by, without waiting for the GPU where torch keeps it in a tensor."""
    scaler = getattr(trainer, "scaler", None)
    if scaler is None or not scaler.is_enabled():
        return None
    scale = getattr(scaler, "_scale", None)
    return scale if scale is not None else float(scaler.get_scale())
