"""A CUDA device for machines without one: tensors that say ``cuda:0`` and refuse to meet those of the CPU.

What a real card would refuse is refused here: an operation on tensors of both devices (numbers and 0-dimensional
tensors excepted), a CUDA tensor asked for its NumPy array, a generator of the other device, and CUDA indices into a
CPU tensor. Arithmetic stays the CPU's, so results must equal those of the CPU to the last bit. It says nothing
about speed, memory or the digits of a real card.

It counts what keeps a real card waiting, by the line of ``engines`` that asked for it (:class:`Card`):

- ``copies`` to the card, of one element or more: ``to`` and ``cuda`` of a CPU tensor; ``tensor``, ``as_tensor``,
  ``asarray`` and ``new_tensor`` on the card from Python's or NumPy's values; ``copy_`` and ``__setitem__`` from a
  CPU tensor; and for each index of a card's tensor that is a CPU tensor of one dimension or more, a list or an
  array. Numbers and 0-dimensional CPU tensors that an operation takes beside tensors of the card are arguments of
  its kernel and no copies; ``full``, ``zeros``, ``arange`` and the like write on the card.
- ``waits`` for the card: ``cpu`` and ``to`` of a card's tensor, ``item``, ``tolist`` and what turns one into a
  Python number or truth value; and what must know how many values are true or different: an index of truth values,
  ``nonzero``, ``masked_select``, ``unique``.

Left out, because torch wraps tensors there itself: the fused tangents of L2B's derivative.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

import engines.meta.directional

CUDA = torch.device("cuda", 0)
INDEXING = ("__getitem__", "__setitem__", "index_put", "index_put_")
MAY_MIX = ("copy_", "__set__")
MAKES_FROM_VALUES = ("tensor", "as_tensor", "asarray", "new_tensor")
WAITS = (
    *("item", "tolist", "__bool__", "__int__", "__float__", "__index__"),
    *("nonzero", "masked_select", "unique", "_unique2"),
)
ENGINES = str(Path(engines.meta.directional.__file__).parents[1])


@dataclass
class Card:
    """What the pretended card was asked for so far, by line of ``engines`` and operation."""

    copies: Counter[str] = field(default_factory=Counter)
    """Copies of CPU tensors and values to the card."""
    waits: Counter[str] = field(default_factory=Counter)
    """Times that Python waited for a value of the card."""


_card = Card()
"""That of the innermost ``pretended_cuda``."""


class DeviceMismatchError(RuntimeError):
    """What a CUDA machine would have refused."""


class Pretended(Tensor):
    """A tensor of the pretended device."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _real(self.detach()).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied: Tensor = self.detach().clone()
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied


class PretendedGenerator(torch.Generator):
    """A generator that knows for which device it was made."""

    is_pretended: bool

    def __new__(cls, device: torch.device | str = "cpu") -> PretendedGenerator:
        made = super().__new__(cls, device="cpu")
        made.is_pretended = torch.device(device).type == "cuda"
        return made

    @property
    def device(self) -> torch.device:
        return CUDA if self.is_pretended else torch.device("cpu")


