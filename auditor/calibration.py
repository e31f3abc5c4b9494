"""Promises about flags and probabilities, calibrated on randomly drawn, verified rows.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import expit, logit

from auditor.errors import VerificationError
from auditor.evidence import UNLABELED, Verified
from auditor.intervals import clopper_pearson, percent, rate_interval

LEVELS = (0.05, 0.10, 0.20)
"""The false-discovery rates that screens and exports offer."""
REFUSE_BELOW = 1e-3
"""P-value of the exchangeability tests below which a sample is refused."""
WARN_BELOW = 1e-2
GUESS_SLOPE = 1.5
"""Slope of the error probability on the log-odds of doubt where nothing is verified."""
GUESS_CLIP = 0.005
"""Share at either end within which a guessed probability no longer changes."""
MIN_EXPECTED = 5.0
"""Expected rows that a class needs in the chi-square test; rarer ones are pooled."""
NUM_RESAMPLES = 200


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
    """Upper estimate of the flags whose label is right, at most q times ``num_flags``."""
    false_share_high: float
    """Share of false flags that about nine of ten such samples stay below; NaN without flags."""
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
    smallest_share: float
    """Smallest share of all labels that can be flagged at q."""
    expected_flags: int
    """Mean number of flags at q if the rows go on as those so far."""
    chance_of_any: float
    """Share of resamples in which anything could be flagged."""
    sentence: str


def check_exchangeable(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    sample_ids: NDArray[np.integer],
    *,
    pool: NDArray[np.bool_] | None = None,
) -> Exchangeability:
    """Test whether verified rows can be a random sample of the labeled ones, or of the ``pool`` among them.

    Three views: their trust ranks against uniform (Kolmogorov-Smirnov; finds
    rows taken from the top of the list and rows that were trusted), their positions in the data set, and
    their given classes (chi-square).
    """
    drawable = (given_labels != UNLABELED) & np.isfinite(trust_score)
    known = np.flatnonzero(drawable if pool is None else drawable & pool)
    ids = np.intersect1d(sample_ids, known)
    if len(ids) < 2 or len(known) < 2:
        return Exchangeability(1.0, "ok", "Too few verified rows to test whether they were drawn at random.")
    ranks = (stats.rankdata(trust_score[known]) - 0.5) / len(known)
    at = np.searchsorted(known, ids)
    tests = {
        "their trust scores differ from the rest": stats.kstest(ranks[at], "uniform").pvalue,
        "they crowd together in the data set": stats.kstest((at + 0.5) / len(known), "uniform").pvalue,
        "their classes differ from the rest": _class_p_value(given_labels[known], given_labels[ids]),
    }
    reason, p_value = min(tests.items(), key=lambda item: item[1])
    p_value = min(1.0, len(tests) * p_value)
    if p_value >= WARN_BELOW:
        return Exchangeability(float(p_value), "ok", "The verified rows look like a random sample.")
    verdict = "refused" if p_value < REFUSE_BELOW else "doubtful"
    lead = "cannot be a random sample" if verdict == "refused" else "may not be a random sample"
    return Exchangeability(
        float(p_value),
        verdict,
        f"The verified rows {lead}: {reason} (p = {p_value:.1g}). Draw them at random and add none by hand.",
    )


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
    return float(stats.chisquare(seen, expected).pvalue)


def conformal_p_values(right_doubt: NDArray[np.floating], doubt: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return (1 + #{right rows at least as doubtful}) / (n + 1) for every doubt (Vovk; Bates et al. 2023)."""
    ordered = np.sort(right_doubt)
    at_least = len(ordered) - np.searchsorted(ordered, doubt, side="left")
    return (1.0 + at_least.astype(np.float64)) / (len(ordered) + 1.0)


