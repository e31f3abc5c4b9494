"""UMN: an uncertainty for every given label, mined from the training of a stacked autoencoder.

"Is the Label Trustful: Training Better Deep Learning Model via Uncertainty Mining Net" (anonymous).
A semi-supervised variational autoencoder (images x from a latent z_a, z_a from a class y and a latent z_b)
is trained on few labeled and many unlabeled images. Its label likelihood says that the given label of a
sample is wrong with probability ε of its own. ε is not learned: it is the gap between what the network
(learner) and its own moving average (guider) say about the given label, and a label weighs
f(ε) = log((K-1)(1-ε)/ε). The sum over the K possible classes is exact.

On a fully labeled set, each of ``rotations`` models has another part of the labels hidden; every sample is
judged by the model that did not see its label. Unlabeled samples take part in the generative terms of all.

Signal: ``epsilon``, published as "high = suspect". Measured, it is activity without a direction, low for a
label that both networks reject, so it is shown and trust does not use it. Trust ranks the margin of the given
label, by guider and by learner after training and averaged over epochs, each from the pass that had the label
hidden. Needs neither a noise rate nor trusted labels.

Memory, for N samples, K classes, embeddings of D and P parameters: the images (N*C*H*W bytes where resident), 20 P
bytes a rotation (weights, guider, gradient, Adam), a step's activations of batch_size images and those of the sum
over classes (``model.Y_CHUNK`` gives its bound). In main memory, besides 100 N bytes of snapshots, the final
pass needs at most 12 N*K + 3 N*D float32 (measured at 3,000 rows of 400 classes).

Measured (2,000 MNIST images, 20 % symmetric errors, conv3, 8 epochs, one seed, torch 2.15 on a CPU): trust has
AUROC .994 and average precision .981; ε taken as suspicion has AUROC .05.

Departures from the paper, each a field of :class:`engines.umn.config.UMNConfig` with the paper's value in the
``paper`` preset: ``rotations``, ``label_loss``, ``elbo_scale``, ``labeled_share``, ``standardized``,
 ``gamma``, ``epsilon_aggregate``, ``network``, ``audits``. The sign of the third line of the
paper's bound is a misprint and is corrected here; ε is clamped, because f is infinite at the first step.
"""

from __future__ import annotations

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
from engines.shared.device import memory_errors_explained
from engines.shared.run import Run
from engines.shared.scoring import MarginTracker, normalized_probs, test_time_margin, trust_from_evidence
from engines.shared.selection import deal_by_class
from engines.umn.config import ROTATIONS, UMNConfig
from engines.umn.model import Bench, Member
from engines.umn.signals import EpsilonTracker


