"""From the witnesses' opinions to what can be said of every label, in the order in which it is made.

1. ``CrossFit``: what the witnesses count, and what each class is given as (``pool``).
2. ``Reading``: trust, and the likeliest other class (``reading``).
3. ``Votes``: how the witnesses part.
4. ``NoiseRate``: the share of wrong labels with its range.
5. ``Calibrated``: the probabilities with what verified rows say of them, and the suggested cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.statistics.annotators import Answers, Consensus, consensus
from auditor.statistics.rates import (
    UNLABELED,
    NoiseRate,
    Verified,
    calibrate,
    check_draws,
    guess_error_probability,
    row_chunks,
)
from auditor.statistics.trust.evidence import weigh
from auditor.statistics.trust.pool import PARTS, UNKNOWN, CrossFit, all_alike, cross_fit
from auditor.statistics.trust.reading import Reading, own_opinion, read, read_consensus
from auditor.statistics.trust.sentences import guess_sentence
from auditor.statistics.trust.witnesses import Witness, check_witnesses, rank_percentiles

FEWEST_TO_CALIBRATE = 10
"""Verified rows below which an error probability, and wrong ones below which a suggestion's, stays a guess: fewer
make it no better (``benchmarks/results/constants.md``)."""
FEWEST_SHARED = 30
"""Samples on which two witnesses' ranks are compared at least."""

FALSE_LABELS = 40
"""Right labels, or 4 a class if these are more, that a pool of weak witnesses may take for wrong: with them the
range covers the truth in 503 of 508 runs, without in 341 (``benchmarks/results/guess.json``)."""


@dataclass(frozen=True, eq=False)
class Votes:
    """How W witnesses part on N samples."""

    against: NDArray[np.int16]
    """(N,) witnesses that predict another class than the given one."""
    spread: NDArray[np.float32]
    """(N,) highest minus lowest rank percentile among witnesses, in [0, 1]; NaN where nobody has an opinion."""
    correlations: NDArray[np.float64]
    """(W, W) Spearman's; NaN where two share fewer than ``FEWEST_SHARED`` samples."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What is shown of each label."""

    error_probability: NDArray[np.float64]
    """(N,) P(given label is wrong), falling with trust; NaN where trust is."""
    error_probability_is_guess: bool
    """True unless verified rows calibrated it."""
    is_label_issue: NDArray[np.bool_]
    """(N,) more likely wrong than right; nowhere where nothing stands out or ranks alone would call most that."""
    suggested_probability: NDArray[np.float64]
    """(N,) P(the suggested class is the true one), given that the given label is wrong; NaN without."""
    suggestion_is_calibrated: bool


@dataclass(frozen=True, eq=False)
class Combined:
    """All of it."""

    witness_names: tuple[str, ...]
    fits: CrossFit
    is_fitted: bool
    """False where no witness could be pooled, so that all count the same."""
    stands_out: bool
    """False where a model for which every label is right explains them as well (``evidence``)."""
    reading: Reading
    votes: Votes
    guess: NoiseRate
    """How many labels are wrong by the pool alone."""
    calibrated: Calibrated
    consensus: Consensus | None = None
    """Where several annotators answered."""

    @property
    def weights(self) -> dict[str, float]:
        """By witness that is pooled, its share of a; empty where none could be."""
        if not self.is_fitted:
            return {}
        total = sum(self.fits.weights.values())
        return {name: weight / (total or 1.0) for name, weight in self.fits.weights.items()}


