"""One UMN model (learner, guider, optimizer) and what one epoch of its training does.

A :class:`Bench` holds what every rotation shares: images, given labels, sizes. A :class:`Member` is the
model of one rotation. Batches carry labeled rows first, then unlabeled ones (row number -1 in the labels).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engines.contract import UNLABELED
from engines.networks import HIDDEN_UNITS
from engines.shared.config import learning_rate_at, make_optimizer, set_learning_rate
from engines.shared.device import autocast, make_generator, seeded_init
from engines.shared.ema import ExponentialAverage
from engines.shared.loader import batches_per_epoch, epoch_batches, standardize
from engines.shared.losses import require_finite
from engines.shared.run import Run
from engines.umn.config import PUBLISHED_NETWORK, UMNConfig
from engines.umn.equations import (
    clamp_uncertainty,
    feature_log_likelihood,
    gaussian_entropy,
    guider_decay,
    label_term,
    likely_classes,
    reconstruction_log_likelihood,
    sample_gaussian,
    sum_over_classes,
    uncertainty,
    uncertainty_weight,
    uniform_kl,
)
from engines.umn.networks import (
    Encoding,
    FeatureDecoder,
    Generator,
    Recognizer,
    StackedVAE,
    build_feature_vae,
    build_stacked_vae,
)

MIN_LABELED_SHARE = 0.05
DECODED_SIDE = 32
"""Pixels on the longer side of what a larger image is reconstructed as."""
PUBLISHED_AUGMENT = {"umn_mlp": "none", "umn13": "shift"}
"""What ``augment="auto"`` means for the published networks."""
ADAM_BETA2 = 0.99
"""β2 of Adam (paper)."""
EPSILON_FLOOR = 1e-2
"""ε is raised to this before its weight is taken (f = 6.8 at 10 classes); it is 0 at the first step."""
RECONSTRUCTION_VARIANCE = 0.1
"""Fixed variance of the Gaussian p(x | z_a) [assumption]."""
Y_CHUNK = 32
"""Classes computed together in the sum over y. The sum's memory: 13 kB for each of batch_size * Y_CHUNK rows of the
M2 networks, and 4 * latent_b bytes for each of batch_size * K draws of z_b, which are made at once. Measured at
batch 128: a step has 55 MB of tensors at 32 classes and 91 MB at 1,000 (1.4 GB unchunked)."""
MOST_CLASSES_LINEAR = 20
"""Classes up to which the label loss ``auto`` is linear (measured at 10 and at 100)."""


class Draws(NamedTuple):
    """The random streams of one epoch, made from (seed, rotation, epoch): nothing to save for a resume."""

    order: torch.Generator
    moves: torch.Generator
    noise: torch.Generator


class Bench:
    """What the models of all rotations share: the run's rows and labels, and the sizes of the networks."""

    def __init__(self, run: Run, config: UMNConfig) -> None:
        self.run, self.config = run, config
        self.data, self.seed, self.device, self.labels = run.data, run.seed, run.device, run.labels
        self.num_classes = run.data.num_classes
        self.network_name = name = self._network_name()
        augment_name = PUBLISHED_AUGMENT.get(name, "auto") if config.augment == "auto" else config.augment
        self.augment = run.rows.resolve_augment(augment_name)
        self.input_noise = _published(config.input_noise, 0.15 if name == "umn13" else 0.0)
        self.latent_a = int(_published(config.latent_a, 256 if name == "umn13" else 50))
        self.reconstruction = self._reconstruction()
        self.decoded_size: tuple[int, int] | None = None
        if not run.on_features:
            _, height, width = run.rows.shape
            self.decoded_size = _decoded_size((height, width), whole=config.elbo_scale == "sum")
        decoded = (run.rows.shape[0], *(self.decoded_size or ()))
        few = self.num_classes <= MOST_CLASSES_LINEAR
        self.label_loss = config.label_loss if config.label_loss != "auto" else "linear" if few else "log"
        self.elbo_scale = 1.0 if config.elbo_scale == "sum" else 1.0 / math.prod(decoded)

    def _network_name(self) -> str:
        if self.config.network != PUBLISHED_NETWORK or self.run.on_features:
            return self.run.network_name()
        channels, *image_size = self.run.rows.shape
        if max(image_size) > 64:
            return "torchvision:resnet18"
        return "umn_mlp" if channels == 1 or min(image_size) < 12 else "umn13"

    def _reconstruction(self) -> str:
        """p(x | z_a): Bernoulli for grey images, Gaussian for colour and, with learned variances, for features."""
        if self.run.on_features:
            return "features"
        return "bernoulli" if self.run.rows.shape[0] == 1 else "gaussian"

    def build(self, rotation: int) -> StackedVAE:
        """A fresh model on the device, initialised from (seed, rotation)."""
        with seeded_init(self.seed, "network", rotation):
            model = self._build_on_features() if self.run.on_features else self._build_on_images()
        return model.to(self.device)

    def _build_on_images(self) -> StackedVAE:
        channels, height, width = self.run.rows.shape
        return build_stacked_vae(
            self.network_name,
            channels=channels,
            image_size=(height, width),
            num_classes=self.num_classes,
            latent_a=self.latent_a,
            latent_b=self.config.latent_b,
            upper_hidden=self.config.upper_hidden,
            decoded_size=self.decoded_size,
            weights=self.config.weights,
            side=self.config.image_side,
        )

    def _build_on_features(self) -> StackedVAE:
        (num_features,) = self.run.rows.shape
        return build_feature_vae(
            self.network_name,
            num_features,
            self.num_classes,
            latent_a=self.latent_a,
            latent_b=self.config.latent_b,
            hidden=HIDDEN_UNITS,
            upper_hidden=self.config.upper_hidden,
        )

    def moved(self, rows: Tensor, draws: Draws) -> Tensor:
        """``rows`` as they are (images in [0, 1]), each moved at random."""
        return self.run.rows.moved(rows, self.augment, draws.moves)

    def network_input(self, images: Tensor, noise: torch.Generator) -> Tensor:
        """Rows as the networks see them: standardised, with input noise (of images in [0, 1])."""
        mean_std = self.run.mean_std
        if self.run.on_features:
            assert mean_std is not None
            values = standardize(images, *mean_std)
            return self._with_noise(values, noise)
        images = self._with_noise(images, noise)
        return images if mean_std is None else standardize(images, *mean_std)

    def _with_noise(self, values: Tensor, noise: torch.Generator) -> Tensor:
        if self.input_noise > 0:
            return values + self.input_noise * _normal(values.shape, noise, self.device)
        return values

    def target(self, images: Tensor) -> Tensor:
        """Return what the decoder should give: images in [0, 1] at its size, or standardised features."""
        if self.decoded_size is not None:
            return decoded_target(images, self.decoded_size)
        assert self.run.mean_std is not None
        return standardize(images, *self.run.mean_std)


