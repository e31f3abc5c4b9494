"""Folds of a run: one network a part of the rows, each judged by the networks that never saw what was given there.

What an engine's own step needs of a fold, the epochs, and the checkpoints between them, for engines on masks and on
numbers alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from engines.shared.config import LoopConfig, learning_rate_at, make_optimizer, set_learning_rate
from engines.shared.device import make_generator
from engines.shared.loader import epoch_batches
from engines.shared.losses import require_finite
from engines.shared.run import Run

C = TypeVar("C", bound=LoopConfig)


@dataclass(eq=False)
class Fold(Generic[C]):
    """One network on its way: what a step of a method works with."""

    run: Run
    config: C
    number: int
    rows: Tensor
    """(M,) int64 the rows that it trains on, on the device."""
    network: nn.Module
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    draws: dict[str, torch.Generator] = field(default_factory=dict)
    """The random streams of this epoch by name."""
    counts: dict[str, int] = field(default_factory=dict)
    """What a method wants to be told about its steps."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What a method keeps for an epoch."""


F = TypeVar("F", bound=Fold[Any])


@dataclass(frozen=True, eq=False)
class Trained:
    """What the folds of a run left."""

    parts: list[Tensor]
    """The labeled rows in as many parts as there are networks."""
    states: list[dict[str, Tensor]]
    """Of each network, trained on the other parts (or on all where it is alone)."""
    counts: dict[str, int]

    @property
    def is_out_of_sample(self) -> bool:
        """Every labeled row is judged by a network that did not train on it."""
        return len(self.parts) > 1

    def judged_rows(self, run: Run, number: int) -> Tensor:
        """The rows that network ``number`` judges, rising: its part, and the last one also what has no label."""
        if number < len(self.parts) - 1:
            return self.parts[number]
        return torch.cat([self.parts[number], run.rows_where(~run.data.labeled)]).sort().values


def train_folds(
    fold_type: Callable[..., F],
    run: Run,
    config: Any,
    build: Callable[[int], nn.Module],
    step: Callable[[F, Tensor], Tensor],
    before_epoch: Callable[[F], None] | None = None,
) -> Trained:
    """Train one network a fold, going on where a killed run stopped.

    Args:
        fold_type: ``Fold`` or a kind of it.
        run: of the call; its checkpoint keeps the finished networks and the one under way.
        config: with ``folds`` and ``epochs``.
        build: a fresh network for the fold of that number, on the device.
        step: trains on the rows (B,) and returns their mean loss, 0-d without a graph.
        before_epoch: called before the batches of each epoch.
    """
    parts = fold_rows(run.labeled, config.folds, make_generator(run.seed, "folds"))
    state = run.resume(total_epochs=len(parts) * config.epochs)
    done: list[dict[str, Tensor]] = [] if state is None else list(state["done"])
    counts: dict[str, int] = {} if state is None else dict(state["counts"])
    for number in range(len(done), len(parts)):
        network = build(number)
        rows = trained_rows(parts, number)
        fold = fold_type(run, config, number, rows, network, make_optimizer(network, config), counts=counts)
        first = 0
        if state is not None and state["network"] is not None:
            fold.network.load_state_dict(state["network"])
            fold.optimizer.load_state_dict(state["optimizer"])
            first, state = state["epoch"], None
        for epoch in range(first, config.epochs):
            loss = _train_epoch(fold, epoch, step, before_epoch)
            run.epoch(
                epoch,
                {"train_loss": loss},
                {},
                {},
                stage="train" if len(parts) == 1 else f"fold {number + 1}",
                state=lambda fold=fold, epoch=epoch: {  # type: ignore[misc]
                    "done": done,
                    "counts": fold.counts,
                    "network": fold.network.state_dict(),
                    "optimizer": fold.optimizer.state_dict(),
                    "epoch": epoch + 1,
                },
            )
        done.append({name: value.clone() for name, value in fold.network.state_dict().items()})
    return Trained(parts, done, counts)


def fold_rows(labeled: Tensor, folds: int, generator: torch.Generator) -> list[Tensor]:
    """The labeled rows in ``folds`` parts of nearly equal size, drawn at random; each rising.

    Never more parts than there are pairs of rows: a batch needs two.
    """
    order = labeled[torch.randperm(len(labeled), generator=generator).to(labeled.device)]
    return [part.sort().values for part in order.tensor_split(min(folds, max(1, len(labeled) // 2)))]


def trained_rows(parts: list[Tensor], number: int) -> Tensor:
    """The rows that the network of part ``number`` trains on: those of the others, or all where it is alone."""
    others = [part for at, part in enumerate(parts) if at != number]
    return torch.cat(others or parts).sort().values


def pieces(rows: Tensor, size: int) -> Iterator[Tensor]:
    """``rows`` in pieces of at most ``size``, none of them empty."""
    yield from (piece for piece in rows.split(size) if len(piece))


def _train_epoch(
    fold: F, epoch: int, step: Callable[[F, Tensor], Tensor], before: Callable[[F], None] | None
) -> float:
    fold.epoch = epoch
    fold.draws = {
        name: make_generator(fold.run.seed, name, fold.number, epoch, device=place)
        for name, place in (("order", "cpu"), ("augment", fold.run.device), ("meta", fold.run.device))
    }
    set_learning_rate(fold.optimizer, learning_rate_at(fold.config, epoch))
    if before is not None:
        before(fold)
    fold.network.train()
    loss = torch.zeros((), device=fold.run.device)
    size = fold.config.batch_size_for(len(fold.rows))
    for index in epoch_batches(fold.rows, size, fold.draws["order"]):
        loss += step(fold, index) * len(index)
    mean = float(loss) / len(fold.rows)
    require_finite(mean)
    return mean