@memory_errors_explained()
def train(
    data: TrainingData,
    config: UMNConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Train one model a rotation, epoch by epoch side by side, and judge every label where it was hidden.

    Raises:
        EngineInputError: nothing to learn from (no labels, one class), more rotations than labeled samples,
            or a network that cannot take these images.
    """
    run = Run(
        "umn",
        data,
        config,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        standardized=config.standardized,
    )
    return train_members(run, config)


def train_members(run: Run, config: UMNConfig, member_type: type[Member] = Member) -> EngineResult:
    """``train`` of a run; members of another type are the paper's other methods."""
    data, bench = run.data, Bench(run, config)
    rotations = config.rotations_for(on_features=run.on_features)
    if config.rotations is None:  # no label is hidden where there are none to share out
        rotations = min(rotations, max(ROTATIONS, int(data.labeled.sum())))
    hidden_in = deal_by_class(data.given_labels, rotations, seed=run.seed, name="rotations")
    members = [member_type(bench, r, (hidden_in == r) & (rotations > 1)) for r in range(rotations)]
    training = _Training(bench, members, hidden_in)

    # 1. Go on where an earlier run of the same work stopped.
    state = run.resume()
    if state is not None:
        training.load_state_dict(state)
    for epoch in range(0 if state is None else state["epoch"], config.epochs):
        # 2. One pass of every model over its unlabeled samples, labeled ones cycling beside them.
        outcomes = [member.train_epoch(epoch) for member in members]

        # 3. A deterministic pass of learner and guider over the labels that each model judges.
        metrics = {"train_accuracy": float(np.mean([hit for _, hit in outcomes]))}
        signals = {}
        if epoch in config.audited_epochs:
            audit = training.audit()
            training.epsilon.update(audit.epsilon)
            metrics["judged_agreement"], signals["epsilon"] = audit.agreement, audit.epsilon
        metrics |= training.heldout_accuracy()
        run.epoch(
            epoch,
            _mean([losses for losses, _ in outcomes]),
            metrics,
            signals,
            state=lambda done=epoch + 1: {"epoch": done, **training.state_dict()},  # type: ignore[misc]
        )

    # 4. What guider and learner say in the end, from several views of each image.
    return _result(training)


class _Audit(NamedTuple):
    """One deterministic pass over the judged labels."""

    epsilon: NDArray[np.float32]
    agreement: float
    """Share of the judged labels that both networks together predict."""


class _Training:
    """What a run changes while it goes, and what a checkpoint keeps."""

    def __init__(self, bench: Bench, members: list[Member], hidden_in: NDArray[np.int64]) -> None:
        self.bench, self.members, self.hidden_in = bench, members, hidden_in
        num_samples = bench.data.num_samples
        self.epsilon = EpsilonTracker(num_samples)
        self.margin = MarginTracker(num_samples)

    def judged_rows(self, member: Member) -> torch.Tensor:
        """Labeled rows that this model judges, on the CPU: those hidden from it, or all where nothing is hidden."""
        return torch.from_numpy(np.flatnonzero(self.hidden_in == member.rotation))

    def audit(self) -> _Audit:
        """ε and margin of every label by the model that judges it."""
        bench = self.bench
        epsilon = np.full(bench.data.num_samples, np.nan, dtype=np.float32)
        agreement = []
        for member in self.members:
            rows = self.judged_rows(member)
            labels = torch.from_numpy(bench.data.given_labels[rows.numpy()])
            guider, learner = (bench.run.score(network, index=rows) for network in _networks(member))
            column = labels.numpy()[:, None]
            gap = np.take_along_axis(guider.pred_probs, column, 1) - np.take_along_axis(
                learner.pred_probs, column, 1
            )
            epsilon[rows.numpy()] = np.abs(gap[:, 0])
            both = torch.from_numpy(_both(guider.log_probs, learner.log_probs))
            self.margin.update(rows, both, labels)
            agreement.append((both.argmax(1) == labels).numpy())
        return _Audit(epsilon, float(np.concatenate(agreement).mean()))

    def heldout_accuracy(self) -> dict[str, float]:
        """Of guiders and of learners, each kind averaged over the rotations."""
        metrics: dict[str, float] = {}
        for kind, networks in enumerate(zip(*map(_networks, self.members), strict=True)):
            suffix = ("", "_learner")[kind]
            found = self.bench.run.heldout_accuracy(*networks)
            metrics |= {f"{name}{suffix}": value for name, value in found.items()}
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "members": [member.state_dict() for member in self.members],
            "epsilon": self.epsilon.state_dict(),
            "margin": self.margin.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for member, saved in zip(self.members, state["members"], strict=True):
            member.load_state_dict(saved)
        self.epsilon.load_state_dict(state["epsilon"])
        self.margin.load_state_dict(state["margin"])


def _networks(member: Member) -> tuple[nn.Module, nn.Module]:
    """Guider and learner."""
    return member.guider.module, member.recognizer


class _Verdict(NamedTuple):
    """Final passes over all samples: rows of the model that judges the sample, all models where unlabeled."""

    guider: NDArray[np.float32]
    """(N, K) mean log-probabilities over the views."""
    learner: NDArray[np.float32]
    embeddings: NDArray[np.float32]


def _final_pass(training: _Training) -> _Verdict:
    bench, config = training.bench, training.bench.config
    shape = (bench.data.num_samples, bench.num_classes)
    unlabeled = torch.from_numpy(np.flatnonzero(~bench.data.labeled))
    totals = [np.zeros(shape, dtype=np.float32) for _ in range(2)]
    for member in training.members:
        judged = training.judged_rows(member)
        rows = torch.cat([judged, unlabeled])
        share = np.ones((len(rows), 1), dtype=np.float32)
        share[len(judged) :] = 1.0 / len(training.members)
        for total, network in zip(totals, _networks(member), strict=True):
            scores = bench.run.score(network, views=config.views, index=rows)
            total[rows.numpy()] += share * scores.log_probs
    # Models do not share a space: the embedding of all samples is that of the first one's guider.
    embedding = bench.run.score(training.members[0].guider.module).embeddings
    return _Verdict(totals[0], totals[1], embedding)


def _result(training: _Training) -> EngineResult:
    bench, data = training.bench, training.bench.data
    verdict = _final_pass(training)
    judges = (verdict.guider, verdict.learner)
    margins = [test_time_margin(log_probs, data.given_labels) for log_probs in judges]
    signals = _signals(training, verdict)
    return bench.run.result(
        pred_probs=normalized_probs(_both(verdict.guider, verdict.learner)),
        trust_score=trust_from_evidence(*margins, training.margin.margin()),
        signals=signals,
        embeddings=verdict.embeddings,
        notes={
            "network": bench.network_name,
            "augment": bench.augment,
            "gamma": training.members[0].gamma,
            "labeled_per_batch": training.members[0].num_labeled,
            "unlabeled_per_batch": training.members[0].num_unlabeled,
            "classes_unseen_where_judged": _unseen_classes(training),
        },
        is_out_of_sample=len(training.members) > 1,
    )


def _both(guider: NDArray[np.float32], learner: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean log-probabilities of both networks, by which UMN predicts."""
    return (guider + learner) * np.float32(0.5)


def _signals(training: _Training, verdict: _Verdict) -> dict[str, NDArray[np.float32]]:
    data = training.bench.data
    column = np.maximum(data.given_labels, 0)[:, None]
    probs = [normalized_probs(log_probs) for log_probs in (verdict.guider, verdict.learner)]
    guider, learner = (np.take_along_axis(one, column, 1)[:, 0] for one in probs)
    found = {
        "epsilon": training.epsilon.aggregate(training.bench.config.epsilon_aggregate),
        "guider_probability": guider,
        "learner_probability": learner,
        "networks_disagree": (probs[0].argmax(1) != probs[1].argmax(1)).astype(np.float32),
    }
    return {
        name: np.where(data.labeled, values, np.float32("nan")).astype(np.float32)
        for name, values in found.items()
    }


def _unseen_classes(training: _Training) -> list[int]:
    """Classes that some model judges without ever having seen one of their labels."""
    given = training.bench.data.given_labels
    unseen: set[int] = set()
    for member in training.members:
        shown = set(given[member.labeled_rows.cpu().numpy()].tolist())
        unseen |= set(given[training.judged_rows(member).numpy()].tolist()) - shown
    return sorted(unseen)


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