class Member:
    """The model of one rotation: learner, guider and optimizer, and the rows it trains on.

    Args:
        bench: what all rotations share.
        rotation: 0-based.
        is_hidden: (N,) bool, labels that this model must not see.
    """

    def __init__(self, bench: Bench, rotation: int, is_hidden: np.ndarray) -> None:
        self.bench, self.rotation, self.is_hidden = bench, rotation, is_hidden
        config = bench.config
        shown = bench.data.labeled & ~is_hidden
        self.labeled_rows = bench.run.rows_where(shown)
        self.unlabeled_rows = bench.run.rows_where(~shown)
        self.model = self.build()
        self.guider = ExponentialAverage(self.model.recognizer)
        self.optimizer = make_optimizer(self.model, config)
        if config.optimizer == "adam":
            for group in self.optimizer.param_groups:
                group["betas"] = (0.9, ADAM_BETA2)
        self.num_labeled, self.num_unlabeled = self._batch_parts()
        self.steps_per_epoch = self._steps_per_epoch()
        self.total_steps = self.steps_per_epoch * config.epochs
        self.gamma = config.gamma if config.gamma is not None else _gamma_for(self.steps_per_epoch)
        self.step = 0

    def _batch_parts(self) -> tuple[int, int]:
        """Labeled and unlabeled rows of a batch."""
        config = self.bench.config
        size = config.batch_size_for(self.bench.data.num_samples)
        if not len(self.unlabeled_rows):
            return size, 0
        natural = len(self.labeled_rows) / (len(self.labeled_rows) + len(self.unlabeled_rows))
        share = config.labeled_share or max(MIN_LABELED_SHARE, natural)
        labeled = min(size - 1, max(1, round(share * size)))
        return labeled, size - labeled

    def _steps_per_epoch(self) -> int:
        if not self.num_unlabeled:
            return batches_per_epoch(len(self.labeled_rows), self.num_labeled)
        return math.ceil(len(self.unlabeled_rows) / self.num_unlabeled)

    def build(self) -> StackedVAE:
        """The model as it begins."""
        return self.bench.build(self.rotation)

    @property
    def recognizer(self) -> Recognizer:
        """The learner as what scoring reads: images -> (embedding, logits)."""
        return self.model.recognizer

    def batches(self, order: torch.Generator) -> Iterator[tuple[Tensor, int]]:
        """(rows, number of labeled rows in front) for each step of an epoch.

        One pass over the unlabeled samples, labeled ones cycling beside them; without unlabeled samples one
        pass over the labeled ones.
        """
        if not self.num_unlabeled:
            for rows in epoch_batches(self.labeled_rows, self.num_labeled, order):
                yield rows, len(rows)
            return
        needed = self.steps_per_epoch * self.num_labeled
        passes = math.ceil(needed / len(self.labeled_rows))
        cycle = torch.cat([torch.randperm(len(self.labeled_rows), generator=order) for _ in range(passes)])
        shuffled = torch.randperm(len(self.unlabeled_rows), generator=order)
        labeled_rows = self.labeled_rows[cycle.to(self.bench.device)]
        unlabeled_rows = self.unlabeled_rows[shuffled.to(self.bench.device)]
        for step, part in enumerate(unlabeled_rows.split(self.num_unlabeled)):
            labeled = labeled_rows[step * self.num_labeled : (step + 1) * self.num_labeled]
            yield torch.cat([labeled, part]), self.num_labeled

    def train_epoch(self, epoch: int) -> tuple[dict[str, float], float]:
        """One epoch: means of every term of the loss, and the accuracy on the labels shown."""
        bench = self.bench
        set_learning_rate(self.optimizer, learning_rate_at(bench.config, epoch))
        key = (self.rotation, epoch)
        draws = Draws(
            make_generator(bench.seed, "order", *key),
            make_generator(bench.seed, "moves", *key, device=bench.device),
            make_generator(bench.seed, "noise", *key, device=bench.device),
        )
        self.model.train()
        totals: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=bench.device))
        with seeded_init(bench.seed, "dropout", *key):
            for rows, num_labeled in self.batches(draws.order):
                for name, value in self._train_step(rows, num_labeled, epoch, draws).items():
                    totals[name] += value
        means = {name: float(value) / self.steps_per_epoch for name, value in totals.items()}
        require_finite(means["loss"])
        return means, means.pop("train_accuracy")

    def _train_step(self, rows: Tensor, num_labeled: int, epoch: int, draws: Draws) -> dict[str, Tensor]:
        """One step of the paper's algorithm; returns the detached mean of every term."""
        bench, config = self.bench, self.bench.config
        self.step += 1
        labels = bench.labels[rows]
        labels[num_labeled:] = UNLABELED
        batch = Batch(rows, labels, num_labeled, bench.moved(rows, draws))
        with autocast(config.precision, bench.device):
            loss, terms = self.loss(batch, epoch, draws)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.guider.update(self.model.recognizer, self.decay())
        return {**terms, "loss": loss.detach()}

    def decay(self) -> float:
        """Return how much of the guider stays at this step (U9)."""
        return guider_decay(self.step, self.gamma)

    def loss(self, batch: Batch, epoch: int, draws: Draws) -> tuple[Tensor, dict[str, Tensor]]:
        """U10 for one batch, and its parts."""
        del epoch
        bench, config = self.bench, self.bench.config
        recognizer, generator = self.model.recognizer, self.model.generator
        # 1. Encode, draw z_a, classify the draw; the exact sum over classes; reconstruct.
        encoding = recognizer.encode(bench.network_input(batch.images, draws.noise))
        terms, log_probs = generative_terms(
            recognizer,
            generator,
            encoding,
            bench.target(batch.images),
            draws.noise,
            reconstruction=bench.reconstruction,
            y_chunk=Y_CHUNK,
            most=config.likely_classes,
        )
        rest = terms["posterior_entropy"] + terms["class_sum"] - terms["class_kl"]
        generative = -(terms["reconstruction"] + rest)

        # 2. Guider and learner at the posterior mean; ε and its weight, without gradient.
        learner = recognizer.classify(encoding, encoding.mean).float().softmax(1)
        front = slice(0, batch.num_labeled)
        guider = self.guider_probs(batch, batch.num_labeled, draws)
        labels = batch.labels[front]
        epsilon = uncertainty(guider, learner[front], labels)
        weight = self.weight(epsilon)

        # 3. The loss: mean over the whole batch, the label term from its labeled rows only.
        label = label_term(log_probs[front], labels, weight, kind=bench.label_loss)
        loss = bench.elbo_scale * generative.mean() - config.lambda_y * label.sum() / len(batch.labels)
        means = {name: value.detach().mean() for name, value in terms.items()}
        means["label_term"] = config.lambda_y * label.detach().sum() / len(batch.labels)
        means["generative"] = bench.elbo_scale * generative.detach().mean()
        means["epsilon"], means["weight"] = epsilon.mean(), weight.mean()
        means["train_accuracy"] = (learner[front].argmax(1) == labels).float().mean()
        return loss, means

    def weight(self, epsilon: Tensor) -> Tensor:
        """f(ε): (B,) -> (B,)."""
        num_classes = self.bench.num_classes
        return uncertainty_weight(clamp_uncertainty(epsilon, num_classes, floor=EPSILON_FLOOR), num_classes)

    @torch.no_grad()
    def guider_probs(self, batch: Batch, num: int, draws: Draws) -> Tensor:
        """p_guider of the first ``num`` rows, with its own moves and input noise: (num, K)."""
        bench = self.bench
        images = batch.images[:num]
        if bench.augment != "none":
            images = bench.moved(batch.rows[:num], draws)
        _, logits = self.guider.module(bench.network_input(images, draws.noise))
        return logits.float().softmax(1)

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "model": self.model.state_dict(),
            "guider": self.guider.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.model.load_state_dict(state["model"])
        self.guider.load_state_dict(state["guider"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])


