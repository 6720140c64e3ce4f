"""Gradient norms of groups of parameters, computed on the device without waiting for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from yolomon.trainer.foreign import Module, Tensor

OTHER = "other"


def parameter_groups(model: Module, groups: Mapping[str, Sequence[Module]]) -> dict[str, list[Tensor]]:
    """Trainable parameters of `model` by group name; those in no group are under "other"."""
    taken: set[int] = set()
    found: dict[str, list[Tensor]] = {}
    for name, modules in groups.items():
        parameters = _fresh((p for module in modules for p in module.parameters()), taken)
        if parameters:
            found[name] = parameters
    rest = _fresh(model.parameters(), taken)
    if rest:
        found[OTHER] = rest
    return found


def gradient_norms(
    groups: Mapping[str, Sequence[Tensor]], scale: Tensor | float | None = None
) -> dict[str, Tensor]:
    """The 2-norm of each group's gradients, on the device; a group without gradients is absent.

    Args:
        groups: parameters by name.
        scale: what the loss was multiplied by (torch.amp.GradScaler); norms are divided by it.
    """
    torch = sys.modules["torch"]
    norms: dict[str, Tensor] = {}
    for name, parameters in groups.items():
        gradients = [p.grad for p in parameters if p.grad is not None and not p.grad.is_sparse]
        if not gradients:
            continue
        device = gradients[0].device
        each = _norms([g.detach() for g in gradients])
        total = torch.linalg.vector_norm(torch.stack([n.to(device).float() for n in each]))
        norms[name] = total / scale if scale is not None else total
    return norms


def overall(norms: Sequence[float]) -> float | None:
    """The norm over all groups."""
    return sum(norm * norm for norm in norms) ** 0.5 if norms else None


def _norms(gradients: list[Tensor]) -> list[Tensor]:
    torch = sys.modules["torch"]
    together = getattr(torch, "_foreach_norm", None)  # what clip_grad_norm_ uses: one launch for many tensors
    alike = {(g.device, g.dtype) for g in gradients}
    if together is not None and len(alike) == 1 and gradients[0].dtype == torch.float32:
        return list(together(gradients))
    return [torch.linalg.vector_norm(g, dtype=torch.float32) for g in gradients]


def _fresh(parameters: Iterable[Tensor], taken: set[int]) -> list[Tensor]:
    found = []
    for parameter in parameters:
        if parameter.requires_grad and id(parameter) not in taken:
            taken.add(id(parameter))
            found.append(parameter)
    return found
