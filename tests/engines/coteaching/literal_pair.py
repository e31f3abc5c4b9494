"""Co-teaching and its relatives, one sample at a time, in float64: what the reference tests compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.meta.meta_set import draw_meta_batch
from engines.shared.device import make_generator
from engines.shared.loader import augment, epoch_batches
from tests.engines.literal import (
    gradients_of,
    log_softmax,
    losses_of,
    margin_of,
    optimizer_of,
    percentile,
    pixels,
    rate_at,
    standardized,
    untouched_copy,
)

NAN = float("nan")


class LiteralPair:
    """One network or two, trained under the keep rates ``curve``.

    Args:
        data: the digits.
        config: its variant, optimizer and schedule.
        networks: in float64, as they begin.
        rows: samples to train on.
        curve: R of every epoch.
        stream: names the random draws of this training.
        seed: of the run.
        transition: T of F-correction's second stage.
    """

    def __init__(
        self,
        data: TrainingData,
        config: CoteachingConfig,
        networks: Sequence[nn.Module],
        *,
        rows: Sequence[int],
        curve: Sequence[float],
        stream: tuple[int | str, ...],
        seed: int,
        transition: Tensor | None = None,
    ) -> None:
        self.data, self.config, self.networks = data, config, list(networks)
        self.rows, self.curve, self.stream, self.seed = list(rows), list(curve), stream, seed
        self.transition = transition
        self.optimizers = [optimizer_of(config, network) for network in networks]
        self.labels = [int(y) for y in data.given_labels]
        self.images = standardized(data) if config.standardize else pixels(data)
        self.steps = 0
        self.happened: set[str] = set()
        self.margins: list[list[list[float]]] = [[[] for _ in self.labels] for _ in networks]
        self.history: list[dict[str, Any]] = []

    def run_epoch(self, epoch: int) -> None:
        """One pass over the rows."""
        config = self.config
        order = make_generator(self.seed, *self.stream, "order", epoch)
        moves = make_generator(self.seed, *self.stream, "augment", epoch)
        log: dict[str, Any] = {
            "losses": [],
            "kept": 0.0,
            "weights": 0.0,
            "hits": [],
            "selected": {},
            "loss": {},
        }
        batches = list(
            epoch_batches(torch.tensor(self.rows), config.batch_size, order, drop_last=config.drop_last)
        )
        for batch in batches[: config.max_batches]:
            images = self.images[batch]
            if config.augment != "none":
                images = augment(pixels(self.data)[batch], config.augment, moves)
                images = standardized(self.data, images) if config.standardize else images
            self.step(batch.tolist(), images, epoch, log)
        self.history.append(log)

    def step(self, batch: list[int], images: Tensor, epoch: int, log: dict[str, Any]) -> None:
        """Both forward passes, then the choice, then both updates."""
        config, count = self.config, len(batch)
        for network in self.networks:
            network.train()
        labels = [self.labels[i] for i in batch]
        reweigh = self.meta_weights(batch, images, labels) if config.variant == "reweight" else None
        logits = [network(images)[1] for network in self.networks]
        losses = [self.losses(one, labels, epoch) for one in logits]
        says = [[int(row.argmax()) for row in one] for one in logits]
        picked = [set(one) for one in self.pick(losses, says, epoch)]
        # Exchanged: each learns from what its partner picked.
        is_exchanged = config.variant in ("coteaching", "coteaching_plus")
        for g, network in enumerate(self.networks):
            teacher = picked[1 - g] if is_exchanged else picked[g]
            weights = [float(i in teacher) for i in range(count)]
            divisor = float(max(len(teacher), 1))
            if reweigh is not None:
                weights, divisor = reweigh, 1.0
                picked[g] = {i for i, w in enumerate(reweigh) if w > 0}
            log["kept"] += sum(w * float(v.detach()) for w, v in zip(weights, losses[g], strict=True))
            log["weights"] += sum(weights)
            if not any(weights):
                self.happened.add("a network without samples")
                continue
            total = sum(w * loss for w, loss in zip(weights, losses[g], strict=True)) / divisor
            if config.legacy_loss_scale:
                total = total / divisor
            self.optimizers[g].step(gradients_of(total, network), self.rate(epoch), *self.betas(epoch))
        self.steps += 1
        for place, i in enumerate(batch):
            log["selected"][i] = sum(place in one for one in picked) / len(picked)
            log["loss"][i] = sum(float(one[place].detach()) for one in losses) / len(losses)
            for g in range(len(self.networks)):
                log["losses"].append(float(losses[g][place].detach()))
                log["hits"].append(says[g][place] == labels[place])
                self.margins[g][i].append(margin_of(logits[g][place].detach(), labels[place]))

    def is_plus(self, epoch: int) -> bool:
        """Whether Co-teaching+ looks at disagreement in this epoch."""
        return self.config.variant == "coteaching_plus" and epoch >= self.config.plus_start_epoch

    def losses(self, logits: Tensor, labels: list[int], epoch: int) -> list[Tensor]:
        """Eq. (1), or the variant's own."""
        if self.transition is not None:
            probs = log_softmax(logits).exp()
            given = [
                sum(self.transition[k, y] * probs[i, k] for k in range(probs.shape[1]))
                for i, y in enumerate(labels)
            ]
            return [-torch.log(value) for value in given]
        if self.is_plus(epoch) and self.config.legacy_plus:
            return losses_of(log_softmax(logits).exp(), labels)
        return losses_of(logits, labels)

    def pick(self, losses: list[list[Tensor]], says: list[list[int]], epoch: int) -> list[list[int]]:
        """What each network picks of the batch."""
        variant, count, rate = self.config.variant, len(losses[0]), self.curve[epoch]
        everything = list(range(count))
        if variant == "decoupling" or self.is_plus(epoch):
            differ = [i for i in everything if says[0][i] != says[1][i]]
            if variant == "decoupling":
                return [differ, differ]
            if not differ:
                is_early = self.steps < self.config.plus_gate_steps
                self.happened.add("none differs, early" if is_early else "none differs, late")
                return [everything, everything] if is_early else [[], []]
            keep = math.floor(rate * len(differ) + 1e-9)
            if keep == 0:
                self.happened.add("fewer than one")
            return [self.smallest(one, differ, keep or len(differ)) for one in losses]
        if variant in ("coteaching", "coteaching_plus", "mentornet"):
            keep = max(1, math.floor(rate * count + 1e-9))
            return [self.smallest(one, everything, keep) for one in losses]
        return [everything for _ in losses]

    @staticmethod
    def smallest(losses: list[Tensor], among: list[int], keep: int) -> list[int]:
        """The ``keep`` smallest losses."""
        return sorted(among, key=lambda i: float(losses[i].detach()))[:keep]

    def meta_weights(self, batch: list[int], images: Tensor, labels: list[int]) -> list[float] | None:
        """L2RW: -dG/d eps_i after a virtual step, its positive part over the sum."""
        rows = draw_meta_batch(
            torch.tensor([i for i, yes in enumerate(self.data.trusted_mask) if yes]),
            torch.tensor(self.labels),
            torch.tensor(batch),
            self.config.batch_size,
            make_generator(self.seed, *self.stream, "meta", self.steps),
        )
        if len(rows) < 2:
            self.happened.add("no meta batch")
            return [1 / len(batch)] * len(batch)
        twin = untouched_copy(self.networks[0])
        theta = dict(twin.named_parameters())
        _, logits = twin(images)
        eps = torch.zeros(len(batch), dtype=torch.float64, requires_grad=True)
        objective = sum(e * loss for e, loss in zip(eps, losses_of(logits, labels), strict=True))
        pulls = torch.autograd.grad(objective, list(theta.values()), create_graph=True)
        moved = {name: theta[name] - pull for name, pull in zip(theta, pulls, strict=True)}
        _, meta_logits = functional_call(twin, moved, (self.images[rows],))
        meta_labels = [self.labels[i] for i in rows.tolist()]
        meta_loss = sum(losses_of(meta_logits, meta_labels)) / len(meta_labels)
        (slope,) = torch.autograd.grad(meta_loss, eps)
        up = [max(0.0, -float(v)) for v in slope]
        if not sum(up):
            return [0.0] * len(up)
        return [v / sum(up) for v in up]

    def rate(self, epoch: int) -> float:
        """Learning rate."""
        config = self.config
        return rate_at(
            config.schedule, config.learning_rate, epoch, len(self.curve), tail_start=config.tail_start
        )

    def betas(self, epoch: int) -> tuple[float, ...]:
        """Adam's first beta where it changes late."""
        if self.config.late_beta1 is None or epoch < self.config.tail_start * len(self.curve):
            return ()
        return (self.config.late_beta1,)

    def evaluation_losses(self, g: int, rows: Sequence[int]) -> list[float]:
        """Losses of network g in evaluation mode."""
        network = self.networks[g].eval()
        with torch.no_grad():
            _, logits = network(self.images[list(rows)])
        network.train()
        return [float(v) for v in losses_of(logits, [self.labels[i] for i in rows])]

    def accuracy(self, rows: Sequence[int]) -> float:
        """Share of ``rows`` that the networks classify as given, in evaluation mode."""
        hits = []
        for network in self.networks:
            network.eval()
            with torch.no_grad():
                _, logits = network(self.images[list(rows)])
            network.train()
            hits += [int(logits[j].argmax()) == self.labels[i] for j, i in enumerate(rows)]
        return sum(hits) / len(hits)