def benjamini_hochberg(p_values: NDArray[np.floating], level: float) -> NDArray[np.bool_]:
    """Return the rejections of the step-up procedure at ``level`` (Benjamini and Hochberg 1995)."""
    ordered = np.sort(p_values)
    passes = np.flatnonzero(ordered <= level * np.arange(1, len(ordered) + 1) / max(len(ordered), 1))
    if not len(passes):
        return np.zeros(len(p_values), dtype=bool)
    return np.asarray(p_values) <= ordered[passes[-1]]


def promise(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    verified: Verified | None,
    q: float,
    *,
    calibrating: NDArray[np.bool_] | None = None,
) -> Promise:
    """Flag as many labels as the verified rows allow at false-discovery rate q, or say why none.

    Unsure rows count as right, which only makes the promise safer.

    Args:
        trust_score: (N,) of the consensus.
        given_labels: (N,) int, -1 unlabeled.
        verified: the random sample, None or empty without one.
        q: in (0, 1).
        calibrating: (m,) bool, ``Consensus.calibrating``; default: every row that was not trusted.

    Raises:
        ValueError: q is outside (0, 1).
        VerificationError: a row is named as calibrating although this audit trusted it.
    """
    return promises(trust_score, given_labels, verified, levels=(q,), calibrating=calibrating)[q]


def promises(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    verified: Verified | None,
    *,
    levels: Sequence[float] = LEVELS,
    calibrating: NDArray[np.bool_] | None = None,
) -> dict[float, Promise]:
    """Return the promise at each level; see ``promise``."""
    if not all(0.0 < q < 1.0 for q in levels):
        raise ValueError(f"levels {list(levels)} must lie between 0 and 1; use 0.1 for 10 %.")
    if verified is None or not verified.size:
        why = "Nothing can be promised without verified rows: judge a random sample first."
        return {q: _nothing(q, len(trust_score), why) for q in levels}
    chosen = _calibrating_rows(verified, calibrating)
    chosen = chosen & np.isfinite(trust_score[verified.sample_ids])
    if not chosen.any():
        why = "Nothing can be promised: every verified row was trusted or learned from; verify more."
        return {q: _nothing(q, len(trust_score), why) for q in levels}
    rows = verified.subset(chosen)
    check = check_exchangeable(trust_score, given_labels, rows.sample_ids, pool=verified.pool)
    if check.verdict == "refused":
        return {q: _nothing(q, len(trust_score), f"Nothing is promised. {check.sentence}") for q in levels}
    to_judge = verified.drawn_from(given_labels) & np.isfinite(trust_score)
    to_judge[verified.sample_ids] = False
    doubt = np.sort(-np.asarray(trust_score, dtype=np.float64)[to_judge])
    right = -np.asarray(trust_score, dtype=np.float64)[rows.sample_ids[~rows.is_wrong(given_labels)]]
    warning = "" if check.verdict == "ok" else f" {check.sentence}"
    return {q: _one_promise(trust_score, to_judge, doubt, right, rows.size, q, warning) for q in levels}


