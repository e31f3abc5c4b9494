"""Noise model: who is given for whom, by the likelihood of the given labels, in seconds.

On features of a frozen network, a linear model of the true class and one matrix T of what each class is given as
are fitted together (``likelihood``). How far the start may drift and how many of the features' directions are read
is not set but weighed: models after 1, 2, 4 and 8 rounds, and on several numbers of directions, are averaged with
weights exp(sqrt(n) (l - best l)), where l is the mean log-likelihood of given labels that a model did not learn
from. Five folds judge every label by models that never saw it.

It finds errors with a pattern that robust training does not see (one class given for another), and says how many
labels are wrong; where errors depend on the picture and not on its class, it guesses too few.

Above ``rows_to_fit`` samples the models are fitted on a draw of them and judge all. Memory: the draw's features and
four (n, K) float32 arrays on the device, and N (2 K + d) float32 in main memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.contract import (
    Checkpoint,
    EngineInputError,
    EngineResult,
    OnEpoch,
    Provenance,
    TrainingData,
)
from engines.noise_model.likelihood import (
    PENALTY,
    STEPS,
    Model,
    discriminant_starts,
    joint,
    maximise,
)
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.components import Components, principal_components
from engines.shared.config import at_least, check_preset
from engines.shared.device import (
    describe_device,
    memory_errors_explained,
    peak_memory_bytes,
    resolve_device,
    versions,
)
from engines.shared.large import ROWS_AT_ONCE
from engines.shared.recording import Recorder
from engines.shared.selection import deal_by_class
from engines.shared.work import Work

ROUNDS = (1, 2, 4, 8)
"""Of the start; no single number is right on every set ."""
FIRST_ROUNDS = 2
"""With which the numbers of directions are compared."""
DIMENSIONS = (16, 32, 64, 128)
"""Directions that are tried; all of them where the features have fewer than the largest."""
ROWS_TO_CHOOSE = 10_000
"""Rows on which ``best_dimension`` compares."""
CELLS = 4_000_000
MANY_CLASSES = 200
"""Above so many, starts alone are compared and one is fitted: see ``_in_turn``."""
FIT_PASSES, FIT_ROWS = 18, 2_500
"""Passes of a row through a head that a fit takes as long as, and rows that it takes as long as beside its own:
calls of small kernels (3,410 photos, one core; features that are easily told apart are done in half the steps)."""


@dataclass(frozen=True, kw_only=True)
class NoiseModelConfig:
    """Settings of the noise model."""

    folds: int = 5
    """Parts of the rows, 2 or more; each is judged by models that did not learn from it."""
    rows_to_fit: int | None = None
    """Most rows that a model learns from. None: 50,000, fewer with hundreds of classes (20 a class at least)."""
    penalty: float = PENALTY
    """Of moving away from the start, in rows; 0 or more."""
    steps: int = STEPS
    """Steps of the search, 1 or more."""

    def __post_init__(self) -> None:
        problems = [*at_least(self, 2, "folds"), *at_least(self, 0, "penalty"), *at_least(self, 1, "steps")]
        if self.rows_to_fit is not None:
            problems += at_least(self, 2 * self.folds, "rows_to_fit")
        if problems:
            raise EngineInputError(f"NoiseModelConfig: {'; '.join(problems)}.")

    @property
    def network(self) -> str:
        """Return what a head of one layer is called."""
        return "linear"

    @classmethod
    def preset(cls, name: str) -> NoiseModelConfig:
        """Return the same settings for all three."""
        check_preset(name)
        return cls()

    def for_features(self) -> NoiseModelConfig:
        """Return it unchanged: it works on features only."""
        return self

    def rows_for(self, num_classes: int) -> int:
        """Return the most rows that a model learns from."""
        if self.rows_to_fit is not None:
            return self.rows_to_fit
        return min(50_000, max(CELLS // num_classes, 20 * num_classes))

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        """Return the fits of all folds, counted in passes of a head."""
        del on_features
        fits = 1.25 if num_classes > MANY_CLASSES else len(DIMENSIONS) + len(ROUNDS) - 1
        rows = FIT_ROWS + min(num_rows, self.rows_for(num_classes))
        return Work(0, FIT_PASSES * fits * self.folds * rows)

    def as_dict(self) -> dict[str, Any]:
        """Return every field as plain values."""
        return {name: getattr(self, name) for name in ("folds", "rows_to_fit", "penalty", "steps")}


class Candidate(NamedTuple):
    """One model of several that are averaged."""

    dimension: int
    """Directions that it reads."""
    rounds: int
    """Of its start."""
    steps: int
    """Of the search from there; 0: the start itself."""


@dataclass
class _Fitted:
    """The models of a candidate, one a fold, and what they make of labels that they did not learn from."""

    candidate: Candidate
    models: list[Model]
    log_likelihood: float
    """Mean over the drawn rows, each judged by the fold that did not learn from it."""


@memory_errors_explained()
def train(
    data: TrainingData,
    config: NoiseModelConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Fit the noise model out of fold and judge every given label by its posterior.

    Trusted rows count as known to be right. Unlabeled rows, and those that no model learned from, are judged by the
    mean of all folds.

    Raises:
        EngineInputError: images instead of features, no labels or one class, or fewer labeled rows than folds.
    """
    data.require_labels()
    if data.features is None:
        raise EngineInputError("the noise model needs features; give a backbone, or leave this engine out.")
    place = resolve_device(device)
    components = principal_components(data.features, max(DIMENSIONS))
    bench = _Bench(data, config, components, seed, place)
    is_many = data.num_classes > MANY_CLASSES
    total = config.folds * (len(bench.dimensions) + len(ROUNDS) - 1 + is_many)
    recorder = Recorder(on_epoch, data.num_samples, total)
    fingerprint = run_fingerprint("noise_model", config, seed, data, place)
    state = load_state(checkpoint, fingerprint)
    if state is not None:
        recorder.load_state_dict(state["recorder"])
    kept = {} if state is None else state["fits"]

    # 1. Which number of directions explains labels that were not learned best; 2. how far the start may drift.
    fitted: list[_Fitted] = []
    for candidate in _in_turn(bench.dimensions, fitted, config.steps, is_many=is_many):
        models, heldout = [], 0.0
        for fold in range(config.folds):
            name = f"{candidate.dimension} {candidate.rounds} {candidate.steps} {fold}"
            if name in kept:
                model = Model(*(tensor.to(place) for tensor in kept[name]))
            else:
                model = bench.fit(candidate, fold)
                kept[name] = [tensor.cpu() for tensor in model]
            models.append(model)
            heldout += bench.log_likelihood(model, candidate, fold)
            done = len(fitted) * config.folds + fold
            if done >= len(recorder.history):
                recorder.epoch(
                    "fit",
                    done,
                    total,
                    {},
                    {},
                    save=None
                    if checkpoint is None
                    else lambda: save_state(
                        checkpoint, fingerprint, {"fits": kept, "recorder": recorder.state_dict()}
                    ),
                )
        fitted.append(_Fitted(candidate, models, heldout / bench.num_drawn))

    # 3. What all of them make of every row, or the one that was fitted.
    fitted = fitted[-1:] if is_many else fitted
    weights = weights_of([one.log_likelihood for one in fitted], bench.num_drawn)
    verdict = bench.judge(fitted, weights)
    best = max(fitted, key=lambda one: one.log_likelihood)
    return EngineResult(
        pred_probs=verdict.pred_probs,
        trust_score=verdict.posterior,
        signals={"posterior": verdict.posterior},
        signal_history={},
        embeddings=components.of(data.features)[:, : best.candidate.dimension],
        history=recorder.history,
        provenance=Provenance(
            engine="noise_model",
            config=config.as_dict(),
            seed=seed,
            device=describe_device(place),
            versions=versions(),
            seconds=recorder.seconds,
            peak_memory_bytes=peak_memory_bytes(place),
            notes={
                "rows_fitted": bench.num_drawn,
                "dimension": best.candidate.dimension,
                "heldout_log_likelihood": {
                    f"{one.candidate.dimension} directions, {one.candidate.rounds} rounds": one.log_likelihood
                    for one in fitted
                },
                "weights": [float(weight) for weight in weights],
            },
        ),
        is_out_of_sample=True,
    )


