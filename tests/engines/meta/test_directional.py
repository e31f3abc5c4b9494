"""Forward-mode derivatives against the slow forms that define them, in float64 with batch norm."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from engines.meta.directional import (
    MetaGradient,
    batch_statistics,
    directional_derivative,
    forward_with_tangent,
    logits_jvp,
    meta_gradient,
    one_hot,
    trainable,
)

K = 4
EXACT = 1e-10
"""Relative to the largest derivative; float64 leaves about 1e-14."""


class SmallNet(nn.Module):
    """Every operation that the fused tangents replace, with and without their options, and a residual sum."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 6, 3, padding=1)
        self.norm1, self.relu = nn.BatchNorm2d(6), nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(6, 6, 3, padding=1, bias=False, groups=2)
        self.norm2 = nn.BatchNorm2d(6, affine=False)
        self.down = nn.Conv2d(6, 8, 3, stride=2, padding="valid")
        self.pool, self.norm3 = nn.MaxPool2d(2), nn.BatchNorm1d(8)
        self.head = nn.Linear(8, K)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.relu(self.norm1(self.stem(x)))
        x = x + F.relu(self.norm2(self.conv(x)))
        x = F.leaky_relu(self.pool(self.down(x)), 0.1).mean(dim=(2, 3))
        features = self.norm3(x)
        return features, self.head(features)


