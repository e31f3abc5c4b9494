"""Adam, AdamW and SGD as torch computes them, without its compiler.

torch's own classes import the compiler at their first use, only to say that it shall leave them alone, which takes
some three seconds of a core in every process that trains. Nothing here compiles an optimizer.
"""

from __future__ import annotations

import inspect
from typing import TypeVar

import torch

Kind = TypeVar("Kind", bound=torch.optim.Optimizer)


def _uncompiled(kind: type[Kind]) -> type[Kind]:
    """``kind`` with the methods that its decorators hide; ``differentiable`` steps are not for it."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    methods["step"] = torch.no_grad()(inspect.unwrap(kind.step))
    return type(kind.__name__, (kind,), methods)


Adam = _uncompiled(torch.optim.Adam)
AdamW = _uncompiled(torch.optim.AdamW)
SGD = _uncompiled(torch.optim.SGD)