def best_dimension(
    features: NDArray[np.floating],
    given_labels: NDArray[np.int64],
    num_classes: int,
    dimensions: tuple[int, ...] = DIMENSIONS,
    *,
    seed: int = 0,
) -> int:
    """Return how many of the first directions explain given labels best that a model did not learn from.

    Args:
        features: (N, D) or (N, V, D), columns in the order of their spread (``principal_components``).
        given_labels: (N,) int in {-1, 0..K-1}.
        num_classes: K.
        dimensions: rising; those above D count as D.
        seed: of the folds and, above ``ROWS_TO_CHOOSE`` rows, of the draw.

    Raises:
        EngineInputError: no labels or one class, or fewer labeled rows than five.
    """
    table = features[:, None] if features.ndim == 2 else features
    data = TrainingData(None, given_labels, num_classes, features=table)
    data.require_labels()
    config = NoiseModelConfig(rows_to_fit=ROWS_TO_CHOOSE)
    steps = 0 if num_classes > MANY_CLASSES else STEPS // 2
    bench = _Bench(data, config, Components.of_columns(table.shape[2]), seed, torch.device("cpu"), dimensions)
    found = {}
    for dimension in bench.dimensions:
        candidate = Candidate(dimension, FIRST_ROUNDS, steps)
        found[dimension] = sum(
            bench.log_likelihood(bench.fit(candidate, fold), candidate, fold) for fold in range(config.folds)
        )
    return max(found, key=found.__getitem__)