def combine(
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    num_classes: int,
    *,
    verified: Verified | None = None,
    known: NDArray[np.integer] | None = None,
    answers: Answers | None = None,
) -> Combined:
    """Pool the witnesses and read trust, suggestions, flags and guesses off the pool.

    Args:
        witnesses: at least one; their predictions may be memory maps, and are read in chunks.
        given_labels: (N,) int in {-1, 0..K-1}.
        num_classes: K.
        verified: randomly drawn, blindly judged rows: they calibrate probabilities.
        known: (N,) true classes that people decided on, ``NO_CLASS`` or ``UNKNOWN``; None = those of ``verified``.
        answers: of several annotators, whose consensus the given labels are: trust is then the consensus' own
            probability, with the pool as what is known of the picture.

    Raises:
        AuditFailedError: a witness's arrays do not fit the labels.
        VerificationError: the verified rows do not fit the labels.
    """
    given_labels = np.asarray(given_labels)
    check_witnesses(witnesses, len(given_labels), num_classes)
    verified = verified if verified is not None and verified.size else None
    if verified is not None:
        verified.check(given_labels, num_classes)
    if known is None:
        known = np.full(len(given_labels), UNKNOWN)
        if verified is not None:
            known[verified.sample_ids] = verified.true_labels
    labeled = given_labels != UNLABELED
    ranks = np.stack([rank_percentiles(one.trust_score, labeled) for one in witnesses], axis=1)

    pooled = [one for one in witnesses if one.is_out_of_sample]
    others = [one for one in witnesses if not one.is_out_of_sample]
    if pooled:
        opinions = [one.pred_probs for one in pooled]
        fits = cross_fit([one.name for one in pooled], opinions, given_labels, num_classes, known)
        reading = read(fits, opinions, given_labels)
        stands_out, share = weigh(fits, opinions, given_labels, known)
        if not stands_out:
            reading = replace(reading, trust_score=1.0 - share * (1.0 - reading.trust_score))
        if others:
            reading = _behind(reading, _by_ranks(others, given_labels, num_classes)[1])
    else:
        fits, reading = _by_ranks(others, given_labels, num_classes)
        stands_out = True
    agreed = None
    if answers is not None:  # what people say is evidence of its own
        agreed, stands_out = (
            consensus(answers, own_opinion(fits, opinions, given_labels) if pooled else None),
            True,
        )
        reading = read_consensus(agreed, reading, given_labels)
    votes = _votes(witnesses, given_labels, ranks)
    guess = _guess(fits, reading, int(labeled.sum()), is_fitted=bool(pooled), stands_out=stands_out)
    calibrated = _calibrated(reading, given_labels, verified, is_fitted=bool(pooled), stands_out=stands_out)
    names = tuple(one.name for one in witnesses)
    return Combined(names, fits, bool(pooled), stands_out, reading, votes, guess, calibrated, agreed)


def _by_ranks(
    witnesses: Sequence[Witness], given_labels: NDArray[np.integer], num_classes: int
) -> tuple[CrossFit, Reading]:
    """Trust by the mean rank, with as many labels in doubt as the mean prediction contradicts."""
    fits = all_alike([one.name for one in witnesses], len(given_labels), num_classes)
    reading = read(fits, [one.pred_probs for one in witnesses], given_labels)
    ranks = [rank_percentiles(one.trust_score, given_labels != UNLABELED) for one in witnesses]
    spoken = np.sum(np.isfinite(ranks), axis=0)
    mean = np.where(spoken > 0, np.nansum(ranks, axis=0) / np.maximum(spoken, 1), np.nan)
    told = np.isfinite(reading.support)
    best_other = (1.0 - reading.support[told]) * np.nan_to_num(reading.other_probability[told])
    contradicted = np.mean(best_other > reading.support[told]) if told.any() else 0.0
    doubt = 1.0 - rank_percentiles(mean, spoken > 0).astype(np.float64)
    return fits, replace(reading, trust_score=1.0 - guess_error_probability(doubt, float(contradicted)))


def _behind(pooled: Reading, others: Reading) -> Reading:
    """The pool's reading; where it has no opinion, its values at the samples' ranks among the others."""
    silent = np.isnan(pooled.trust_score) & np.isfinite(others.trust_score)
    trust = pooled.trust_score.copy()
    if silent.any():
        place = rank_percentiles(others.trust_score, np.ones(len(trust), dtype=bool))[silent]
        trust[silent] = np.nanquantile(pooled.trust_score, place)
    unsaid = pooled.other_label < 0
    return Reading(
        trust,
        pooled.support,
        np.where(unsaid, others.other_label, pooled.other_label),
        np.where(unsaid, others.other_probability, pooled.other_probability),
    )


