"""UMN written out from its formulas: slow, in float64, one sample and one class at a time.

The numbers U3 to U12 are those of the derivation. Random draws come from the streams that the engine names
(order, moves, noise, dropout by rotation and epoch); everything else is written a second time here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engines.contract import TrainingData
from engines.shared.device import make_generator, seeded_init
from engines.shared.loader import augment
from engines.umn import model
from engines.umn.config import UMNConfig
from tests.engines.literal_double import (
    BUFFERS,
    Optimizer,
    batch_norm,
    conv,
    leaky,
    learning_rate,
    linear,
    relu,
)

EPSILON_FLOOR, RECONSTRUCTION_VARIANCE = 1e-2, 0.1


def hidden_in(labels: np.ndarray, rotations: int, seed: int) -> np.ndarray:
    """The rotation that hides each label: dealt out in turn, class by class; -1 where there is none."""
    found = np.full(len(labels), -1)
    labeled = [row for row in range(len(labels)) if labels[row] >= 0]
    order = torch.randperm(len(labeled), generator=make_generator(seed, "rotations")).tolist()
    place = 0
    for wanted in range(int(labels.max()) + 1):
        for row in (labeled[number] for number in order):
            if labels[row] == wanted:
                found[row] = place % rotations
                place += 1
    return found


class LiteralUMN:
    """One rotation: learner ``w`` and guider ``g`` by name, and their training."""

    def __init__(
        self, data: TrainingData, config: UMNConfig, seed: int, rotation: int, w: dict[str, Tensor], net: str
    ) -> None:
        self.config, self.seed, self.rotation, self.w, self.net = config, seed, rotation, dict(w), net
        self.g = {
            name.removeprefix("recognizer."): value
            for name, value in w.items()
            if name.startswith("recognizer.")
        }
        self.images = torch.from_numpy(data.images.copy()).double() / 255
        self.labels = torch.from_numpy(data.given_labels.copy())
        self.K = data.num_classes
        hidden = hidden_in(data.given_labels, config.rotations, seed)
        rows = range(len(self.labels))
        shown = [r for r in rows if self.labels[r] >= 0 and (config.rotations == 1 or hidden[r] != rotation)]
        self.labeled = torch.tensor(shown)
        self.unlabeled = torch.tensor([r for r in rows if r not in shown])
        betas = (0.9, 0.99)
        self.optimizer = Optimizer(
            config.optimizer, decay=config.weight_decay, betas=betas, eps=1e-8, momentum=0.9
        )
        self.t = 0
        self._plan_batches()
        self.losses: dict[str, float] = {}

    def _plan_batches(self) -> None:
        c, num_l, num_u = self.config, len(self.labeled), len(self.unlabeled)
        if num_u:
            share = c.labeled_share or max(0.05, num_l / (num_l + num_u))
            self.front = min(c.batch_size - 1, max(1, round(share * c.batch_size)))
            self.behind = c.batch_size - self.front
            self.steps = math.ceil(num_u / self.behind)
        else:
            self.front, self.behind = c.batch_size, 0
            full, rest = divmod(num_l, c.batch_size)
            self.steps = max(1, full + (1 if rest > 1 else 0))
        self.gamma = c.gamma if c.gamma is not None else min(0.999, max(0.9, 1 - 1 / (1.5 * self.steps)))

    def batches(self, order: torch.Generator) -> list[tuple[Tensor, int]]:
        if not self.behind:
            shuffled = self.labeled[torch.randperm(len(self.labeled), generator=order)].tolist()
            found = [shuffled[i : i + self.front] for i in range(0, len(shuffled), self.front)]
            if len(found) > 1 and len(found[-1]) == 1:
                last = found.pop()
                found[-1] += last
            return [(torch.tensor(rows), len(rows)) for rows in found]
        cycle: list[int] = []
        while len(cycle) < self.steps * self.front:
            cycle += self.labeled[torch.randperm(len(self.labeled), generator=order)].tolist()
        rest = self.unlabeled[torch.randperm(len(self.unlabeled), generator=order)].tolist()
        return [
            (
                torch.tensor(
                    cycle[i * self.front : (i + 1) * self.front]
                    + rest[i * self.behind : (i + 1) * self.behind]
                ),
                self.front,
            )
            for i in range(self.steps)
        ]

    # --- Forward ------------------------------------------------------------------------------------------

    def seen(self, x: Tensor, noise: torch.Generator | None) -> Tensor:
        """What a network sees of images in [0, 1]."""
        size = self.config.input_noise
        if size is None:
            size = 0.15 if self.net == "umn13" else 0.0
        if noise is not None and size > 0:
            x = x + size * torch.randn(x.shape, generator=noise)
        if not self.config.standardized:
            return x
        mean = self.images.mean((0, 2, 3), keepdim=True)
        std = ((self.images - mean) ** 2).mean((0, 2, 3), keepdim=True).sqrt().clamp(min=0.01)
        # Dropout draws its mask in the order of memory.
        return ((x - mean) / std).contiguous(memory_format=torch.channels_last)

    def encode(self, w: dict[str, Tensor], at: str, x: Tensor, *, training: bool) -> dict[str, Any]:
        """q(z_a | x) and the classifier as a function of z_a; names of ``w`` begin with ``at``."""
        if self.net == "umn_mlp":
            features = pooled = relu(linear(w, f"{at}trunk.first", x.flatten(1)))
            logits = None
        elif self.net == "mlp":
            features = pooled = relu(linear(w, f"{at}trunk.backbone.trunk.1", x.flatten(1)))
            logits = linear(w, f"{at}trunk.backbone.head", features)
        else:
            features, pooled, logits = self._umn13(w, at, x, training=training)
        mean = linear(w, f"{at}posterior.mean", features)
        log_var = linear(w, f"{at}posterior.log_variance", features).clamp(-8, 8)

        def from_z(z: Tensor) -> Tensor:
            return linear(w, f"{at}classifier.2", relu(linear(w, f"{at}classifier.0", z)))

        reads_z = f"{at}classifier.0.weight" in w
        classify: Callable[[Tensor], Tensor] = from_z if reads_z else lambda _: logits
        return {
            "mean": mean,
            "log_var": log_var,
            "embedding": mean if reads_z else pooled,
            "classify": classify,
        }

    def _umn13(
        self, w: dict[str, Tensor], at: str, x: Tensor, *, training: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        net = f"{at}trunk.network"
        for first in (0, 11):
            for layer in (first, first + 3, first + 6):
                x = conv(w, f"{net}.trunk.{layer}", x, 1)
                x = leaky(batch_norm(w, f"{net}.trunk.{layer + 1}", x, training=training))
            x = F.dropout(F.max_pool2d(x, 2), 0.5, training)
        x = leaky(batch_norm(w, f"{net}.trunk.23", conv(w, f"{net}.trunk.22", x), training=training))
        h = x
        for layer in (0, 3):
            h = conv(w, f"{net}.classifier.{layer}", h)
            h = leaky(batch_norm(w, f"{net}.classifier.{layer + 1}", h, training=training))
        pooled = h.mean((2, 3))
        tail = conv(w, f"{at}trunk.tail.0", x, 1)
        tail = leaky(batch_norm(w, f"{at}trunk.tail.1", tail, training=training))
        return tail.flatten(1), pooled, linear(w, f"{net}.head", pooled)

    def decode(self, w: dict[str, Tensor], z: Tensor) -> Tensor:
        at, size = "generator.decoder", self.decoded_size
        channels = self.images.shape[1]
        if self.net == "umn_mlp":
            out = linear(w, f"{at}.layers.2", relu(linear(w, f"{at}.layers.0", z)))
            return out.unflatten(1, (channels, *size))
        first = relu(linear(w, f"{at}.first", z))
        if self.net == "umn13":
            quarter = [max(3, side // 4) - 2 for side in size]
            x = first.unflatten(1, (-1, *quarter))
            x = leaky(F.conv_transpose2d(x, w[f"{at}.grow.weight"], w[f"{at}.grow.bias"]))
            for block, target in enumerate(((size[0] // 2, size[1] // 2), size)):
                x = F.interpolate(x, size=target)
                for layer in range(3):
                    x = conv(w, f"{at}.blocks.{block}.{layer}.0", x, 1)
                    x = leaky(batch_norm(w, f"{at}.blocks.{block}.{layer}.1", x, training=True))
            return conv(w, f"{at}.last", x, 1)
        sizes = [size]
        while max(sizes[0]) > 8:
            sizes.insert(0, tuple(math.ceil(side / 2) for side in sizes[0]))
        x = first.unflatten(1, (32, *sizes[0]))
        for block, target in enumerate(sizes[1:]):
            x = conv(w, f"{at}.blocks.{block}.0", x, 1)
            x = F.interpolate(leaky(batch_norm(w, f"{at}.blocks.{block}.1", x, training=True)), size=target)
        return conv(w, f"{at}.last", x, 1)

    @property
    def decoded_size(self) -> tuple[int, int]:
        height, width = self.images.shape[2:]
        side = model.DECODED_SIDE
        if self.config.elbo_scale == "sum" or max(height, width) <= side:
            return height, width
        return round(height * side / max(height, width)), round(width * side / max(height, width))

    def probs(self, w: dict[str, Tensor], at: str, x: Tensor) -> Tensor:
        """Softmax at the posterior mean in evaluation mode, for images as the network sees them."""
        with torch.no_grad():
            encoding = self.encode(dict(w), at, x, training=False)
            return _softmax(encoding["classify"](encoding["mean"]))

    def log_probs(self, which: str, images: np.ndarray | None = None, views: int = 1) -> np.ndarray:
        """(N, K) of the guider or the learner in evaluation mode, averaged over circular moves of one pixel."""
        w, at = (self.g, "") if which == "guider" else (self.w, "recognizer.")
        x = self.images if images is None else torch.from_numpy(images.copy()).double() / 255
        moves = ((0, 0), (1, 0), (-1, 0), (0, 1))[:views]
        found = [self.probs(w, at, self.seen(x.roll(move, (2, 3)), None)).log() for move in moves]
        return torch.stack(found).mean(0).numpy()

    def embedding(self) -> np.ndarray:
        """(N, D) of the guider."""
        with torch.no_grad():
            found: Tensor = self.encode(dict(self.g), "", self.seen(self.images, None), training=False)[
                "embedding"
            ]
        return found.numpy()

    # --- One step -----------------------------------------------------------------------------------------

    def epoch(self, epoch: int) -> None:
        key = (self.rotation, epoch)
        order, moves, noise = (make_generator(self.seed, name, *key) for name in ("order", "moves", "noise"))
        totals: dict[str, float] = defaultdict(float)
        rate = learning_rate(self.config.schedule, self.config.learning_rate, epoch, self.config.epochs)
        self.trace: list[dict[str, Tensor]] = []
        with seeded_init(self.seed, "dropout", *key):
            for rows, front in self.batches(order):
                self.t += 1
                w = self.w = {
                    name: value.clone().requires_grad_(not name.endswith(BUFFERS))
                    for name, value in self.w.items()
                }
                trained = {name: value for name, value in w.items() if not name.endswith(BUFFERS)}
                loss, terms = self.generative(rows, front, moves, noise)
                found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
                with torch.no_grad():
                    self.w = {name: value.detach() for name, value in w.items()}
                    gradients = dict(zip(trained, found, strict=True))
                    self.optimizer.step(self.w, gradients, rate)
                    self.follow()
                self.trace.append({name: value.clone() for name, value in self.w.items()})
                for name, value in {**terms, "loss": loss}.items():
                    totals[name] += float(torch.as_tensor(value).detach()) / self.steps
        self.losses = dict(totals)

    def follow(self) -> None:
        """U9: the guider after step t, t counted from 1; running statistics are copied."""
        decay = min(self.gamma, 1 - 1 / (self.t + 1))
        for name, value in self.g.items():
            now = self.w[f"recognizer.{name}"]
            self.g[name] = now if name.endswith(BUFFERS) else decay * value + (1 - decay) * now

    def guider_probs(
        self, rows: Tensor, front: int, x: Tensor, moves: torch.Generator, noise: torch.Generator
    ) -> Tensor:
        rows, x = rows[:front], x[:front]
        if self.moved() != "none":
            x = augment(self.images[rows], self.moved(), moves)
        return self.probs(self.g, "", self.seen(x, noise))

    def moved(self) -> str:
        if self.config.augment != "auto":
            return self.config.augment
        return {"umn_mlp": "none", "umn13": "shift"}.get(
            self.net, "shift" if self.images.shape[1] == 1 else "crop_flip"
        )

    def generative(
        self, rows: Tensor, front: int, moves: torch.Generator, noise: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor | float]]:
        """U10 with the terms of U3."""
        c, w, size = self.config, self.w, len(rows)
        x = augment(self.images[rows], self.moved(), moves)
        encoding = self.encode(w, "recognizer.", self.seen(x, noise), training=True)
        mean, log_var = encoding["mean"], encoding["log_var"]
        z_a = mean + torch.exp(log_var / 2) * torch.randn(mean.shape, generator=noise)
        q = _softmax(encoding["classify"](z_a))
        noise_b = torch.randn(size, self.K, c.latent_b, generator=noise)
        said = self.decode(w, z_a)
        target = x if x.shape[2:] == said.shape[2:] else F.adaptive_avg_pool2d(x, said.shape[2:])
        kind = "bernoulli" if x.shape[1] == 1 else "gaussian"
        terms: dict[str, list[Tensor]] = defaultdict(list)
        for i in range(size):
            if kind == "bernoulli":
                p = torch.sigmoid(said[i])
                terms["reconstruction"].append((target[i] * p.log() + (1 - target[i]) * (1 - p).log()).sum())
            else:
                terms["reconstruction"].append(
                    -((target[i] - said[i]) ** 2).sum() / (2 * RECONSTRUCTION_VARIANCE)
                )
            terms["posterior_entropy"].append(((1 + math.log(2 * math.pi) + log_var[i]) / 2).sum())
            inner = [self.class_term(w, z_a[i], y, noise_b[i, y]) for y in range(self.K)]
            terms["class_sum"].append(sum((q[i, y] * inner[y] for y in range(self.K)), torch.zeros(())))
            terms["class_kl"].append(math.log(self.K) + (q[i] * q[i].log()).sum())
        pixels = x.shape[1] * math.prod(self.decoded_size)
        scale = 1.0 if c.elbo_scale == "sum" else 1.0 / pixels
        generative = torch.zeros(())
        for i in range(size):
            rest = terms["posterior_entropy"][i] + terms["class_sum"][i] - terms["class_kl"][i]
            generative = generative - scale * (terms["reconstruction"][i] + rest) / size

        # ε compares both networks at the posterior mean.
        learner = _softmax(encoding["classify"](mean))
        guider = self.guider_probs(rows, front, x, moves, noise)
        label = torch.zeros(())
        epsilons, weights = [], []
        for i in range(front):
            y = int(self.labels[rows[i]])
            epsilons.append(abs(float(guider[i, y]) - float(learner[i, y].detach())))
            weights.append(self.weight(epsilons[-1]))
            gain = q[i, y] if c.label_loss == "linear" else q[i, y].log()
            label = label + c.lambda_y * weights[-1] * gain / size
        loss = generative - label
        found: dict[str, Tensor | float] = {
            name: torch.stack(values).mean() for name, values in terms.items()
        }
        hits = [int(learner[i].argmax()) == int(self.labels[rows[i]]) for i in range(front)]
        return loss, {
            **found,
            "label_term": label,
            "generative": generative,
            "epsilon": float(np.mean(epsilons)),
            "weight": float(np.mean(weights)),
            "train_accuracy": float(np.mean(hits)),
        }

    def class_term(self, w: dict[str, Tensor], z_a: Tensor, y: int, noise: Tensor) -> Tensor:
        """log p(z_a | z_b, y) - KL(q(z_b | z_a, y) || N(0, I)) for one sample and one class."""
        one_hot = torch.zeros(self.K)
        one_hot[y] = 1.0

        def gaussian(part: str, z: Tensor) -> tuple[Tensor, Tensor]:
            hidden = relu(linear(w, f"generator.{part}.first", torch.cat([z, one_hot])))
            log_var = linear(w, f"generator.{part}.head.log_variance", hidden)
            return linear(w, f"generator.{part}.head.mean", hidden), log_var.clamp(-8, 8)

        mean_b, log_b = gaussian("upper_encoder", z_a)
        z_b = mean_b + torch.exp(log_b / 2) * noise
        mean_a, log_a = gaussian("upper_decoder", z_b)
        density = -(math.log(2 * math.pi) + log_a + (z_a - mean_a) ** 2 / torch.exp(log_a)).sum() / 2
        return density - (mean_b**2 + torch.exp(log_b) - 1 - log_b).sum() / 2

    def weight(self, epsilon: float) -> float:
        """f(ε) of U7 behind the clamp U12."""
        epsilon = min(max(epsilon, EPSILON_FLOOR), (self.K - 1) / self.K)
        return math.log((self.K - 1) * (1 - epsilon) / epsilon)


def _softmax(logits: Tensor) -> Tensor:
    raised = (logits - logits.max(dim=1, keepdim=True).values).exp()
    return raised / raised.sum(1, keepdim=True)