def guess_noise_rate(data: TrainingData, *, seed: int = 0) -> float:
    """Return the share of wrong labels that it guesses, 0 to 1: of a draw of ``ROWS_TO_CHOOSE`` rows at most.

    Raises:
        EngineInputError: images instead of features, no labels or one class, or fewer labeled rows than five.
    """
    data.require_labels()
    if data.features is None:
        raise EngineInputError(
            "the share of wrong labels is guessed from features of a backbone, not from images."
        )
    labeled = np.random.default_rng(seed).permutation(np.flatnonzero(data.labeled))
    rows = np.sort(labeled[:ROWS_TO_CHOOSE])
    drawn = TrainingData(
        None,
        data.given_labels[rows],
        data.num_classes,
        features=data.features[rows],
        trusted=data.trusted_mask[rows],
    )
    return float(np.mean(1 - train(drawn, NoiseModelConfig(), seed=seed, device="cpu").trust_score))


def weights_of(log_likelihoods: list[float], num_rows: int) -> NDArray[np.float64]:
    """Return exp(sqrt(n) (l - best l)), summing to 1: what each of several models counts."""
    found = np.array(log_likelihoods)
    weights = np.exp(np.sqrt(num_rows) * (found - found.max()))
    return weights / weights.sum()


def _in_turn(
    dimensions: Sequence[int], fitted: list[_Fitted], steps: int, *, is_many: bool
) -> Iterator[Candidate]:
    """Yield the numbers of directions, then the other numbers of rounds with the one that ``fitted`` found best.

    With many classes these are starts alone, and the best comes last, to be fitted: there a fit takes thirty times
    as long as its start, and all of them find no more (benchmarks/results/noise_model.md).
    """
    tried = 0 if is_many else steps
    yield from (Candidate(dimension, FIRST_ROUNDS, tried) for dimension in dimensions)
    best = max(fitted, key=lambda one: one.log_likelihood).candidate.dimension
    yield from (Candidate(best, rounds, tried) for rounds in ROUNDS if rounds != FIRST_ROUNDS)
    if is_many:
        yield max(fitted, key=lambda one: one.log_likelihood).candidate._replace(steps=steps)


class _Verdict(NamedTuple):
    pred_probs: NDArray[np.float32]
    """(N, K) P(true class | picture)."""
    posterior: NDArray[np.float32]
    """(N,) P(given class is the true one | picture, given); NaN where unlabeled."""


