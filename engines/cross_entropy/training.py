"""Plain cross-entropy: the baseline that the robust methods are measured against, and a full witness.

A network is trained on the given labels as they are. While it has not memorised them yet, a wrong label
shows in its margin: the log-probability of the given class minus that of the best other. Trust ranks
two forms of it together, both high where the label looks right: the margin averaged over test-time views
after training, and the margin averaged over training (area under the margin, Pleiss et al. 2020,
https://arxiv.org/abs/2001.10528).

``folds`` > 1 judges every sample by a network that never saw its given label (and then the margin over training
does not count).

Uses neither a noise rate nor trusted labels; unlabeled samples are left out of training and scored.
Memory, for N samples, K classes, embeddings of D and P parameters: the images (N*C*H*W bytes where resident), 16 P
bytes (networks are trained one after the other) and a step's activations of batch_size images, whatever N is. In
main memory, besides 200 N bytes of snapshots, the final pass needs at most 12 N*K + 3 N*D float32 (measured at
3,000 rows of 400 classes).

Measured (benchmarks/results/detection.md, 10,000 rows, 10 epochs, small networks, three seeds, CPU): AUROC .999 on
MNIST with 20 % symmetric noise, .76 with 45 % pair flips, .830 on the human labels of CIFAR-10N aggre with conv3;
there, on one seed, .865 with conv4 and .905 with 30 epochs of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from engines.contract import (
    Checkpoint,
    EngineResult,
    OnEpoch,
    TrainingData,
)
from engines.shared.config import (
    LoopConfig,
    at_least,
    check_preset,
    learning_rate_at,
    make_optimizer,
    set_learning_rate,
)
from engines.shared.device import autocast, make_generator, memory_errors_explained, seeded_init
from engines.shared.loader import epoch_batches
from engines.shared.losses import cross_entropy, log_margin, require_finite
from engines.shared.out_of_fold import FOLDS_OF_FINETUNING, FOLDS_ON_FEATURES
from engines.shared.run import Run
from engines.shared.scoring import (
    MarginTracker,
    Scores,
    normalized_probs,
    test_time_margin,
    trust_from_evidence,
)
from engines.shared.selection import deal_by_class
from engines.shared.work import Work

EPOCHS_ON_FEATURES = 5
"""``for_features`` divides the epochs by this: a head memorises wrong labels of good features within 30 epochs
(AUROC .894 against .918 after 6, human labels of CIFAR-10N aggre, 25,000 rows)."""

STEPS_OF_A_HEAD = 75
"""Steps that a head is trained for at least. Half of what other engines want: with 150 it has begun to memorise 341
photos and 500 rows of CIFAR-10 (14 draws, AUROC and average precision .017 and .080 lower on average)."""

EPOCHS_OF_FINETUNING = 3
"""``for_finetuning`` divides the epochs by this: a pretrained network has memorised wrong labels within 30 epochs
(AUROC .907, average precision .60, against .938 and .72 after 10; human labels of CIFAR-10N aggre, 1,500 rows)."""


FEATURE_SHARE = 1 / 3
"""Share of the epochs after which ``keeps_features`` takes them (measured: 4,000 images of CIFAR-10 with 45 % pair
flips, heads of L2B on them AUROC .753, .678 on those of the last epoch)."""
FEATURE_VIEWS = 2
"""Views of each sample that are kept, the image as it is and one moved or mirrored."""


FEATURE_STEP = 1.5
"""Passes of a head that a step on features takes as long as, with reading rows and following margins (measured)."""


@dataclass(frozen=True, kw_only=True)
class CrossEntropyConfig(LoopConfig):
    """The shared loop and its folds; a run trains as many networks."""

    folds: int = 1
    """Above 1: stratified folds; networks judge only samples whose given label they did not train on."""
    keeps_features: bool = False
    """Keep what the first network sees of every sample after a third of its epochs, for the other engines to train
    on: later it has memorised wrong labels."""

    def problems(self) -> list[str]:
        return [*super().problems(), *at_least(self, 1, "folds")]

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = super(CrossEntropyConfig, self.lengthened(num_rows)).work(
            num_rows, num_classes, on_features=on_features
        )
        seen = (1 - 1 / self.folds) if self.folds > 1 else 1.0
        kept = FEATURE_VIEWS * num_rows if self.keeps_features else 0
        step = FEATURE_STEP if on_features else 1.0
        return Work(self.folds * seen * step * one.trained, self.folds * one.scored + kept)

    @property
    def feature_epoch(self) -> int:
        """Epochs after which the features are taken."""
        return max(1, round(self.epochs * FEATURE_SHARE))

    @classmethod
    def preset(cls, name: str) -> CrossEntropyConfig:
        """``quick``: minutes on a laptop; ``standard``: 45 epochs; ``paper``: Co-teaching's baseline.

        Under ``quick`` it trains twice as long as the other engines, and still for less time than most: 30 epochs
        instead of 10 were worth .02 to .05 AUROC on 10,000 images of CIFAR-10 (benchmarks/results/detection.md).
        With 45 it begins to learn the wrong labels of small easy sets too, and the noise rate is guessed too low.
        """
        check_preset(name)
        if name == "quick":
            return cls(epochs=30, learning_rate=2e-3, precision="bfloat16")
        if name == "standard":
            return cls(epochs=45, learning_rate=2e-3, precision="bfloat16")
        return cls(network="cnn9", epochs=200, schedule="linear_tail", augment="none", views=1)

    def for_features(self) -> CrossEntropyConfig:
        """A fifth of the epochs (6 under ``quick``), out of fold: see ``EPOCHS_ON_FEATURES``."""
        return replace(
            super().for_features(),
            epochs=math.ceil(self.epochs / EPOCHS_ON_FEATURES),
            folds=max(self.folds, FOLDS_ON_FEATURES),
            fewest_steps=STEPS_OF_A_HEAD,
        )

    def for_finetuning(
        self, network: str, weights: str | None, image_side: int | None = None
    ) -> CrossEntropyConfig:
        """A third of the epochs (10 under ``quick``), out of fold: see ``EPOCHS_OF_FINETUNING``."""
        config = super().for_finetuning(network, weights, image_side)
        return replace(
            config,
            epochs=math.ceil(self.epochs / EPOCHS_OF_FINETUNING),
            folds=max(self.folds, FOLDS_OF_FINETUNING),
        )


@memory_errors_explained()
def train(
    data: TrainingData,
    config: CrossEntropyConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Train the plain networks and rank every given label by its margin.

    Raises:
        EngineInputError: nothing to learn from (no labels, one class), more folds than samples, or a
            network that cannot take these images.
    """
    config = config.lengthened(int(data.labeled.sum()))
    run = Run(
        "cross_entropy", data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint
    )
    training = _Training(run, config)
    votes = _Votes(data, training.fold_of)
    first, start = 0, 0
    features: NDArray[np.float16] | None = None

    # 1. Go on where an earlier run of the same work stopped.
    state = run.resume(config.folds * config.epochs)
    if state is not None:
        first, start = state["fold"], state["epoch"]
        training.tracker.load_state_dict(state["tracker"])
        votes.load_state_dict(state["votes"])
        features = None if state["features"] is None else state["features"].numpy()

    for fold in range(first, config.folds):
        # 2. A fresh network, or the interrupted one.
        network = run.build_network("network", fold)
        optimizer = make_optimizer(network, config)
        if state is not None and fold == first:
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
        for epoch in range(start, config.epochs):
            # 3. One pass over the labeled samples outside the fold.
            outcome = training.train_epoch(network, optimizer, fold, epoch)
            if config.keeps_features and fold == 0 and epoch + 1 == config.feature_epoch:
                features = run.features(network, views=FEATURE_VIEWS)
            position = {
                "fold": fold,
                "epoch": epoch + 1,
                "features": None if features is None else torch.from_numpy(features),
            }
            parts = _Parts(network, optimizer, training.tracker, votes)
            run.epoch(
                epoch,
                outcome.losses,
                outcome.metrics,
                outcome.signals,
                stage=f"fold {fold + 1}" if config.folds > 1 else "train",
                state=lambda position=position, parts=parts: {**position, **parts.state_dict()},  # type: ignore[misc]
            )
        start = 0

        # 4. What the trained network says.
        votes.add(fold, run.score(network, views=config.views))

    # 5. Rank the margins.
    return _result(run, config, training, votes, features)


