"""Statistics of one layer's output, computed on its device, with bounded time and memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from yolomon.trainer.foreign import Tensor

NAMES = ("mean", "std", "sparsity", "absmax", "nonfinite", "dead_channels")
VALUES_LIMIT = 1 << 18  # looked at in a layer, evenly spaced, all channels: a large map is not copied whole
NEAR_ZERO = 1e-3  # in standard deviations: SiLU has no exact zeros
DEAD_VARIANCE = 1e-6


def first_tensor(output: object) -> Tensor | None:
    """The first floating-point tensor in a module's output: itself, or inside tuples, lists and dicts."""
    tensor: Tensor = output
    if hasattr(tensor, "is_floating_point"):
        return tensor if tensor.is_floating_point() and tensor.numel() else None
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        for item in output:
            found = first_tensor(item)
            if found is not None:
                return found
    return None


def layer_statistics(output: Tensor) -> Tensor:
    """Six float32 numbers on the output's device, named by `NAMES`.

    Args:
        output: (images, channels, height, width), (images, tokens, channels) or (images, channels); any
            float type.

    Returns:
        mean, standard deviation: over the finite values.
        sparsity: share of values nearer to 0 than 1/1000 of the standard deviation.
        absmax: the largest absolute value of all; NaN or infinite as soon as a single one is.
        nonfinite: share of NaN and infinite values.
        dead_channels: share of channels whose variance over images and places is below 1e-6.
        All but absmax look at most at 262,144 evenly spaced values.
    """
    torch = sys.modules["torch"]
    output = output.detach()
    low, high = torch.aminmax(output)
    values = spaced(output).float()
    finite = torch.isfinite(values)
    count = finite.sum().clamp(min=1)
    clean = torch.where(finite, values, torch.zeros((), device=values.device))
    mean = clean.sum() / count
    centred = torch.where(finite, clean - mean, torch.zeros((), device=values.device))
    std = (centred.square().sum() / count).sqrt()
    near_zero = ((clean.abs() < NEAR_ZERO * std) & finite).sum() / count
    by_channel = clean.movedim(_channel_dimension(clean), 0).flatten(1)
    dead = (by_channel.var(dim=1, unbiased=False) < DEAD_VARIANCE).float().mean()
    nonfinite = 1.0 - finite.float().mean()
    absmax = torch.maximum(low.abs(), high.abs()).float()
    return torch.stack([mean, std, near_zero, absmax, nonfinite, dead])


def spaced(output: Tensor) -> Tensor:
    """A view of about `VALUES_LIMIT` values of `output`: every k-th image and place, every channel."""
    view = output
    channel = _channel_dimension(output)
    for dimension in range(view.dim()):
        excess = view.numel() / VALUES_LIMIT
        if excess <= 1:
            break
        if dimension == channel:
            continue
        places_left = view.dim() - dimension - (1 if channel > dimension else 0)
        # Images first, but keep four of them; then the places, evenly in each direction.
        wanted = excess if dimension == 0 else excess ** (1 / places_left)
        keep = max(min(4, view.shape[0]) if dimension == 0 else 1, int(view.shape[dimension] / wanted))
        step = max(1, view.shape[dimension] // keep)
        view = view[(slice(None),) * dimension + (slice(None, None, step),)]
    return view


def _channel_dimension(output: Tensor) -> int:
    """Where the channels are: second in a map, last in a sequence of tokens."""
    if output.dim() < 2:
        return 0
    return int(output.dim()) - 1 if output.dim() == 3 else 1