class Setting:
    """A network after a few steps of SGD with momentum, a batch and a meta batch, all float64."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.net = SmallNet().double()
        self.images = torch.randn(10, 2, 12, 12, dtype=torch.float64)
        self.meta_images = torch.randn(7, 2, 12, 12, dtype=torch.float64)
        self.labels = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0, -1])
        self.targets = one_hot(self.labels, K).double()
        self.meta_targets = one_hot(torch.arange(7) % K, K).double()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-3)
        for _ in range(3):
            loss = F.cross_entropy(self.net(self.images)[1][:9], self.labels[:9])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def pseudo(self) -> Tensor:
        with torch.no_grad(), batch_statistics(self.net):
            return one_hot(self.net(self.images)[1].argmax(1), K).double()

    def meta(self) -> MetaGradient:
        return meta_gradient(self.net, self.meta_images, self.meta_targets)


def soft_ce(logits: Tensor, targets: Tensor) -> Tensor:
    return -(targets * F.log_softmax(logits, 1)).sum(1)


def double_backward(s: Setting, first: Tensor, second: Tensor, lr: float) -> tuple[Tensor, Tensor]:
    """-dG/da, -dG/db through an explicit virtual step: the definition, paper eq. 5."""
    own = trainable(s.net)
    a = torch.zeros(len(first), dtype=torch.float64, requires_grad=True)
    b = torch.zeros_like(a, requires_grad=True)
    with batch_statistics(s.net):
        logits = functional_call(s.net, own, (s.images,))[1]
        loss = (a * soft_ce(logits, first) + b * soft_ce(logits, second)).sum()
        gradients = torch.autograd.grad(loss, list(own.values()), create_graph=True)
        pairs = zip(own.items(), gradients, strict=True)
        moved = {name: value - lr * gradient for (name, value), gradient in pairs}
        outer = soft_ce(functional_call(s.net, moved, (s.meta_images,))[1], s.meta_targets).mean()
    grad_a, grad_b = torch.autograd.grad(outer, [a, b])
    return -grad_a, -grad_b


def assert_close(found: Tensor, wanted: Tensor, tolerance: float = EXACT) -> None:
    assert wanted.abs().max() > 1e-6
    assert (found - wanted).abs().max() <= tolerance * wanted.abs().max()


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("way", ["jvp", "shared forward"])
def test_directional_derivative__equals_double_backward(way: str, mode: str) -> None:
    s = Setting()
    s.net.train(mode == "train")
    pseudo = s.pseudo()
    alpha, beta = double_backward(s, s.targets, pseudo, lr=0.05)
    v = s.meta().direction
    logits, tangent = (
        logits_jvp(s.net, s.images, v) if way == "jvp" else forward_with_tangent(s.net, s.images, v)[1:]
    )
    assert_close(0.05 * directional_derivative(logits.detach(), tangent, s.targets), alpha)
    assert_close(0.05 * directional_derivative(logits.detach(), tangent, pseudo), beta)
    assert alpha[9] == 0  # unlabeled: f is dropped
    assert beta[9] != 0


def test_directional_derivative__equals_double_backward_for_soft_targets() -> None:
    s = Setting(1)
    soft = torch.softmax(torch.randn(10, K, dtype=torch.float64), 1)
    alpha, _ = double_backward(s, soft, soft, lr=0.1)
    logits, tangent = logits_jvp(s.net, s.images, s.meta().direction)
    assert_close(0.1 * directional_derivative(logits, tangent, soft), alpha)


def test_directional_derivative__equals_central_differences_of_the_losses() -> None:
    s = Setting()
    meta = s.meta()
    h = 1e-5 / meta.norm.item()
    own = trainable(s.net)

    def losses(step: float) -> Tensor:
        moved = {n: p + step * meta.direction[n] for n, p in own.items()}
        return soft_ce(functional_call(s.net, moved, (s.images,))[1], s.targets)

    with torch.no_grad(), batch_statistics(s.net):
        # Five points: the error is of order h^4, so that round-off / h stays small enough.
        slope = (8 * (losses(h) - losses(-h)) - (losses(2 * h) - losses(-2 * h))) / (12 * h)
    logits, tangent = logits_jvp(s.net, s.images, meta.direction)
    assert_close(directional_derivative(logits, tangent, s.targets), slope)


def test_directional_derivative__equal_labels_give_bitwise_equal_weights() -> None:
    s = Setting()
    pseudo = s.pseudo()
    logits, tangent = logits_jvp(s.net, s.images, s.meta().direction)
    alpha, beta = (directional_derivative(logits, tangent, target) for target in (s.targets, pseudo))
    same = (s.targets == pseudo).all(1)
    assert same.any()
    assert not same.all()
    assert torch.equal(alpha[same], beta[same])
    # Eq. 11: the difference of the two is a difference of two tangents.
    rows = torch.arange(10)[~same & (s.labels >= 0)]
    wanted = tangent[rows, pseudo.argmax(1)[rows]] - tangent[rows, s.labels[rows]]
    torch.testing.assert_close((alpha - beta)[rows], wanted, rtol=1e-10, atol=1e-14)


def test_directional_derivative__on_its_own_meta_batch_is_the_gradient_norm() -> None:
    s = Setting()
    s.meta_images, s.meta_targets = s.images[:9], s.targets[:9]
    meta = s.meta()
    logits, tangent = logits_jvp(s.net, s.images[:9], meta.direction)
    total = directional_derivative(logits, tangent, s.targets[:9]).sum()
    torch.testing.assert_close(total, 9 * meta.norm**2, rtol=1e-10, atol=0)


def test_directional_derivative__keeps_digits_where_the_label_is_fitted() -> None:
    logits = torch.tensor([[18.0, 0.0, -1.0]])
    tangent = torch.tensor([[1000.0, 1001.0, 1002.0]])
    p = torch.softmax(logits.double(), 1)[0]
    found = directional_derivative(logits, tangent, torch.tensor([[1.0, 0.0, 0.0]]))
    assert found.item() == pytest.approx((p[1] * 1 + p[2] * 2).item(), rel=1e-5)


def test_logits_jvp__touches_no_buffer_and_no_flag() -> None:
    s = Setting()
    before = copy.deepcopy(s.net.state_dict())
    logits_jvp(s.net, s.images, s.meta().direction)
    for name, value in s.net.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert s.net.norm1.track_running_stats
    assert s.net.training


def test_forward_with_tangent__trains_like_a_plain_forward() -> None:
    s = Setting()
    s.optimizer.zero_grad()
    twin = copy.deepcopy(s.net)
    features, logits, tangent = forward_with_tangent(s.net, s.images, s.meta().direction)
    twin_features, twin_logits = twin(s.images)
    torch.testing.assert_close(logits, twin_logits, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(features, twin_features, rtol=1e-12, atol=1e-12)
    assert not tangent.requires_grad
    soft_ce(logits, s.targets).sum().backward()
    soft_ce(twin_logits, s.targets).sum().backward()
    for mine, theirs in zip(s.net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-9, atol=1e-12)
    for (name, mine), theirs in zip(s.net.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12, msg=name)


def test_forward_with_tangent__in_float32_and_channels_last() -> None:
    s = Setting()
    pseudo, v = s.pseudo(), s.meta().direction
    logits, tangent = logits_jvp(s.net, s.images, v)
    wanted = directional_derivative(logits, tangent, pseudo)
    net = s.net.float().to(memory_format=torch.channels_last)
    images = s.images.float().contiguous(memory_format=torch.channels_last)
    _, logits, tangent = forward_with_tangent(net, images, {n: d.float() for n, d in v.items()})
    assert_close(directional_derivative(logits.detach(), tangent, pseudo).double(), wanted, 1e-4)


def test_forward_with_tangent__with_dropout_uses_one_mask() -> None:
    torch.manual_seed(0)
    head = nn.Linear(6, K)

    class Dropped(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            hidden = F.dropout(x, 0.5, training=self.training)
            return hidden, head(hidden)

    net = Dropped()
    net.head = head
    x, v = torch.randn(5, 6), {n: torch.randn_like(p) for n, p in trainable(net).items()}
    features, _, tangent = forward_with_tangent(net, x, v)
    wanted = features @ v["head.weight"].T + v["head.bias"]
    torch.testing.assert_close(tangent, wanted.detach(), rtol=1e-5, atol=1e-6)


def test_one_hot__has_an_empty_row_for_unlabeled() -> None:
    assert one_hot(torch.tensor([1, -1]), 3).tolist() == [[0, 1, 0], [0, 0, 0]]


def graph_names(result: Tensor) -> set[str]:
    """Names of the functions that made ``result``."""
    found, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [after for after, _ in node.next_functions]
    return {node.name() for node in found}


@pytest.mark.parametrize("way", ["jvp", "shared forward"])
def test_forward_with_tangent__is_fused_and_right_under_bfloat16(way: str) -> None:
    """The tangent of float64 to two digits; logits and gradients are those of the plain bfloat16 forward."""
    s = Setting()
    v = s.meta().direction
    low = copy.deepcopy(s.net).float()
    small = {name: value.float() for name, value in v.items()}
    wanted_logits, wanted = logits_jvp(s.net, s.images, v)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if way == "jvp":
            logits, tangent = logits_jvp(low, s.images.float(), small)
        else:
            _, logits, tangent = forward_with_tangent(low, s.images.float(), small)
    assert logits.dtype == torch.bfloat16
    assert_close(logits.detach().double(), wanted_logits, 0.05)
    assert_close(tangent.double(), wanted, 0.1)
    if way == "shared forward":
        assert {"_Conv2dBackward", "_BatchNormBackward", "_ReLUBackward"} <= graph_names(logits)
        plain = copy.deepcopy(s.net).float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            unfused = plain(s.images.float())[1]
        torch.testing.assert_close(logits, unfused)
        pairs = [(low, logits), (plain, unfused)]
        found, expected = (
            torch.autograd.grad(soft_ce(said.float(), s.targets.float()).mean(), list(net.parameters()))
            for net, said in pairs
        )
        torch.testing.assert_close(found, expected, rtol=0.02, atol=1e-4)
