"""L2B on top of semi-supervised training by two networks: DivideMix, UniCon and C2D, with or without its step.

Every epoch divides the samples into those whose given label is believed and the rest, whose label is dropped. Each
network is then trained by MixMatch on the division that its partner made: believed labels are refined by what the
network itself says, the others are guessed by both, and mixed pairs of images are fitted to mixed targets. L2B adds
a second step to network 1 alone: the same images, not mixed, with their refined and guessed labels in place of
given ones, each weighed against its pseudo-label by the meta step (``weighing.py``).

``divide_mix`` divides by a mixture over the losses; ``unicon`` takes the same share of every class, sees strong
views and adds a contrastive loss on the unlabeled part; ``c2d`` is ``divide_mix`` after a contrastive training of
both networks' layers without any label. ``has_step=False`` is the base without L2B's step. The meta set is
what people confirmed, or the labeled part of the epoch.

Departures from the published codes: one forward pass for all unmixed views of a batch, where those codes make one a
view (batch norm sees the same images, together); the last, smaller batch is trained on; strong views are random
crops with other brightness, contrast and colour (``shared/strong.py``) where UniCon takes AutoAugment; UniCon's
unlabeled batches follow its rule for noise up to one half, because nobody is asked for a noise rate; confirmed
labels are always believed and unlabeled samples never [extension].
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from engines.contract import EngineInputError, EngineResult
from engines.l2b import SPEC
from engines.l2b.bases.division import Division, divide_by_mixture, divide_uniformly, jensen_shannon
from engines.l2b.bases.semi_supervised import (
    mix,
    mixmatch_loss,
    mixup_pairs,
    refine_labels,
    sharpen,
    unlabeled_weight_at,
)
from engines.l2b.config import L2BConfig, l2b_learning_rate
from engines.l2b.signals import WeightTracker, given_log_probs, residual_alpha
from engines.l2b.weighing import Draws, Weigher
from engines.l2b.weights import Weights, combined_targets
from engines.meta import MetaSet, meta_set_of, one_hot, trusted_meta_set
from engines.shared.config import make_optimizer, set_learning_rate
from engines.shared.device import autocast, seeded_init
from engines.shared.loader import epoch_batches, moved_together
from engines.shared.losses import contrastive_loss, cross_entropy, soft_cross_entropy
from engines.shared.run import Run
from engines.shared.scoring import (
    MarginTracker,
    normalized_probs,
    test_time_margin,
    trust_from_evidence,
)
from engines.shared.selection import gmm_small_loss_probability

PROJECTION_SIZE = 128
"""Numbers of a projection that the contrastive losses compare (SimCLR, UniCon)."""
SHARPEN_TEMPERATURE = 0.5
"""T of refined and guessed labels; below 1 makes them surer (published)."""
MIX_STRENGTH = 4.0
"""Both parameters of the Beta distribution that mixes pairs (published)."""
UNLABELED_WEIGHT = 25.0
"""lambda_u, weight of the loss on guessed labels (published: 0 to 500, the noisier the larger)."""
RAMP_EPOCHS = 4.0
"""Epochs after the warm-up in which lambda_u rises from 0 to its value (published: 16 of 300)."""
CONTRASTIVE_WEIGHT = 0.025
"""Weight of UniCon's contrastive loss on the unlabeled part (published)."""
CONTRASTIVE_TEMPERATURE = {"unicon": 0.05, "c2d": 0.5}
"""Temperature of contrastive losses (published)."""
CONTRASTIVE_BATCH = 256
"""Images of a batch of C2D's training without labels; each must be told from all others."""


