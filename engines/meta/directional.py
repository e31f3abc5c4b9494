"""Exact directional derivatives of per-sample losses: a meta step without double backward.

Learning to reweight asks, for every sample of a batch, how fast the loss on a trusted *meta batch* falls if
a virtual SGD step listens to that sample. The textbook way differentiates through the step (backward through
a backward). But the answer is only an inner product of two gradients,

    -d G(theta - lr sum_i w_i grad f_i) / d w_i  at w = 0  =  lr <grad G, grad f_i>  =  lr D_v f_i,

with v = grad G: the derivative of sample i's loss along v. One forward-mode pass gives the derivative
``zdot`` of all logits along v, and for *any* target q that sums to 1

    D_v f_i = <softmax(z_i) - q_i, zdot_i>,

so the given label, the pseudo-label and soft targets all cost the one pass.

Two exact and equal ways to ``zdot``:

- ``logits_jvp``: ``torch.func.jvp``, outside any training graph; touches no buffer.
- ``forward_with_tangent``: the training forward itself carries the tangents (dual numbers), so its
  activations serve the later backward pass too. The tangents stay out of autograd's graph: memory grows
  by a few activations in flight, not by a second graph. Running statistics move once, as in any step.

Batch norm in training mode couples the samples of a batch; all ways differentiate through its batch
statistics. Its running statistics must not see these extra passes: ``batch_statistics`` switches them off
(``torch.func.jvp`` refuses to write them in any case). Attention runs in its plain form, the only one that
carries tangents.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _BatchNorm

from engines.meta.fused_tangents import FusedTangents
from engines.shared.losses import soft_cross_entropy

# torch's first jvp loads rules of its own that warn about torch's own use of torch.jit.script.
warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=FutureWarning)

Parameters = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class MetaGradient:
    """v = grad G, the gradient of the mean loss on a meta batch."""

    direction: Parameters
    """Parameter name -> tensor of the parameter's shape."""
    norm: Tensor
    """||v||, 0-d."""
    loss: Tensor
    """G, 0-d."""
    logits: Tensor
    """(M, K) logits of the meta batch, without graph."""


def trainable(network: nn.Module) -> Parameters:
    """Name -> parameter of all that train, in the order of ``network.parameters()``."""
    return {name: value for name, value in network.named_parameters() if value.requires_grad}


def one_hot(labels: Tensor, num_classes: int) -> Tensor:
    """(B,) int64 in {-1, 0..K-1} -> (B, K) float32; the row of -1 is all 0."""
    return F.one_hot(labels.clamp(min=0), num_classes).float() * (labels >= 0)[:, None]


def directional_derivative(logits: Tensor, tangent: Tensor, targets: Tensor) -> Tensor:
    """L2B eq. (10) and (12): D_v f_i = <softmax(z_i) - q_i, zdot_i>; (B, K), (B, K), (B, K) -> (B,).

    ``targets`` q_i sum to 1 (one-hot or soft); where a row is all 0 (no label) the result is 0. Computed as
    <softmax(z_i), zdot_i - <q_i, zdot_i>>, which keeps its digits where softmax(z_i) is nearly q_i. Float32
    or better whatever the precision of the logits.
    """
    logits, tangent = _at_least_float32(logits), _at_least_float32(tangent)
    along_target = (targets.to(tangent) * tangent).sum(dim=1, keepdim=True)
    derivative = (F.softmax(logits, dim=1) * (tangent - along_target)).sum(dim=1)
    return derivative * (targets.sum(dim=1) > 0)


@contextmanager
def batch_statistics(network: nn.Module) -> Iterator[None]:
    """Inside, batch norm in training mode uses batch statistics and leaves its running ones alone."""
    norms = [
        part
        for part in network.modules()
        if isinstance(part, _BatchNorm) and part.training and part.track_running_stats
    ]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


def meta_gradient(network: nn.Module, images: Tensor, targets: Tensor) -> MetaGradient:
    """v = grad of the mean cross-entropy on the meta batch, one forward and backward; no buffer changes.

    Args:
        network: returns (features, logits); its mode (train or eval) is used as it is.
        images: (M, C, H, W).
        targets: (M, K), rows sum to 1.
    """
    point = trainable(network)
    with batch_statistics(network), torch.enable_grad():
        _, logits = functional_call(network, point, (images,))
        loss = soft_cross_entropy(logits, targets.to(logits.device)).mean()
        gradients = torch.autograd.grad(loss, list(point.values()), materialize_grads=True)
    direction = dict(zip(point, gradients, strict=True))
    return MetaGradient(direction, _norm(direction), loss.detach(), logits.detach())


def logits_jvp(network: nn.Module, images: Tensor, direction: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Logits and their derivative along ``direction`` by ``torch.func.jvp``: (B, C, H, W) -> (B, K) twice.

    No graph, no buffer changes, in the network's own mode. Memory: a few times the widest activations.
    """
    own = trainable(network)
    point = tuple(value.detach() for value in own.values())
    vector = tuple(direction[name] for name in own)

    def logits_at(*values: Tensor) -> Tensor:
        _, logits = functional_call(network, dict(zip(own, values, strict=True)), (images,))
        return logits

    with torch.no_grad(), batch_statistics(network), FusedTangents(), sdpa_kernel(SDPBackend.MATH):
        result = jvp(logits_at, point, vector)
    return result[0], result[1]


def forward_with_tangent(
    network: nn.Module, images: Tensor, direction: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """The training forward, and the logits' derivative along ``direction`` on the way.

    Returns features (B, D) and logits (B, K) with the graph to train on, and the tangent (B, K) without one.
    Buffers change as in any forward pass; dropout, if any, has the same mask in all three.
    """
    own = trainable(network)
    with forward_ad.dual_level(), FusedTangents(), sdpa_kernel(SDPBackend.MATH):
        duals = {name: forward_ad.make_dual(value, direction[name]) for name, value in own.items()}
        features, logits = functional_call(network, duals, (images,))
        tangent = forward_ad.unpack_dual(logits).tangent
        features = forward_ad.unpack_dual(features).primal
        logits = forward_ad.unpack_dual(logits).primal
    return features, logits, torch.zeros_like(logits) if tangent is None else tangent.detach()


def _norm(direction: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([value.detach().norm() for value in direction.values()]).norm()


def _at_least_float32(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
