"""Names for objects of libraries that are never imported here: they are looked at by attribute only."""

from __future__ import annotations

from typing import Any

Tensor = Any  # torch.Tensor
Module = Any  # torch.nn.Module
Torch = Any  # the torch module
Stream = Any  # torch.cuda.Stream
Handle = Any  # torch.utils.hooks.RemovableHandle
Optimizer = Any  # torch.optim.Optimizer
Model = Any  # ultralytics.engine.model.Model, or a trainer
Trainer = Any  # ultralytics.engine.trainer.BaseTrainer
Validator = Any  # ultralytics.engine.validator.BaseValidator
Json = Any  # what json.dumps takes
ProcessGroup = Any  # torch.distributed
