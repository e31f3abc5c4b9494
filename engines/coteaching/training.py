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
from collections.abc import Mapping
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
    Part,
    TrainingData,
)
from engines.coteaching import rules
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.rules import Choice
from engines.coteaching.signals import EpochLog, EpochOutcome, Tally, epoch_signals
from engines.coteaching.trials import (
    FoundSchedule,
    ScheduleSearch,
    concentrated_share,
    estimate_noise_rate,
    search_parts,
    split_rows,
)
from engines.meta.meta_set import draw_meta_batch
from engines.shared import optimizers
from engines.shared.averaged import averaged
from engines.shared.config import parameter_groups, set_learning_rate
from engines.shared.device import (
    autocast,
    compiled,
    make_generator,
    memory_errors_explained,
    seeded_init,
)
from engines.shared.large import side_by_side
from engines.shared.loader import epoch_batches
from engines.shared.losses import cross_entropy
from engines.shared.run import Run
from engines.shared.scoring import (
    MarginTracker,
    normalized_probs,
    test_time_margin,
    trust_from_evidence,
)

__all__ = ["CoteachingConfig", "parts", "train", "train_part"]


# --- the algorithm ----------------------------------------------------------------------------------------


class Learners:
    """Two networks that teach each other under one R(t), or one network of the variants without a partner.

    All random draws are named by (seed, stream, epoch): an epoch is the same whether or not the run was
    interrupted before it, and trainings of one stream start alike and see the same batches.

    Args:
        run: the run.
        config: its config.
        keep_rates: (E,) R of each epoch.
        rows: int64 rows to train on, all labeled; where they are not on the device they are moved there.
        stream: names this training's random draws.
        transition: T (K, K) of F-correction's second training.
        is_final: this is the long training: compile it if asked to, and keep the area under the margin.
    """

    def __init__(
        self,
        run: Run,
        config: CoteachingConfig,
        keep_rates: NDArray[np.float64],
        rows: Tensor,
        stream: tuple[int | str, ...],
        *,
        transition: Tensor | None = None,
        is_final: bool = False,
    ) -> None:
        self.run, self.config, self.keep_rates = run, config, keep_rates
        self._rows, self._stream = rows.to(run.device), stream
        self._trusted = run.rows_where(run.data.trusted_mask)
        weight = run.data.trusted_weight
        self._trusted_weight = None if weight is None else torch.from_numpy(weight.copy()).to(run.device)
        self.augment = run.rows.resolve_augment(config.augment)
        self._transition = None if transition is None else transition.to(run.device)
        self.networks = [
            build_learner(run, config, *stream, "network", g) for g in range(config.num_networks)
        ]
        self._calls = [
            compiled(network, enabled=config.compile and is_final, device=run.device)
            for network in self.networks
        ]
        self._optimizers = [_make_optimizer(network, config) for network in self.networks]
        num_tracked = config.num_networks if is_final else 0
        self.trackers = [MarginTracker(run.data.num_samples, run.device) for _ in range(num_tracked)]
        self._steps = 0

    def run_epoch(self, epoch: int) -> EpochOutcome:
        """Train one pass (E epochs in all, ``epoch`` 0-based).

        Raises:
            EngineError: the loss is no longer finite.
        """
        run, config = self.run, self.config
        self._set_rates(epoch)
        order = make_generator(run.seed, *self._stream, "order", epoch)
        moves = make_generator(run.seed, *self._stream, "augment", epoch, device=run.device)
        size = config.batch_size_for(len(self._rows))
        batches = epoch_batches(self._rows, size, order, drop_last=config.drop_last)
        log = EpochLog(run.data.num_samples, run.device)
        with seeded_init(run.seed, *self._stream, "dropout", epoch):
            for rows in itertools.islice(batches, config.max_batches):
                self._step(rows, self.inputs(rows, moves), epoch, log)
        return log.outcome()

    def inputs(self, rows: Tensor, moves: torch.Generator | None = None) -> Tensor:
        """Images of ``rows`` as the networks take them; moved at random where a generator is given."""
        images = self.run.inputs(rows, self.augment, moves)
        return images.contiguous(memory_format=torch.channels_last) if images.dim() == 4 else images

    def _step(self, rows: Tensor, images: Tensor, epoch: int, log: EpochLog) -> None:
        labels = self.run.labels[rows]
        # 1. Both networks look at the same batch: the loss of every sample, Eq. (1).
        logits = self._forward(images)
        losses = torch.stack([self._losses(one, labels, epoch) for one in logits])  # (G, B)
        # 2. Each picks the R(t) share of small losses, and learns from what its partner picked, Eq. (2).
        predictions = torch.stack([one.detach().argmax(dim=1) for one in logits])
        choice = self._choose(rows, images, labels, losses, predictions, epoch)
        # 3. Each takes a step on the mean loss of what it was given, Eq. (3).
        self._learn(rules.mean_loss(losses, choice, divide_twice=self.config.legacy_loss_scale), choice)
        self._steps += 1
        log.add(rows, losses.detach(), choice, predictions == labels)
        for tracker, one in zip(self.trackers, logits, strict=False):
            tracker.update(rows, one, labels)

    def _forward(self, images: Tensor) -> list[Tensor]:
        """Logits (B, K) of every network."""
        with autocast(self.config.precision, self.run.device):
            logits = [call(images)[1] for call in self._calls]
        return [one if one.dtype == torch.float64 else one.float() for one in logits]

    def _losses(self, logits: Tensor, labels: Tensor, epoch: int) -> Tensor:
        """Loss of each sample (B,): cross-entropy, or the variant's own."""
        if self._transition is not None:
            return rules.forward_corrected_loss(logits, labels, self._transition)
        if self.config.legacy_plus and self._is_plus_phase(epoch):
            return rules.double_softmax_loss(logits, labels)
        return cross_entropy(logits, labels)

    def _choose(
        self, rows: Tensor, images: Tensor, labels: Tensor, losses: Tensor, predictions: Tensor, epoch: int
    ) -> Choice:
        """Who learns from what, by variant."""
        config, keep_rate = self.config, float(self.keep_rates[epoch])
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
        if self.config.variant in ("coteaching_plus", "decoupling", "reweight"):
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
        config = self.config
        return config.variant == "coteaching_plus" and epoch >= config.plus_start_epoch

    def _draw_meta_rows(self, judged: Tensor) -> Tensor:
        """A fresh batch of trusted samples for L2RW, none of them in the batch that it judges."""
        run = self.run
        draw = make_generator(run.seed, *self._stream, "meta", self._steps, device=run.device)
        return draw_meta_batch(
            self._trusted, run.labels, judged, self.config.batch_size, draw, weight=self._trusted_weight
        )

    def _meta_alignment(self, images: Tensor, labels: Tensor, meta_rows: Tensor) -> Tensor:
        """L2RW's <grad l_i, grad meta loss> of a batch against trusted samples: (B,)."""
        run = self.run
        identity = torch.eye(run.data.num_classes, device=run.device)
        targets = identity[run.labels[meta_rows]]
        return rules.meta_alignment(
            self.networks[0], images, identity[labels], self.inputs(meta_rows), targets
        )

    def _set_rates(self, epoch: int) -> None:
        config, num_epochs = self.config, len(self.keep_rates)
        for optimizer in self._optimizers:
            set_learning_rate(optimizer, config.learning_rate_of(epoch, num_epochs))
            if config.optimizer == "adam":
                for group in optimizer.param_groups:
                    group["betas"] = config.adam_betas_of(epoch, num_epochs)

    @torch.no_grad()
    def evaluate(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and correctness of every network in evaluation mode: (G, n) each, on the CPU."""
        run = self.run
        for network in self.networks:
            network.eval()
        losses, correct = [], []
        for part in rows.to(run.device).split(run.scoring_batch):
            images, labels = self.inputs(part), run.labels[part]
            with autocast(self.config.precision, run.device):
                logits = [call(images)[1] for call in self._calls]
            losses.append(torch.stack([cross_entropy(one, labels) for one in logits]))
            correct.append(torch.stack([one.argmax(dim=1) == labels for one in logits]))
        for network in self.networks:
            network.train()
        return torch.cat(losses, dim=1).cpu(), torch.cat(correct, dim=1).cpu()

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


def build_learner(run: Run, config: CoteachingConfig, *stream: int | str) -> nn.Module:
    """A fresh network, initialised from the named stream."""
    network = run.build_network(*stream, width=config.width)
    if not config.dropout:
        for part in network.modules():
            if isinstance(part, nn.modules.dropout._DropoutNd):
                part.p = 0.0
    # Convolutions run about a quarter faster on channels-last tensors (conv3, one CPU thread).
    return network.to(memory_format=torch.channels_last)


def _make_optimizer(network: nn.Module, config: CoteachingConfig) -> torch.optim.Optimizer:
    """Adam or SGD; the loop sets their learning rate every epoch."""
    parameters = parameter_groups(network, config)
    if config.optimizer == "adam":
        return optimizers.Adam(parameters, lr=0.0, eps=1e-8, weight_decay=config.weight_decay, fused=True)
    return optimizers.SGD(parameters, lr=0.0, momentum=0.9, weight_decay=config.weight_decay)


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


def parts(data: TrainingData, config: CoteachingConfig, *, seed: int = 0) -> tuple[Part, ...]:
    """The warm-ups and trials of the search (``engines.contract.Parts``); none of several trainings."""
    if config.trainings_for(data.num_samples, on_features=data.features is not None) > 1:
        return ()
    return search_parts(config, has_split=split_rows(data, config, seed) is not None)


@memory_errors_explained()
def train_part(
    data: TrainingData,
    config: CoteachingConfig,
    part: str,
    before: Mapping[str, Mapping[str, Any]],
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> dict[str, Any]:
    """Train one warm-up or trial of the search (``engines.contract.TrainPart``).

    Raises:
        EngineInputError: as ``train``.
    """
    run, search = _begin(data, config, seed, device, on_epoch, checkpoint, part=part)
    state = run.resume(next(each.epochs for each in search.parts if each.name == part))
    if state is not None:
        search.current = state["current"]
    search.done = {name: dict(done) for name, done in before.items()}
    save = (lambda: run.save({"current": search.current})) if run.keeps_checkpoints else None
    left = search.train(part, run.recorder, save)
    return left | {"recorder": run.recorder.state_dict()}


@memory_errors_explained()
@averaged("coteaching")
def train(
    data: TrainingData,
    config: CoteachingConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
    before: Mapping[str, Mapping[str, Any]] | None = None,
) -> EngineResult:
    """Search R(t), train a pair of networks under it, and rank every given label.

    ``before``: what ``train_part`` returned for all ``parts``, by name; None: they are done here.

    Raises:
        EngineInputError: nothing to learn from, a network that cannot take these images, or ``reweight``
            without trusted samples.
    """
    run, search = _begin(data, config, seed, device, on_epoch, checkpoint)

    # 1. Go on where an earlier run of the same work stopped, or where its parts did.
    state = run.resume(search.total_epochs + len(config.stages) * config.epochs)
    if state is not None:
        search.done, search.current = state["search"]["done"], state["search"]["current"]
    elif before is not None:
        search.done = {name: dict(done) for name, done in before.items()}
        run.recorder.follow([search.done[part.name].pop("recorder") for part in search.parts])

    # 2. Find R(t).
    schedule = search.run(
        run.recorder,
        (lambda: run.save({"search": _searched(search), "train": None})) if run.keeps_checkpoints else None,
    )
    search.forget_networks()

    # 3. Train under it from scratch, on every labeled sample.
    learners, tally = _train_final(
        run, config, schedule.keep_rates, _searched(search), None if state is None else state["train"]
    )

    # 4. Score every sample with both networks.
    scores = [run.score(network, views=config.views) for network in learners.networks]
    log_probs = [one.log_probs for one in scores]
    mean = np.asarray(np.mean([normalized_probs(one) for one in log_probs], axis=0, dtype=np.float32))
    probs = (mean / mean.sum(axis=1, keepdims=True)).astype(np.float32)
    margin = np.mean([test_time_margin(one, data.given_labels) for one in log_probs], axis=0)
    warnings = _warnings(config, schedule, data.given_labels, probs)
    return run.result(
        pred_probs=probs,
        trust_score=trust_from_evidence(margin, area_under_margin(learners, data.labeled)),
        signals={
            name: np.where(data.labeled, values, np.float32("nan"))
            for name, values in tally.signals().items()
        },
        # The two networks share no axes, so their features lie side by side.
        embeddings=side_by_side([one.embeddings for one in scores]),
        notes=_notes(run, config, schedule, learners) | {"warnings": warnings},
    )


def _begin(
    data: TrainingData,
    config: CoteachingConfig,
    seed: int,
    device: str,
    on_epoch: OnEpoch | None,
    checkpoint: Checkpoint | None,
    *,
    part: str | None = None,
) -> tuple[Run, ScheduleSearch]:
    """The run, or that of one part alone, and its search with nothing done."""
    run = Run(
        "coteaching" if part is None else f"coteaching {part}",
        data,
        config,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        standardized=config.standardize,
    )
    if config.variant == "reweight" and not data.trusted_mask.any():
        raise EngineInputError(
            "variant 'reweight' learns its weights from trusted samples and there are none; "
            "verify some labels first or use another variant."
        )
    search = ScheduleSearch(
        config,
        split_rows(data, config, seed),
        run.labeled,
        seed,
        begin=lambda curve, rows, repeat: Learners(run, config, curve, rows, ("search", repeat)),
    )
    return run, search


def _searched(search: ScheduleSearch) -> dict[str, Any]:
    """What a checkpoint keeps of the search."""
    return {"done": search.done, "current": search.current}


def _train_final(
    run: Run,
    config: CoteachingConfig,
    keep_rates: NDArray[np.float64],
    search: dict[str, Any],
    state: dict[str, Any] | None,
) -> tuple[Learners, Tally]:
    """The training whose networks judge, or what is left of it by ``state``; and what was counted meanwhile.

    F-correction trains twice: a plain network that estimates T, then the corrected one. ``search`` is the state of
    the finished search, for checkpoints.
    """
    rows = run.labeled
    first, transition = (state["stage"], state["transition"]) if state else (0, None)
    for stage in range(first, len(config.stages)):
        learners = Learners(
            run, config, keep_rates, rows, ("train", stage), transition=transition, is_final=True
        )
        tally, start = Tally(run.data.num_samples), 0
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
                tally.count_ranks(
                    np.flatnonzero(run.data.labeled), learners.evaluate(rows)[0].numpy(), keep_rate
                )
            run.epoch(
                epoch,
                losses,
                metrics | run.heldout_accuracy(*learners.networks),
                epoch_signals(outcome, run.data.labeled),
                stage=config.stages[stage],
                state=partial(_kept, search, stage, epoch + 1, learners, tally, transition),
            )
        if config.stages[stage] == "estimate":
            scores = run.score(learners.networks[0])
            transition = rules.estimate_transition(torch.from_numpy(scores.pred_probs[run.data.labeled]))
    return learners, tally


def _kept(
    search: dict[str, Any],
    stage: int,
    epoch: int,
    learners: Learners,
    tally: Tally,
    transition: Tensor | None,
) -> dict[str, Any]:
    """What a checkpoint keeps of the final training after ``epoch`` epochs of a stage."""
    counts = {"stage": stage, "epoch": epoch, "transition": transition}
    return {
        "search": search,
        "train": counts | {"learners": learners.state_dict(), "tally": tally.state_dict()},
    }


# --- the result -------------------------------------------------------------------------------------------


def area_under_margin(learners: Learners, labeled: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Mean over the networks of the margin averaged over training, (N,); NaN where unlabeled."""
    area = np.mean([tracker.margin() for tracker in learners.trackers], axis=0)
    # drop_last and max_batches can leave a sample unvisited: it gets the middle of this ranking.
    if labeled.any() and np.isfinite(area).any():
        area = np.where(np.isnan(area), np.nanmedian(area), area)
    return np.where(labeled, area, np.nan)


def _notes(run: Run, config: CoteachingConfig, schedule: FoundSchedule, learners: Learners) -> dict[str, Any]:
    """The trained R(t) beside Co-teaching's default, how it was found, and what was chosen on the way."""
    notes: dict[str, Any] = {
        "network": run.network_name(),
        "augment": learners.augment,
        "variant": config.variant,
    }
    if not config.is_scheduled:
        return notes
    rate = schedule.noise_rate
    if rate is None:
        rate = estimate_noise_rate(learners.evaluate(run.labeled)[0].mean(dim=0))
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
