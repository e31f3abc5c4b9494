"""Values, gradients and tangents of the fused functions against literal formulas, for any inputs that carry one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor
from torch.nn import functional as F

from engines.meta.fused_tangents import FusedTangents

STEP = 1e-6


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def literal_batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """(x - mean) / sqrt(variance + 1e-5) of each channel, times weight, plus bias."""
    result = torch.empty_like(x)
    for c in range(x.shape[1]):
        values = x[:, c]
        mean = values.mean()
        normed = (values - mean) / (((values - mean) ** 2).mean() + 1e-5).sqrt()
        result[:, c] = normed if weight is None else normed * weight[c]
        if bias is not None:
            result[:, c] = result[:, c] + bias[c]
    return result


def literal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, groups: int
) -> Tensor:
    """Every output pixel as a sum of products."""
    batch, channels, height, width = x.shape
    outputs, inside, size, _ = weight.shape
    padded = torch.zeros(batch, channels, height + 2 * padding, width + 2 * padding, dtype=x.dtype)
    padded[:, :, padding : padding + height, padding : padding + width] = x
    rows = (padded.shape[2] - size) // stride + 1
    columns = (padded.shape[3] - size) // stride + 1
    result = torch.empty(batch, outputs, rows, columns, dtype=x.dtype)
    for o, i, j in product(range(outputs), range(rows), range(columns)):
        first = inside * (o // (outputs // groups))
        patch = padded[
            :, first : first + inside, i * stride : i * stride + size, j * stride : j * stride + size
        ]
        result[:, o, i, j] = (patch * weight[o]).sum(dim=(1, 2, 3)) + (0.0 if bias is None else bias[o])
    return result


Function = Callable[..., Tensor]


def fused_batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, training=True)


GEOMETRIES = [(1, 0, 1), (2, 1, 1), (1, 1, 2)]


def cases() -> Iterator[tuple[str, Function, Function, list[Tensor | None]]]:
    """Name, fused, literal, inputs."""
    for shape in ((5, 3), (4, 3, 2, 2)):
        x, weight, bias = 2 * numbers(*shape) + 1, numbers(3, seed=1), numbers(3, seed=2)
        for w, b in ((weight, bias), (weight, None), (None, None)):
            name = f"batch norm {shape} {w is not None} {b is not None}"
            yield name, fused_batch_norm, literal_batch_norm, [x, w, b]
    for stride, padding, groups in GEOMETRIES:
        x, weight, bias = numbers(2, 4, 5, 6), numbers(4, 4 // groups, 3, 3, seed=1), numbers(4, seed=2)
        for b in (bias, None):

            def fused(
                x: Tensor, w: Tensor, b: Tensor | None, s: int = stride, p: int = padding, g: int = groups
            ) -> Tensor:
                options = {"stride": (s, 1), "padding": (p, 0), "groups": (g, 1)}
                # What is left out has its default.
                return F.conv2d(x, w, b, **{name: v for name, (v, usual) in options.items() if v != usual})

            def literal(
                x: Tensor, w: Tensor, b: Tensor | None, s: int = stride, p: int = padding, g: int = groups
            ) -> Tensor:
                return literal_conv(x, w, b, s, p, g)

            yield f"conv {stride} {padding} {groups} {b is not None}", fused, literal, [x, weight, b]
    yield "relu", F.relu, lambda x: torch.where(x > 0, x, torch.zeros_like(x)), [numbers(4, 3)]


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("name", CASES)
def test_fused_tangents__values_gradients_and_tangents_are_the_literal_ones(name: str) -> None:
    fused, literal, inputs = CASES[name]
    given = [i for i, value in enumerate(inputs) if value is not None]
    for carries in product((False, True), repeat=len(given)):
        if not any(carries):
            continue
        moving = [i for i, yes in zip(given, carries, strict=True) if yes]
        tangents = {i: numbers(*inputs[i].shape, seed=10 + i) for i in moving}
        leaves = [None if v is None else v.clone().requires_grad_() for v in inputs]
        with forward_ad.dual_level(), FusedTangents():
            duals = [
                forward_ad.make_dual(leaf, tangents[i]) if i in moving else leaf
                for i, leaf in enumerate(leaves)
            ]
            found = forward_ad.unpack_dual(fused(*duals))
        ahead = [v + STEP * tangents[i] if i in moving else v for i, v in enumerate(inputs)]
        behind = [v - STEP * tangents[i] if i in moving else v for i, v in enumerate(inputs)]
        slope = (literal(*ahead) - literal(*behind)) / (2 * STEP)
        torch.testing.assert_close(found.tangent, slope, rtol=1e-6, atol=1e-7)

        twins = [None if v is None else v.clone().requires_grad_() for v in inputs]
        wanted = literal(*twins)
        torch.testing.assert_close(found.primal, wanted, rtol=1e-10, atol=1e-10)
        pull = numbers(*wanted.shape, seed=20)
        mine = torch.autograd.grad((found.primal * pull).sum(), [leaves[i] for i in given])
        its = torch.autograd.grad((wanted * pull).sum(), [twins[i] for i in given])
        for one, other in zip(mine, its, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def test_fused_tangents__evaluation_mode_keeps_torchs_own_batch_norm() -> None:
    x, mean, variance = numbers(4, 3), numbers(3, seed=1), numbers(3, seed=2).square() + 1
    with FusedTangents():
        found = F.batch_norm(x, mean, variance, training=False)
    torch.testing.assert_close(found, (x - mean) / (variance + 1e-5).sqrt())


def test_fused_tangents__running_statistics_move_as_they_do_without() -> None:
    x = numbers(6, 3)
    mean, variance = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    with FusedTangents():
        F.batch_norm(x, mean, variance, training=True, momentum=0.3)
    torch.testing.assert_close(mean, 0.3 * x.mean(dim=0))
    torch.testing.assert_close(variance, 0.7 + 0.3 * x.var(dim=0))
