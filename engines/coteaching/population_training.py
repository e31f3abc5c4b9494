"""Trains a population of small-loss learners: each member under its own keep rate R(t), all on one batch.

Search trials, Co-teaching's final pair and its single-network relatives are the same loop with other
schedules and rules (``small_loss.py``). All random draws are named by (seed, stream, epoch), so that an epoch
is the same whether or not the run was interrupted before it, and so that trials of one search see the same
batches (their differences are then differences of schedules).

Letters: M members, G networks a member, P = M G, N samples, B batch, K classes, E epochs.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.contract import EngineError
from engines.coteaching.population import Population, copied_to_cpu
from engines.coteaching.rules import (
    Choice,
    choose_all,
    choose_disagreement,
    choose_exchanged,
    choose_exchanged_disagreement,
    choose_reweighted,
    choose_small_loss,
    double_softmax_loss,
    forward_corrected_loss,
    kept_counts,
    meta_alignment,
    reduce_losses,
)
from engines.meta.meta_set import draw_meta_batch
from engines.networks.heads import build_for_shape
from engines.shared.device import autocast, compiled, make_generator, seeded_init
from engines.shared.loader import MeanStd, epoch_batches, standardize
from engines.shared.losses import cross_entropy
from engines.shared.rows import Rows
from engines.shared.scoring import MarginTracker

Stream = tuple[int | str, ...]


class TrainingOptions(Protocol):
    """What the loop reads of an engine's config."""

    @property
    def variant(self) -> str: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def precision(self) -> str: ...
    @property
    def compile(self) -> bool: ...
    @property
    def weights(self) -> str | None: ...
    @property
    def width(self) -> int | None: ...
    @property
    def dropout(self) -> bool: ...
    @property
    def drop_last(self) -> bool: ...
    @property
    def max_batches(self) -> int | None: ...
    @property
    def plus_start_epoch(self) -> int: ...
    @property
    def plus_gate_steps(self) -> int: ...
    @property
    def legacy_loss_scale(self) -> bool: ...
    @property
    def legacy_plus(self) -> bool: ...
    def learning_rate_of(self, epoch: int, num_epochs: int) -> float: ...
    def adam_betas_of(self, epoch: int, num_epochs: int) -> tuple[float, float]: ...


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What all trainings of one run share."""

    options: TrainingOptions
    store: Rows
    labels: Tensor
    """(N,) int64 given labels, on the CPU."""
    num_classes: int
    network: str
    augment: str
    mean_std: MeanStd | None
    """None feeds images in [0, 1]."""
    seed: int
    meta_rows: Tensor | None = None
    """Rows of trusted samples, for ``reweight``."""

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.store.device

    def inputs(
        self, rows: Tensor, moves: torch.Generator | None = None, *, store: Rows | None = None
    ) -> Tensor:
        """Images of ``rows`` as the networks take them; moved at random where a generator is given."""
        store = store or self.store
        images = store.batch(rows) if moves is None else store.moved(rows, self.augment, moves)
        if self.mean_std is not None:
            images = standardize(images, *self.mean_std)
        return images.contiguous(memory_format=torch.channels_last) if images.dim() == 4 else images

    def build(self, *stream: int | str) -> nn.Module:
        """A fresh network, initialised from the named stream."""
        with seeded_init(self.seed, *stream):
            network = build_for_shape(
                self.network,
                self.store.shape,
                self.num_classes,
                weights=self.options.weights,
                width=self.options.width,
            )
        if not self.options.dropout:
            for part in network.modules():
                if isinstance(part, nn.modules.dropout._DropoutNd):
                    part.p = 0.0
        # Convolutions run about a quarter faster on channels-last tensors (conv3, one CPU thread).
        network = network.to(self.device)
        return network.to(memory_format=torch.channels_last)


@dataclass(frozen=True, eq=False)
class EpochOutcome:
    """One pass of a population over its rows."""

    loss: float
    """Mean training loss of all visited samples, all networks."""
    kept_loss: float
    """The same over what the networks learned from."""
    train_accuracy: float
    """On given labels, mean over the networks."""
    selected: NDArray[np.float32]
    """(N,) share of member 0's networks that picked the sample; 0 where it was not visited."""
    losses: NDArray[np.float32]
    """(N,) mean loss of member 0's networks at the visit; NaN where not visited."""
    visited: NDArray[np.bool_]
    """(N,) rows that a batch contained."""