def _votes(
    witnesses: Sequence[Witness], given_labels: NDArray[np.integer], ranks: NDArray[np.float32]
) -> Votes:
    against = np.zeros(len(given_labels), dtype=np.int16)
    for one in witnesses:
        for rows in row_chunks(*one.pred_probs.shape):
            probs, given = np.asarray(one.pred_probs[rows]), given_labels[rows]
            speaks = np.isfinite(probs.sum(axis=1)) & (given != UNLABELED)
            against[rows] += speaks & (np.nan_to_num(probs).argmax(axis=1) != given)
    spoken = np.isfinite(ranks)
    spread = np.where(spoken, ranks, -np.inf).max(axis=1) - np.where(spoken, ranks, np.inf).min(axis=1)
    spread[~spoken.any(axis=1)] = np.nan
    correlations = np.eye(len(witnesses))
    for a in range(len(witnesses)):
        for b in range(a):
            both = spoken[:, a] & spoken[:, b]
            left, right = scipy.stats.rankdata(ranks[both, a]), scipy.stats.rankdata(ranks[both, b])
            told = both.sum() >= FEWEST_SHARED and left.std() > 0 and right.std() > 0
            correlations[a, b] = correlations[b, a] = np.corrcoef(left, right)[0, 1] if told else np.nan
    return Votes(against, spread.astype(np.float32), correlations)


def _guess(
    fits: CrossFit, reading: Reading, num_labeled: int, *, is_fitted: bool, stands_out: bool
) -> NoiseRate:
    """The mean of 1 - trust. From below by leaving out one part after the other (delete-a-group jackknife) and by
    what a pool of weak witnesses takes for wrong, from above by what the pool would not have said itself.
    """
    low, point, high = 0.0, _mean_lack(reading.trust_score), 1.0
    if is_fitted and num_labeled:
        allowance = max(FALSE_LABELS, 4 * len(fits.transition)) / num_labeled
        low, high = max(0.0, point - reach(fits) - allowance), max(point, _mean_lack(reading.support))
    sentence = guess_sentence(low, point, high, num_labeled, is_fitted=is_fitted, stands_out=stands_out)
    return NoiseRate(low, point, high, "guess", sentence)


def _mean_lack(shares: NDArray[np.float64]) -> float:
    """The mean of 1 - share over the samples that have one; 0 without any."""
    known = shares[np.isfinite(shares)]
    return float(1.0 - known.mean()) if len(known) else 0.0


def reach(fits: CrossFit) -> float:
    """Half the 95 % interval of the mean rate over ``PARTS`` fits, each without a part."""
    rates = np.array([pool.rate for pool in fits.pools])
    quantile = scipy.stats.t.ppf(0.975, PARTS - 1)
    return float(quantile * np.sqrt((PARTS - 1) / PARTS * ((rates - rates.mean()) ** 2).sum()))


def _calibrated(
    reading: Reading,
    given_labels: NDArray[np.integer],
    verified: Verified | None,
    *,
    is_fitted: bool,
    stands_out: bool,
) -> Calibrated:
    """With verified rows that this audit treated like all others, unless they cannot be a random sample."""
    wrong, chance = 1.0 - reading.trust_score, reading.other_probability
    is_guess, is_calibrated = True, False
    if verified is not None:
        free = ~verified.trusted_mask
        check = check_draws(reading.trust_score, given_labels, verified, free)
        rows = verified.subset(free & ~verified.is_unsure & np.isfinite(wrong[verified.sample_ids]))
        if check.verdict != "refused" and rows.size >= FEWEST_TO_CALIBRATE:
            is_wrong = rows.is_wrong(given_labels)
            wrong, is_guess = calibrate(wrong, rows.sample_ids, is_wrong, weights=rows.weights), False
            hits = rows.subset(is_wrong & (reading.other_label[rows.sample_ids] >= 0))
            if hits.size >= FEWEST_TO_CALIBRATE:
                is_hit = reading.other_label[hits.sample_ids] == hits.true_labels
                chance = calibrate(chance, hits.sample_ids, is_hit, weights=hits.weights)
                is_calibrated = True
    is_issue = np.nan_to_num(wrong) > 0.5
    # Ranks by who contradicts most labels say which is the worst, not that it is wrong.
    is_most = not is_fitted and 2 * is_issue.sum() > np.isfinite(wrong).sum()
    if is_guess and (is_most or not stands_out):
        is_issue[:] = False
    return Calibrated(wrong, is_guess, is_issue, chance, is_calibrated)