def _calibrating_rows(verified: Verified, calibrating: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """(m,) bool; refuses a row that the audit trained on as trusted."""
    if calibrating is None:
        return ~verified.trusted_mask
    both = np.asarray(calibrating, dtype=bool) & verified.trusted_mask
    if both.any():
        raise VerificationError(
            f"verified sample {int(verified.sample_ids[both][0])} was trained on as trusted, so it cannot "
            f"calibrate the same audit ({int(both.sum())} such rows)."
        )
    return np.asarray(calibrating, dtype=bool)


def _one_promise(
    trust_score: NDArray[np.floating],
    to_judge: NDArray[np.bool_],
    doubt: NDArray[np.float64],
    right: NDArray[np.float64],
    num_rows: int,
    q: float,
    warning: str,
) -> Promise:
    cut, num_above = _lowest_cut(doubt, right, num_rows, q)
    if np.isnan(cut):
        smallest = min(1.0, 1.0 / ((num_rows + 1) * q))
        why = (
            f"Nothing can be promised at {percent(q)}: {num_rows} calibrating rows can only back a list of "
            f"{percent(smallest)} of the labels or more, and no such list is clean enough. Verify more "
            "rows or accept a higher rate."
        )
        return _nothing(q, len(trust_score), why + warning)
    flags = to_judge & (np.asarray(trust_score, dtype=np.float64) < -cut)
    num_flags = int(flags.sum())
    scale = len(doubt) / num_flags
    expected = (1 + num_above) / (num_rows + 1) * len(doubt)
    high = min(1.0, clopper_pearson(num_above, num_rows, level=0.8)[1] * scale)
    sentence = (
        f"{num_flags:,} labels flagged; on average at most {percent(q)} of such flags are false "
        f"(about {expected:,.0f} here or fewer; nine of ten samples stay below {percent(high)}). Backed by "
        f"{num_rows} randomly drawn, verified rows.{warning}"
    )
    return Promise(q, flags, -cut, num_flags, float(expected), high, True, sentence)


def _lowest_cut(
    doubt: NDArray[np.float64], right: NDArray[np.float64], num_rows: int, q: float
) -> tuple[float, int]:
    """Lowest cut that keeps the promise, and the right rows above it; NaN when none does."""
    cuts = np.append(np.unique(right)[::-1], -np.inf)  # falling
    above = len(right) - np.searchsorted(np.sort(right), cuts, side="right")
    flagged = len(doubt) - np.searchsorted(doubt, cuts, side="right")
    with np.errstate(divide="ignore"):
        estimate = (1.0 + above) / (num_rows + 1.0) * len(doubt) / flagged
    kept = np.flatnonzero((flagged > 0) & (estimate <= q))
    if not len(kept):
        return float("nan"), 0
    return float(cuts[kept[-1]]), int(above[kept[-1]])


def _nothing(q: float, num_samples: int, why: str) -> Promise:
    return Promise(q, np.zeros(num_samples, dtype=bool), float("nan"), 0, 0.0, float("nan"), False, why)


def what_more_buys(
    trust_score: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    verified: Verified,
    num_more: int,
    *,
    q: float = 0.10,
    calibrating: NDArray[np.bool_] | None = None,
    seed: int = 0,
) -> MoreRows:
    """Return what ``num_more`` further verified rows would tighten, if they are like those so far.

    Calibrating rows are resampled to the larger size, so the flags are an expectation, not a promise.
    """
    chosen = _calibrating_rows(verified, calibrating)
    rows = verified.subset(chosen & np.isfinite(trust_score[verified.sample_ids]))
    to_judge = verified.drawn_from(given_labels) & np.isfinite(trust_score)
    to_judge[verified.sample_ids] = False
    doubt = np.sort(-np.asarray(trust_score, dtype=np.float64)[to_judge])
    is_right = ~rows.is_wrong(given_labels)
    row_doubt = -np.asarray(trust_score, dtype=np.float64)[rows.sample_ids]
    size = rows.size + num_more
    generator = np.random.default_rng(seed)
    flags = np.zeros(NUM_RESAMPLES)
    for trial in range(NUM_RESAMPLES if rows.size else 0):
        drawn = generator.integers(rows.size, size=size)
        cut, _ = _lowest_cut(doubt, row_doubt[drawn][is_right[drawn]], size, q)
        flags[trial] = 0 if np.isnan(cut) else len(doubt) - np.searchsorted(doubt, cut, side="right")
    total = verified.size + num_more
    labeled = int(np.count_nonzero(verified.drawn_from(given_labels)))
    share = verified.is_wrong(given_labels).sum() / max(verified.size, 1)
    interval = rate_interval(
        round(share * total), total, population=max(labeled, total), is_watched=verified.is_watched
    )
    chance, mean = float((flags > 0).mean()), round(float(flags.mean()))
    sentence = (
        f"{num_more} more rows: noise rate within {percent(interval.low)} to {percent(interval.high)}; about "
        f"{mean:,} labels flagged at {percent(q)} ({percent(chance)} chance of any)."
    )
    smallest = min(1.0, 1.0 / ((size + 1) * q))
    return MoreRows(num_more, interval.low, interval.high, smallest, mean, chance, sentence)


def calibrate_error_probability(
    doubt: NDArray[np.floating], sample_ids: NDArray[np.integer], is_wrong: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Fit P(wrong) = expit(a + b logit(doubt)), b > 0, on verified rows and apply it to all.

    Penalised likelihood: a around the log-odds of the share seen, b around ``GUESS_SLOPE``, so that few rows
    stay sane. Doubt beyond the rows' own resolution, 1 / (2 (m + 1)), counts as that.

    Args:
        doubt: (N,) percentile of doubt in (0, 1), NaN where unknown.
        sample_ids: (m,) verified rows, m >= 1.
        is_wrong: (m,) bool.
    """
    edge = 1.0 / (2.0 * (len(sample_ids) + 1))
    features = logit(np.clip(doubt, edge, 1 - edge))
    centre = logit((is_wrong.sum() + 0.5) / (len(is_wrong) + 1.0))
    at, wrong = features[sample_ids], is_wrong.astype(np.float64)

    def loss(parameters: NDArray[np.float64]) -> float:
        score = parameters[0] + np.exp(parameters[1]) * at
        fit = np.logaddexp(0.0, score).sum() - (wrong * score).sum()
        penalty = (parameters[0] - centre) ** 2 / 18.0 + (parameters[1] - np.log(GUESS_SLOPE)) ** 2 / 2.0
        return float(fit + penalty)

    best = optimize.minimize(loss, np.array([centre, np.log(GUESS_SLOPE)]), method="BFGS").x
    probability: NDArray[np.float64] = expit(best[0] + np.exp(best[1]) * features)
    # m rows cannot show that more than m + 1 of m + 2 such labels are wrong (Laplace's rule).
    return np.minimum(probability, 1.0 - 1.0 / (len(sample_ids) + 2))


def guess_error_probability(doubt: NDArray[np.floating], share: float) -> NDArray[np.float64]:
    """Return a curve that rises with doubt and whose mean is ``share``; nothing backs it but the guess."""
    features = GUESS_SLOPE * logit(np.clip(doubt, GUESS_CLIP, 1 - GUESS_CLIP))
    share = float(np.clip(share, 1e-4, 1 - 1e-4))
    grid = GUESS_SLOPE * logit(np.clip((np.arange(1000) + 0.5) / 1000, GUESS_CLIP, 1 - GUESS_CLIP))
    shift = optimize.brentq(lambda a: float(expit(a + grid).mean()) - share, -40.0, 40.0)
    probability: NDArray[np.float64] = expit(shift + features)
    return probability


def calibrate_suggestions(
    chance: NDArray[np.floating], sample_ids: NDArray[np.integer], is_hit: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Map the suggestions' probability to how often such ones were right on verified wrong labels.

    Penalised Platt scaling, expit(a + b logit(chance)), a around 0 and log b around 0 with standard
    deviation 1 each: without rows nothing changes, and a handful cannot turn it over.

    Args:
        chance: (N,) raw probability, NaN where there is no suggestion.
        sample_ids: verified rows whose given label is wrong.
        is_hit: bool, the suggestion was the true label.
    """
    features = logit(np.clip(chance, 1e-3, 1 - 1e-3))
    at, hit = features[sample_ids], is_hit.astype(np.float64)

    def loss(parameters: NDArray[np.float64]) -> float:
        score = parameters[0] + np.exp(parameters[1]) * at
        fit = np.logaddexp(0.0, score).sum() - (hit * score).sum()
        return float(fit + (parameters**2).sum() / 2.0)

    best = optimize.minimize(loss, np.zeros(2), method="BFGS").x
    probability: NDArray[np.float64] = expit(best[0] + np.exp(best[1]) * features)
    return probability
