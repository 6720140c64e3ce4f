"""Which rank of a distributed job this process is, and the file name of its stream."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from yolomon.trainer.foreign import ProcessGroup

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_WORLD_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def process_rank() -> int:
    """The global rank of this process, 0 when it is alone.

    A torch.distributed group that is up decides (it is never imported for this), then what the launcher set:
    torchrun's RANK, Open MPI's, PMI's, Slurm's.
    """
    distributed = _process_group()
    if distributed is not None:
        return int(distributed.get_rank())
    return max(0, _first_number(_RANK_VARIABLES, 0))


def world_size() -> int:
    """How many processes the job has, 1 when this one is alone."""
    distributed = _process_group()
    if distributed is not None:
        return int(distributed.get_world_size())
    return max(1, _first_number(_WORLD_VARIABLES, 1))


def rank_path(path: Path, rank: int) -> Path:
    """The file of one rank: `run.jsonl` for rank 0, `run.rank3.jsonl` for rank 3."""
    return path if rank <= 0 else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def _process_group() -> ProcessGroup | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not getattr(distributed, "is_available", lambda: False)():
        return None
    return distributed if distributed.is_initialized() else None


def _first_number(names: tuple[str, ...], default: int) -> int:
    for name in names:
        text = os.environ.get(name, "")
        if text.lstrip("-").isdigit():
            return int(text)
    return default