class _Watch(TorchFunctionMode):
    """Sees what creates tensors, too."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


@contextlib.contextmanager
def pretended_cuda() -> Iterator[Card]:
    """Inside, ``torch.cuda`` is available and ``cuda`` is a device; gives what it counts."""
    global _card
    card: dict[str, Any] = {
        "is_available": True,
        "get_device_capability": (9, 0),
        "get_arch_list": ["sm_90"],
        "device_count": 1,
        "is_initialized": False,
        "mem_get_info": (2**33, 2**34),
        "get_device_name": "pretended",
        "max_memory_allocated": 0,
        "init": None,
        "empty_cache": None,
        "reset_peak_memory_stats": None,
        "synchronize": None,
        "device": contextlib.nullcontext(),
        "is_bf16_supported": False,
    }
    with contextlib.ExitStack() as stack:
        for name, value in card.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, return_value=value))
        stack.enter_context(mock.patch.object(torch, "Generator", PretendedGenerator))
        # torch's own code would group tensors by what they really are.
        grouping = torch.nn.utils.clip_grad._group_tensors_by_device_and_dtype
        stack.enter_context(
            mock.patch.object(
                torch.nn.utils.clip_grad,
                "_group_tensors_by_device_and_dtype",
                lambda lists: _grouped(grouping(lists)),
            )
        )
        # torch asks the real driver whether a graph is being captured.
        check = "_accelerator_graph_capture_health_check"
        stack.enter_context(mock.patch.object(torch.optim.Optimizer, check))
        stack.enter_context(
            mock.patch.object(engines.meta.directional, "jvp", _looked_at(engines.meta.directional.jvp))
        )
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, False)
        stack.enter_context(_Watch())
        before, _card = _card, Card()
        try:
            yield _card
        finally:
            _card = before


def is_pretended(value: Any) -> bool:
    """Whether it lives on the pretended device."""
    return isinstance(value, Pretended)


def _grouped(groups: dict[tuple[torch.device, Any], Any]) -> dict[tuple[torch.device, Any], Any]:
    """Groups of tensors by device and type, those of the pretended card under its name."""
    return {(lists[0][0][0].device, kind): lists for (_, kind), lists in groups.items()}


def _real(value: Any) -> Any:
    if not is_pretended(value):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(Tensor)


def _pretend(value: Any) -> Any:
    return value.as_subclass(Pretended) if type(value) is Tensor else value


def _looked_at(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose inside torch hides from us: devices are looked at outside, and its results follow them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        on_card = _refuse_mixing(str(rule), (args, kwargs))
        result = rule(*args, **kwargs)
        return tree_map(_pretend, result) if on_card else result

    return call


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        name, owner = getattr(func, "__name__", ""), getattr(func, "__self__", None)
        first = args[0] if args else None
        if name == "__get__" and owner is Tensor.device:
            return CUDA if is_pretended(first) else first.device  # type: ignore[union-attr]
        if name == "__get__" and owner is Tensor.is_cuda:
            return is_pretended(first)
        if name == "_has_compatible_shallow_copy_type":
            return is_pretended(args[0]) == is_pretended(args[1])
        if name in ("numpy", "__array__") and is_pretended(first):
            raise DeviceMismatchError(f"{name}() of a CUDA tensor")
        if name == "pin_memory":
            return first
        if name in ("to", "cpu", "cuda"):
            place = () if name == "to" else (torch.device(name),)
            return _moved(first, (*args[1:], *place), kwargs)
        if name in INDEXING:
            _refuse_foreign_indices(first, args[1], name)
            on_card = _refuse_mixing(name, (first, *args[2:]))
        else:
            on_card = _refuse_mixing(name, (args, kwargs))
        _count(name, args, kwargs)
        if kwargs.get("device") is not None:
            on_card = torch.device(kwargs["device"]).type == "cuda"
            kwargs = {**kwargs, "device": "cpu"}
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, torch.Generator) and getattr(value, "is_pretended", False) != on_card:
                raise DeviceMismatchError(f"{name}: the generator is of the other device")
        result = func(*args, **kwargs)
        return tree_map(_pretend, result) if on_card else result


def _moved(tensor: Any, options: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """``Tensor.to`` and ``Tensor.cpu``."""
    on_card, rest = is_pretended(tensor), []
    devices = [kwargs["device"]] if kwargs.get("device") is not None else []
    for option in options:
        if isinstance(option, (torch.device, str)):
            devices.append(option)
        elif isinstance(option, Tensor):
            on_card = is_pretended(option)
            rest.append(option.dtype)
        elif not isinstance(option, bool) and option is not None:
            rest.append(option)
    if devices:
        on_card = torch.device(devices[-1]).type == "cuda"
    kept = {key: value for key, value in kwargs.items() if key not in ("device", "non_blocking")}
    result = tensor.to(*rest, **kept) if rest or kept else tensor
    if on_card != is_pretended(tensor):
        _note(_card.copies if on_card else _card.waits, "to", tensor.numel())
        result = result.clone() if result is tensor else result
    moved: Tensor = result.as_subclass(Pretended if on_card else Tensor)
    return moved


def _count(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note what this call copies to the card or waits for."""
    first = args[0] if args else None
    if name in MAKES_FROM_VALUES:
        wanted, values = kwargs.get("device"), args[1] if name == "new_tensor" else first
        on_card = is_pretended(first) if wanted is None else torch.device(wanted).type == "cuda"
        if on_card and not is_pretended(values):
            _note(
                _card.copies, name, values.numel() if isinstance(values, Tensor) else np.asarray(values).size
            )
    if not is_pretended(first):
        return
    if name in WAITS:
        _note(_card.waits, name, 1)
    if name in ("copy_", "__setitem__") and isinstance(args[-1], Tensor) and not is_pretended(args[-1]):
        _note(_card.copies, name, args[-1].numel())
    if name in INDEXING:
        several = isinstance(args[1], tuple) or name.startswith("index_put")
        for index in args[1] if several else (args[1],):
            if isinstance(index, (list, np.ndarray)):
                _note(_card.copies, name, np.size(index))
            elif isinstance(index, Tensor):
                if not is_pretended(index) and index.dim():
                    _note(_card.copies, name, index.numel())
                if index.dtype == torch.bool:
                    _note(_card.waits, name, 1)


def _note(counter: Counter[str], name: str, num_elements: int) -> None:
    """Count an operation on one element or more, under the line of ``engines`` that it happens in."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not frame.f_code.co_filename.startswith(ENGINES):
        frame = frame.f_back
    place = (
        "" if frame is None else f"{Path(frame.f_code.co_filename).relative_to(ENGINES)}:{frame.f_lineno} "
    )
    if num_elements:
        counter[place + name] += 1


def _refuse_mixing(name: str, values: Any) -> bool:
    """Whether the card is where it happens."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
    here = [one for one in tensors if is_pretended(one)]
    there = [
        one
        for one in tensors
        if not is_pretended(one)
        and one.dim() > 0
        and not torch._C._functorch.is_functorch_wrapped_tensor(one)
    ]
    if here and there and name not in MAY_MIX:
        shapes = [[tuple(one.shape) for one in side] for side in (here, there)]
        raise DeviceMismatchError(f"{name}: {shapes[0]} on CUDA and {shapes[1]} on the CPU")
    return bool(here)


def _refuse_foreign_indices(tensor: Any, indices: Any, name: str) -> None:
    if not is_pretended(tensor) and any(is_pretended(index) for index in tree_leaves(indices)):
        raise DeviceMismatchError(f"{name}: CUDA indices into a tensor on the CPU")
