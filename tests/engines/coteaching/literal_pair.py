"""Co-teaching, one sample at a time, in float64: what the reference tests compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.shared.device import make_generator
from engines.shared.loader import augment, epoch_batches
from tests.engines.literal import (
    gradients_of,
    losses_of,
    margin_of,
    optimizer_of,
    percentile,
    pixels,
    rate_at,
    standardized,
)

NAN = float("nan")


class LiteralPair:
    """Two networks, trained under the keep rates ``curve``.

    Args:
        data: the digits.
        config: its optimizer and schedule.
        networks: in float64, as they begin.
        rows: samples to train on.
        curve: R of every epoch.
        stream: names the random draws of this training.
        seed: of the run.
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
    ) -> None:
        self.data, self.config, self.networks = data, config, list(networks)
        self.rows, self.curve, self.stream, self.seed = list(rows), list(curve), stream, seed
        self.optimizers = [optimizer_of(config, network) for network in networks]
        self.labels = [int(y) for y in data.given_labels]
        self.images = pixels(data) if config.as_published else standardized(data)
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
            epoch_batches(torch.tensor(self.rows), config.batch_size, order, drop_last=config.as_published)
        )
        for batch in batches:
            images = self.images[batch]
            if config.augment != "none":
                images = augment(pixels(self.data)[batch], config.augment, moves)
                images = images if config.as_published else standardized(self.data, images)
            self.step(batch.tolist(), images, epoch, log)
        self.history.append(log)

    def step(self, batch: list[int], images: Tensor, epoch: int, log: dict[str, Any]) -> None:
        """Both forward passes, then the choice, then both updates."""
        count = len(batch)
        for network in self.networks:
            network.train()
        labels = [self.labels[i] for i in batch]
        logits = [network(images)[1] for network in self.networks]
        losses = [losses_of(one, labels) for one in logits]
        says = [[int(row.argmax()) for row in one] for one in logits]
        keep = max(1, math.floor(self.curve[epoch] * count + 1e-9))
        picked = [set(self.smallest(one, list(range(count)), keep)) for one in losses]
        for g, network in enumerate(self.networks):
            # Exchanged: each learns from what its partner picked.
            taught = sorted(picked[1 - g])
            log["kept"] += sum(float(losses[g][i].detach()) for i in taught)
            log["weights"] += len(taught)
            total = sum(losses[g][i] for i in taught) / len(taught)
            rate = rate_at(self.config.schedule, self.config.learning_rate, epoch, len(self.curve))
            self.optimizers[g].step(gradients_of(total, network), rate)
        for place, i in enumerate(batch):
            log["selected"][i] = sum(place in one for one in picked) / len(picked)
            log["loss"][i] = sum(float(one[place].detach()) for one in losses) / len(losses)
            for g in range(len(self.networks)):
                log["losses"].append(float(losses[g][place].detach()))
                log["hits"].append(says[g][place] == labels[place])
                self.margins[g][i].append(margin_of(logits[g][place].detach(), labels[place]))

    @staticmethod
    def smallest(losses: list[Tensor], among: list[int], keep: int) -> list[int]:
        """The ``keep`` smallest losses."""
        return sorted(among, key=lambda i: float(losses[i].detach()))[:keep]

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
