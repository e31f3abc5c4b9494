"""L2B, Learning to Bootstrap (CVPR 2024, https://arxiv.org/abs/2202.04291): weights for two labels a sample.

Every sample may learn from its given label (weight alpha) and from the network's own pseudo-label (weight
beta). The weights are not set but meta-learned at every step: how much would listening to this label lower
the loss on a small *meta set* that is believed? The meta set is what people confirmed, or, where that is too
little, the samples of smallest loss, chosen anew at every epoch.

Raw signals: ``alpha`` and ``beta`` are at least 0 (times the batch size, so that 1 is an ordinary weight) and
rank "hard" rather than "wrong"; ``alpha_residual`` is signed, high = clean, and finds structured noise but
little human noise. Trust is therefore the trained network's margin, at test time and averaged over training.

The meta step is exact and costs 2.2 to 2.8 plain steps instead of the 6.7 to 8.7 of double backward
(``directional.py``, benchmarks/results/meta_step.json). Departures from the paper, each a field of the config
where there is a choice: the meta batch is stratified by class and never holds a sample of the batch it judges
[added]; trusted samples stay in the training set (``train_on_trusted``); unlabeled samples learn from their
pseudo-label alone [extension]; the 1e-10 in eq. (8) is a test for 0; where ||v|| vanishes a step is plain
cross-entropy; a mixture is fitted until it converges (``meta_mixture_steps``).

``base`` puts the step on top of a semi-supervised method instead (``bases/``: L2B-DivideMix, L2B-UniCon, L2B-C2D).
Left out: the segmentation form, which weighs pixels of a segmentation network.

Measured: MNIST with 45 % pair flips, 10,000 images, 10 epochs, no trusted samples, mean of 3 seeds: AUROC .959
(``cross_entropy`` .760; benchmarks/results/detection.json); in prototypes on CIFAR photographs with 200 trusted
samples it was *worse* than plain cross-entropy (specs P2); ``Provenance.notes`` warns of such sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from engines.contract import Checkpoint, EngineResult, OnEpoch, TrainingData
from engines.l2b import SPEC
from engines.l2b.bases import train_pair
from engines.l2b.config import L2BConfig, l2b_learning_rate
from engines.l2b.signals import WeightTracker, given_log_probs, residual_alpha
from engines.l2b.step import MetaForward
from engines.l2b.weighing import Draws, Weigher, Weighing
from engines.l2b.weights import combined_targets, fixed_weights, meta_weights
from engines.meta import MetaSet, mixture_meta_set, one_hot, trusted_meta_set
from engines.shared.config import make_optimizer, set_learning_rate
from engines.shared.device import autocast, memory_errors_explained, seeded_init
from engines.shared.loader import epoch_batches
from engines.shared.losses import cross_entropy, soft_cross_entropy
from engines.shared.out_of_fold import out_of_fold
from engines.shared.run import Run
from engines.shared.scoring import MarginTracker, Scores, test_time_margin, trust_from_evidence
from engines.shared.selection import gmm_small_loss_probability


@memory_errors_explained()
@out_of_fold("l2b")
def train(
    data: TrainingData,
    config: L2BConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Train with meta-learned weights and rank every given label by the network's margins.

    Memory: the images (see ``resident``), a plain training step of ``batch_size`` samples with the tangents of a
    few layers in flight, one gradient more than plain training, about 80 N floats for signals and their history,
    and the scores, N*(2K + D)*4 bytes for K classes and D features.

    Raises:
        EngineInputError: nothing to learn from (no labels, one class), or a network that cannot take these images.
    """
    run = Run("l2b", data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint)
    return train_one(run, config) if config.base == "plain" else train_pair(run, config)


def train_one(run: Run, config: L2BConfig, *, weights: Weighing = meta_weights) -> EngineResult:
    """Train one network; ``weights`` makes the weights of a batch (others than eq. (8) are for the ablation)."""
    training = _Training(run, config, weights)

    # 1. Go on where an earlier run of the same work stopped.
    state = run.resume()
    if state is not None:
        training.load_state_dict(state["bench"])

    for epoch in range(0 if state is None else state["epoch"], config.epochs):
        # 2. After the warm-up: the samples that are believed in this epoch.
        meta_set = training.choose_meta_set() if training.takes_meta_steps(epoch) else None

        # 3. One pass over the training set; each step weighs its own batch.
        outcome = training.train_epoch(epoch, meta_set)
        run.epoch(
            epoch,
            outcome.losses,
            outcome.metrics,
            outcome.signals,
            state=lambda done=epoch + 1: {"epoch": done, "bench": training.state_dict()},  # type: ignore[misc]
        )

    # 4. The trained network's word on every sample, and the signals.
    return training.result()


