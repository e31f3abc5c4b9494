"""What trust is computed from: the witnesses' opinions, the verified sample, and one pass over predictions.

A witness is anything with an opinion on every given label: an engine, or a user's own predicted
probabilities. The verified sample holds rows that were drawn at random and judged by a person who did not see
a suggestion. Both are plain arrays. Predictions of (N, K) may be memory maps larger than memory, so they
are only ever read in chunks of rows.

Letters: N samples, K classes, W witnesses, m verified rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.ground.errors import AuditFailedError, VerificationError
from auditor.statistics.strata import Stage

UNLABELED = -1
"""The given label of a sample that has none."""
NO_CLASS = -1
"""The true label of a verified row that belongs to no class; its given label is wrong."""
UNSURE = -2
"""The true label of a verified row whose judge could not tell; it widens every statement."""
CHUNK_CELLS = 4_000_000
"""Most cells of (N, K) predictions held in memory together: 16 MB of float32 a witness."""
LEAST_WEIGHT = 1e-6
"""Of a witness that counts nothing otherwise, in the mean prediction."""
SUM_TOLERANCE = 1e-2
"""How far a row of probabilities may be from 1; half precision needs some slack."""


@dataclass(frozen=True, eq=False)
class Witness:
    """One opinion on every given label."""

    name: str
    trust_score: NDArray[np.floating]
    """(N,) float, high = the given label looks right, NaN where it has no opinion. Only its order counts."""
    pred_probs: NDArray[np.floating] | None = None
    """(N, K) rows sum to 1, or a row of NaN where it has no opinion; array or memory map."""
    trunk: str | None = None
    """Name of the witness whose network's features it was trained on; None = on the images, or a backbone's."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Labels in question that people settled outside the draws; they are counted as they are."""

    sample_ids: NDArray[np.integer]
    """(k,) int, each once, none of them a verified row."""
    is_wrong: NDArray[np.bool_]
    """(k,) bool."""


