"""FeatureMonitor: statistics of feature maps and gradient norms, every N steps, on the device.

Hooks are in the model only during a sampled step, so that other steps cost nothing and a copied or saved
model never carries one. A sample is one vector on the device and one asynchronous transfer, read a step
later.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from yolomon.trainer import gradients, statistics
from yolomon.trainer.foreign import Handle, Module, Optimizer, Tensor
from yolomon.trainer.layers import Layers, choose, unwrap
from yolomon.trainer.plain import short
from yolomon.trainer.writer import JsonlLogger

BLIND_SAMPLES = 3  # samples without a sign of a layer before it is given up
COMPILED = "torch.compile: hooks cannot see inside compiled layers, so their feature statistics are missing"


@dataclass
class _Sample:
    step: int | None
    epoch: int | None
    layers: dict[str, Tensor] = field(default_factory=dict)
    norms: dict[str, Tensor] = field(default_factory=dict)
    gradient_step: int | None = None
    waited_steps: int = 0


@dataclass(frozen=True)
class _Transfer:
    sample: _Sample
    host: Tensor
    done: Any  # a torch.cuda.Event; None: there already


class FeatureMonitor:
    """Looks at chosen layers of a model every `every` training steps.

        log = yolomon.JsonlLogger("yolomon.jsonl")
        monitor = yolomon.FeatureMonitor(model, log=log)   # log(...) after each step drives it
        ...
        monitor.close()

    Without a logger call `monitor.step()` after each training step; it hands back a finished sample or None.

    A sample has, a layer, what `yolomon.trainer.statistics` describes, and `grad_norm`, `grad_norms`: the
    2-norm of the gradients as the optimizer gets them (after DDP's reduction, unscaled, after any
    clipping), in all and for the backbone, neck and head, or for a model that is no YOLO for its direct
    parts.

    Under DDP each rank sees its own feature maps. Under torch.compile hooks cannot see: such layers are
    named in `unseen`, with one warning; gradient norms go on.

    Args:
        model: any nn.Module; wrappers (DDP, DataParallel, torch.compile) are looked through.
        layers: shell-style patterns of dotted module names, e.g. ["layer?", "head.*"]. None: the end of each
            backbone stage, the neck's outputs and the head's box and class branches of a YOLO, else the
            direct parts.
        every: steps between two samples. The first step is always looked at.
        log: where "features" events go. None: nowhere, use what `step` hands back.
        watch_optimizer: measure gradients when an optimizer of this model steps. False: the caller does, with
            `measure_gradients`.
    """

    def __init__(
        self,
        model: Module,
        layers: Sequence[str] | None = None,
        every: int = 100,
        log: JsonlLogger | None = None,
        *,
        watch_optimizer: bool = True,
    ) -> None:
        self.every = max(1, every)
        self.log = log
        self.failures: list[str] = []
        self._model = unwrap(model)
        self._layers: Layers = choose(self._model, layers)
        self._parameters = gradients.parameter_groups(self._model, self._layers.groups)
        self._watch_optimizer = watch_optimizer
        self._visible = dict(self._layers.hooked)
        self._visible_ids = {id(module) for module in self._visible.values()}
        self._trigger_handle: Handle | None = None
        self._blind = dict.fromkeys(self._visible, 0)
        self._unseen: list[str] = []
        self._handles: dict[str, Handle] = {}
        self._optimizer_handle: Handle | None = None
        self._sample: _Sample | None = None
        self._transfer: _Transfer | None = None
        self._steps = 0
        self._closed = False
        self._hide_compiled(model)
        for pattern in self._layers.unmatched:
            self._say(f"no layer of the model is named {pattern!r}")
        self._arm()
        if log is not None:
            log.observe(self)

    @property
    def model(self) -> Module:
        """The model looked at, without its wrappers."""
        return self._model

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The layers it looks at, as they are called in the stream."""
        return tuple(self._layers.hooked)

    @property
    def wants_gradients(self) -> bool:
        """Whether a sample is under way that has no gradient norms yet."""
        return self._sample is not None and not self._sample.norms

    # ------------------------------------------------------------ a step

    def step(self, step: int | None = None, epoch: int | None = None) -> dict[str, Any] | None:
        """A training step is over. A finished sample is written and handed back; mostly there is none."""
        if self._closed:
            return None
        self._steps += 1
        finished = self._read_transfer(wait=False)
        sample = self._sample
        if sample is not None:
            if sample.waited_steps == 0:
                sample.step, sample.epoch = step if step is not None else self._steps, epoch
                self._end_forward()
            if sample.norms and sample.gradient_step is None:
                sample.gradient_step = step if step is not None else self._steps
            sample.waited_steps += 1
            if sample.norms or sample.waited_steps >= self.every or not self._parameters:
                self._disarm()
                self._start_transfer(sample)
                finished = finished or self._read_transfer(wait=False)
        if self._steps % self.every == 0 and self._sample is None:
            self._arm()
        return finished

    def measure_gradients(self, scale: Tensor | float | None = None) -> None:
        """Take the gradient norms of the sample under way: after the backward pass, before clearing.

        Args:
            scale: the gradient scaler's factor, where gradients are still multiplied by it.
        """
        if self._sample is None or self._sample.norms:
            return
        try:
            self._sample.norms = gradients.gradient_norms(self._parameters, scale)
        except Exception as error:  # noqa: BLE001 - called inside the training step, which must go on
            self._parameters = {}
            self._say(f"gradient norms are missing: {type(error).__name__}: {error}")

    def close(self) -> dict[str, Any] | None:
        """Take every hook out of the model and write a sample still under way, if it has anything."""
        if self._closed:
            return None
        self._closed = True
        if self.log is not None:
            self.log.forget(self)
        sample = self._sample
        self._end_forward()
        self._disarm()
        if sample is not None and sample.layers:
            self._start_transfer(sample)
        return self._read_transfer(wait=True)

    def __enter__(self) -> FeatureMonitor:
        """Itself; it is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    # ------------------------------------------------------------ hooks

    def _arm(self) -> None:
        self._sample = _Sample(step=None, epoch=None)
        modules = sys.modules.get("torch.nn.modules.module")
        register = getattr(modules, "register_module_forward_pre_hook", None)
        if self._compiled_inside or register is None:
            self._hook_layers()  # compiled modules warn of a hook on all modules
        elif self._visible:
            self._trigger_handle = register(self._before_forward)
        if self._watch_optimizer:
            optimizers = sys.modules.get("torch.optim.optimizer")
            register = getattr(optimizers, "register_optimizer_step_pre_hook", None)
            if register is None:  # torch before 2.1
                self._watch_optimizer = False
                self._say("gradient norms are missing: this torch cannot tell of an optimizer's step")
            else:
                self._optimizer_handle = register(self._before_optimizer_step)

    def _before_forward(self, module: Module, _inputs: object) -> None:
        """Called for every module until this model's forward pass begins; only then its layers get hooks.

        So between two steps, when a script copies or saves the model, none is in it.
        """
        if module.training and (module is self._model or id(module) in self._visible_ids) and not _tracing():
            self._release_trigger()
            self._hook_layers()

    def _hook_layers(self) -> None:
        for name, module in self._visible.items():
            self._handles[name] = module.register_forward_hook(_LayerHook(self, name))

    def _look(self, name: str, module: Module, output: object) -> None:
        if not module.training or name not in self._handles or self._sample is None or _tracing():
            return
        self._handles.pop(name).remove()
        try:
            tensor = statistics.first_tensor(output)
            if tensor is not None:
                self._sample.layers[name] = statistics.layer_statistics(tensor)
        except Exception as error:  # noqa: BLE001 - inside the user's forward pass, which must go on
            self._give_up(name)
            self._say(f"statistics of layer {name} are missing: {type(error).__name__}: {error}")

    def _release_trigger(self) -> None:
        if self._trigger_handle is not None:
            self._trigger_handle.remove()
            self._trigger_handle = None

    def _before_optimizer_step(self, optimizer: Optimizer, *_: object) -> None:
        mine = {id(p) for parameters in self._parameters.values() for p in parameters}
        if any(id(p) in mine for group in optimizer.param_groups for p in group["params"]):
            self.measure_gradients(
                getattr(optimizer, "grad_scale", None)
            )  # set where the optimizer unscales itself

    def _end_forward(self) -> None:
        """The sampled step is over: no hook stays. Layers never seen are given up after some samples."""
        self._release_trigger()
        for name, handle in self._handles.items():
            handle.remove()
            self._blind[name] += 1
        gone = [name for name in self._handles if self._blind[name] >= BLIND_SAMPLES]
        self._handles.clear()
        for name in gone:
            self._give_up(name)
        if gone:
            self._say(f"no hook saw these layers (torch.compile, or not used): {', '.join(gone)}")

    def _disarm(self) -> None:
        self._sample = None
        if self._optimizer_handle is not None:
            self._optimizer_handle.remove()
            self._optimizer_handle = None

    def _give_up(self, name: str) -> None:
        self._visible.pop(name, None)
        self._visible_ids = {id(module) for module in self._visible.values()}
        if name not in self._unseen:
            self._unseen.append(name)

    def _hide_compiled(self, model: Module) -> None:
        hidden = _compiled_modules(model, self._model)
        self._compiled_inside = bool(hidden)
        names = [name for name, module in self._visible.items() if id(module) in hidden]
        for name in names:
            self._give_up(name)
        if names:
            self._say(COMPILED)

    # ------------------------------------------------------------ from the device to the stream

    def _start_transfer(self, sample: _Sample) -> None:
        if not sample.layers and not sample.norms:
            return
        torch = sys.modules["torch"]
        parts = [*sample.layers.values(), *(norm.reshape(1) for norm in sample.norms.values())]
        device = parts[0].device
        together = torch.cat([part.to(device).float() for part in parts])
        if device.type != "cuda":
            self._transfer = _Transfer(sample, together, None)
            return
        host = torch.empty(together.shape, dtype=together.dtype, pin_memory=True)
        host.copy_(together, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(device))
        self._transfer = _Transfer(sample, host, done)

    def _read_transfer(self, *, wait: bool) -> dict[str, Any] | None:
        transfer = self._transfer
        if transfer is None or (transfer.done is not None and not wait and not transfer.done.query()):
            return None
        if transfer.done is not None:
            transfer.done.synchronize()
        self._transfer = None
        record = self._record(transfer.sample, transfer.host.tolist())
        if self.log is not None:
            self.log.write("features", **record)
        return record

    def _record(self, sample: _Sample, values: list[float]) -> dict[str, Any]:
        width = len(statistics.NAMES)
        rows = {
            name: dict(zip(statistics.NAMES, map(short, values[at : at + width]), strict=True))
            for at, name in zip(range(0, width * len(sample.layers), width), sample.layers, strict=True)
        }
        norms = dict(zip(sample.norms, map(short, values[width * len(rows) :]), strict=True))
        total = gradients.overall(list(norms.values()))
        return {
            "epoch": sample.epoch,
            "step": sample.step,
            "layers": rows,
            "grad_norm": None if total is None else short(total),
            "grad_norms": norms or None,
            "grad_step": sample.gradient_step if sample.gradient_step != sample.step else None,
            "unseen": list(self._unseen) or None,
        }

    def _say(self, text: str) -> None:
        self.failures.append(text)
        if self.log is not None:
            self.log.warn(text)


class _LayerHook:
    """A forward hook; in a copied or pickled model it is one that does nothing."""

    def __init__(self, monitor: FeatureMonitor | None, name: str) -> None:
        self._monitor = monitor
        self._name = name

    def __call__(self, module: Module, _inputs: object, output: object) -> None:
        if self._monitor is not None:
            self._monitor._look(self._name, module, output)

    def __reduce__(self) -> tuple[type[_LayerHook], tuple[None, str]]:
        return _LayerHook, (None, self._name)


def _compiled_modules(given: Module, inner: Module) -> set[int]:
    """Ids of the modules inside compiled code: all under a torch.compile wrapper or a compiled module."""
    wrapper = given
    while wrapper is not inner:
        if hasattr(wrapper, "_orig_mod"):
            return {id(module) for module in inner.modules()}
        wrapper = wrapper.module
    hidden: set[int] = set()
    for module in inner.modules():
        if getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod"):
            hidden.update(id(part) for part in module.modules())
    return hidden


def _tracing() -> bool:
    torch = sys.modules["torch"]
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    if (compiling is not None and compiling()) or torch.jit.is_tracing():
        return True
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
