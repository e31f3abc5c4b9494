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
over classes (``UMNConfig.y_chunk`` gives its bound). In main memory, besides 100 N bytes of snapshots, the final
pass needs at most 12 N*K + 3 N*D float32 (measured at 3,000 rows of 400 classes).

Measured (2,000 MNIST images, 20 % symmetric errors, conv3, 8 epochs, one seed, torch 2.15 on a CPU): trust has
AUROC .994 and average precision .981; ε taken as suspicion has AUROC .05.

Departures from the paper, each a field of :class:`engines.umn.config.UMNConfig` with the paper's value in the
``paper`` preset: ``rotations``, ``label_loss``, ``elbo_scale``, ``labeled_share``, ``decoded_side``,
``standardized``, ``gamma``, ``epsilon_aggregate``, ``network``. The sign of the third line of the paper's
bound is a misprint and is corrected here; ε is clamped, because f is infinite at the first step.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from engines.contract import (
    Checkpoint,
    EngineInputError,
    EngineResult,
    EngineSpec,
    OnEpoch,
    Provenance,
    SignalSpec,
    TrainingData,
)
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.device import (
    describe_device,
    make_generator,
    memory_errors_explained,
    peak_memory_bytes,
    resolve_device,
    versions,
)
from engines.shared.loader import ImageStore
from engines.shared.recording import Recorder
from engines.shared.scoring import (
    MarginTracker,
    heldout_accuracy,
    normalized_probs,
    score_pass,
    test_time_margin,
    trust_from_evidence,
)
from engines.umn.config import GUIDER_ALONE, UMNConfig
from engines.umn.model import Bench, Member
from engines.umn.signals import EpsilonTracker, identify


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
    data.require_labels()
    bench = Bench(data, config, seed, resolve_device(device))
    hidden_in = hidden_rotation(data.given_labels, config.rotations, seed)
    members = [Member(bench, r, (hidden_in == r) & (config.rotations > 1)) for r in range(config.rotations)]
    run = _Run(bench, members, hidden_in, Recorder(on_epoch, data.num_samples, config.epochs))

    # 1. Go on where an earlier run of the same work stopped.
    fingerprint = run_fingerprint("umn", config, seed, data, resolve_device(device))
    state = load_state(checkpoint, fingerprint)
    if state is not None:
        run.load_state_dict(state)
    for epoch in range(0 if state is None else state["epoch"], config.epochs):
        # 2. One pass of every model over its unlabeled samples, labeled ones cycling beside them.
        outcomes = [member.train_epoch(epoch) for member in members]

        # 3. A deterministic pass of learner and guider over the labels that each model judges.
        audit = run.audit()
        run.epsilon.update(audit.epsilon)
        run.recorder.epoch(
            "train",
            epoch,
            config.epochs,
            _mean([losses for losses, _ in outcomes]),
            {"train_accuracy": float(np.mean([hit for _, hit in outcomes])), **audit.metrics},
            {"epsilon": audit.epsilon},
            save=partial(_save, checkpoint, fingerprint, run, epoch + 1),
        )

    # 4. What guider and learner say in the end, from several views of each image.
    return _result(run, seed)


class _Audit(NamedTuple):
    """One epoch's deterministic pass."""

    epsilon: NDArray[np.float32]
    metrics: dict[str, float]