@dataclass(frozen=True, eq=False)
class Verified:
    """Rows drawn at random among the labeled ones and judged blind, in the order of their draw."""

    sample_ids: NDArray[np.integer]
    """(m,) int, rows of the data set, each once."""
    true_labels: NDArray[np.integer]
    """(m,) int in 0..K-1, ``NO_CLASS`` (-1) where none fits, ``UNSURE`` (-2) where nobody could tell."""
    trusted: NDArray[np.bool_] | None = None
    """(m,) bool: this audit trained on the row as trusted, so the row may not calibrate this audit."""
    calibrates: NDArray[np.bool_] | None = None
    """(m,) bool, the half that calibrates as its draw fixed it; None = decided by position (see trust)."""
    is_watched: bool = False
    """True where the judge looked at the results before the sample was complete; intervals are then
    confidence sequences."""
    pool: NDArray[np.bool_] | None = None
    """(N,) bool, samples that could have been drawn; None = every labeled one. Rates and promises are about
    these."""
    treated: NDArray[np.bool_] | None = None
    """(N,) bool, samples that this audit trained on as trusted, corrected or excluded, drawn or not; None = none.
    Their trust says nothing about whether the draw was random."""
    backing: NDArray[np.bool_] | None = None
    """(m,) bool, rows of the one draw that promises rest on, judged to its end; None = all of them."""
    num_draws: int = 1
    num_waiting: int = 0
    """Drawn rows that wait for a verdict."""
    largest_draw: int = 0
    """Rows of the largest draw, judged or not, on which promises rest once nothing waits; 0 = there is one draw."""
    stages: tuple[Stage, ...] = ()
    """The draws in their order where one of them looked at a head more often; empty = all rows together are a
    uniform sample of the pool."""
    backing_pool: NDArray[np.bool_] | None = None
    """(N,) bool, samples that the backing rows were drawn from uniformly; None = every drawable one."""
    backing_words: str = ""
    """What ``backing_pool`` is, in words; empty where promises are about every label."""
    strata: NDArray[np.int8] | None = None
    """(N,) of the first draw, where it is uniform: 0 where a ranking that stood before it thought the label wrong,
    1 where not, -1 outside the pool; None where no audit came before. They sharpen intervals (``rates``)."""
    decided: Decided | None = None

    @property
    def size(self) -> int:
        """Number of verified rows, m."""
        return len(self.sample_ids)

    @property
    def trusted_mask(self) -> NDArray[np.bool_]:
        """(m,) bool, all False when the audit trusted none of the rows."""
        return (
            np.zeros(self.size, dtype=bool) if self.trusted is None else np.asarray(self.trusted, dtype=bool)
        )

    @property
    def backing_mask(self) -> NDArray[np.bool_]:
        """(m,) bool, all True where nothing says which draw promises rest on."""
        return (
            np.ones(self.size, dtype=bool) if self.backing is None else np.asarray(self.backing, dtype=bool)
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """(m,) mean 1: how many labels a row stands for, the inverse of the chance with which it was drawn."""
        if not self.stages or not self.size:
            return np.ones(self.size)
        weights = np.zeros(self.size)
        for stage in self.stages:
            zone_of_row = stage.zones[self.sample_ids]
            for zones in ((0, 1), (2,)):  # both halves of a head are drawn alike
                rows = stage.rows & np.isin(zone_of_row, zones)
                # Draws are mixed by their sizes.
                weights[rows] = stage.rows.sum() * np.isin(stage.zones, zones).sum() / max(1, rows.sum())
        return weights / weights.mean()

    @property
    def is_unsure(self) -> NDArray[np.bool_]:
        """(m,) bool: the judge could not tell."""
        return np.asarray(self.true_labels) == UNSURE

    def is_wrong(self, given_labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(m,) bool: the given label was judged wrong; unsure rows are not."""
        return (np.asarray(self.true_labels) != given_labels[self.sample_ids]) & ~self.is_unsure

    def drawn_from(self, given_labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(N,) bool: the samples that statements from this draw are about."""
        labeled: NDArray[np.bool_] = np.asarray(given_labels) != UNLABELED
        return labeled if self.pool is None else labeled & np.asarray(self.pool, dtype=bool)

    def subset(self, rows: NDArray[np.bool_]) -> Verified:
        """Return only the rows of the (m,) mask."""

        def part(mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
            return None if mask is None else np.asarray(mask)[rows]

        return Verified(
            sample_ids=np.asarray(self.sample_ids)[rows],
            true_labels=np.asarray(self.true_labels)[rows],
            trusted=part(self.trusted),
            calibrates=part(self.calibrates),
            is_watched=self.is_watched,
            pool=self.pool,
            treated=self.treated,
            backing=part(self.backing),
            num_draws=self.num_draws,
            num_waiting=self.num_waiting,
            largest_draw=self.largest_draw,
            stages=tuple(stage.subset(rows) for stage in self.stages),
            backing_pool=self.backing_pool,
            backing_words=self.backing_words,
            strata=self.strata,
            decided=self.decided,
        )

    def check(self, given_labels: NDArray[np.integer], num_classes: int) -> None:
        """Refuse a sample that cannot belong to these labels.

        Raises:
            VerificationError: a row is unknown, doubled or unlabeled, or a true label is out of range.
        """
        ids, labels = np.asarray(self.sample_ids), np.asarray(self.true_labels)
        for name, array in (
            ("true_labels", labels),
            ("trusted", self.trusted),
            ("calibrates", self.calibrates),
            ("backing", self.backing),
        ):
            if array is not None and np.shape(array) != ids.shape:
                raise VerificationError(
                    f"{name} has {np.shape(array)} entries but {len(ids)} rows are verified."
                )
        _refuse_rows(ids, (ids < 0) | (ids >= len(given_labels)), f"is outside 0..{len(given_labels) - 1}")
        if len(np.unique(ids)) != len(ids):
            raise VerificationError("a verified sample occurs twice; a random sample has each row once.")
        _refuse_rows(
            ids, given_labels[ids] == UNLABELED, "has no given label; draw among the labeled samples"
        )
        for name, mask in (
            ("pool", self.pool),
            ("treated", self.treated),
            ("backing_pool", self.backing_pool),
            ("strata", self.strata),
            *(("zones of a draw", stage.zones) for stage in self.stages),
        ):
            if mask is not None and np.shape(mask) != np.shape(given_labels):
                raise VerificationError(f"{name} is {np.shape(mask)}, expected {np.shape(given_labels)}.")
        _refuse_rows(ids, ~self.drawn_from(given_labels)[ids], "was not in the pool that was drawn from")
        out_of_range = (labels < UNSURE) | (labels >= num_classes)
        _refuse_rows(
            ids, out_of_range, f"has a true label outside 0..{num_classes - 1}, -1 (none), -2 (unsure)"
        )


@dataclass(frozen=True, eq=False)
class Pooled:
    """What all predictions together say; everything here is (N,) or (K, K)."""

    num_voters: int
    """Witnesses that brought predictions."""
    given_probability: NDArray[np.float32]
    """(N,) mean probability of the given label; NaN where unlabeled or without predictions."""
    predicted_label: NDArray[np.int32]
    """(N,) most likely class of the mean, -1 without predictions."""
    predicted_probability: NDArray[np.float32]
    """(N,) its mean probability."""
    other_label: NDArray[np.int32]
    """(N,) most likely class that is not the given one (the predicted one where unlabeled); -1 without."""
    other_probability: NDArray[np.float32]
    """(N,) its mean probability."""
    num_speakers: NDArray[np.int16]
    """(N,) witnesses that have an opinion on the sample."""
    num_against: NDArray[np.int16]
    """(N,) witnesses whose own prediction differs from the given label."""
    soft_joint: NDArray[np.float64]
    """(K, K) [likely true, given]: sum of mean probabilities."""
    confident_joint: NDArray[np.float64]
    """(K, K) [likely true, given]: rows whose probability of a class reaches what that class's own rows have
    on average (confident learning, Northcutt et al. 2021, section 3)."""


def row_chunks(num_rows: int, num_columns: int) -> Iterator[slice]:
    """Yield slices of rows so that one chunk of (rows, columns) stays below ``CHUNK_CELLS``."""
    step = max(1, CHUNK_CELLS // max(1, num_columns))
    for start in range(0, num_rows, step):
        yield slice(start, min(num_rows, start + step))


def given_margins(
    pred_probs: NDArray[np.floating], given_labels: NDArray[np.integer], *, least: float = 1e-12
) -> NDArray[np.float32]:
    """Return (N,) log p(given) minus log p(best other class); NaN where unlabeled or without an opinion.

    Args:
        pred_probs: (N, K), array or memory map, read in chunks; a row with NaN has no opinion.
        given_labels: (N,) int, -1 unlabeled.
        least: smaller probabilities count as this.
    """
    found = np.full(len(given_labels), np.nan, dtype=np.float32)
    for rows in row_chunks(*pred_probs.shape):
        probs, labels = np.array(pred_probs[rows], dtype=np.float32), np.asarray(given_labels[rows])
        local = np.flatnonzero(labels != UNLABELED)
        at = local, labels[local]
        given = probs[at]
        probs[at] = -1.0
        other = probs[local].max(axis=1)
        found[rows.start + local] = np.log(np.maximum(given, least)) - np.log(np.maximum(other, least))
    return found


def check_witnesses(witnesses: Sequence[Witness], num_samples: int, num_classes: int) -> None:
    """Refuse witnesses that do not speak about this data set.

    Raises:
        AuditFailedError: none, a doubled name, or an array of a wrong shape.
    """
    if not witnesses:
        raise AuditFailedError("no witness: run at least one engine, or give predicted probabilities.")
    names = [witness.name for witness in witnesses]
    if len(set(names)) != len(names):
        raise AuditFailedError(f"two witnesses have the same name in {names}; give each its own.")
    for witness in witnesses:
        if np.shape(witness.trust_score) != (num_samples,):
            raise AuditFailedError(
                f"witness {witness.name!r} scores {np.shape(witness.trust_score)}, expected ({num_samples},)."
            )
        if witness.pred_probs is not None and witness.pred_probs.shape != (num_samples, num_classes):
            raise AuditFailedError(
                f"witness {witness.name!r} predicts {witness.pred_probs.shape}, "
                f"expected ({num_samples}, {num_classes})."
            )


def pool_predictions(
    witnesses: Sequence[Witness], given_labels: NDArray[np.integer], num_classes: int
) -> Pooled | None:
    """Average the predictions of all witnesses, two passes in chunks; None when nobody predicts.

    Raises:
        AuditFailedError: a row of probabilities is negative or does not sum to 1.
    """
    voters = [witness for witness in witnesses if witness.pred_probs is not None]
    if not voters:
        return None
    pooled = _pool_once(voters, given_labels, num_classes)
    counts = np.bincount(given_labels[np.isfinite(pooled.given_probability)], minlength=num_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        thresholds = np.where(counts > 0, np.diag(pooled.soft_joint) / counts, np.inf)
    for rows in row_chunks(len(given_labels), num_classes):
        labels = np.asarray(given_labels[rows])
        mean, _, _ = _mean_of_chunk(voters, rows, labels)
        _count_confident(pooled.confident_joint, mean, labels, thresholds)
    return pooled


def _pool_once(
    voters: Sequence[Witness],
    given_labels: NDArray[np.integer],
    num_classes: int,
) -> Pooled:
    """Everything but the confident joint."""
    num = len(given_labels)
    pooled = Pooled(
        num_voters=len(voters),
        given_probability=np.full(num, np.nan, dtype=np.float32),
        predicted_label=np.full(num, -1, dtype=np.int32),
        predicted_probability=np.full(num, np.nan, dtype=np.float32),
        other_label=np.full(num, -1, dtype=np.int32),
        other_probability=np.full(num, np.nan, dtype=np.float32),
        num_speakers=np.zeros(num, dtype=np.int16),
        num_against=np.zeros(num, dtype=np.int16),
        soft_joint=np.zeros((num_classes, num_classes)),
        confident_joint=np.zeros((num_classes, num_classes)),
    )
    for rows in row_chunks(num, num_classes):
        labels = np.asarray(given_labels[rows])
        _first_pass(pooled, rows, labels, *_mean_of_chunk(voters, rows, labels))
    return pooled


def _mean_of_chunk(
    voters: Sequence[Witness],
    rows: slice,
    labels: NDArray[np.integer],
) -> tuple[NDArray[np.float32], NDArray[np.int16], NDArray[np.int16]]:
    """Mean prediction (B, K), NaN where nobody speaks; speakers (B,); votes against the label (B,)."""
    total: NDArray[np.float32] | None = None
    speakers = np.zeros(len(labels), dtype=np.int16)
    against = np.zeros(len(labels), dtype=np.int16)
    for voter in voters:
        assert voter.pred_probs is not None
        probs = np.array(voter.pred_probs[rows], dtype=np.float32)
        speaks: NDArray[np.bool_] = np.isfinite(probs.sum(axis=1))
        _check_probabilities(voter.name, probs, speaks, rows.start)
        probs[~speaks] = 0.0
        against += speaks & (labels != UNLABELED) & (probs.argmax(axis=1) != labels)
        speakers += speaks
        total = probs if total is None else np.add(total, probs, out=total)
    assert total is not None
    with np.errstate(invalid="ignore", divide="ignore"):
        total /= speakers[:, None].astype(np.float32)
    return total, speakers, against


def _first_pass(
    pooled: Pooled,
    rows: slice,
    labels: NDArray[np.integer],
    mean: NDArray[np.float32],
    speakers: NDArray[np.int16],
    against: NDArray[np.int16],
) -> None:
    spoken = np.flatnonzero(~np.isnan(mean[:, 0]))
    pooled.num_speakers[rows], pooled.num_against[rows] = speakers, against
    predicted = mean[spoken].argmax(axis=1)
    at = rows.start + spoken
    pooled.predicted_label[at] = predicted
    pooled.predicted_probability[at] = mean[spoken, predicted]
    pooled.other_label[at] = predicted
    pooled.other_probability[at] = mean[spoken, predicted]
    local = spoken[labels[spoken] != UNLABELED]
    if not len(local):
        return
    given = labels[local]
    probs = mean[local]
    at = rows.start + local
    pooled.given_probability[at] = probs[np.arange(len(local)), given]
    pooled.soft_joint[...] += sum_by_label(probs, given, pooled.soft_joint.shape[0])
    probs[np.arange(len(local)), given] = -1.0
    other = probs.argmax(axis=1)
    best = probs[np.arange(len(local)), other]
    pooled.other_label[at] = np.where(best >= 0, other, -1)
    pooled.other_probability[at] = np.where(best >= 0, best, np.nan)


def mean_predictions(
    voters: Sequence[Witness], rows: slice | NDArray[np.integer], weights: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(B, K) mean prediction on ``rows``, by ``weights`` (W,) of those that speak; NaN where nobody does.

    Voters of weight 0 count where no other speaks, the same each. Every voter has predictions, which
    ``pool_predictions`` has checked.
    """
    total, spoken = _weighted_sum(voters, rows, weights)
    alone = spoken == 0
    if alone.any() and not weights.all():
        at = np.arange(*rows.indices(len(voters[0].trust_score))) if isinstance(rows, slice) else rows
        total[alone], spoken[alone] = _weighted_sum(voters, at[alone], np.ones_like(weights))
    with np.errstate(invalid="ignore", divide="ignore"):
        total /= spoken[:, None]
    return total


def _weighted_sum(
    voters: Sequence[Witness], rows: slice | NDArray[np.integer], weights: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(B, K) sum of the predictions of those that speak, by their weights, and (B,) these weights' sum."""
    total: NDArray[np.float32] | None = None
    spoken = np.float32(0)
    for voter, weight in zip(voters, weights, strict=True):
        assert voter.pred_probs is not None
        probs = np.array(voter.pred_probs[rows], dtype=np.float32)
        speaks = np.isfinite(probs.sum(axis=1))
        probs[~speaks] = 0.0
        probs *= weight
        total = probs if total is None else np.add(total, probs, out=total)
        spoken = spoken + weight * speaks
    assert total is not None
    return total, np.asarray(spoken, dtype=np.float32)


def sum_by_label(
    probs: NDArray[np.float32], given: NDArray[np.integer], num_classes: int
) -> NDArray[np.float64]:
    """(K, K) [predicted class, given label]: sum of the rows' probabilities."""
    size = len(given)
    picks = scipy.sparse.csr_array((np.ones(size), (given, np.arange(size))), shape=(num_classes, size))
    summed: NDArray[np.float64] = (picks @ probs).T
    return summed


def _count_confident(
    joint: NDArray[np.float64],
    mean: NDArray[np.float32],
    labels: NDArray[np.integer],
    thresholds: NDArray[np.float64],
) -> None:
    local = np.flatnonzero((labels != UNLABELED) & ~np.isnan(mean[:, 0]))
    probs = mean[local]
    probs[probs < thresholds.astype(np.float32) - 1e-6] = -1.0
    likely = probs.argmax(axis=1)
    sure = probs[np.arange(len(local)), likely] >= 0
    np.add.at(joint, (likely[sure], labels[local][sure]), 1.0)


def _check_probabilities(
    name: str, probs: NDArray[np.float32], speaks: NDArray[np.bool_], start: int
) -> None:
    bad = speaks & ((np.abs(probs.sum(axis=1) - 1.0) > SUM_TOLERANCE) | (probs.min(axis=1) < -1e-6))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise AuditFailedError(
            f"pred_probs of {name!r}, row {start + row}: probabilities sum to {probs[row].sum():.4f}, the "
            f"smallest is {probs[row].min():.4f}; each row must be non-negative and sum to 1."
        )


def _refuse_rows(ids: NDArray[np.integer], bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        raise VerificationError(f"verified sample {int(ids[bad][0])} {what} ({int(bad.sum())} such rows).")