class PopulationTraining:
    """M members of G networks, their optimizer and what they have seen so far.

    Args:
        surroundings: the run.
        keep_rates: (M, E) R of each member and epoch.
        rows: int64 rows to train on, all labeled.
        group: G.
        stream: names this training's random draws; members with the same stream start alike.
        stacked: train as one stacked batch (see ``population.py``).
        transition: T (K, K) of F-correction's second stage.
        track_margins: keep the area under the margin of member 0's networks.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        keep_rates: NDArray[np.float64],
        rows: Tensor,
        group: int,
        stream: Stream,
        stacked: bool = False,
        transition: Tensor | None = None,
        track_margins: bool = False,
    ) -> None:
        self.surroundings, self.keep_rates = surroundings, keep_rates
        self.num_members, self.num_epochs = keep_rates.shape
        self._rows, self._group, self._stream = rows, group, stream
        self._transition = transition
        options = surroundings.options
        networks = [
            surroundings.build(*stream, "network", g) for _ in range(self.num_members) for g in range(group)
        ]
        # Compiling pays for the one long training, not for every trial of a search.
        calls = [
            compiled(net, enabled=options.compile and track_margins, device=surroundings.device)
            for net in networks
        ]
        self.population = Population(networks, stacked=stacked, calls=calls)
        self._optimizer = _make_optimizer(self.population.parameters(), options)
        num_samples = surroundings.store.num_samples
        self.trackers = [
            MarginTracker(num_samples, surroundings.device) for _ in range(group if track_margins else 0)
        ]
        self._steps = 0

    def run_epoch(self, epoch: int) -> EpochOutcome:
        """Train one pass (E epochs in all, ``epoch`` 0-based).

        Raises:
            EngineError: the loss is no longer finite.
        """
        here, options = self.surroundings, self.surroundings.options
        self._set_rates(epoch)
        log = _EpochLog(here.store.num_samples, self._group, here.device)
        order = make_generator(here.seed, *self._stream, "order", epoch)
        moves = make_generator(here.seed, *self._stream, "augment", epoch)
        batches = epoch_batches(self._rows, options.batch_size, order, drop_last=options.drop_last)
        self.population.train()
        with seeded_init(here.seed, *self._stream, "dropout", epoch):
            for rows in itertools.islice(batches, options.max_batches):
                self._step(rows, here.inputs(rows, moves), epoch, log)
        return log.outcome()

    def _step(self, rows: Tensor, images: Tensor, epoch: int, log: _EpochLog) -> None:
        here = self.surroundings
        labels = here.labels[rows].to(here.device)
        with autocast(here.options.precision, here.device):
            _, logits = self.population(images)  # (P, B, K)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        losses = self._losses(logits, labels, epoch)  # (M, G, B)
        predictions = logits.detach().argmax(dim=2).view_as(losses)
        choice = self._choose(rows, losses, predictions, images, labels, epoch)
        reduced = reduce_losses(losses, choice, divide_twice=here.options.legacy_loss_scale)
        self._learn(reduced, choice, epoch)
        self._steps += 1
        log.add(rows, losses.detach(), choice, predictions == labels)
        for g, tracker in enumerate(self.trackers):
            tracker.update(rows, logits[g], labels)

    def _learn(self, reduced: Tensor, choice: Choice, epoch: int) -> None:
        """One optimizer step down ``reduced`` (M, G); a network without a sample to learn from takes none.

        A step on a loss of 0 would still move it, by momentum and weight decay. Batch norm has seen the batch.
        """
        # Looked at only where it can happen: the answer must come back from the device.
        idle = (choice.weights == 0).all(dim=2).flatten() if self._may_choose_none(epoch) else None
        if idle is not None and bool(idle.all()):
            return
        # Networks share no parameter, so the gradient of the sum is each network's own gradient.
        self._optimizer.zero_grad(set_to_none=True)
        reduced.sum().backward()
        if idle is not None and bool(idle.any()):
            self.population.step(self._optimizer, idle)
        else:
            self._optimizer.step()

    def _may_choose_none(self, epoch: int) -> bool:
        return self.surroundings.options.variant in ("decoupling", "reweight") or self._is_plus_phase(epoch)

    def _losses(self, logits: Tensor, labels: Tensor, epoch: int) -> Tensor:
        """Per-sample losses (M, G, B) of every network, Eq. (1) or the variant's own."""
        options = self.surroundings.options
        flat, repeated = logits.flatten(0, 1), labels.repeat(len(logits))
        if self._transition is not None:
            losses = forward_corrected_loss(flat, repeated, self._transition)
        elif options.legacy_plus and self._is_plus_phase(epoch):
            losses = double_softmax_loss(flat, repeated)
        else:
            losses = cross_entropy(flat, repeated)
        return losses.view(self.num_members, self._group, len(labels))

    def _choose(
        self, rows: Tensor, losses: Tensor, predictions: Tensor, images: Tensor, labels: Tensor, epoch: int
    ) -> Choice:
        options, rates = self.surroundings.options, self.keep_rates[:, epoch].tolist()
        counts = kept_counts(rates, losses.shape[2], losses.device)
        if options.variant == "mentornet":
            return choose_small_loss(losses, counts)
        if options.variant == "decoupling":
            return choose_disagreement(losses, predictions)
        if self._is_plus_phase(epoch):
            early = self._steps < options.plus_gate_steps
            return choose_exchanged_disagreement(losses, predictions, rates, learn_from_all_if_none=early)
        if options.variant in ("coteaching", "coteaching_plus"):
            return choose_exchanged(losses, counts)
        if options.variant == "reweight":
            meta_rows = self._draw_meta_rows(rows)
            if len(meta_rows) >= 2:  # batch norm cannot take one; such a step is a plain one, as in L2B
                return choose_reweighted(losses, self._meta_alignment(images, labels, meta_rows))
        return choose_all(losses)

    def _is_plus_phase(self, epoch: int) -> bool:
        options = self.surroundings.options
        return options.variant == "coteaching_plus" and epoch >= options.plus_start_epoch

    def _draw_meta_rows(self, judged: Tensor) -> Tensor:
        """A fresh batch of trusted samples for L2RW, none of them in the batch that it judges."""
        here = self.surroundings
        assert here.meta_rows is not None
        draw = make_generator(here.seed, *self._stream, "meta", self._steps)
        return draw_meta_batch(here.meta_rows, here.labels, judged, here.options.batch_size, draw)

    def _meta_alignment(self, images: Tensor, labels: Tensor, meta_rows: Tensor) -> Tensor:
        """L2RW's <grad l_i, grad meta loss> of a batch against trusted samples."""
        here = self.surroundings
        identity = torch.eye(here.num_classes, device=here.device)
        network = self.population.networks()[0]
        targets = identity[here.labels[meta_rows].to(here.device)]
        return meta_alignment(network, images, identity[labels], here.inputs(meta_rows), targets)

    def _set_rates(self, epoch: int) -> None:
        options = self.surroundings.options
        for group in self._optimizer.param_groups:
            group["lr"] = options.learning_rate_of(epoch, self.num_epochs)
            if options.optimizer == "adam":
                group["betas"] = options.adam_betas_of(epoch, self.num_epochs)

    @torch.no_grad()
    def evaluate(self, store: Rows, labels: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and correctness of every network in evaluation mode: (P, n) each, on the CPU."""
        here = self.surroundings
        self.population.train(False)
        losses, correct = [], []
        for part in rows.split(store.scoring_batch):
            images = here.inputs(part, store=store)
            with autocast(here.options.precision, here.device):
                _, logits = self.population(images)
            given = labels[part].to(here.device)
            flat = cross_entropy(logits.flatten(0, 1), given.repeat(len(logits)))
            losses.append(flat.view(len(logits), -1).cpu())
            correct.append((logits.argmax(dim=2) == given).cpu())
        self.population.train()
        return torch.cat(losses, dim=1), torch.cat(correct, dim=1)

    def accuracies(self, store: Rows, labels: Tensor, rows: Tensor) -> NDArray[np.float64]:
        """(M,) share of ``rows`` that each member classifies as ``labels``, mean over its networks."""
        _, correct = self.evaluate(store, labels, rows)
        return correct.double().mean(dim=1).view(self.num_members, self._group).mean(dim=1).numpy()

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint, sharing no memory with the training."""
        return {
            "population": self.population.state_dict(),
            # On the CPU like the weights: a search keeps the states of many trials.
            "optimizer": copied_to_cpu(self._optimizer.state_dict()),
            "trackers": [copy.deepcopy(tracker.state_dict()) for tracker in self.trackers],
            "steps": self._steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.population.load_state_dict(state["population"])
        self._optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        for tracker, saved in zip(self.trackers, state["trackers"], strict=True):
            tracker.load_state_dict(saved)
        self._steps = state["steps"]

    def start_from(self, state: dict[str, Any]) -> None:
        """Start every member from the state of a training of one member that was not stacked."""
        self.population.load_state_dict({"networks": state["population"]["networks"] * self.num_members})
        saved, current = state["optimizer"]["state"], self._optimizer.state_dict()
        current["state"] = _spread_moments(
            saved, self._group, self.num_members, stacked=self.population.is_stacked
        )
        self._optimizer.load_state_dict(current)
        self._steps = state["steps"]


def _spread_moments(
    saved: dict[int, dict[str, Tensor]], group: int, members: int, *, stacked: bool
) -> dict[int, dict[str, Tensor]]:
    """Optimizer moments of one member's networks, one by one, as those of ``members`` equal members."""
    each = len(saved) // group  # parameters of one network
    if not stacked:
        return {
            m * group * each + i: copy.deepcopy(moments)
            for m in range(members)
            for i, moments in saved.items()
        }
    spread = {}
    for j in range(each):
        rows = [saved[g * each + j] for g in range(group)] * members
        spread[j] = {
            name: torch.stack([row[name] for row in rows]) if name != "step" else rows[0][name].clone()
            for name in rows[0]
        }
    return spread


class _EpochLog:
    """Sums of one epoch, kept on the device until its end."""

    def __init__(self, num_samples: int, group: int, device: torch.device) -> None:
        self._group = group
        self._loss = torch.zeros(3, dtype=torch.float64, device=device)  # all, kept, correct
        self._count = torch.zeros(3, dtype=torch.float64, device=device)
        self._selected = torch.zeros(num_samples, device=device)
        self._losses = torch.full((num_samples,), float("nan"), device=device)

    def add(self, rows: Tensor, losses: Tensor, choice: Choice, correct: Tensor) -> None:
        weight = choice.weights.detach()
        sums = (losses.sum(), (losses * weight).sum(), correct.sum())
        counts = (losses.new_tensor(losses.numel()), weight.sum(), losses.new_tensor(losses.numel()))
        self._loss += torch.stack([value.double() for value in sums])
        self._count += torch.stack([value.double() for value in counts])
        place = rows.to(self._selected.device)
        self._selected[place] = choice.selected[0].mean(dim=0).float()
        self._losses[place] = losses[0].mean(dim=0).float()

    def outcome(self) -> EpochOutcome:
        loss, kept, accuracy = (self._loss / self._count.clamp(min=1e-12)).tolist()
        if not np.isfinite(loss):
            raise EngineError("the training loss is no longer a number; lower learning_rate.")
        losses = self._losses.cpu().numpy()
        return EpochOutcome(loss, kept, accuracy, self._selected.cpu().numpy(), losses, np.isfinite(losses))


def _make_optimizer(parameters: Sequence[Tensor], options: TrainingOptions) -> torch.optim.Optimizer:
    """Element-wise optimizers only: the loop sets their learning rate every epoch."""
    if options.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=0.0, eps=1e-8, weight_decay=options.weight_decay, fused=True)
    return torch.optim.SGD(parameters, lr=0.0, momentum=0.9, weight_decay=options.weight_decay)