class LiteralTally:
    """Selection, loss rank and rejection of every sample, over the epochs."""

    def __init__(self, count: int) -> None:
        self.picks: list[list[tuple[float, float]]] = [[] for _ in range(count)]
        self.ranks: list[list[float]] = [[] for _ in range(count)]
        self.rejections: list[list[bool]] = [[] for _ in range(count)]

    def count(self, pair: LiteralPair, epoch: int, rank_epochs: int, *, trained: bool = True) -> None:
        """After an epoch."""
        rate = pair.curve[epoch]
        if trained:
            for i, share in pair.history[-1]["selected"].items():
                self.picks[i].append((1 - rate, share))
        if epoch >= len(pair.curve) - rank_epochs:
            each = [percentile(pair.evaluation_losses(g, pair.rows)) for g in range(len(pair.networks))]
            for place, i in enumerate(pair.rows):
                ranks = [one[place] for one in each]
                self.ranks[i].append(sum(ranks) / len(ranks))
                self.rejections[i].append(all(rank > rate for rank in ranks))

    def signals(self) -> dict[str, list[float]]:
        """The three published signals."""

        def selected(picks: list[tuple[float, float]]) -> float:
            if not picks:
                return NAN
            weight = sum(w for w, _ in picks)
            if weight > 0:
                return sum(w * share for w, share in picks) / weight
            return sum(share for _, share in picks) / len(picks)

        def mean(values: Sequence[float]) -> float:
            return sum(values) / len(values) if values else NAN

        return {
            "selected": [selected(one) for one in self.picks],
            "loss_rank": [mean(one) for one in self.ranks],
            "rejected": [mean(one) for one in self.rejections],
        }