class _Run:
    """What a run changes while it goes, and what a checkpoint keeps."""

    def __init__(
        self, bench: Bench, members: list[Member], hidden_in: NDArray[np.int64], recorder: Recorder
    ) -> None:
        self.bench, self.members, self.hidden_in, self.recorder = bench, members, hidden_in, recorder
        num_samples = bench.data.num_samples
        self.epsilon = EpsilonTracker(num_samples, bench.config.epochs)
        self.margin = MarginTracker(num_samples)
        self.evaluation: tuple[ImageStore, torch.Tensor] | None = None
        if bench.data.evaluation is not None:
            heldout = bench.data.evaluation
            store = ImageStore(heldout.images, bench.device, resident=bench.config.resident)
            self.evaluation = (store, torch.from_numpy(heldout.labels.copy()))

    def judged_rows(self, member: Member) -> torch.Tensor:
        """Labeled rows that this model judges: those hidden from it, or all where nothing is hidden."""
        return torch.from_numpy(np.flatnonzero(self.hidden_in == member.rotation))

    def audit(self) -> _Audit:
        """ε and margin of every label by the model that judges it, and held-out accuracy of both networks."""
        bench = self.bench
        epsilon = np.full(bench.data.num_samples, np.nan, dtype=np.float32)
        agreement, heldout = [], []
        for member in self.members:
            rows = self.judged_rows(member)
            labels = bench.labels[rows]
            guider, learner = (
                score_pass(network, bench.store, bench.mean_std, precision=bench.config.precision, index=rows)
                for network in (member.guider.module, member.recognizer)
            )
            column = labels.numpy()[:, None]
            gap = np.take_along_axis(guider.pred_probs, column, 1) - np.take_along_axis(
                learner.pred_probs, column, 1
            )
            epsilon[rows.numpy()] = np.abs(gap[:, 0])
            both = torch.from_numpy(_prediction(bench.config, guider.log_probs, learner.log_probs))
            self.margin.update(rows, both, labels)
            agreement.append((both.argmax(1) == labels).numpy())
            heldout.append(self._heldout(member))
        metrics = {"judged_agreement": float(np.concatenate(agreement).mean())}
        if self.evaluation is not None:
            names = ("heldout_accuracy", "heldout_accuracy_learner")
            metrics.update(zip(names, np.mean(heldout, axis=0).tolist(), strict=True))
        return _Audit(epsilon, metrics)

    def _heldout(self, member: Member) -> tuple[float, ...]:
        if self.evaluation is None:
            return ()
        return tuple(
            heldout_accuracy(
                network, *self.evaluation, self.bench.mean_std, precision=self.bench.config.precision
            )
            for network in (member.guider.module, member.recognizer)
        )

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "members": [member.state_dict() for member in self.members],
            "epsilon": self.epsilon.state_dict(),
            "margin": self.margin.state_dict(),
            "recorder": self.recorder.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for member, saved in zip(self.members, state["members"], strict=True):
            member.load_state_dict(saved)
        self.epsilon.load_state_dict(state["epsilon"])
        self.margin.load_state_dict(state["margin"])
        self.recorder.load_state_dict(state["recorder"])


def _save(checkpoint: Checkpoint | None, fingerprint: str, run: _Run, epoch: int) -> None:
    if checkpoint is not None:
        save_state(checkpoint, fingerprint, {"epoch": epoch, **run.state_dict()})


def hidden_rotation(given_labels: NDArray[np.int64], rotations: int, seed: int) -> NDArray[np.int64]:
    """Which rotation hides (and judges) each label: 0..rotations-1 in equal shares of every class.

    (N,) -> (N,), -1 where unlabeled. A class with at least two labels keeps one in every rotation.

    Raises:
        EngineInputError: there are more rotations than labeled samples.
    """
    labeled = np.flatnonzero(given_labels >= 0)
    if rotations > len(labeled):
        raise EngineInputError(f"rotations is {rotations} but only {len(labeled)} samples are labeled.")
    rotation = np.full(len(given_labels), -1, dtype=np.int64)
    order = torch.randperm(len(labeled), generator=make_generator(seed, "rotations")).numpy()
    by_class = labeled[order][np.argsort(given_labels[labeled[order]], kind="stable")]
    rotation[by_class] = np.arange(len(by_class)) % rotations
    return rotation


class _Verdict(NamedTuple):
    """Final passes over all samples: rows of the model that judges the sample, all models where unlabeled."""

    guider: NDArray[np.float32]
    """(N, K) mean log-probabilities over the views."""
    learner: NDArray[np.float32]
    embeddings: NDArray[np.float32]


def _final_pass(run: _Run) -> _Verdict:
    bench, config = run.bench, run.bench.config
    shape = (bench.data.num_samples, bench.num_classes)
    unlabeled = torch.from_numpy(np.flatnonzero(~bench.data.labeled))
    totals = [np.zeros(shape, dtype=np.float32) for _ in range(2)]
    for member in run.members:
        judged = run.judged_rows(member)
        rows = torch.cat([judged, unlabeled])
        share = np.ones((len(rows), 1), dtype=np.float32)
        share[len(judged) :] = 1.0 / len(run.members)
        for total, network in zip(totals, (member.guider.module, member.recognizer), strict=True):
            scores = score_pass(
                network,
                bench.store,
                bench.mean_std,
                views=config.views,
                precision=config.precision,
                index=rows,
            )
            total[rows.numpy()] += share * scores.log_probs
    # Models do not share a space: the embedding of all samples is that of the first one's guider.
    embedding = score_pass(
        run.members[0].guider.module, bench.store, bench.mean_std, precision=config.precision
    ).embeddings
    return _Verdict(totals[0], totals[1], embedding)


