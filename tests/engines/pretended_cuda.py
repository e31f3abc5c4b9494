"""A CUDA device for machines without one: tensors that say ``cuda:0`` and refuse to meet those of the CPU.

What a real card would refuse is refused here: an operation on tensors of both devices (numbers and 0-dimensional
tensors excepted), a CUDA tensor asked for its NumPy array, a generator of the other device, and CUDA indices into a
CPU tensor. Arithmetic stays the CPU's, so results must equal those of the CPU to the last bit. It says nothing
about speed, memory or the digits of a real card.

Left out, because torch wraps tensors there itself: L2B's exact derivative (dual numbers).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

import engines.meta.directional

CUDA = torch.device("cuda", 0)
INDEXING = ("__getitem__", "__setitem__", "index_put", "index_put_")
MAY_MIX = ("copy_", "__set__")


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

    def __new__(cls, device: torch.device | str = "cpu") -> PretendedGenerator:
        made = super().__new__(cls, device="cpu")
        made.is_pretended = torch.device(device).type == "cuda"
        return made


class _Watch(TorchFunctionMode):
    """Sees what creates tensors, too."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


@contextlib.contextmanager
def pretended_cuda() -> Iterator[None]:
    """Inside, ``torch.cuda`` is available and ``cuda`` is a device."""
    card: dict[str, Any] = {
        "is_available": True,
        "get_device_capability": (9, 0),
        "get_arch_list": ["sm_90"],
        "device_count": 1,
        "is_initialized": False,
        "mem_get_info": (2**33, 2**34),
        "get_device_name": "pretended",
        "max_memory_allocated": 0,
    }
    with contextlib.ExitStack() as stack:
        for name, value in card.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, return_value=value))
        stack.enter_context(mock.patch.object(torch, "Generator", PretendedGenerator))
        # torch asks the real driver whether a graph is being captured.
        check = "_accelerator_graph_capture_health_check"
        stack.enter_context(mock.patch.object(torch.optim.Optimizer, check))
        stack.enter_context(
            mock.patch.object(engines.meta.directional, "jvp", _looked_at(engines.meta.directional.jvp))
        )
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, False)
        stack.enter_context(_Watch())
        yield


def is_pretended(value: Any) -> bool:
    """Whether it lives on the pretended device."""
    return isinstance(value, Pretended)


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
        if name in ("to", "cpu"):
            return _moved(first, (*args[1:], torch.device("cpu")) if name == "cpu" else args[1:], kwargs)
        if name in INDEXING:
            _refuse_foreign_indices(first, args[1], name)
            on_card = _refuse_mixing(name, (first, *args[2:]))
        else:
            on_card = _refuse_mixing(name, (args, kwargs))
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
    if on_card != is_pretended(tensor) and result is tensor:
        result = result.clone()
    moved: Tensor = result.as_subclass(Pretended if on_card else Tensor)
    return moved


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
