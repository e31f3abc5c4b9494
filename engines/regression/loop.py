"""The loop of an engine for numbers: what its folds train on, and the final pass, around a method's own step.

Every number is judged by networks that were trained on the other folds, so that what they say about a sample is not
what they were told about it. Numbers are trained on in units of their spread, which wrong ones hardly move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import clip_grad_value_

from engines.contract import Checkpoint, NumberData, NumberResult, OnEpoch
from engines.regression.config import NumberConfig
from engines.regression.densities import component_log_density, mixture_deviation, mixture_tail
from engines.shared.device import make_generator, seeded_init
from engines.shared.folds import Fold, Trained, pieces, train_folds
from engines.shared.losses import require_finite
from engines.shared.run import Run

MAD_TO_DEVIATION = 1.4826
FARTHEST = 6.0
"""Numbers farther than so many spreads from the middle are trained on as if they lay there: a single wrong zero too
many would take every step over. They are judged as they are."""
CLIP_VALUE = 1.0


class Said(NamedTuple):
    """What a network predicts for B samples, in units of the spread."""

    point: Tensor
    """(B,)"""
    log_pi: Tensor
    """(B, K)"""
    means: Tensor
    """(B, K, 1)"""
    variances: Tensor
    """(B, K, 1)"""
    rho: Tensor | None = None
    """(B, K) correlations with the target, where the method has them."""


@dataclass(frozen=True)
class Scale:
    """The middle and the spread of the given numbers."""

    middle: float
    spread: float

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> Scale:
        """Median and 1.4826 times the median distance from it; the standard deviation where that is 0 (M,)."""
        middle = float(np.median(numbers))
        spread = MAD_TO_DEVIATION * float(np.median(np.abs(numbers - middle)))
        return cls(middle, spread or float(numbers.std()))


@dataclass(eq=False)
class NumberFold(Fold[NumberConfig]):
    """A fold that trains on numbers."""

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (B, ...), moved by a draw, and numbers (B, 1) in units of their spread."""
        augment = self.run.rows.resolve_augment(self.config.augment)
        inputs = self.run.inputs(index, augment, self.draws["augment"])
        return inputs, self.targets[index]

    @cached_property
    def targets(self) -> Tensor:
        """(N, 1) float32 numbers that are trained on, in units of the spread of all of them."""
        scale = Scale.of(self.run.labels[self.run.labeled].cpu().numpy())
        values = (self.run.labels - scale.middle) / scale.spread
        return values.float()[:, None].clamp(-FARTHEST, FARTHEST)

    @property
    def noise(self) -> torch.Generator:
        """The random stream of this epoch for what a step draws."""
        if "noise" not in self.draws:
            run = self.run
            self.draws["noise"] = make_generator(
                run.seed, "noise", self.number, self.epoch, device=run.device
            )
        return self.draws["noise"]

    def descend(self, loss: Tensor) -> Tensor:
        """One step down the 0-d ``loss``, every element of the gradient clipped; returns it without its graph."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_value_(self.network.parameters(), CLIP_VALUE)
        self.optimizer.step()
        return loss.detach()


def train_numbers(
    engine: str,
    data: NumberData,
    config: NumberConfig,
    make_head: Callable[[int], nn.Module],
    step: Callable[[NumberFold, Tensor], Tensor],
    read: Callable[[Any], Said],
    *,
    seed: int,
    device: str,
    on_epoch: OnEpoch | None,
    checkpoint: Checkpoint | None,
) -> NumberResult:
    """Train one network a fold and judge every number; see ``contract.TrainNumbers``.

    Args:
        engine: its name.
        data: images or features, and numbers.
        config: of the engine.
        make_head: a fresh head on so many features.
        step: of the method.
        read: what the head's output in evaluation mode says.
        seed: of every random stream.
        device: where to train.
        on_epoch: hears of each epoch.
        checkpoint: where the state is kept.

    Raises:
        EngineInputError: fewer than ten numbers, or all the same.
    """
    config = config.for_rows(int(data.labeled.sum()))
    run = Run(engine, data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint)

    def build(number: int) -> nn.Module:
        network: Any = run.build_network("network", number)
        with seeded_init(seed, "head", number):
            network.head = make_head(network.feature_size).to(run.device)
        built: nn.Module = network
        return built

    trained = train_folds(NumberFold, run, config, build, step)
    return _judge(run, config, data, trained, build(0), read)


@torch.no_grad()
def _judge(
    run: Run,
    config: NumberConfig,
    data: NumberData,
    trained: Trained,
    network: nn.Module,
    read: Callable[[Any], Said],
) -> NumberResult:
    """The final pass: each sample by the network that did not train on it; those without a number by the last."""
    num, scale = data.num_samples, Scale.of(data.numbers[data.labeled])
    judged = torch.from_numpy((data.judged_numbers - scale.middle) / scale.spread).float().to(run.device)
    point, deviation = np.empty(num), np.empty(num)
    signals: dict[str, NDArray[np.float32]] = {}
    embeddings: NDArray[np.float32] | None = None
    for number, state in enumerate(trained.states):
        network.load_state_dict(state)
        network.eval()
        for index in pieces(trained.judged_rows(run, number), run.scoring_batch):
            outputs = [network(view) for view in run.rows.views(index, config.views, run.mean_std)]
            said = together([read(output) for _, output in outputs])
            at, given = index.cpu().numpy(), judged[index][:, None]
            point[at] = said.point.cpu().numpy()
            deviation[at] = mixture_deviation(said.log_pi, said.means, said.variances).cpu().numpy()
            for name, values in signals_of(said, given).items():
                into = signals.setdefault(name, np.full(num, np.nan, np.float32))
                into[at] = torch.where(given[:, 0].isfinite(), values, torch.nan).cpu().numpy()
            if embeddings is None:
                embeddings = np.zeros((num, outputs[0][0].shape[1]), np.float32)
            embeddings[at] = outputs[0][0].cpu().numpy()
    require_finite(point, "what the network says")
    assert embeddings is not None
    notes = {"network": run.network_name(), "folds": len(trained.parts), **trained.counts}
    return NumberResult(
        predicted=point * scale.spread + scale.middle,
        deviation=deviation * scale.spread,
        signals=signals,
        embeddings=embeddings,
        history=run.recorder.history,
        provenance=run.provenance(notes),
        is_out_of_sample=trained.is_out_of_sample,
    )


def together(said: list[Said]) -> Said:
    """Return what several views of the same samples say: the mean point, and all components as one mixture."""
    shared = torch.full((), float(len(said)), device=said[0].log_pi.device).log()
    rho = [one.rho for one in said if one.rho is not None]
    return Said(
        point=torch.stack([one.point for one in said]).mean(dim=0),
        log_pi=torch.cat([one.log_pi - shared.to(one.log_pi) for one in said], dim=1),
        means=torch.cat([one.means for one in said], dim=1),
        variances=torch.cat([one.variances for one in said], dim=1),
        rho=torch.cat(rho, dim=1) if rho else None,
    )


def signals_of(said: Said, given: Tensor) -> dict[str, Tensor]:
    """``tail`` of the given numbers (B, 1) in the mixture, and ``rho``, the correlation of what explains them."""
    found = {"tail": mixture_tail(given, said.log_pi, said.means, said.variances)}
    if said.rho is not None:
        by_component = component_log_density(given, said.means, said.variances)
        found["rho"] = (torch.softmax(said.log_pi + by_component, dim=1) * said.rho).sum(dim=1)
    return found