class Batch(NamedTuple):
    """One step's rows: labeled in front, -1 behind."""

    rows: Tensor
    labels: Tensor
    num_labeled: int
    images: Tensor
    """(B, C, H, W) in [0, 1] or (B, D) features, moved by the learner's augmentation, without input noise."""


def generative_terms(
    recognizer: Recognizer,
    generator: Generator,
    encoding: Encoding,
    target: Tensor,
    noise: torch.Generator,
    *,
    reconstruction: str,
    y_chunk: int,
    most: int | None = None,
) -> tuple[dict[str, Tensor], Tensor]:
    """The generative terms of the ELBO (U3), each (B,) nats, and log q(y | z_a) (B, K).

    ``reconstruction + posterior_entropy + class_sum - class_kl`` is the ELBO without its label term, for one
    draw of z_a and one of z_b for every (sample, class); q(y) is of the ``most`` likeliest classes of each sample.
    """
    mean, log_variance = encoding.mean, encoding.log_variance
    z_a = sample_gaussian(mean, log_variance, _normal(mean.shape, noise, mean.device))
    log_probs = F.log_softmax(recognizer.classify(encoding, z_a).float(), dim=1)
    likely, classes = likely_classes(log_probs, most)
    draws = _normal((*likely.shape, generator.latent_b), noise, z_a.device)
    class_sum = sum_over_classes(generator.class_terms, z_a, likely, draws, classes, y_chunk=y_chunk)
    output = generator.decoder(z_a).float()
    if isinstance(generator.decoder, FeatureDecoder):
        likelihood = feature_log_likelihood(target, output, generator.decoder.log_variance)
    else:
        likelihood = reconstruction_log_likelihood(
            target, output, kind=reconstruction, variance=RECONSTRUCTION_VARIANCE
        )
    return {
        "reconstruction": likelihood,
        "posterior_entropy": gaussian_entropy(log_variance),
        "class_sum": class_sum,
        "class_kl": uniform_kl(likely, log_probs.shape[1]),
    }, log_probs


def decoded_target(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Return what the decoder should give: the images, area-averaged where they are larger than ``size``."""
    return images if images.shape[2:] == size else F.adaptive_avg_pool2d(images, size)


def _decoded_size(image_size: tuple[int, int], *, whole: bool) -> tuple[int, int]:
    """Image size, scaled down so that its longer side is at most ``DECODED_SIDE`` where it is not ``whole``."""
    if whole or max(image_size) <= DECODED_SIDE:
        return image_size
    scale = DECODED_SIDE / max(image_size)
    return max(1, round(image_size[0] * scale)), max(1, round(image_size[1] * scale))


def _published(value: float | None, default: float) -> float:
    return default if value is None else value


def _gamma_for(steps_per_epoch: int) -> float:
    """Decay whose average covers about one and a half epochs, within [0.9, 0.999]."""
    return min(0.999, max(0.9, 1.0 - 1.0 / (1.5 * steps_per_epoch)))


def _normal(shape: Any, generator: torch.Generator, device: torch.device) -> Tensor:
    return torch.randn(shape, generator=generator, device=device)