class _Epoch(NamedTuple):
    losses: dict[str, float]
    metrics: dict[str, float]
    signals: dict[str, NDArray[np.float32]]


class _Training:
    """Network, optimizer and trackers of one run, and the steps that use them."""

    def __init__(self, run: Run, config: L2BConfig, weights: Weighing) -> None:
        self.run, self.config = run, config
        self.data, self.device, self.labels = run.data, run.device, run.labels
        self.augment = run.rows.resolve_augment(config.augment)
        self.weigher = Weigher(run, config, self.augment, weights)
        self.network = run.build_network("network")
        self.optimizer = make_optimizer(self.network, config)
        self.margins = MarginTracker(run.data.num_samples, run.device)
        self.tracker = WeightTracker(run.data.num_samples, run.device)
        self.step_losses = torch.full((run.data.num_samples,), float("nan"), device=run.device)
        """(N,) loss on the given label at each sample's latest step; NaN before the first."""

    def state_dict(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "margins": self.margins.state_dict(),
            "tracker": self.tracker.state_dict(),
            "step_losses": self.step_losses,
            "counts": self.weigher.counts,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.margins.load_state_dict(state["margins"])
        self.tracker.load_state_dict(state["tracker"])
        self.step_losses = state["step_losses"].to(self.device)
        self.weigher.counts = dict(state["counts"])

    def takes_meta_steps(self, epoch: int) -> bool:
        return epoch >= self.config.first_meta_epoch

    def training_rows(self, *, warm_up: bool) -> Tensor:
        """Samples of an epoch: labeled ones, and after the warm-up unlabeled ones for their pseudo-labels."""
        keep = self.data.labeled | (not warm_up)
        if not self.config.train_on_trusted:
            rest = keep & ~self.data.trusted_mask
            # Where every label is trusted there is nothing else to train on.
            keep = rest if (rest & self.data.labeled).any() else keep
        return self.run.rows_where(keep)

    def choose_meta_set(self, scores: Scores | None = None) -> MetaSet:
        """The trusted samples, or this epoch's samples of small loss, by ``meta_losses``.

        ``scores``: of all samples as they are by the network as it is, where they are at hand.
        """
        if self.weigher.source == "trusted":
            return trusted_meta_set(self.data.given_labels, self.data.trusted_mask)
        if self.config.uses_step_losses and not torch.isnan(self.step_losses).all():
            loss = self.step_losses.cpu().double().numpy()
        else:
            # Un-augmented, in evaluation mode.
            scores = self.run.score(self.network) if scores is None else scores
            loss = -given_log_probs(scores.log_probs, self.data.given_labels)
        low, high = np.nanmin(loss), np.nanmax(loss)
        return mixture_meta_set(
            (loss - low) / max(high - low, 1e-12),
            self.data.given_labels,
            self.data.trusted_mask,
            per_class=self.config.meta_per_class,
            max_steps=self.config.meta_mixture_steps,
        )

    def train_epoch(self, epoch: int, meta_set: MetaSet | None) -> _Epoch:
        """One pass over the training rows; returns curves and this epoch's weights."""
        self.learning_rate = l2b_learning_rate(self.config, epoch)
        set_learning_rate(self.optimizer, self.learning_rate)
        draws = Draws(self.run.seed, epoch, device=self.device)
        meta_rows = None if meta_set is None else meta_set.rows.to(self.device)
        rows = self.training_rows(warm_up=meta_set is None)
        self.tracker.start_epoch()
        late = epoch >= max(self.config.epochs - self.config.late_epochs, self.config.first_meta_epoch)
        loss, hits, labeled = (torch.zeros((), device=self.device) for _ in range(3))
        with seeded_init(self.run.seed, "dropout", epoch):
            for index in epoch_batches(rows, self.config.batch_size_for(len(rows)), draws.order):
                step = self._step(index, meta_rows, draws, late=late)
                labels = self.labels[index]
                loss += step.loss * len(index)
                hits += (step.logits.argmax(dim=1) == labels).sum()
                labeled += (labels >= 0).sum()
        metrics = {"train_accuracy": float(hits / labeled)}
        if meta_set is not None:
            metrics["meta_purity"] = meta_set.purity
        metrics |= self.run.heldout_accuracy(self.network)
        return _Epoch({"train_loss": float(loss) / len(rows)}, metrics, self.tracker.epoch_values())

    def _step(self, index: Tensor, meta_rows: Tensor | None, draws: Draws, *, late: bool) -> _StepOutcome:
        """Weigh one batch, eq. (5) to (8), and take the weighted step, eq. (9)."""
        labels = self.labels[index]
        images = self.run.inputs(index, self.augment, draws.moves)
        targets, has_target = one_hot(labels, self.data.num_classes), labels >= 0
        found = self._forward(index, images, targets, meta_rows, draws)
        if isinstance(found, MetaForward):
            logits, pseudo = found.logits, found.pseudo
            weights, signed = self.weigher.weigh(found, has_target, self.learning_rate)
        else:
            logits, signed = found, None
            pseudo = one_hot(logits.detach().argmax(dim=1), self.data.num_classes)
            weights = fixed_weights(has_target)
        loss = soft_cross_entropy(logits, combined_targets(weights, targets, pseudo)).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.config.clip_norm:
            clip_grad_norm_(self.network.parameters(), self.config.clip_norm)
        self.optimizer.step()
        self.margins.update(index, logits, labels)
        if self.config.uses_step_losses:
            given = cross_entropy(logits.detach().float(), labels)
            self.step_losses[index] = torch.where(labels >= 0, given, self.step_losses[index])
        same = pseudo.argmax(dim=1) == labels
        self.tracker.visit(index, weights, same, labels >= 0, signed, late=late)
        return _StepOutcome(loss.detach(), logits.detach())

    def _forward(
        self, index: Tensor, images: Tensor, targets: Tensor, meta_rows: Tensor | None, draws: Draws
    ) -> MetaForward | Tensor:
        """Logits alone in warm-up, and where fewer than two meta samples are free."""
        if meta_rows is not None:
            found = self.weigher.forward(self.network, index, images, targets, meta_rows, draws)
            if found is not None:
                return found
        with autocast(self.config.precision, self.device):
            logits: Tensor = self.network(images)[1]
        return logits

    def result(self) -> EngineResult:
        """The final deterministic pass, trust, signals and notes."""
        run, data, config = self.run, self.data, self.config
        scores = run.score(self.network, views=config.views)
        margin = test_time_margin(scores.log_probs, data.given_labels)
        over_training = self.margins.margin()
        # A sample that was never trained on (trusted) has only its margin at test time.
        over_training = np.where(np.isnan(over_training), margin, over_training)
        signals = self.tracker.means()
        loss = -given_log_probs(scores.log_probs, data.given_labels)
        signals["believed"] = gmm_small_loss_probability(loss).astype(np.float32)
        # With one view the last pass saw the images as they are: no second one.
        meta_set = self.choose_meta_set(scores if config.views == 1 else None)
        signals["alpha_residual"] = residual_alpha(
            self.network, run.rows, run.mean_std, self.labels, meta_set.rows.to(self.device),
            num_classes=data.num_classes, batch_size=config.batch_size,
        )  # fmt: skip
        notes = {
            "network": run.network_name(),
            "augment": self.augment,
            **self.weigher.counts,
            "meta_source": meta_set.source,
            "meta_size": len(meta_set.rows),
            "meta_smallest_class": meta_set.smallest_class,
            "meta_purity_estimate": meta_set.purity,
            "warnings": meta_set.warnings(),
        }
        return run.result(
            pred_probs=scores.pred_probs,
            trust_score=trust_from_evidence(margin, over_training),
            signals={name: signals[name] for name in SPEC.signals},
            embeddings=scores.embeddings,
            notes=notes,
        )


class _StepOutcome(NamedTuple):
    loss: Tensor
    logits: Tensor