class _Parts(NamedTuple):
    """What a run changes while it goes and a checkpoint keeps, besides its position and record."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    tracker: MarginTracker
    votes: _Votes

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._asdict().items()}


class _Epoch(NamedTuple):
    losses: dict[str, float]
    metrics: dict[str, float]
    signals: dict[str, NDArray[np.float32]]


class _Training:
    """What every fit of a run shares: folds, the margin over training, and the training step."""

    def __init__(self, run: Run, config: CrossEntropyConfig) -> None:
        self.run, self.config = run, config
        self.fold_of = deal_by_class(run.data.given_labels, config.folds, seed=run.seed, name="folds")
        self.augment = run.rows.resolve_augment(config.augment)
        self.tracker = MarginTracker(run.data.num_samples, run.device)

    def train_epoch(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, fold: int, epoch: int
    ) -> _Epoch:
        """One pass over the labeled samples outside the fold; returns curves and this epoch's signals."""
        run, config, data, device = self.run, self.config, self.run.data, self.run.device
        set_learning_rate(optimizer, learning_rate_at(config, epoch))
        order = make_generator(run.seed, "order", fold, epoch)
        moves = make_generator(run.seed, "augment", fold, epoch, device=device)
        trained = data.labeled & ((self.fold_of != fold) | (config.folds == 1))
        rows = run.rows_where(trained)
        network.train()
        loss = torch.full((data.num_samples,), float("nan"), device=device)
        margin = loss.clone()
        with seeded_init(run.seed, "dropout", fold, epoch):
            for index in epoch_batches(rows, config.batch_size_for(len(rows)), order):
                labels = run.labels[index]
                inputs = run.inputs(index, self.augment, moves)
                with autocast(config.precision, device):
                    _, logits = network(inputs)
                losses = cross_entropy(logits, labels)
                optimizer.zero_grad(set_to_none=True)
                losses.mean().backward()
                optimizer.step()
                self.tracker.update(index, logits, labels)
                loss[index] = losses.detach()
                margin[index] = log_margin(logits.detach(), labels)
        signals = {"loss": loss.cpu().numpy(), "margin": margin.cpu().numpy()}
        require_finite(signals["loss"][trained])
        metrics = {"train_accuracy": float((margin[margin.isfinite()] > 0).float().mean())}
        metrics |= run.heldout_accuracy(network)
        return _Epoch({"train_loss": float(np.nanmean(signals["loss"]))}, metrics, signals)


