"""Finds R(t) for a dataset: trains the trials that S2E's search asks for, and can be killed at any epoch.

The objective is accuracy: on trusted samples where there are enough, else on held-out given labels; the validation
loss of Eq. 2 chooses "drop nothing" on held-out labels (measured). The evaluation set plays no part. All trials
start from one common warm-up (same networks, same R = 1 epochs, trained once) and see the same batches. The engine
hands in how a training begins and gets back a curve and an account of the search.

Letters: N samples, T trials, E epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.s2e import Trial, draw
from engines.coteaching.schedules import S2E_SPACE, FloatArray, ScheduleSpace
from engines.coteaching.signals import EpochOutcome
from engines.shared.device import derive_seed, make_generator
from engines.shared.recording import Recorder
from engines.shared.selection import gmm_small_loss_probability

MIN_SEARCH_ROWS = 40
"""Fewest labeled samples that a search can split."""
MIN_TRUSTED = 100
"""With so many trusted samples the search maximises their accuracy and trials do not train on them, and on no more
than the other nine tenths of ``search_rows``. With fewer it is the accuracy on held-out given labels: a tenth of
them, and what ``search_rows`` leaves over (5,000 at most). The final training uses every labeled sample."""

LEAST_MEASURED_KEEP_RATE = 0.25
"""Dropping more than three quarters was never measured to be harmless."""

CONCENTRATED = 0.6
"""Share of a class's differing predictions on one other class from which errors look like flips of pairs."""
MIN_DIFFERING = 20
"""Differing predictions that a class needs to be looked at."""


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows trials train on, and which measure them."""

    train: Tensor
    """int64 rows."""
    validation: Tensor
    """int64 rows, disjoint from ``train``."""
    source: str
    """``"trusted samples"`` or ``"held-out given labels"``."""
    weight: Tensor | None = None
    """float64, positive: how many samples each row of ``validation`` stands for; None = all the same."""

    @property
    def num_equal_rows(self) -> int:
        """Rows of equal weight that ``validation`` is worth (Kish 1965)."""
        if self.weight is None:
            return len(self.validation)
        return max(1, round(float(self.weight.sum() ** 2 / (self.weight**2).sum())))


def split_rows(data: TrainingData, config: CoteachingConfig, seed: int) -> Split | None:
    """Divide the labeled rows for the search; None where there are too few to search on.

    The final training uses all of them again.
    """
    labeled = np.flatnonzero(data.labeled)
    trusted = np.flatnonzero(data.trusted_mask)
    shuffled = torch.from_numpy(labeled)[
        torch.randperm(len(labeled), generator=make_generator(seed, "search", "split"))
    ]
    enough = len(trusted) >= MIN_TRUSTED
    if len(labeled) < MIN_SEARCH_ROWS or (enough and len(labeled) - len(trusted) < MIN_SEARCH_ROWS // 2):
        return None
    if enough:
        is_trusted = torch.from_numpy(data.trusted_mask.copy())
        most, _ = config.search_size(len(labeled), len(trusted))
        train, validation = shuffled[~is_trusted[shuffled]], torch.from_numpy(trusted)
        source = "trusted samples"
    else:
        most, count = config.search_size(len(labeled))
        train, validation = shuffled[count:], shuffled[:count].sort().values
        source = "held-out given labels"
    weight = None
    if enough and data.trusted_weight is not None:
        weight = torch.from_numpy(data.trusted_weight[validation.numpy()]).double()
    return Split(train[:most].sort().values, validation, source, weight)


@dataclass(frozen=True, eq=False)
class FoundSchedule:
    """The curve to train with, and what a screen shows about it."""

    keep_rates: FloatArray
    """(E,) R of every epoch of the final training."""
    noise_rate: float | None
    """Share of wrong labels that the losses suggest; None where there was no warm-up to look at."""
    notes: dict[str, Any]


class Training(Protocol):
    """What a trial is: Co-teaching's own loop over some rows, under some R(t)."""

    def run_epoch(self, epoch: int) -> EpochOutcome: ...
    def evaluate(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and correctness of each network on ``rows``: (2, n) each, on the CPU."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


Begin = Callable[[FloatArray, Tensor], Training]
"""(R of every epoch, rows to train on) -> a fresh training; all start alike."""


WARM_UP, ANCHOR, TRIAL = "warmup", "anchor", "trial"
"""Kinds of parts; the name of an anchor and a trial is its kind and number."""

State = dict[str, Any]
"""Plain values and tensors."""


@dataclass(frozen=True)
class Part:
    """One training of a search."""

    name: str
    stage: str
    """Of its epochs."""
    epochs: int
    """That it records."""


def warmup_epochs(config: CoteachingConfig, has_split: bool) -> int:
    """Epochs of the common warm-up; also where only its losses are needed. ``has_split``: there are rows enough."""
    if not config.is_searched:
        return 0
    return config.warmup_epochs if has_split else max(1, config.warmup_epochs)


def search_parts(config: CoteachingConfig, *, has_split: bool) -> tuple[Part, ...]:
    """Return what a search trains, in order: the warm-up, Eq. 4 at a few rates, each iteration's trials."""
    epochs = warmup_epochs(config, has_split)
    parts = [Part(WARM_UP, WARM_UP, epochs)] if epochs else []
    if config.is_searched and has_split:
        each, trials = config.search_epochs - epochs, config.search_iterations * config.search_samples
        parts += [Part(f"{ANCHOR}-{i}", "search", each) for i in range(len(config.anchors))]
        parts += [Part(f"{TRIAL}-{i}", "search", each) for i in range(trials)]
    return tuple(parts)


class ScheduleSearch:
    """One search: the warm-up, then trials.

    ``done`` holds what each part left, plain values and tensors by name, and ``current`` what a part in the middle
    of its work left after its last epoch. Given to a fresh search, it goes on from there.

    Args:
        config: how to search.
        split: the rows; None where nothing can be searched, which leaves Eq. 4 with an estimated noise rate.
        labeled: int64, all rows with a label: what the warm-up trains on where there is no search.
        seed: of the draws.
        begin: starts a training.
    """

    def __init__(
        self,
        config: CoteachingConfig,
        split: Split | None,
        labeled: Tensor,
        seed: int,
        begin: Begin,
    ) -> None:
        self._config, self._split, self._labeled, self._seed = config, split, labeled, seed
        self._begin = begin
        self._recorder: Recorder
        self._save: Callable[[], None] | None
        self.done: dict[str, State] = {}
        self.current: State | None = None
        self._anchor_space = ScheduleSpace(
            "anchor", ("noise_rate",), lambda x, t, _: config.coteaching_curve(float(x[0]), t)
        )

    # --- what it will cost ---

    @property
    def is_searching(self) -> bool:
        """Return whether trials will be trained at all."""
        return self._config.is_searched and self._split is not None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return what there is to train, in the order in which it is trained one after another."""
        return search_parts(self._config, has_split=self._split is not None)

    @property
    def total_epochs(self) -> int:
        """Epochs that the search records in all."""
        return sum(part.epochs for part in self.parts)

    # --- the search ---

    def run(self, recorder: Recorder, save: Callable[[], None] | None) -> FoundSchedule:
        """Search, or go on searching, and return the best schedule seen.

        ``recorder`` is told of every epoch; ``save`` writes a checkpoint of the whole run, if there is one.
        """
        self._recorder, self._save = recorder, save
        for part in self.parts:
            if part.name not in self.done:
                self._train(part)
        return self._found()

    def _train(self, part: Part) -> None:
        """Do one part, all before it being done."""
        kind, _, number = part.name.partition("-")
        if kind == WARM_UP:
            self.done[part.name] = self._train_warmup()
        elif kind == ANCHOR:
            rate = np.array([self._config.anchors[int(number)]])
            self.done[part.name] = self._train_trial(part, self._anchor_space, rate)
        else:
            samples = self._config.search_samples
            iteration, sample = divmod(int(number), samples)
            drawn = draw(
                S2E_SPACE,
                self._trials(TRIAL, iteration * samples),
                rule=self._config.search_rule,
                samples=samples,
                seed=derive_seed(self._seed, "search", "draws"),
            )
            self.done[part.name] = self._train_trial(part, S2E_SPACE, drawn[sample])
        self.current = None

    def forget_networks(self) -> None:
        """Drop the warm-ups' weights; the accuracies stay."""
        for done in self.done.values():
            done.pop("training", None)

    def _trials(self, kind: str, count: int) -> list[Trial]:
        done = [self.done[f"{kind}-{number}"] for number in range(count)]
        return [Trial(tuple(one["x"]), one["accuracy"]) for one in done]

    def _found(self) -> FoundSchedule:
        config = self._config
        noise_rate = config.noise_rate
        if noise_rate is None and WARM_UP in self.done:
            noise_rate = self.done[WARM_UP]["noise_rate"]
        if config.keep_rates is not None:
            return FoundSchedule(
                np.array(config.keep_rates), noise_rate, {"schedule_from": "the first training"}
            )
        if not self.is_searching:
            notes: dict[str, Any] = {"schedule_from": "Eq. 4"}
            if config.is_searched:
                notes["warning"] = "too few labeled samples to search R(t); Eq. 4 with an estimated rate"
            assert noise_rate is not None
            curve = config.coteaching_curve(noise_rate, np.arange(config.epochs, dtype=np.float64))
            return FoundSchedule(self._with_warmup(curve), noise_rate, notes)
        # The best ever seen; among equals the one that drops most.
        trials = self._trials(TRIAL, config.search_iterations * config.search_samples)
        return self._choose(self._trials(ANCHOR, len(config.anchors)), trials, noise_rate)

    def _train_warmup(self) -> State:
        """Train the common first epochs, R = 1, and look at the losses they leave."""
        config = self._config
        rows = self._split.train if self._split is not None else self._labeled
        length = config.search_epochs if self.is_searching else config.epochs
        num_epochs = warmup_epochs(config, self._split is not None)
        training = self._begin(np.ones(max(length, num_epochs)), rows)
        for epoch in range(self._resumed(WARM_UP, training), num_epochs):
            outcome = training.run_epoch(epoch)
            self._keep(WARM_UP, epoch, training)
            self._record(WARM_UP, epoch, outcome, {"keep_rate": 1.0})
        noise_rate = estimate_noise_rate(training.evaluate(rows)[0].mean(dim=0))
        return {"training": training.state_dict(), "noise_rate": noise_rate}

    def _train_trial(self, part: Part, space: ScheduleSpace, x: FloatArray) -> State:
        """Train under x and measure the validation accuracy."""
        assert self._split is not None
        config = self._config
        # The schedule of the full run, gone through in fewer epochs.
        curve = self._with_warmup(space.keep_rates(x, config.search_epochs, horizon=config.epochs))
        before = sum(each.epochs for each in self.parts[: self.parts.index(part)] if each.stage == part.stage)
        begins, measured = config.warmup_epochs, list[float]()
        training = self._begin(curve, self._split.train)
        start = self._resumed(part.name, training)
        if start:
            assert self.current is not None
            measured = list(self.current["measured"])
        elif begins:
            training.load_state_dict(self.done[WARM_UP]["training"])
        for epoch in range(start or begins, config.search_epochs):
            outcome = training.run_epoch(epoch)
            metrics = {"keep_rate": float(curve[epoch])}
            if epoch >= config.search_epochs - config.objective_epochs:
                # A small validation set is noisy: the last epochs are averaged.
                measured.append(self._accuracy(training))
                metrics["validation_accuracy"] = measured[-1]
            self._keep(part.name, epoch, training, measured=list(measured))
            self._record(part.stage, before + epoch - begins, outcome, metrics)
        return {"x": [float(value) for value in x], "accuracy": float(np.mean(measured))}

    def _keep(self, name: str, epoch: int, training: Training, **values: Any) -> None:
        """Keep where a part stands, for a checkpoint."""
        if self._save is not None:
            self.current = {"part": name, "epoch": epoch + 1, "training": training.state_dict(), **values}

    def _resumed(self, name: str, training: Training) -> int:
        """The epoch to go on with, 0 where nothing is kept of this part."""
        if self.current is None or self.current["part"] != name:
            return 0
        training.load_state_dict(self.current["training"])
        return int(self.current["epoch"])

    def _accuracy(self, training: Training) -> float:
        """Share of the validation rows classified as labeled: mean over the networks."""
        assert self._split is not None
        values = training.evaluate(self._split.validation)[1].double()
        if self._split.weight is not None:
            values = values * self._split.weight / self._split.weight.mean()
        return float(values.mean())

    def _with_warmup(self, curve: FloatArray) -> FloatArray:
        """The curve as it is trained: R = 1 in the first ``warmup_epochs``."""
        trained = curve.copy()
        trained[: self._config.warmup_epochs] = 1.0
        return trained

    def _record(self, stage: str, number: int, outcome: EpochOutcome, metrics: dict[str, float]) -> None:
        """Count one trained epoch of the search, save, and tell."""
        planned = sum(part.epochs for part in self.parts if part.stage == stage)
        metrics = metrics | {"train_accuracy": outcome.train_accuracy}
        self._recorder.epoch(stage, number, planned, {"train_loss": outcome.loss}, metrics, save=self._save)

    def _choose(
        self, anchors: Sequence[Trial], trials: Sequence[Trial], noise_rate: float | None
    ) -> FoundSchedule:
        """The candidate to train in full, and what the search did, in plain values."""
        assert self._split is not None
        config = self._config
        candidates = [
            *((trial, self._anchor_space) for trial in anchors),
            *((trial, S2E_SPACE) for trial in trials),
        ]
        curves = [
            self._with_warmup(space.keep_rates(np.array(trial.x), config.epochs))
            for trial, space in candidates
        ]
        accuracies = np.array([trial.accuracy for trial, _ in candidates])
        chosen = choose_schedule(
            accuracies,
            np.array(curves),
            num_validation=self._split.num_equal_rows,
            tie_margin=config.tie_margin,
        )
        trial, space = candidates[chosen]
        is_anchor = space is self._anchor_space
        means = accuracies[len(anchors) :].reshape(-1, config.search_samples).mean(axis=1)
        notes = {
            "schedule_from": f"Eq. 4 at {trial.x[0]:g}" if is_anchor else config.search_rule,
            "objective": f"accuracy on {self._split.source}",
            "num_validation": len(self._split.validation),
            "num_search_rows": len(self._split.train),
            "is_proxy": config.search_epochs < config.epochs or config.search_rows is not None,
            "best_accuracy": float(accuracies.max()),
            "chosen_accuracy": trial.accuracy,
            "chosen_parameters": dict(zip(space.parameters, trial.x, strict=True)),
            "trial_accuracies": [trial.accuracy for trial in trials],
            "anchor_accuracies": [trial.accuracy for trial in anchors],
            "iteration_means": means.tolist(),
        }
        return FoundSchedule(curves[chosen], noise_rate, notes)


def choose_schedule(
    accuracies: FloatArray, keep_rates: FloatArray, *, num_validation: int, tie_margin: float
) -> int:
    """Return which candidate to train: of those as accurate as the best, the one that drops most.

    Args:
        accuracies: (T,) validation accuracies in [0, 1].
        keep_rates: (T, E) curves.
        num_validation: samples that an accuracy was measured on.
        tie_margin: standard errors below the best that count as equal; 0 takes the most accurate.

    Returns:
        Index of the candidate. Curves that end below LEAST_MEASURED_KEEP_RATE win by accuracy only.
    """
    best = int(np.argmax(accuracies))
    if tie_margin == 0:
        return best
    error = np.sqrt(accuracies[best] * (1.0 - accuracies[best]) / max(num_validation, 1))
    equal = accuracies >= accuracies[best] - tie_margin * error
    equal &= keep_rates.min(axis=1) >= LEAST_MEASURED_KEEP_RATE
    if not equal.any():
        return best
    return int(np.argmin(np.where(equal, keep_rates.mean(axis=1), np.inf)))


def estimate_noise_rate(losses: Tensor) -> float:
    """Share of samples that a two-Gaussian split of their losses (N,) calls wrong, in [0, 0.99]."""
    clean = gmm_small_loss_probability(losses.double())
    return min(float(np.mean(clean < 0.5)), 0.99)


def concentrated_share(given: NDArray[np.int64], probs: NDArray[np.float32]) -> float:
    """Share of the judged classes whose differing predictions fall on one other class; 0 where none is judged.

    Args:
        given: (N,) int, -1 unlabeled.
        probs: (N, K) float, K > 2; two classes have only one other and say nothing.
    """
    if probs.shape[1] < 3:
        return 0.0
    predicted = probs.argmax(axis=1)
    differing = (given >= 0) & (predicted != given)
    counts = np.zeros((probs.shape[1], probs.shape[1]), dtype=np.int64)
    np.add.at(counts, (given[differing], predicted[differing]), 1)
    judged = counts[counts.sum(axis=1) >= MIN_DIFFERING]
    if not len(judged):
        return 0.0
    return float(np.mean(judged.max(axis=1) >= CONCENTRATED * judged.sum(axis=1)))
