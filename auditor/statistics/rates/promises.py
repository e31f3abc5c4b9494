"""Promises about flags and changes, calibrated on randomly drawn, verified rows.

The promise: among the labels flagged at level q, at most the share q is right on average over draws of
the verified sample. With m calibrating rows, N labels to judge and doubt s (high = suspicious), a cut t
flags R(t) = #{s > t} labels, and k(t) calibrating rows that are right lie above it too. The rule takes the
lowest cut with

    (1 + k(t)) / (m + 1) * N / R(t) <= q.

This equals conformal p-values p_i = (1 + #{right rows with doubt >= s_i}) / (n + 1) with
Benjamini-Hochberg at q / share_right, where share_right = (n + 1) / (m + 1) for n right rows (Bates et al.
2023; Benjamini and Hochberg 1995). False flags over 1 + k(t) form a supermartingale as t rises, and the mean
of (right labels to judge) / (n + 1) over hypergeometric n is at most N / (m + 1): the expected false share is
at most q, in finite samples, with the noise rate estimated from the same rows. All that is needed is that
the m rows were drawn at random and treated by the audit like all others. Rows from the top of the list,
or trusted rows, break it; ``check_exchangeable`` looks for that.

Nothing in this asks that the rows come from the whole set: where they were drawn uniformly inside a *head* that was
chosen from scores alone, N and R count the head's labels, and the promise is about these. One row then stands for
(labels of the head) / (m + 1) instead of (all labels) / (m + 1), so that few rows back a short list.

The number of rows must not depend on what they showed. A list that is looked at while the rows come in, and taken
when it suits, holds more false flags than promised (a quarter where a fifth was, in the tests). So a promise
rests on one draw whose size was fixed beforehand, once it is judged to its end. A further draw is again random
whatever the earlier ones showed, so its promise holds too, for itself.

A promise is about its list as the audit made it, whoever looks at part of it later. What people decided before the
draw is no part of it: the draw left it out. Where the promise is about *changes*, k(t) counts the rows whose change
would be wrong: right labels, and wrong ones with another wrong suggestion.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.ground.vocabulary import LEVELS
from auditor.ground.wording import percent, plural
from auditor.statistics.rates.parts import first_interval, part_interval
from auditor.statistics.rates.verified import UNLABELED, Verified

REFUSE_BELOW = 1e-3
"""P-value of the exchangeability tests below which a sample is refused: at most 2 of 1,000 honest draws, most of
what somebody picked from the top (``benchmarks/results/constants.md``)."""
WARN_BELOW = 1e-2
MIN_EXPECTED = 5.0
"""Expected rows that a class needs in the chi-square test; rarer ones are pooled."""


@dataclass(frozen=True)
class Exchangeability:
    """Whether the verified rows look like a random sample of the labeled set."""

    p_value: float
    """Smallest p-value of the tests times their number (Bonferroni)."""
    verdict: str
    """``"ok"``, ``"doubtful"`` or ``"refused"``."""
    sentence: str


@dataclass(frozen=True, eq=False)
class Promise:
    """Flags at one level and what is promised about them."""

    q: float
    flags: NDArray[np.bool_]
    """(N,) bool; verified rows are never flagged: a person has judged them."""
    threshold: float
    """A label is flagged where its trust is below this; NaN where nothing is flagged."""
    num_flags: int
    expected_false: float
    """Upper estimate of the false flags (or wrong changes), at most q times ``num_flags``."""
    is_kept: bool
    """True where at least one label could be flagged under the promise."""
    sentence: str


@dataclass(frozen=True)
class MoreRows:
    """What further verified rows would tighten."""

    num_more: int
    rate_low: float
    rate_high: float
    """Expected interval of the noise rate."""
    sentence: str


def check_exchangeable(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    sample_ids: NDArray[np.integer],
    *,
    pool: NDArray[np.bool_] | None = None,
    treated: NDArray[np.bool_] | None = None,
) -> Exchangeability:
    """Test whether verified rows can be a random sample of the labeled ones, or of the ``pool`` among them.

    Three views: their trust against that of the rest (two-sample Kolmogorov-Smirnov, which ties only make
    milder; finds rows taken from the top of the list and rows that were trusted), their positions in the data
    set, and their given classes (chi-square).

    Args:
        trust_score: (N,) NaN where unknown.
        given_labels: (N,) int, -1 unlabeled.
        sample_ids: verified rows that the audit treated like any other.
        pool: (N,) bool, what could be drawn; None = every labeled sample.
        treated: (N,) bool, samples whose trust the audit moved by what it knew about them. What it would be
            without that is unknown, so they count as lying wherever they fit the draw best.
    """
    too_few = Exchangeability(
        1.0, "ok", "Too few rows to test whether the verified ones are a random sample."
    )
    if len(sample_ids) < 2:
        return too_few
    drawable = given_labels != UNLABELED if pool is None else (given_labels != UNLABELED) & pool
    moved = np.zeros(len(trust_score), dtype=bool) if treated is None else treated
    known = np.flatnonzero(drawable & (np.isfinite(trust_score) | moved))
    ids = np.intersect1d(sample_ids, known)
    rest = np.setdiff1d(known, ids, assume_unique=True)
    compared = rest[~moved[rest]]
    if min(len(ids), len(compared)) < 2:
        return too_few
    places = (np.searchsorted(known, ids) + 0.5) / len(known)
    tests = {
        "their trust scores differ from those of the rest": _trust_p_value(
            trust_score[ids], trust_score[compared], len(rest) - len(compared)
        ),
        "they are close together in the order of the data set": scipy.stats.kstest(places, "uniform").pvalue,
        "their classes differ from those of the rest": _class_p_value(given_labels[known], given_labels[ids]),
    }
    reason, p_value = min(tests.items(), key=lambda item: item[1])
    p_value = min(1.0, len(tests) * p_value)
    if p_value >= WARN_BELOW:
        return Exchangeability(float(p_value), "ok", "The verified rows pass for a random sample.")
    if p_value < REFUSE_BELOW:
        why = f"The verified rows cannot be a random sample: {reason} (p = {p_value:.1g})."
        return Exchangeability(float(p_value), "refused", f"{why} Take them at random and add no others.")
    why = f"The verified rows may not be a random sample: {reason} (p = {p_value:.1g})."
    usual = (
        "One honest sample in 100 comes out so by chance: if nobody picked rows by hand, nothing is wrong."
    )
    return Exchangeability(float(p_value), "doubtful", f"{why} {usual}")


def check_draws(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    verified: Verified,
    rows: NDArray[np.bool_],
) -> Exchangeability:
    """``check_exchangeable`` for the verified rows in the (m,) mask, each zone of a draw against its own others."""
    if not verified.stages:
        ids = verified.sample_ids[rows]
        return check_exchangeable(
            trust_score, given_labels, ids, pool=verified.pool, treated=verified.treated
        )
    found = []
    for stage in verified.stages:
        for zones in ((0, 1), (2,)):
            pool = np.isin(stage.zones, zones)
            ids = verified.sample_ids[rows & stage.rows & pool[verified.sample_ids]]
            if len(ids):
                found.append(
                    check_exchangeable(trust_score, given_labels, ids, pool=pool, treated=verified.treated)
                )
    if not found:
        return check_exchangeable(trust_score, given_labels, np.zeros(0, dtype=np.int64))
    worst = min(found, key=lambda one: one.p_value)
    # So many zones were looked at that one of them stands out by chance.
    p_value = min(1.0, len(found) * worst.p_value)
    if p_value >= (REFUSE_BELOW if worst.verdict == "refused" else WARN_BELOW):
        return Exchangeability(p_value, "ok", "The verified rows look like a random sample of each zone.")
    return dataclasses.replace(worst, p_value=p_value)


def _trust_p_value(drawn: NDArray[np.floating], rest: NDArray[np.floating], num_unknown: int) -> float:
    """Two-sample Kolmogorov-Smirnov, asymptotic, with rows of the rest that may lie anywhere."""
    grid = np.unique(np.concatenate([drawn, rest]))
    share = np.searchsorted(np.sort(drawn), grid, side="right") / len(drawn)
    size = len(rest) + num_unknown
    low = np.searchsorted(np.sort(rest), grid, side="right") / size
    distance = max(0.0, float((share - low).max()) - num_unknown / size, float((low - share).max()))
    return float(scipy.stats.kstwo.sf(distance, max(1, round(len(drawn) * size / (len(drawn) + size)))))


def _class_p_value(all_labels: NDArray[np.integer], drawn_labels: NDArray[np.integer]) -> float:
    sizes = np.bincount(all_labels)
    expected = sizes / sizes.sum() * len(drawn_labels)
    seen = np.bincount(drawn_labels, minlength=len(sizes)).astype(float)
    rare = expected < MIN_EXPECTED
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        seen = np.append(seen[~rare], seen[rare].sum())
    seen, expected = seen[expected > 0], expected[expected > 0]
    if len(expected) < 2 or expected.min() < 1.0:
        return 1.0
    return float(scipy.stats.chisquare(seen, expected).pvalue)


def promise(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    verified: Verified | None,
    q: float,
    *,
    suggested_labels: NDArray[np.integer] | None = None,
) -> Promise:
    """Flag as many labels as the verified rows allow at false-discovery rate q, or say why none.

    Unsure rows count as right, which only makes the promise safer.

    Args:
        trust_score: (N,) of the consensus.
        given_labels: (N,) int, -1 unlabeled.
        verified: the random sample, None or empty without one.
        q: in (0, 1).
        suggested_labels: (N,) int, -1 none. With them the promise is about *changing* each flagged label to
            its suggestion: a change is false where the label was right and where the suggestion is not.

    Raises:
        ValueError: q is outside (0, 1).
    """
    return promises(
        trust_score,
        given_labels,
        verified,
        levels=(q,),
        suggested_labels=suggested_labels,
    )[q]


def promises(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    verified: Verified | None,
    *,
    levels: Sequence[float] = LEVELS,
    suggested_labels: NDArray[np.integer] | None = None,
) -> dict[float, Promise]:
    """Return the promise at each level; see ``promise``."""
    if not all(0.0 < q < 1.0 for q in levels):
        raise ValueError(f"levels {list(levels)} must lie between 0 and 1; use 0.1 for 10 %.")
    if verified is None or not verified.size:
        why = "Nothing can be promised yet: check a random sample first."
        return {q: _nothing(q, len(trust_score), why) for q in levels}
    if not verified.backing_mask.any():
        why = (
            f"Nothing is promised before all of a random sample is checked ({verified.num_waiting:,} of its rows "
            "wait; unsure is a verdict too): a list that is taken as soon as it seems good can be less clean."
        )
        return {q: _nothing(q, len(trust_score), why) for q in levels}
    chosen = verified.backing_mask & ~verified.trusted_mask & np.isfinite(trust_score[verified.sample_ids])
    if not chosen.any():
        why = (
            "Nothing can be promised: every label checked at random was trusted or learned from; check more."
        )
        return {q: _nothing(q, len(trust_score), why) for q in levels}
    rows = verified.subset(chosen)
    pool = _backing_pool(given_labels, verified)
    check = check_exchangeable(
        trust_score, given_labels, rows.sample_ids, pool=pool, treated=verified.treated
    )
    if check.verdict == "refused":
        return {q: _nothing(q, len(trust_score), f"Nothing is promised. {check.sentence}") for q in levels}
    to_judge = pool & np.isfinite(trust_score)
    # Later draws may have taken rows from the top: who they are like is not known, so they count as to be judged.
    to_judge[verified.sample_ids[verified.backing_mask]] = False
    num_to_judge = int(to_judge.sum())
    to_judge[verified.sample_ids] = False
    if not to_judge.any():
        why = "Every label is checked; there is nothing left to promise."
        return {q: _nothing(q, len(trust_score), why) for q in levels}
    flaggable = to_judge
    is_false = ~rows.is_wrong(given_labels)
    if suggested_labels is not None:
        has_change = (suggested_labels >= 0) & (suggested_labels != given_labels)
        flaggable = flaggable & has_change
        is_false |= suggested_labels[rows.sample_ids] != rows.true_labels
        is_false &= has_change[rows.sample_ids]
    doubt = -np.asarray(trust_score, dtype=np.float64)
    scene = _Scene(
        doubt=doubt,
        flaggable=flaggable,
        ordered=np.sort(doubt[flaggable]),
        false_doubt=doubt[rows.sample_ids[is_false]],
        num_rows=rows.size,
        num_to_judge=num_to_judge,
        about_changes=suggested_labels is not None,
        pool_words=verified.backing_words,
        warning="" if check.verdict == "ok" else f" {check.sentence}",
    )
    return {q: _one_promise(scene, q) for q in levels}


@dataclass(frozen=True, eq=False)
class _Scene:
    """What all levels share."""

    doubt: NDArray[np.float64]
    """(N,) high = suspicious."""
    flaggable: NDArray[np.bool_]
    """(N,) bool."""
    ordered: NDArray[np.float64]
    """Doubt of the flaggable labels, rising."""
    false_doubt: NDArray[np.float64]
    """Doubt of the calibrating rows that would be false flags."""
    num_rows: int
    """Number of calibrating rows, m."""
    num_to_judge: int
    """N of the rule: every label of the pool that the draw did not take."""
    about_changes: bool
    pool_words: str
    """The pool, where it is not every label."""
    warning: str


def _backing_pool(given_labels: NDArray[np.integer], verified: Verified) -> NDArray[np.bool_]:
    """(N,) bool: what the backing rows were drawn from uniformly."""
    pool = verified.drawn_from(given_labels)
    return pool if verified.backing_pool is None else pool & np.asarray(verified.backing_pool, dtype=bool)


def _one_promise(scene: _Scene, q: float) -> Promise:
    cut, num_above = _lowest_cut(scene.ordered, scene.false_doubt, scene.num_rows, scene.num_to_judge, q)
    if np.isnan(cut):
        smallest = min(1.0, 1.0 / ((scene.num_rows + 1) * q))
        why = (
            f"Nothing can be promised at {percent(q)}: with {plural(scene.num_rows, 'label')} checked at random a "
            f"list has to hold {percent(smallest)} of {scene.pool_words or 'the labels'} or more, and no such list "
            "is clean enough. Check more at random, or accept a higher share."
        )
        return _nothing(q, len(scene.doubt), why + scene.warning)
    flags = scene.flaggable & (scene.doubt > cut)
    num_flags = int(flags.sum())
    expected = (1 + num_above) / (scene.num_rows + 1) * scene.num_to_judge
    if scene.about_changes:
        labels = plural(num_flags, "label")
        what = (
            f"{labels} can be changed; on average at most {percent(q)} of such changes are wrong (about "
            f"{expected:,.0f} here or fewer)"
        )
    else:
        what = (
            f"{plural(num_flags, 'top suspect')}: on average at least {percent(1 - q)} of such a list is wrong "
            f"(about {expected:,.0f} of these are right, or fewer)"
        )
    where = f" from {scene.pool_words}, and about these alone" if scene.pool_words else ""
    checked = plural(scene.num_rows, "label", "were")
    sentence = f"{what}. Known because {checked} checked at random{where}.{scene.warning}"
    return Promise(q, flags, -cut, num_flags, float(expected), True, sentence)


def _lowest_cut(
    doubt: NDArray[np.float64], false_doubt: NDArray[np.float64], num_rows: int, num_to_judge: int, q: float
) -> tuple[float, int]:
    """Lowest cut that keeps the promise, and the false rows above it; NaN when none does."""
    cuts = np.append(np.unique(false_doubt)[::-1], -np.inf)  # falling
    above = len(false_doubt) - np.searchsorted(np.sort(false_doubt), cuts, side="right")
    flagged = len(doubt) - np.searchsorted(doubt, cuts, side="right")
    with np.errstate(divide="ignore"):
        estimate = (1.0 + above) / (num_rows + 1.0) * num_to_judge / flagged
    kept = np.flatnonzero((flagged > 0) & (estimate <= q))
    if not len(kept):
        return float("nan"), 0
    return float(cuts[kept[-1]]), int(above[kept[-1]])


def _nothing(q: float, num_samples: int, why: str) -> Promise:
    return Promise(q, np.zeros(num_samples, dtype=bool), float("nan"), 0, 0.0, False, why)


def what_more_buys(given_labels: NDArray[np.integer], verified: Verified, num_more: int) -> MoreRows:
    """Return what further verified rows would tighten, if they are like those so far.

    Rows that are drawn and wait for a verdict come first, whatever ``num_more`` says; else it is the size of a
    further draw, cut to the rows that are left. The interval is what ``rates`` would then say, so it is never wider
    than the one of now.
    """
    part = verified.drawn_from(given_labels)
    num_decided = 0 if verified.decided is None else len(verified.decided.sample_ids)
    num_left = int(np.count_nonzero(part)) - verified.size - num_decided
    num_more = verified.num_waiting or max(0, min(num_more, num_left))
    if verified.size:
        factor = 1.0 + num_more / verified.size
        interval = part_interval(part, verified, verified.is_wrong(given_labels), factor=factor)
    else:  # before the first verdict the widest interval is the only one that can be announced
        labels = max(1, num_left, num_more)  # drawn rows may have been decided meanwhile
        interval = first_interval(round(0.5 * num_more), num_more, labels)
    if not num_more:
        why = "Every label is checked; the share of wrong ones is known."
    elif not verified.size:
        half = percent((interval.high - interval.low) / 2)
        why = (
            f"{plural(num_more, 'picture')} checked at random should tell the share of wrong labels to within "
            f"{half} either way, or better."
        )
    else:
        rows = plural(num_more, "more picture")
        why = (
            f"{rows} checked at random should narrow the share of wrong labels to {percent(interval.low)} to "
            f"{percent(interval.high)}."
        )
    return MoreRows(num_more, interval.low, interval.high, why)