class _Votes:
    """Sums of log-probabilities over the networks that may judge each sample."""

    def __init__(self, data: TrainingData, fold_of: NDArray[np.int64]) -> None:
        self._fold_of = fold_of
        self._sum = np.zeros((data.num_samples, data.num_classes), dtype=np.float32)
        self._count = np.zeros(data.num_samples, dtype=np.float32)
        self.embeddings: NDArray[np.float32] | None = None

    def add(self, fold: int, scores: Scores) -> None:
        """Count the network's vote on its own fold and on unlabeled samples (``fold_of`` -1)."""
        rows = (self._fold_of == fold) | (self._fold_of == -1)
        self._sum[rows] += scores.log_probs[rows]
        self._count[rows] += 1
        if fold == 0:
            # Networks do not share a space: the embedding of all samples is that of the first one.
            self.embeddings = scores.embeddings

    def log_probs(self) -> NDArray[np.float32]:
        """(N, K) mean log-probabilities."""
        return self._sum / self._count[:, None]

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint; empty before the first network is done."""
        if self.embeddings is None:
            return {}
        return {
            "sum": torch.from_numpy(self._sum),
            "count": torch.from_numpy(self._count),
            "embeddings": torch.from_numpy(self.embeddings),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        if state:
            self._sum, self._count = state["sum"].numpy(), state["count"].numpy()
            self.embeddings = state["embeddings"].numpy()


def _result(
    run: Run,
    config: CrossEntropyConfig,
    training: _Training,
    votes: _Votes,
    features: NDArray[np.float16] | None,
) -> EngineResult:
    data, log_probs = run.data, votes.log_probs()
    margin = test_time_margin(log_probs, data.given_labels)
    area = np.where(data.labeled, training.tracker.margin(), np.float32("nan"))
    out_of_sample = config.folds > 1
    probs = normalized_probs(log_probs)
    given = np.take_along_axis(probs, np.maximum(data.given_labels, 0)[:, None], axis=1)[:, 0]
    loss = np.where(data.labeled, -np.log(np.maximum(given, np.finfo(np.float32).tiny)), np.float32("nan"))
    assert votes.embeddings is not None
    return run.result(
        pred_probs=probs,
        trust_score=trust_from_evidence(margin) if out_of_sample else trust_from_evidence(margin, area),
        signals={"loss": loss.astype(np.float32), "margin": area.astype(np.float32)},
        embeddings=votes.embeddings,
        notes={"network": run.network_name(), "augment": training.augment},
        is_out_of_sample=out_of_sample,
        features=features,
    )