class _Bench:
    """The rows as the models read them, and the folds."""

    def __init__(
        self,
        data: TrainingData,
        config: NoiseModelConfig,
        components: Components,
        seed: int,
        device: torch.device,
        dimensions: tuple[int, ...] = DIMENSIONS,
    ) -> None:
        assert data.features is not None
        self._data, self._config, self._components, self._device = data, config, components, device
        self._fold_of = deal_by_class(data.given_labels, config.folds, seed=seed, name="folds")
        labeled = np.flatnonzero(data.labeled)
        most = config.rows_for(data.num_classes)
        if len(labeled) > most:
            drawn = np.random.default_rng(seed).permutation(labeled)[:most]
            left_out = np.ones(data.num_samples, dtype=bool)
            left_out[drawn] = False
            self._fold_of[left_out] = -1
        drawn = np.flatnonzero(self._fold_of >= 0)
        self.num_drawn = len(drawn)
        size = components.num_directions
        self.dimensions = sorted({min(dimension, size) for dimension in dimensions})
        rows = torch.from_numpy(components.of(data.features[drawn])).to(device)
        self._scales = {dimension: float(rows[:, :dimension].std()) or 1.0 for dimension in self.dimensions}
        """Each number of directions is read on its own common scale."""
        self._rows = rows
        self._given = torch.from_numpy(data.given_labels[drawn]).to(device)
        self._known = torch.from_numpy(data.trusted_mask[drawn]).to(device)
        self._fold = torch.from_numpy(self._fold_of[drawn]).to(device)
        self._starts: dict[tuple[int, int], dict[int, Model]] = {}

    def _read(self, rows: Tensor, dimension: int) -> Tensor:
        return rows[:, :dimension] / self._scales[dimension]

    def fit(self, candidate: Candidate, fold: int) -> Model:
        """Fit a candidate on all drawn rows but those of ``fold``."""
        learns = self._fold != fold
        rows, given = self._read(self._rows[learns], candidate.dimension), self._given[learns]
        known = self._known[learns]
        (start,) = discriminant_starts(rows, given, self._data.num_classes, (candidate.rounds,), known=known)
        if not candidate.steps:
            return start
        return maximise(start, rows, given, known=known, penalty=self._config.penalty, steps=candidate.steps)

    def log_likelihood(self, model: Model, candidate: Candidate, fold: int) -> float:
        """Sum over the drawn rows of ``fold``."""
        judged = self._fold == fold
        rows = self._read(self._rows[judged], candidate.dimension)
        found = joint(model, rows, self._given[judged]).sum(1)
        return float(found.clamp_min(torch.finfo(torch.float32).tiny).log().double().sum())

    def judge(self, fitted: list[_Fitted], weights: NDArray[np.float64]) -> _Verdict:
        """Judge every row, each by the models that did not learn from it."""
        data = self._data
        assert data.features is not None
        probs = np.zeros((data.num_samples, data.num_classes), dtype=np.float32)
        posterior = np.full(data.num_samples, np.nan, dtype=np.float32)
        for start in range(0, data.num_samples, ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            rows = torch.from_numpy(self._components.of(data.features[part])).to(self._device)
            labels = data.given_labels[part]
            given = torch.from_numpy(np.maximum(labels, 0)).to(self._device)
            fold_of = torch.from_numpy(self._fold_of[part]).to(self._device)
            predicted, right = self._mean(fitted, weights, rows, given, fold_of)
            probs[part] = predicted.cpu().numpy()
            posterior[part] = np.where(labels >= 0, right.cpu().numpy(), np.float32("nan"))
        return _Verdict(probs, posterior)

    def _mean(
        self,
        fitted: list[_Fitted],
        weights: NDArray[np.float64],
        rows: Tensor,
        given: Tensor,
        fold_of: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """(n, K) mean prediction and (n,) mean posterior of the given class."""
        predicted = torch.zeros(len(rows), self._data.num_classes, device=rows.device)
        right = torch.zeros(len(rows), device=rows.device)
        for fold in range(self._config.folds):
            judged = torch.nonzero((fold_of == fold) | (fold_of == -1))[:, 0]
            share = torch.where(fold_of[judged] == -1, 1.0 / self._config.folds, 1.0)
            for one, weight in zip(fitted, weights, strict=True):
                model, read = one.models[fold], self._read(rows[judged], one.candidate.dimension)
                own = model.true_probs(read)
                shares = own * model.transition.T[given[judged]]
                at = shares.gather(1, given[judged][:, None])[:, 0]
                total = shares.sum(1).clamp_min(torch.finfo(torch.float32).tiny)
                predicted[judged] += float(weight) * share[:, None] * own
                right[judged] += float(weight) * share * at / total
        return predicted / predicted.sum(1, keepdim=True), right.clamp(0, 1)
