"""Co-teaching with a searched keep rate: two networks hand each other their small-loss samples.

In every batch each network picks the R(t) share of samples with the smallest losses, and its partner learns
from them; R(t) falls as memorisation sets in (Han et al. 2018, https://arxiv.org/abs/1804.06872). How fast it
should fall depends on the data, so it is searched (S2E, Yao et al. 2020, https://arxiv.org/abs/1911.02377).
Nobody is asked for a noise rate. Read ``Learners`` for the algorithm, ``train`` for the run around it,
``rules.py`` for who learns from what, ``trials.py`` and ``s2e.py`` for the search.

Trust ranks the margin of the given label, averaged over test-time views and both networks, together with the
margin averaged over training. The published signal, how often a sample was *selected*, is high for clean
samples; it is shown, not used: it collapses where R(t) does not fit the noise (measured).

Uses trusted samples, where there are enough (``min_trusted``), to judge schedules; unlabeled samples are left
out of training and scored. The search trains proxies of the final run; all trials share one warm-up. Then the
best schedule seen is trained from scratch on every labeled sample, those held out of the search included.
Departures from the papers, all fields of ``CoteachingConfig``: averaging over a trial's last epochs
(``objective_epochs``), Eq. 4 at a few rates as rivals (``anchors``), taking among equals the schedule that drops
most (``tie_margin``), a shared ``warmup_epochs``; and what the released codes do differently (``legacy_*``).
Relatives of the method are ``variant``. Measured (benchmarks/results/detection.json, 10,000 images, 10 epochs,
mean of 3 seeds, against ``cross_entropy``): CIFAR-10 with human labels, conv3: AUROC .834 for .830 (aggregate)
and .853 for .852 (one annotator); MNIST, pair 45 %, mlp: .924 for .760.

Memory: the images (see ``resident``); two networks with gradients and moments, 16 bytes a weight with Adam, and
their activations for one batch; a checkpoint of each repeat's warm-up; about 120 bytes a sample for margins,
selection and ranks, and at most 200 for their history; at the end the scores of both networks,
2 N*(2K + D)*4 bytes for K classes and D features.

Letters: G networks (2, or 1 of the variants without a partner), N samples, B batch, K classes, E epochs.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.contract import (
    Checkpoint,
    EngineInputError,
    EngineResult,
    OnEpoch,
    Provenance,
    TrainingData,
)
from engines.coteaching import rules
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.rules import Choice
from engines.coteaching.signals import EpochLog, EpochOutcome, Tally, epoch_signals
from engines.coteaching.trials import FoundSchedule, ScheduleSearch, estimate_noise_rate, split_rows
from engines.meta.meta_set import draw_meta_batch
from engines.metrics import concentrated_share
from engines.networks.heads import build_for_shape, resolve_for_shape
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.device import (
    autocast,
    compiled,
    describe_device,
    make_generator,
    memory_errors_explained,
    peak_memory_bytes,
    resolve_device,
    seeded_init,
    versions,
)
from engines.shared.loader import MeanStd, epoch_batches, standardize
from engines.shared.losses import cross_entropy
from engines.shared.recording import Recorder
from engines.shared.rows import Rows, open_rows
from engines.shared.scoring import (
    MarginTracker,
    heldout_accuracy,
    normalized_probs,
    score_pass,
    test_time_margin,
    trust_from_evidence,
)

__all__ = ["CoteachingConfig", "train"]


# --- the algorithm ----------------------------------------------------------------------------------------


class Learners:
    """Two networks that teach each other under one R(t), or one network of the variants without a partner.

    All random draws are named by (seed, stream, epoch): an epoch is the same whether or not the run was
    interrupted before it, and trainings of one stream start alike and see the same batches.

    Args:
        here: the run.
        keep_rates: (E,) R of each epoch.
        rows: int64 rows to train on, all labeled.
        stream: names this training's random draws.
        transition: T (K, K) of F-correction's second training.
        is_final: this is the long training: compile it if asked to, and keep the area under the margin.
    """

    def __init__(
        self,
        here: Surroundings,
        keep_rates: NDArray[np.float64],
        rows: Tensor,
        stream: tuple[int | str, ...],
        *,
        transition: Tensor | None = None,
        is_final: bool = False,
    ) -> None:
        self.here, self.keep_rates = here, keep_rates
        self._rows, self._stream = rows, stream
        self._transition = None if transition is None else transition.to(here.device)
        config = here.config
        self.networks = [here.build(*stream, "network", g) for g in range(config.num_networks)]
        self._calls = [
            compiled(network, enabled=config.compile and is_final, device=here.device)
            for network in self.networks
        ]
        self._optimizers = [_make_optimizer(network, config) for network in self.networks]
        num_tracked = config.num_networks if is_final else 0
        self.trackers = [MarginTracker(here.store.num_samples, here.device) for _ in range(num_tracked)]
        self._steps = 0

    def run_epoch(self, epoch: int) -> EpochOutcome:
        """Train one pass (E epochs in all, ``epoch`` 0-based).

        Raises:
            EngineError: the loss is no longer finite.
        """
        here, config = self.here, self.here.config
        self._set_rates(epoch)
        order = make_generator(here.seed, *self._stream, "order", epoch)
        moves = make_generator(here.seed, *self._stream, "augment", epoch)
        batches = epoch_batches(self._rows, config.batch_size, order, drop_last=config.drop_last)
        log = EpochLog(here.store.num_samples, here.device)
        with seeded_init(here.seed, *self._stream, "dropout", epoch):
            for rows in itertools.islice(batches, config.max_batches):
                self._step(rows, here.inputs(rows, moves), epoch, log)
        return log.outcome()

    def _step(self, rows: Tensor, images: Tensor, epoch: int, log: EpochLog) -> None:
        labels = self.here.labels[rows].to(self.here.device)
        # 1. Both networks look at the same batch: the loss of every sample, Eq. (1).
        logits = self._forward(images)
        losses = torch.stack([self._losses(one, labels, epoch) for one in logits])  # (G, B)
        # 2. Each picks the R(t) share of small losses, and learns from what its partner picked, Eq. (2).
        predictions = torch.stack([one.detach().argmax(dim=1) for one in logits])
        choice = self._choose(rows, images, labels, losses, predictions, epoch)
        # 3. Each takes a step on the mean loss of what it was given, Eq. (3).
        self._learn(rules.mean_loss(losses, choice, divide_twice=self.here.config.legacy_loss_scale), choice)
        self._steps += 1
        log.add(rows, losses.detach(), choice, predictions == labels)
        for tracker, one in zip(self.trackers, logits, strict=False):
            tracker.update(rows, one, labels)

    def _forward(self, images: Tensor) -> list[Tensor]:
        """Logits (B, K) of every network."""
        with autocast(self.here.config.precision, self.here.device):
            logits = [call(images)[1] for call in self._calls]
        return [one if one.dtype == torch.float64 else one.float() for one in logits]

    def _losses(self, logits: Tensor, labels: Tensor, epoch: int) -> Tensor:
        """Loss of each sample (B,): cross-entropy, or the variant's own."""
        if self._transition is not None:
            return rules.forward_corrected_loss(logits, labels, self._transition)
        if self.here.config.legacy_plus and self._is_plus_phase(epoch):
            return rules.double_softmax_loss(logits, labels)
        return cross_entropy(logits, labels)

    def _choose(
        self, rows: Tensor, images: Tensor, labels: Tensor, losses: Tensor, predictions: Tensor, epoch: int
    ) -> Choice:
        """Who learns from what, by variant."""
        config, keep_rate = self.here.config, float(self.keep_rates[epoch])
        if self._is_plus_phase(epoch):
            early = self._steps < config.plus_gate_steps
            return rules.choose_exchanged_disagreement(
                losses, predictions, keep_rate, learn_from_all_if_none=early
            )
        if config.variant in ("coteaching", "coteaching_plus"):
            return rules.choose_exchanged(losses, keep_rate)
        if config.variant == "mentornet":
            return rules.choose_small_loss(losses, keep_rate)
        if config.variant == "decoupling":
            return rules.choose_disagreement(losses, predictions)
        if config.variant == "reweight":
            meta_rows = self._draw_meta_rows(rows)
            if len(meta_rows) >= 2:  # batch norm cannot take one; such a step is a plain one, as in L2B
                return rules.choose_reweighted(losses, self._meta_alignment(images, labels, meta_rows))
        return rules.choose_all(losses)  # standard, f_correction

    def _learn(self, mean_losses: Tensor, choice: Choice) -> None:
        """One optimizer step of each network; one without a sample to learn from takes none.

        A step on a loss of 0 would still move it, by momentum and weight decay. Batch norm has seen the batch.
        """
        learns = [True] * len(self.networks)
        # Looked at only where it can happen: the answer must come back from the device.
        if self.here.config.variant in ("coteaching_plus", "decoupling", "reweight"):
            learns = (choice.weights != 0).any(dim=1).tolist()
        if not any(learns):
            return
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)
        # Networks share no parameter, so the gradient of the sum is each network's own gradient.
        mean_losses.sum().backward()
        for optimizer, is_learning in zip(self._optimizers, learns, strict=True):
            if is_learning:
                optimizer.step()

    def _is_plus_phase(self, epoch: int) -> bool:
        config = self.here.config
        return config.variant == "coteaching_plus" and epoch >= config.plus_start_epoch

    def _draw_meta_rows(self, judged: Tensor) -> Tensor:
        """A fresh batch of trusted samples for L2RW, none of them in the batch that it judges."""
        here = self.here
        draw = make_generator(here.seed, *self._stream, "meta", self._steps)
        return draw_meta_batch(here.trusted_rows, here.labels, judged, here.config.batch_size, draw)

    def _meta_alignment(self, images: Tensor, labels: Tensor, meta_rows: Tensor) -> Tensor:
        """L2RW's <grad l_i, grad meta loss> of a batch against trusted samples: (B,)."""
        here = self.here
        identity = torch.eye(here.num_classes, device=here.device)
        targets = identity[here.labels[meta_rows].to(here.device)]
        return rules.meta_alignment(
            self.networks[0], images, identity[labels], here.inputs(meta_rows), targets
        )

    def _set_rates(self, epoch: int) -> None:
        config, num_epochs = self.here.config, len(self.keep_rates)
        for group in itertools.chain.from_iterable(one.param_groups for one in self._optimizers):
            group["lr"] = config.learning_rate_of(epoch, num_epochs)
            if config.optimizer == "adam":
                group["betas"] = config.adam_betas_of(epoch, num_epochs)

    @torch.no_grad()
    def evaluate(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and correctness of every network in evaluation mode: (G, n) each, on the CPU."""
        here = self.here
        for network in self.networks:
            network.eval()
        losses, correct = [], []
        for part in rows.split(here.store.scoring_batch):
            images, labels = here.inputs(part), here.labels[part].to(here.device)
            with autocast(here.config.precision, here.device):
                logits = [call(images)[1] for call in self._calls]
            losses.append(torch.stack([cross_entropy(one, labels) for one in logits]).cpu())
            correct.append(torch.stack([one.argmax(dim=1) == labels for one in logits]).cpu())
        for network in self.networks:
            network.train()
        return torch.cat(losses, dim=1), torch.cat(correct, dim=1)

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint, on the CPU and sharing no memory with the training."""
        return {
            "networks": [_copied_to_cpu(network.state_dict()) for network in self.networks],
            "optimizers": [_copied_to_cpu(optimizer.state_dict()) for optimizer in self._optimizers],
            "trackers": [copy.deepcopy(tracker.state_dict()) for tracker in self.trackers],
            "steps": self._steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for network, values in zip(self.networks, state["networks"], strict=True):
            network.load_state_dict(values)
        for optimizer, values in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(copy.deepcopy(values))
        for tracker, values in zip(self.trackers, state["trackers"], strict=True):
            tracker.load_state_dict(values)
        self._steps = state["steps"]


def _make_optimizer(network: nn.Module, config: CoteachingConfig) -> torch.optim.Optimizer:
    """Adam or SGD; the loop sets their learning rate every epoch."""
    if config.optimizer == "adam":
        return torch.optim.Adam(
            network.parameters(), lr=0.0, eps=1e-8, weight_decay=config.weight_decay, fused=True
        )
    return torch.optim.SGD(network.parameters(), lr=0.0, momentum=0.9, weight_decay=config.weight_decay)


def _copied_to_cpu(state: Any) -> Any:
    """A state_dict, whatever it nests, with copies of its tensors on the CPU: training on does not change them."""
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {name: _copied_to_cpu(value) for name, value in state.items()}
    if isinstance(state, list):
        return [_copied_to_cpu(value) for value in state]
    return copy.deepcopy(state)


# --- the run ----------------------------------------------------------------------------------------------


@memory_errors_explained()
def train(
    data: TrainingData,
    config: CoteachingConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Search R(t), train a pair of networks under it, and rank every given label.

    Raises:
        EngineInputError: nothing to learn from, a network that cannot take these images, or ``reweight``
            without trusted samples.
    """
    # Set-up, and what an interrupted run left.
    data.require_labels()
    here = surround(data, config, seed, device)
    fingerprint = run_fingerprint("coteaching", config, seed, data, here.device)
    state = load_state(checkpoint, fingerprint) or {"search": None, "train": None, "recorder": None}
    search = ScheduleSearch(
        config,
        split_rows(data, config, seed),
        here.labeled_rows,
        seed,
        begin=lambda curve, rows, repeat: Learners(here, curve, rows, ("search", repeat)),
        state=state["search"],
    )
    recorder = Recorder(on_epoch, data.num_samples, search.total_epochs + len(config.stages) * config.epochs)
    if state["recorder"] is not None:
        recorder.load_state_dict(state["recorder"])

    def save() -> None:
        now = {"search": search.state, "train": state["train"], "recorder": recorder.state_dict()}
        save_state(checkpoint, fingerprint, now)

    def save_final(
        stage: int, epoch: int, learners: Learners, tally: Tally, transition: Tensor | None
    ) -> None:
        counts = {"stage": stage, "epoch": epoch, "transition": transition}
        state["train"] = counts | {"learners": learners.state_dict(), "tally": tally.state_dict()}
        save()

    is_kept = checkpoint is not None

    # 1. Find R(t).
    schedule = search.run(recorder, save if is_kept else None)
    search.forget_networks()

    # 2. Train under it from scratch, on every labeled sample.
    learners, tally = _train_final(
        here, schedule.keep_rates, recorder, save_final if is_kept else None, state["train"]
    )

    # 3. Score every sample with both networks.
    scores = [
        score_pass(network, here.store, here.mean_std, views=config.views, precision=config.precision)
        for network in learners.networks
    ]
    log_probs = [one.log_probs for one in scores]
    mean = np.asarray(np.mean([normalized_probs(one) for one in log_probs], axis=0, dtype=np.float32))
    probs = (mean / mean.sum(axis=1, keepdims=True)).astype(np.float32)
    margin = np.mean([test_time_margin(one, data.given_labels) for one in log_probs], axis=0)
    return EngineResult(
        pred_probs=probs,
        trust_score=trust_from_evidence(margin, _area_under_margin(learners, data.labeled)),
        signals={
            name: np.where(data.labeled, values, np.float32("nan"))
            for name, values in tally.signals().items()
        },
        signal_history=recorder.signal_history,
        # The two networks share no axes, so their features lie side by side.
        embeddings=np.concatenate([one.embeddings for one in scores], axis=1),
        history=recorder.history,
        provenance=Provenance(
            engine="coteaching",
            config=config.as_dict(),
            seed=seed,
            device=describe_device(here.device),
            versions=versions(),
            seconds=recorder.seconds,
            peak_memory_bytes=peak_memory_bytes(here.device),
            notes=_notes(here, schedule, learners)
            | {"warnings": _warnings(config, schedule, data.given_labels, probs)},
        ),
    )


SaveFinal = Callable[[int, int, Learners, Tally, Tensor | None], None]
"""(stage, epochs done in it, networks, counts, transition) -> a checkpoint of the run."""


def _train_final(
    here: Surroundings,
    keep_rates: NDArray[np.float64],
    recorder: Recorder,
    save: SaveFinal | None,
    state: dict[str, Any] | None,
) -> tuple[Learners, Tally]:
    """The training whose networks judge, or what is left of it by ``state``; and what was counted meanwhile.

    F-correction trains twice: a plain network that estimates T, then the corrected one.
    """
    config, rows = here.config, here.labeled_rows
    first, transition = (state["stage"], state["transition"]) if state else (0, None)
    for stage in range(first, len(config.stages)):
        learners = Learners(here, keep_rates, rows, ("train", stage), transition=transition, is_final=True)
        tally, start = Tally(here.store.num_samples), 0
        if state and stage == first:
            learners.load_state_dict(state["learners"])
            tally.load_state_dict(state["tally"])
            start = state["epoch"]
        for epoch in range(start, config.epochs):
            keep_rate, outcome = float(keep_rates[epoch]), None
            metrics, losses = {"keep_rate": keep_rate}, {}
            if epoch > 0 or not config.untrained_epoch_zero:
                outcome = learners.run_epoch(epoch)
                tally.count_selection(outcome, keep_rate)
                metrics["train_accuracy"] = outcome.train_accuracy
                losses = {"train_loss": outcome.loss, "kept_loss": outcome.kept_loss}
            if epoch >= config.epochs - config.rank_epochs:
                tally.count_ranks(rows.numpy(), learners.evaluate(rows)[0].numpy(), keep_rate)
            recorder.epoch(
                config.stages[stage],
                epoch,
                config.epochs,
                losses,
                metrics | here.heldout_accuracy(learners.networks),
                epoch_signals(outcome, (here.labels >= 0).numpy()),
                save=save and partial(save, stage, epoch + 1, learners, tally, transition),
            )
        if config.stages[stage] == "estimate":
            scores = score_pass(learners.networks[0], here.store, here.mean_std, precision=config.precision)
            transition = rules.estimate_transition(torch.from_numpy(scores.pred_probs)[rows])
    return learners, tally


# --- set-up and result ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What all trainings of one run share."""

    config: CoteachingConfig
    store: Rows
    labels: Tensor
    """(N,) int64 given labels, on the CPU."""
    labeled_rows: Tensor
    """int64 rows that have a label, rising."""
    trusted_rows: Tensor
    """int64 rows of trusted samples, for ``reweight``."""
    num_classes: int
    network: str
    augment: str
    mean_std: MeanStd | None
    """None feeds images in [0, 1]."""
    seed: int
    evaluation: tuple[Rows, Tensor] | None = None

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.store.device

    def inputs(self, rows: Tensor, moves: torch.Generator | None = None) -> Tensor:
        """Images of ``rows`` as the networks take them; moved at random where a generator is given."""
        store = self.store
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
                weights=self.config.weights,
                width=self.config.width,
            )
        if not self.config.dropout:
            for part in network.modules():
                if isinstance(part, nn.modules.dropout._DropoutNd):
                    part.p = 0.0
        # Convolutions run about a quarter faster on channels-last tensors (conv3, one CPU thread).
        network = network.to(self.device)
        return network.to(memory_format=torch.channels_last)

    def heldout_accuracy(self, networks: list[nn.Module]) -> dict[str, float]:
        """Mean accuracy of ``networks`` on the evaluation set; empty without one."""
        if self.evaluation is None:
            return {}
        precision = self.config.precision
        each = [
            heldout_accuracy(one, *self.evaluation, self.mean_std, precision=precision) for one in networks
        ]
        return {"heldout_accuracy": float(np.mean(each))}


def surround(data: TrainingData, config: CoteachingConfig, seed: int, device: str) -> Surroundings:
    """Put the data where it is trained on, and settle what ``auto`` means.

    Raises:
        EngineInputError: ``reweight`` without trusted samples.
    """
    where = resolve_device(device)
    store = open_rows(data.inputs, where, resident=config.resident)
    if config.variant == "reweight" and not data.trusted_mask.any():
        raise EngineInputError(
            "variant 'reweight' learns its weights from trusted samples and there are none; "
            "verify some labels first or use another variant."
        )
    evaluation = None
    if data.evaluation is not None:
        images = open_rows(data.evaluation.inputs, where, resident=config.resident)
        evaluation = (images, torch.from_numpy(data.evaluation.labels.copy()))
    return Surroundings(
        config=config,
        store=store,
        labels=torch.from_numpy(data.given_labels.copy()),
        labeled_rows=torch.from_numpy(np.flatnonzero(data.labeled)),
        trusted_rows=torch.from_numpy(np.flatnonzero(data.trusted_mask)),
        num_classes=data.num_classes,
        network=resolve_for_shape(config.network, store.shape, num_samples=data.num_samples, device=where),
        augment=store.resolve_augment(config.augment),
        mean_std=store.mean_std() if config.standardize or data.features is not None else None,
        seed=seed,
        evaluation=evaluation,
    )


def _area_under_margin(learners: Learners, labeled: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Mean over the networks of the margin averaged over training, (N,); NaN where unlabeled."""
    area = np.mean([tracker.margin() for tracker in learners.trackers], axis=0)
    # drop_last and max_batches can leave a sample unvisited: it gets the middle of this ranking.
    if labeled.any() and np.isfinite(area).any():
        area = np.where(np.isnan(area), np.nanmedian(area), area)
    return np.where(labeled, area, np.nan)


def _notes(here: Surroundings, schedule: FoundSchedule, learners: Learners) -> dict[str, Any]:
    """The trained R(t) beside Co-teaching's default, how it was found, and what was chosen on the way."""
    config = here.config
    notes: dict[str, Any] = {"network": here.network, "augment": here.augment, "variant": config.variant}
    if not config.is_scheduled:
        return notes
    rate = schedule.noise_rate
    if rate is None:
        rate = estimate_noise_rate(learners.evaluate(here.labeled_rows)[0].mean(dim=0))
    default = config.coteaching_curve(rate, np.arange(config.epochs, dtype=np.float64))
    return notes | {
        "keep_rates": [round(float(value), 6) for value in schedule.keep_rates],
        "keep_rates_coteaching": [round(float(value), 6) for value in default],
        "suggested_noise_rate": rate,
        "search": schedule.notes,
    }


def _warnings(
    config: CoteachingConfig, schedule: FoundSchedule, given: NDArray[np.int64], probs: NDArray[np.float32]
) -> list[str]:
    """What makes the schedule doubtful, one sentence each (specification, section on the objective)."""
    found = [schedule.notes["warning"]] if "warning" in schedule.notes else []
    if config.is_scheduled and config.warmup_epochs >= config.epochs:
        found.append(
            f"All {config.epochs} epochs were warm-up, which keeps every sample, so no schedule was used: raise "
            "epochs or lower warmup_epochs."
        )
    noisy_objective = str(schedule.notes.get("objective", "")).endswith("held-out given labels")
    if noisy_objective and concentrated_share(given, probs) >= 0.5:
        found.append(
            "Most predictions that differ from a given label name one and the same other class, as when pairs of "
            "classes are flipped. R(t) was judged by held-out given labels, which can prefer the wrong schedule "
            "then: verify labels, and the search is judged by those."
        )
    return found
