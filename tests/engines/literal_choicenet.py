"""ChoiceNet written out from its formulas: slow, in float64, one sample and one component at a time.

The numbers in brackets are those of the derivation. Random draws come from the streams that the engine names
(order, noise, dropout by epoch); everything else is written a second time here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engines.choicenet import training
from engines.choicenet.config import ChoiceNetConfig
from engines.contract import TrainingData
from engines.shared.device import make_generator, seeded_init
from tests.engines.literal_double import (
    BUFFERS,
    Optimizer,
    batch_norm,
    conv,
    learning_rate,
    linear,
    relu,
)

Weights = dict[str, Tensor]


@dataclass
class Said:
    """What a head says of one sample."""

    pi: Tensor
    """(K,)"""
    rho: Tensor
    """(K,)"""
    target: Tensor
    """(D,) outputs of the component that classifies."""
    means: Tensor
    """(K, D)"""
    variance: Tensor
    """(K, D) Sigma_k, the noise of the outputs."""
    weight_noise: Tensor
    """s² (8)"""
    base: Tensor
    """(D,) S0 (3)"""


def head(w: Weights, at: str, h: Tensor, config: Any, *, training: bool) -> list[Said]:
    """(1) to (4) for features (B, Q)."""
    rho = torch.tanh(linear(w, f"{at}rho_head", h))
    pi = softmax(linear(w, f"{at}pi_head", h))
    base_variance = linear(w, f"{at}variance_head", h).clamp(-10, 10).exp()
    found = []
    for i in range(len(h)):
        first = torch.full((1,), config.rho_ref if training else 1.0)
        own = torch.cat([first, rho[i, 1:]])
        target = h[i] @ w[f"{at}target_weight"]
        sigma = [(1 - r * r) * base_variance[i] + config.inverse_precision for r in own]
        weight_noise = math.exp(getattr(config, "log_weight_variance", -2.0)) * (h[i] * h[i]).sum()
        means = torch.stack([r * target for r in own])
        found.append(Said(pi[i], own, target, means, torch.stack(sigma), weight_noise, base_variance[i]))
    return found


def outer(rho: Tensor, form: str) -> Tensor:
    """The outer factor of (5)."""
    return 1 - rho * rho if form == "full" else root(rho)


def root(rho: Tensor) -> Tensor:
    """sqrt(1 - rho²); exactly 0, without a gradient, at the fixed correlation of 1."""
    left = 1 - rho * rho
    return torch.sqrt(left) if float(left.detach()) > 0 else torch.zeros(())


def drawn(
    said: list[Said], form: str, sharing: str, noise: torch.Generator, *, outputs: bool = True
) -> list[Tensor]:
    """Sampled outputs (7) of each sample, (K, D); without ``outputs`` their means mu_k (8) alone."""
    size, (num, dim) = len(said), said[0].means.shape
    if sharing == "shared":
        first, second = torch.randn(size, dim, generator=noise), torch.randn(size, dim, generator=noise)
    if outputs or sharing == "independent":
        own = torch.randn(size, num, dim, generator=noise)
    found = []
    for i, one in enumerate(said):
        rows = []
        for k in range(num):
            rho = one.rho[k]
            c = outer(rho, form)
            if sharing == "shared":
                spread = one.weight_noise.sqrt()
                inner = rho * spread * first[i] + root(rho) * spread * second[i]
                mean = one.means[k] + c * inner
                rows.append(mean + one.variance[k].sqrt() * own[i, k] if outputs else mean)
            elif outputs:
                total = c * c * one.weight_noise + one.variance[k]
                rows.append(one.means[k] + total.sqrt() * own[i, k])
            else:
                rows.append(one.means[k] + c * one.weight_noise.sqrt() * own[i, k])
        found.append(torch.stack(rows))
    return found


def correlation_kl(rho: Tensor, pi: Tensor, form: str) -> Tensor:
    """(11) of one sample."""
    total = torch.zeros(())
    shares = rho.exp() / rho.exp().sum()
    for k in range(len(rho)):
        if form == "paper":
            total = total + shares[k] * (shares[k] / pi[k]).log()
        else:
            total = total + (rho[k] + 1) * ((rho[k] + 1 + 1e-2).log() - (pi[k] + 1e-2).log())
    return total


def softmax(x: Tensor) -> Tensor:
    """Over the last axis."""
    raised = (x - x.max(-1, keepdim=True).values).exp()
    return raised / raised.sum(-1, keepdim=True)


def signals(one: Said, label: int, form: str) -> dict[str, float]:
    """(13) in its mean-field form to (17), with rho_1 = 1 as given."""
    probs = []
    for k in range(len(one.pi)):
        c = outer(one.rho[k], form)
        total = c * c * one.weight_noise + one.variance[k]
        probs.append(float(softmax(one.means[k] / (1 + math.pi * total / 8).sqrt())[label]))
    weights = [float(one.pi[k]) * probs[k] for k in range(len(probs))]
    gamma = [weight / sum(weights) for weight in weights]
    return {
        "rho": sum(gamma[k] * float(one.rho[k]) for k in range(len(gamma))),
        "gamma_1": gamma[0],
        "p_target": probs[0],
        "rho_x": sum(float(one.pi[k]) * float(one.rho[k]) for k in range(len(gamma))),
        "pi_1": float(one.pi[0]),
    }


class LiteralChoiceNet:
    """The network by name of parameter, and its training."""

    def __init__(self, data: TrainingData, config: ChoiceNetConfig, seed: int, network: Weights) -> None:
        self.config, self.seed, self.network = config, seed, dict(network)
        images = torch.from_numpy(data.images.copy()).double() / 255
        mean = images.mean((0, 2, 3), keepdim=True)
        std = ((images - mean) ** 2).mean((0, 2, 3), keepdim=True).sqrt().clamp(min=0.01)
        self.scale = (
            (mean, std) if config.input_scale == "standardized" else (torch.zeros(()), torch.ones(()))
        )
        self.images = (images - self.scale[0]) / self.scale[1]
        self.labels = torch.from_numpy(data.given_labels.copy())
        self.labeled = torch.tensor([r for r in range(len(self.labels)) if self.labels[r] >= 0])
        self.K, self.D = config.num_components, data.num_classes
        self.optimizer = Optimizer(
            config.optimizer, decay=0.0, betas=(0.9, 0.999), eps=config.adam_epsilon, momentum=0.9
        )
        num = len(self.labels)
        self.margin_sum, self.visits = np.zeros(num), np.zeros(num)
        self.now = {name: np.full(num, np.nan) for name in ("rho", "p_target")}
        self.average = {name: np.full(num, np.nan) for name in ("rho", "p_target")}

    # --- Forward ------------------------------------------------------------------------------------------

    def features(self, w: Weights, x: Tensor, *, training: bool) -> Tensor:
        if self.config.network == "mlp":
            h = relu(linear(w, "trunk.trunk.1", x.flatten(1)))
        else:
            for block in range(2):
                at = f"trunk.blocks.{block}"
                skip = x
                if f"{at}.identity.0.weight" in w:
                    skip = conv(w, f"{at}.identity.0", x, 1)
                    skip = batch_norm(w, f"{at}.identity.1", skip, training=training)
                main = relu(batch_norm(w, f"{at}.main.1", conv(w, f"{at}.main.0", x, 1), training=training))
                main = batch_norm(w, f"{at}.main.4", conv(w, f"{at}.main.3", main, 1), training=training)
                x = F.max_pool2d(relu(main + skip), 2)
            h = linear(w, "trunk.tail.1", x.flatten(1))
            h = relu(batch_norm(w, "trunk.tail.2", h, training=training))
        return h

    def said(self, w: Weights, x: Tensor, *, training: bool) -> list[Said]:
        return head(w, "head.", self.features(w, x, training=training), self.config, training=training)

    def log_probs(self, images: np.ndarray | None = None, views: int = 1) -> np.ndarray:
        """(N, D) of the classifying component in evaluation mode, averaged over views."""
        x = self.images
        if images is not None:
            x = (torch.from_numpy(images.copy()).double() / 255 - self.scale[0]) / self.scale[1]
        found = []
        with torch.no_grad():
            for move in ((0, 0), (1, 0), (-1, 0))[:views]:
                said = self.said(dict(self.network), x.roll(move, (2, 3)), training=False)
                found.append(torch.stack([softmax(one.target).log() for one in said]))
        return torch.stack(found).mean(0).numpy()

    def signals(self, rows: Tensor, said: list[Said]) -> list[dict[str, float]]:
        """Of each row; ``said`` in evaluation form."""
        return [
            signals(one, int(self.labels[row].clamp(min=0)), self.config.outer)
            for row, one in zip(rows, said, strict=True)
        ]

    # --- Steps --------------------------------------------------------------------------------------------

    def batches(self, order: torch.Generator) -> list[Tensor]:
        shuffled = self.labeled[torch.randperm(len(self.labeled), generator=order)].tolist()
        size = self.config.batch_size
        found = [shuffled[i : i + size] for i in range(0, len(shuffled), size)]
        if len(found) > 1 and len(found[-1]) == 1:
            last = found.pop()
            found[-1] += last
        return [torch.tensor(rows) for rows in found]

    def epoch(self, epoch: int) -> None:
        c = self.config
        rate = learning_rate(c.schedule, c.learning_rate, epoch, c.epochs)
        noise = make_generator(self.seed, "noise", epoch, 0)
        totals = np.zeros(4)
        self.trace: list[Weights] = []
        with seeded_init(self.seed, "dropout", epoch):
            for rows in self.batches(make_generator(self.seed, "order", epoch)):
                x, labels = self.images[rows], self.labels[rows]
                w = {
                    name: value.clone().requires_grad_(not name.endswith(BUFFERS))
                    for name, value in self.network.items()
                }
                leaves = {name: value for name, value in w.items() if not name.endswith(BUFFERS)}
                said = self.said(w, x, training=True)
                fits, kls = self.sample_losses(said, labels, noise, epoch)
                loss = sum(
                    (fit + c.lambda_kl * kl for fit, kl in zip(fits, kls, strict=True)), torch.zeros(())
                )
                found = torch.autograd.grad(loss / len(rows), list(leaves.values()), allow_unused=True)
                with torch.no_grad():
                    self.network = w = {name: value.detach() for name, value in w.items()}
                    gradients = {}
                    for name, gradient in zip(leaves, found, strict=True):
                        if gradient is not None:
                            decayed = gradient + c.weight_decay * w[name]
                            gradients[name] = decayed.clamp(-training.GRAD_CLIP, training.GRAD_CLIP)
                    self.optimizer.step(w, gradients, rate)
                    self.trace.append(dict(w))
                    self.count(totals, rows, said, (fits, kls))
                self.visit(rows, said)
        self.end_epoch(epoch)
        mean = totals / len(self.labeled)
        self.losses = {
            "total": mean[1] + c.lambda_kl * mean[2],
            "fit": mean[1],
            "kl": mean[2],
            "lse": mean[3],
        }
        self.train_accuracy = mean[0]

    def sample_losses(
        self, said: list[Said], labels: Tensor, noise: torch.Generator, epoch: int
    ) -> tuple[list[Tensor], list[Tensor]]:
        """(10) and (11) of each sample; in the warm-up rho is a constant."""
        c = self.config
        warm = epoch < c.warmup_epochs
        if warm:
            for one in said:
                one.rho = one.rho.detach()
                one.means = torch.stack([r * one.target for r in one.rho])
                one.variance = torch.stack([(1 - r * r) * one.base + c.inverse_precision for r in one.rho])
        outputs = drawn(said, c.outer, c.sharing, noise)
        fits, kls = [], []
        for i, one in enumerate(said):
            fit = torch.zeros(())
            for k in range(len(one.pi)):
                lse = outputs[i][k].exp().sum().log()
                if warm:
                    cost = lse - outputs[i][k, labels[i]]
                else:
                    cost = c.lambda_reg * lse - softmax(outputs[i][k])[labels[i]]
                fit = fit + one.pi[k] * cost
            fits.append(fit)
            kls.append(correlation_kl(one.rho, one.pi, "paper"))
        return fits, kls

    def count(
        self, totals: np.ndarray, rows: Tensor, said: list[Said], losses: tuple[list[Tensor], list[Tensor]]
    ) -> None:
        for i, row in enumerate(rows.tolist()):
            label, target = int(self.labels[row]), said[i].target
            totals += [
                float(int(target.argmax()) == label),
                float(losses[0][i].detach()),
                float(losses[1][i].detach()),
                float(target.exp().sum().log()),
            ]
            others = torch.cat([target[:label], target[label + 1 :]])
            self.margin_sum[row] += float(target[label] - others.max())
            self.visits[row] += 1

    @torch.no_grad()
    def visit(self, rows: Tensor, said: list[Said]) -> None:
        """rho_label and p_target at this visit, from the training forward with rho_1 = 1."""
        found = self.signals(rows, [self.at_one(one) for one in said])
        for row, values in zip(rows.tolist(), found, strict=True):
            for name, all_rows in self.now.items():
                all_rows[row] = values[name]

    def at_one(self, one: Said) -> Said:
        tau = torch.full_like(one.target, self.config.inverse_precision)
        return Said(
            one.pi,
            torch.cat([torch.ones(1), one.rho[1:]]),
            one.target,
            torch.cat([one.target[None], one.means[1:]]),
            torch.cat([tau[None], one.variance[1:]]),
            one.weight_noise,
            one.base,
        )

    def end_epoch(self, epoch: int) -> None:
        """Moving averages, decay 0.9, from after the first tenth of training."""
        if (epoch + 1) <= 0.1 * self.config.epochs and epoch + 1 < self.config.epochs:
            return
        for name, average in self.average.items():
            self.average[name] = np.where(
                np.isnan(average), self.now[name], 0.9 * average + 0.1 * self.now[name]
            )