def _result(run: _Run, seed: int) -> EngineResult:
    bench, config, data = run.bench, run.bench.config, run.bench.data
    verdict = _final_pass(run)
    judges = (verdict.guider,) if config.method in GUIDER_ALONE else (verdict.guider, verdict.learner)
    margins = [test_time_margin(log_probs, data.given_labels) for log_probs in judges]
    signals = _signals(run, verdict)
    final = run.epsilon.aggregate("final")
    flagged = {rule: int(mask.sum()) for rule, mask in identify(signals, final).items()}
    return EngineResult(
        pred_probs=normalized_probs(_prediction(config, verdict.guider, verdict.learner)),
        trust_score=trust_from_evidence(*margins, run.margin.margin()),
        signals=signals,
        signal_history=run.recorder.signal_history,
        embeddings=verdict.embeddings,
        history=run.recorder.history,
        provenance=Provenance(
            engine="umn",
            config=config.as_dict(),
            seed=seed,
            device=describe_device(bench.device),
            versions=versions(),
            seconds=run.recorder.seconds,
            peak_memory_bytes=peak_memory_bytes(bench.device),
            notes={
                "network": bench.network_name,
                "augment": bench.augment,
                "gamma": run.members[0].gamma,
                "labeled_per_batch": run.members[0].num_labeled,
                "unlabeled_per_batch": run.members[0].num_unlabeled,
                "flagged_by_rule": flagged,
                "classes_unseen_where_judged": _unseen_classes(run),
            },
        ),
        is_out_of_sample=config.rotations > 1,
    )


def _prediction(
    config: UMNConfig, guider: NDArray[np.float32], learner: NDArray[np.float32]
) -> NDArray[np.float32]:
    """What the method predicts by: both networks' mean log-probabilities, or its guider's alone."""
    return guider if config.method in GUIDER_ALONE else (guider + learner) * np.float32(0.5)


def _signals(run: _Run, verdict: _Verdict) -> dict[str, NDArray[np.float32]]:
    data = run.bench.data
    column = np.maximum(data.given_labels, 0)[:, None]
    probs = [normalized_probs(log_probs) for log_probs in (verdict.guider, verdict.learner)]
    guider, learner = (np.take_along_axis(one, column, 1)[:, 0] for one in probs)
    found = {
        "epsilon": run.epsilon.aggregate(run.bench.config.epsilon_aggregate),
        "guider_probability": guider,
        "learner_probability": learner,
        "networks_disagree": (probs[0].argmax(1) != probs[1].argmax(1)).astype(np.float32),
    }
    return {
        name: np.where(data.labeled, values, np.float32("nan")).astype(np.float32)
        for name, values in found.items()
    }


def _unseen_classes(run: _Run) -> list[int]:
    """Classes that some model judges without ever having seen one of their labels."""
    given = run.bench.data.given_labels
    unseen: set[int] = set()
    for member in run.members:
        shown = set(given[member.labeled_rows.numpy()].tolist())
        unseen |= set(given[run.judged_rows(member).numpy()].tolist()) - shown
    return sorted(unseen)


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


SPEC = EngineSpec(
    name="umn",
    title="Uncertainty Mining Net",
    paper="Is the Label Trustful: Training Better Deep Learning Model via Uncertainty Mining Net",
    config_type=UMNConfig,
    train=train,
    signals={
        "epsilon": SignalSpec(
            title="UMN uncertainty ε",
            meaning=(
                "How far the network and its moving average differ on the given label; it says that the "
                "opinion still moves, not which way, and is near 0 for a label that both firmly reject."
            ),
            high_means="neither",
            published_high_means="suspect",
        ),
        "guider_probability": SignalSpec(
            title="UMN guider's probability of the given label",
            meaning=(
                "What the slow network, trained without this label, gives to it; a hard image has a low one "
                "with a right label too."
            ),
            high_means="clean",
        ),
        "learner_probability": SignalSpec(
            title="UMN learner's probability of the given label",
            meaning=(
                "What the fast network, trained without this label, gives to it; it moves more between "
                "epochs than the guider's."
            ),
            high_means="clean",
        ),
        "networks_disagree": SignalSpec(
            title="UMN guider and learner disagree",
            meaning=(
                "1 where the two networks predict different classes; it marks images near a boundary, with "
                "right and wrong labels alike."
            ),
            high_means="neither",
            published_high_means="suspect",
        ),
    },
    uses_trusted=False,
)