def train_pair(run: Run, config: L2BConfig, *, has_step: bool = True) -> EngineResult:
    """Train two networks with ``config.base`` and rank every given label by their margins.

    ``has_step=False`` leaves L2B's step out: the base alone.

    Memory: the images, two networks with gradients and moments, the activations of one batch of four views a
    sample, and about 60 N floats for losses, signals and their history.

    Raises:
        EngineInputError: features in place of images.
    """
    training = PairTraining(run, config, has_step=has_step)
    total = config.first_labeled_epoch + config.epochs
    state = run.resume(total)
    if state is not None:
        training.load_state_dict(state["pair"])
    for epoch in range(0 if state is None else state["epoch"], total):
        outcome = training.train_epoch(epoch)
        run.epoch(
            outcome.epoch,
            outcome.losses,
            outcome.metrics,
            outcome.signals,
            stage=outcome.stage,
            num_epochs=outcome.num_epochs,
            state=lambda done=epoch + 1: {"epoch": done, "pair": training.state_dict()},  # type: ignore[misc]
        )
    return training.result()


class _Outcome(NamedTuple):
    stage: str
    epoch: int
    num_epochs: int
    losses: dict[str, float]
    metrics: dict[str, float]
    signals: dict[str, NDArray[np.floating]]


class PairTraining:
    """Two networks, their optimizers and trackers, and the steps that use them."""

    def __init__(self, run: Run, config: L2BConfig, *, has_step: bool = True) -> None:
        if run.on_features:
            raise EngineInputError(
                f"base {config.base!r} learns from moved and mixed images, and these are features of a backbone: "
                "set base to 'plain', or train on the images."
            )
        self.run, self.config, self.has_step = run, config, has_step
        self.data, self.device, self.labels = run.data, run.device, run.labels
        self.augment = run.rows.resolve_augment(config.augment)
        self.weigher = Weigher(run, config, self.augment)
        self.networks = [run.build_network("network", *stream) for stream in ((), (1,))]
        self.projections = [self._projection(k) for k in range(2)]
        self.optimizers = [
            make_optimizer(nn.ModuleList(pair), config)
            for pair in zip(self.networks, self.projections, strict=True)
        ]
        self.margins = MarginTracker(run.data.num_samples, "cpu")
        self.tracker = WeightTracker(run.data.num_samples, run.device)
        self.clean_sum = np.zeros(run.data.num_samples)
        self.num_divisions = 0
        self.labeled_part = torch.zeros(0, dtype=torch.int64, device=run.device)
        self.trusted_rows = run.rows_where(run.data.trusted_mask)
        keep = np.ones(run.data.num_samples, dtype=bool)
        if not config.train_on_trusted:
            rest = ~run.data.trusted_mask
            keep = rest if (rest & run.data.labeled).any() else keep
        self.trains = keep

    def _projection(self, k: int) -> nn.Module:
        """Layers between the features and the contrastive loss; none where the base has no such loss."""
        if self.config.base == "divide_mix":
            return nn.Identity()
        size: int = self.networks[k].feature_size  # type: ignore[assignment]
        with seeded_init(self.run.seed, "projection", k):
            if self.config.base == "unicon":
                layers = [nn.Linear(size, PROJECTION_SIZE), nn.BatchNorm1d(PROJECTION_SIZE)]
            else:
                layers = [nn.Linear(size, size), nn.ReLU(), nn.Linear(size, PROJECTION_SIZE)]
            return nn.Sequential(*layers).to(self.device)

    # --- Epochs -------------------------------------------------------------------------------------------

    def train_epoch(self, epoch: int) -> _Outcome:
        """Epoch ``epoch`` of the whole run: without labels, warm-up, then divided."""
        first, config = self.config.first_labeled_epoch, self.config
        if epoch < first:
            loss = self._self_supervised_epoch(epoch)
            return _Outcome("without labels", epoch, first, {"contrastive_loss": loss}, {}, {})
        epoch -= first
        self.learning_rate = l2b_learning_rate(config, epoch)
        for optimizer in self.optimizers:
            set_learning_rate(optimizer, self.learning_rate)
        self.tracker.start_epoch()
        clean = np.full(self.data.num_samples, np.nan)
        metrics: dict[str, float] = {}
        if epoch < config.first_meta_epoch:
            losses = [self._warm_up_epoch(k, epoch) for k in range(2)]
        else:
            losses, divisions = self._divided_epoch(epoch)
            clean = np.mean([one.clean for one in divisions], axis=0)
            metrics["labeled_share"] = float(
                np.mean([len(one.labeled) / self.trains.sum() for one in divisions])
            )
        metrics |= self.run.heldout_accuracy(*self.networks)
        signals = {**self.tracker.epoch_values(), "believed": clean}
        return _Outcome(
            "train", epoch, config.epochs, {"train_loss": float(np.mean(losses))}, metrics, signals
        )

    def _self_supervised_epoch(self, epoch: int) -> float:
        """SimCLR on the images of all samples; the last such epoch hands the layers to both networks."""
        config, run = self.config, self.run
        draws = Draws(run.seed, "self_supervised", epoch, device=self.device)
        network, projection, optimizer = self.networks[0], self.projections[0], self.optimizers[0]
        set_learning_rate(optimizer, config.learning_rate)
        network.train()
        total = torch.zeros((), device=self.device)
        rows = run.rows_where(self.trains)
        with seeded_init(run.seed, "dropout", "self_supervised", epoch):
            for index in epoch_batches(rows, CONTRASTIVE_BATCH, draws.order):
                views = [run.inputs(index, "strong", draws.moves) for _ in range(2)]
                loss = self._contrastive(network, projection, views, CONTRASTIVE_TEMPERATURE[config.base])
                self._step(optimizer, loss)
                total += loss.detach() * len(index)
        if epoch == config.first_labeled_epoch - 1:
            self._hand_over()
        return float(total) / len(rows)

    def _contrastive(
        self, network: nn.Module, projection: nn.Module, views: list[Tensor], temperature: float
    ) -> Tensor:
        with autocast(self.config.precision, self.device):
            projected = projection(network(torch.cat(views))[0])
        first, second = projected.chunk(2)
        return contrastive_loss(first, second, temperature)

    def _hand_over(self) -> None:
        """Network 2 takes the layers that network 1 learned; heads are their own, optimizers begin anew."""
        first, second = self.networks
        first.eval()
        # What the features do not depend on is the head.
        parts = list(first.named_parameters())
        features = first(self.run.inputs(torch.arange(2, device=self.device)))[0]
        reached = torch.autograd.grad(features.sum(), [p for _, p in parts], allow_unused=True)
        head = {name for (name, _), found in zip(parts, reached, strict=True) if found is None}
        learned = {name: value for name, value in first.state_dict().items() if name not in head}
        second.load_state_dict(learned, strict=False)
        self.projections = [nn.Identity(), nn.Identity()]
        self.optimizers = [make_optimizer(network, self.config) for network in self.networks]

    def _warm_up_epoch(self, k: int, epoch: int) -> float:
        """Cross-entropy on the labeled samples, with the published penalty where asked for."""
        run, config = self.run, self.config
        draws = Draws(run.seed, epoch, k, device=self.device)
        network = self.networks[k]
        network.train()
        rows = run.rows_where(self.data.labeled & self.trains)
        total = torch.zeros((), device=self.device)
        with seeded_init(run.seed, "dropout", epoch, k):
            for index in epoch_batches(rows, config.batch_size_for(len(rows)), draws.order):
                labels = self.labels[index]
                logits = self._logits(network, run.inputs(index, self.augment, draws.moves))
                loss = cross_entropy(logits, labels).mean()
                self._step(self.optimizers[k], loss, clip_norm=config.clip_norm)
                total += loss.detach() * len(index)
        return float(total) / len(rows)

    def _divided_epoch(self, epoch: int) -> tuple[list[float], list[Division]]:
        """Network 1 on its partner's division, then network 2."""
        if self.config.base == "unicon":
            losses, divisions = [], []
            for k in range(2):
                # UniCon asks both networks, and asks again after it has trained the first.
                divisions.append(self._uniform_division(self._look()))
                losses.append(self._train_on(k, epoch, divisions[-1]))
            return losses, divisions
        divisions = self._mixture_divisions(self._look())
        return [self._train_on(k, epoch, divisions[1 - k]) for k in range(2)], divisions

    # --- Who is believed ----------------------------------------------------------------------------------

    def _look(self) -> list[NDArray[np.float32]]:
        """Log-probabilities of both networks for every sample as it is, (N, K) each; margins are noted."""
        every, rows = [], torch.arange(self.data.num_samples)
        labels = torch.from_numpy(self.data.given_labels)
        for network in self.networks:
            log_probs = self.run.score(network).log_probs
            self.margins.update(rows, torch.from_numpy(log_probs), labels)
            every.append(log_probs)
        return every

    def _mixture_divisions(self, log_probs: list[NDArray[np.float32]]) -> list[Division]:
        """DivideMix's division by each network's losses; the partner will use it."""
        divisions = []
        for said in log_probs:
            loss = -given_log_probs(said, self.data.given_labels)
            low, high = np.nanmin(loss), np.nanmax(loss)
            scaled = (loss - low) / max(high - low, 1e-12)
            clean = gmm_small_loss_probability(scaled, max_steps=self.config.meta_mixture_steps)
            divisions.append(divide_by_mixture(clean, self.data.trusted_mask, self.trains))
        return divisions

    def _uniform_division(self, log_probs: list[NDArray[np.float32]]) -> Division:
        """UniCon's division by what both networks say together."""
        probs = np.mean([np.exp(one.astype(np.float64)) for one in log_probs], axis=0)
        divergence = jensen_shannon(probs, self.data.given_labels)
        return divide_uniformly(divergence, self.data.given_labels, self.data.trusted_mask, self.trains)

    # --- Steps --------------------------------------------------------------------------------------------

    def _train_on(self, k: int, epoch: int, division: Division) -> float:
        """One pass of network ``k`` over the labeled part; as many unlabeled samples come along."""
        config, run = self.config, self.run
        self.clean_sum += division.clean
        self.num_divisions += 1
        if len(division.labeled) < 2:  # nothing to start from
            self.weigher.count("fallback_steps")
            return self._warm_up_epoch(k, epoch)
        here = division.on(self.device)
        if k == 0:
            self.labeled_part = here.labeled
        draws = Draws(run.seed, epoch, k, device=self.device)
        self.networks[k].train()
        self.networks[1 - k].eval()
        late = epoch >= max(config.epochs - config.late_epochs, config.first_meta_epoch)
        size = config.batch_size_for(len(division.labeled))
        batches = list(epoch_batches(here.labeled, size, draws.order))
        # Drawn for the whole epoch and moved once: a small part is through every few batches.
        others = list(itertools.islice(self._unlabeled_batches(division, draws), len(batches)))
        others = moved_together(others, self.device)
        total, seen = torch.zeros((), device=self.device), 0
        with seeded_init(run.seed, "dropout", epoch, k):
            for number, index in enumerate(batches):
                weight = unlabeled_weight_at(
                    epoch + number / len(batches),
                    start=config.first_meta_epoch,
                    ramp=RAMP_EPOCHS,
                    largest=UNLABELED_WEIGHT,
                )
                loss = self._mixmatch_step(k, index, others[number], here, weight, draws, late=late)
                total += loss * len(index)
                seen += len(index)
        return float(total) / seen

    def _unlabeled_batches(self, division: Division, draws: Draws) -> Iterator[Tensor]:
        """Batches of the unlabeled part, shuffled anew whenever it is through; empty ones where it is empty."""
        rows, size = division.unlabeled, self.config.batch_size_for(len(division.labeled))
        if self.config.base == "unicon":
            share = len(division.labeled) / max(len(division.labeled) + len(rows), 1)
            size = max(2, int(size / (2 * share)))
        while True:
            if len(rows) == 0:
                yield rows
            else:
                yield from epoch_batches(rows, size, draws.order)

    def _mixmatch_step(
        self,
        k: int,
        labeled: Tensor,
        unlabeled: Tensor,
        division: Division,
        unlabeled_weight: float,
        draws: Draws,
        *,
        late: bool,
    ) -> Tensor:
        """Refine, guess, mix, learn; and L2B's own step for network 1. Returns the loss, 0-d."""
        config, own, num = self.config, self.networks[k], 2 * len(labeled)
        inputs = self._views(labeled, unlabeled, self.augment, draws)
        targets = self._targets(k, inputs, labeled, unlabeled, division)
        if config.base == "unicon":
            inputs = self._views(labeled, unlabeled, "strong", draws)

        share, partner = mixup_pairs(len(inputs), MIX_STRENGTH, draws.mix)
        share = torch.maximum(share, 1 - share)
        logits = self._logits(own, mix(inputs, share, partner))
        loss = mixmatch_loss(logits, mix(targets, share, partner), num, unlabeled_weight)
        if config.base == "unicon" and len(unlabeled) > 1:
            views = list(inputs[num:].chunk(2))
            contrast = self._contrastive(
                own, self.projections[k], views, CONTRASTIVE_TEMPERATURE[config.base]
            )
            loss = loss + CONTRASTIVE_WEIGHT * contrast
        self._step(self.optimizers[k], loss)

        if k == 0 and self.has_step:
            self._l2b_step(labeled, unlabeled, inputs, targets, draws, late=late)
        return loss.detach()

    def _views(self, labeled: Tensor, unlabeled: Tensor, kind: str, draws: Draws) -> Tensor:
        """Two views of the labeled samples, then two of the unlabeled ones: (2 L + 2 U, C, H, W)."""
        parts = [labeled, labeled, unlabeled, unlabeled] if len(unlabeled) else [labeled, labeled]
        return torch.cat([self.run.inputs(part, kind, draws.moves) for part in parts])

    @torch.no_grad()
    def _targets(
        self, k: int, inputs: Tensor, labeled: Tensor, unlabeled: Tensor, division: Division
    ) -> Tensor:
        """Refined labels of the labeled views and guessed ones of the others: (2 L + 2 U, K)."""
        num = 2 * len(labeled)
        said = torch.softmax(self._logits(self.networks[k], inputs), dim=1)
        own = (said[:num].chunk(2)[0] + said[:num].chunk(2)[1]) / 2
        given = one_hot(self.labels[labeled], self.data.num_classes)
        refined = refine_labels(given, own, division.weight[labeled], SHARPEN_TEMPERATURE)
        if not len(unlabeled):
            return torch.cat([refined, refined])
        peer = torch.softmax(self._logits(self.networks[1 - k], inputs[num:]), dim=1)
        both = (said[num:] + peer) / 2
        guessed = sharpen((both.chunk(2)[0] + both.chunk(2)[1]) / 2, SHARPEN_TEMPERATURE)
        return torch.cat([refined, refined, guessed, guessed])

    def _l2b_step(
        self,
        labeled: Tensor,
        unlabeled: Tensor,
        inputs: Tensor,
        targets: Tensor,
        draws: Draws,
        *,
        late: bool,
    ) -> None:
        """Network 1 learns once more: each target against its pseudo-label, weighed by the meta set."""
        network, optimizer = self.networks[0], self.optimizers[0]
        index = torch.cat([labeled, labeled, unlabeled, unlabeled])
        rows = self.trusted_rows if self.weigher.source == "trusted" else self.labeled_part
        found = self.weigher.forward(network, index, inputs, targets, rows, draws)
        if found is None:
            return
        has_target = torch.ones(len(index), dtype=torch.bool, device=self.device)
        weights, signed = self.weigher.weigh(found, has_target, self.learning_rate)
        loss = soft_cross_entropy(found.logits, combined_targets(weights, targets, found.pseudo)).sum()
        self._step(optimizer, loss, clip_norm=self.config.clip_norm)

        # One view of each sample is noted; what an unlabeled one was given is a guess, of which only beta is.
        one = torch.arange(len(labeled) + len(unlabeled), device=self.device)
        one = torch.where(one < len(labeled), one, one + len(labeled))
        kept = index[one]
        scale = len(index) / len(kept)  # so that 1 is an ordinary weight
        self.tracker.visit(
            kept,
            Weights(weights.alpha[one] * scale, weights.beta[one] * scale),
            found.pseudo[one].argmax(dim=1) == self.labels[kept],
            torch.arange(len(kept), device=self.device) < len(labeled),
            signed[one],
            late=late,
        )

    def _logits(self, network: nn.Module, inputs: Tensor) -> Tensor:
        with autocast(self.config.precision, self.device):
            logits: Tensor = network(inputs)[1]
        return logits.float()

    def _step(self, optimizer: torch.optim.Optimizer, loss: Tensor, *, clip_norm: float = 0.0) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip_norm:
            clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip_norm)
        optimizer.step()

    # --- State and result ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint, taken between epochs."""
        return {
            "networks": [one.state_dict() for one in self.networks],
            "projections": [one.state_dict() for one in self.projections],
            "optimizers": [one.state_dict() for one in self.optimizers],
            "margins": self.margins.state_dict(),
            "tracker": self.tracker.state_dict(),
            "clean_sum": torch.from_numpy(self.clean_sum.copy()),
            "num_divisions": self.num_divisions,
            "labeled_part": self.labeled_part,
            "counts": self.weigher.counts,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        if not any(state["projections"]):  # none is left after the training without labels
            self.projections = [nn.Identity(), nn.Identity()]
            self.optimizers = [make_optimizer(network, self.config) for network in self.networks]
        for part in ("networks", "projections", "optimizers"):
            for mine, values in zip(getattr(self, part), state[part], strict=True):
                mine.load_state_dict(values)
        self.margins.load_state_dict(state["margins"])
        self.tracker.load_state_dict(state["tracker"])
        self.clean_sum = state["clean_sum"].numpy().copy()
        self.num_divisions = state["num_divisions"]
        self.labeled_part = state["labeled_part"].to(self.device)
        self.weigher.counts = dict(state["counts"])

    def _meta_set(self) -> MetaSet:
        """The trusted samples, or the last labeled part of network 1."""
        given, trusted = self.data.given_labels, self.data.trusted_mask
        if self.weigher.source == "trusted" or not len(self.labeled_part):
            rows = trusted if trusted.any() else self.data.labeled
            return trusted_meta_set(given, rows)
        clean = self.clean_sum / max(self.num_divisions, 1)
        part = self.labeled_part.cpu().numpy()
        return meta_set_of(part, given, "mixture", float(np.nanmean(clean[part])))

    def result(self) -> EngineResult:
        """Both networks' word on every sample, trust, signals and notes."""
        run, data, config = self.run, self.data, self.config
        scores = [run.score(network, views=config.views) for network in self.networks]
        log_probs = ((scores[0].log_probs + scores[1].log_probs) / 2).astype(np.float32)
        margin = test_time_margin(log_probs, data.given_labels)
        over_training = self.margins.margin()
        over_training = np.where(np.isnan(over_training), margin, over_training)
        signals = self.tracker.means()
        believed = self.clean_sum / self.num_divisions if self.num_divisions else self.clean_sum * np.nan
        signals["believed"] = believed.astype(np.float32)
        signals["alpha_residual"] = np.full(data.num_samples, np.nan, dtype=np.float32)
        notes: dict[str, Any] = {
            "network": run.network_name(),
            "augment": self.augment,
            "base": config.base,
            **self.weigher.counts,
        }
        if self.has_step:
            meta_set = self._meta_set()
            signals["alpha_residual"] = residual_alpha(
                self.networks[0], run.rows, run.mean_std, self.labels, meta_set.rows.to(self.device),
                num_classes=data.num_classes, batch_size=config.batch_size,
            )  # fmt: skip
            notes |= {
                "meta_source": self.weigher.source,
                "meta_size": len(meta_set.rows),
                "meta_smallest_class": meta_set.smallest_class,
                "meta_purity_estimate": meta_set.purity,
                "warnings": meta_set.warnings(),
            }
        return run.result(
            pred_probs=normalized_probs(log_probs),
            trust_score=trust_from_evidence(margin, over_training),
            signals={name: signals[name] for name in SPEC.signals},
            embeddings=scores[0].embeddings,
            notes=notes,
        )
