"""From the witnesses' opinions to one trust score a label, a suggestion, and what can be said honestly.

Every witness's scores become rank percentiles over the whole labeled set (never within a class: that
gains on balanced sets and loses badly on long tails), and their weighted mean ranks the labels. Where witnesses
predict classes, a second ranking asks which classes are given for which others (``confusions``), and the consensus
is the mean of both. A short list of weightings is tried (``weights``). Before anybody verified a row, the safe one
leads. Where the witnesses part, some of the verified rows choose among them (``choice``). With hundreds of verified
rows the weights are learned: a logistic regression on the log-odds of all rankings, kept only where it ranks better
out of fold. Rows that choose or teach calibrate nothing afterwards. All functions are pure: arrays in, arrays out.

Roles of verified rows in one audit: *trusted* rows were trained on as trusted, so they say nothing about how
this audit treats others; *learning* rows choose the weights; all the rest *calibrate*. No row has two roles.
The noise rate and T look at labels only and use every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.ground.wording import plural
from auditor.statistics.choice import choose
from auditor.statistics.clusterability import noise_share
from auditor.statistics.confusions import (
    ByConfusions,
    Confusions,
    by_confusions,
    fit_confusions,
    weights_of_mean,
)
from auditor.statistics.noise import (
    NoiseRate,
    OutOfFold,
    Transition,
    guess_noise_rate,
    guess_transition,
    noise_rate_from_verified,
    transition_from_verified,
)
from auditor.statistics.probabilities import (
    calibrate_error_probability,
    calibrate_suggestions,
    guess_error_probability,
)
from auditor.statistics.promises import Exchangeability, check_draws
from auditor.statistics.weights import Weighting, say_nothing, weightings, with_unheard
from auditor.statistics.witnesses import (
    UNLABELED,
    Pooled,
    Verified,
    Witness,
    check_witnesses,
    pool_predictions,
)

__all__ = ["Consensus", "Verified", "Witness", "combine", "rank_percentiles", "split_roles"]

MIN_ROWS_FOR_WEIGHTS = 300
"""Verified rows from which weights are worth learning (measured)."""
MIN_ROWS_TO_CHOOSE = 40
"""Verified rows from which, where the witnesses part, some choose the weighting."""
MOST_ROWS_TO_CHOOSE = 60
"""Rows that choose at most, below ``MIN_ROWS_FOR_WEIGHTS``; the others go on to calibrate."""
MIN_ROWS_OF_A_KIND = 10
"""Wrong and right learning rows below which nothing is learned."""
FIRST_LIST = 20
"""Labels to look at first where nothing is verified, or a quarter of them if that is less."""
MIN_ROWS_TO_CALIBRATE = 10
"""Verified rows below which an error probability, and wrong ones below which a suggestion's, stays a guess."""
REGULARIZATION = 0.3
"""C of the logistic regression (measured)."""
STRUCTURED_BELOW = 0.7
"""Rank correlation between two witnesses below which the noise is probably structured."""
OTHER_RANKING = 0.95
"""Rank correlation below which the ranking by the second weighting is another one than that which leads."""
MIN_ROWS_FOR_CORRELATION = 30
ONE_WAY = "Wrong labels of a class are mostly the same one or two other classes."


@dataclass(frozen=True, eq=False)
class Consensus:
    """What all witnesses say about every given label. N samples, W witnesses, K classes, m verified."""

    trust_score: NDArray[np.float32]
    """(N,) in [0, 1], 1 = the given label looks right; NaN where unlabeled or nobody has an opinion."""
    error_probability: NDArray[np.float64]
    """(N,) probability that the label is wrong, falling with trust; NaN where trust is."""
    error_probability_is_guess: bool
    """True unless verified rows calibrated it."""
    is_label_issue: NDArray[np.bool_]
    """(N,) the suggested cut: labels that are more likely wrong than right; without verified rows a first list."""
    is_doubtful: NDArray[np.bool_]
    """(N,) flagged, or most witnesses that have an opinion on the sample predict another class."""
    suggested_label: NDArray[np.int64]
    """(N,) most likely class given that the given one is wrong; -1 where nobody predicts."""
    suggested_probability: NDArray[np.float64]
    """(N,) probability of the suggestion, given that the given label is wrong."""
    suggestion_is_calibrated: bool
    agreement: NDArray[np.int16]
    """(N,) number of witnesses whose prediction differs from the given label."""
    num_voters: int
    """Witnesses that predict classes: the most that ``agreement`` can be."""
    disagreement: NDArray[np.float32]
    """(N,) highest minus lowest rank percentile among witnesses, in [0, 1]."""
    witness_names: tuple[str, ...]
    witness_ranks: NDArray[np.float32]
    """(N, W) rank percentiles."""
    weights: Mapping[str, float]
    """By witness; absolute values sum to 1."""
    weights_are_learned: bool
    weighting: str
    """Name of the weighting that leads (``weights.Weighting``), or ``learned``."""
    weights_sentence: str
    confusions: Confusions | None
    """Which classes are given for which others; None where nobody predicts."""
    confusions_share: float
    """What the ranking by confusions counts beside that by the witnesses, in [0, 1]."""
    confusion_ranks: NDArray[np.float32] | None
    """(N,) rank percentiles by confusions; None where nobody predicts."""
    rank_correlations: NDArray[np.float64]
    """(W, W) Spearman; NaN where two witnesses share too few samples."""
    structured_noise: bool
    """Two witnesses rank very differently."""
    structured_noise_sentence: str
    noise_rate: NoiseRate
    transition: Transition
    guessed_noise_rate: NoiseRate
    """What the predictions alone say, without verified rows; it counts again if the verdicts are undone."""
    guessed_transition: Transition
    learning: NDArray[np.bool_] | None
    """(m,) bool: verified rows that the weights were chosen with, kept or not; None without verified rows."""
    calibrating: NDArray[np.bool_] | None
    """(m,) bool: verified rows that may calibrate a promise of this audit; None without verified rows."""
    exchangeability: Exchangeability | None = None
    """Whether the verified rows look randomly drawn; where refused, nothing here rests on them but the weights."""


def combine(
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    num_classes: int,
    *,
    verified: Verified | None = None,
    out_of_fold: OutOfFold | None = None,
    neighbours: NDArray[np.integer] | None = None,
) -> Consensus:
    """Combine witnesses into one trust score, suggestion and set of statements.

    Args:
        witnesses: at least one; their predictions may be memory maps.
        given_labels: (N,) int in {-1, 0..K-1}.
        num_classes: K.
        verified: randomly drawn, blindly judged rows; None or empty means that nothing is promised.
        out_of_fold: of a simple model on the images or features, for the guess of the noise rate.
        neighbours: (N, k) int, each sample's nearest others in features of a backbone; None without one.

    Raises:
        AuditFailedError: a witness's arrays do not fit the labels.
        VerificationError: the verified rows do not fit the labels.
    """
    given_labels = np.asarray(given_labels)
    check_witnesses(witnesses, len(given_labels), num_classes)
    verified = verified if verified is not None and verified.size else None
    if verified is not None:
        verified.check(given_labels, num_classes)
    labeled = given_labels != UNLABELED

    # 1. One ranking.
    ranks = np.stack([rank_percentiles(w.trust_score, labeled) for w in witnesses], axis=1)  # (N, W)
    names = [witness.name for witness in witnesses]
    correlations = _rank_correlations(ranks)
    unheard = say_nothing(witnesses, given_labels)
    heard = [witness for witness in witnesses if witness.name not in unheard]
    at = [number for number, name in enumerate(names) if name not in unheard]
    structured, structured_sentence = _judge_structure(
        correlations[np.ix_(at, at)], [witness.name for witness in heard]
    )
    pooled = pool_predictions(witnesses, given_labels, num_classes)
    of_heard = pool_predictions(heard, given_labels, num_classes) if unheard else pooled
    alike = None
    if neighbours is not None:
        predicted = None if of_heard is None else of_heard.predicted_label
        alike = noise_share(given_labels, neighbours, num_classes, predicted=predicted)
    guessed_rate = guess_noise_rate(of_heard, int(labeled.sum()), out_of_fold=out_of_fold, alike=alike)
    candidates = weightings(
        heard,
        given_labels,
        parted=structured,
        noise_rate=guessed_rate.point,
        neighbours=neighbours,
        correlations=correlations[np.ix_(at, at)],
    )
    if unheard:
        candidates = tuple(with_unheard(one, unheard, names) for one in candidates)
    opinions = _Opinions(witnesses, given_labels, num_classes, ranks, unheard)
    weighting = _weigh(opinions, candidates, verified, parted=structured)
    if weighting.other is not None:
        structured, structured_sentence = True, _with_other(structured, structured_sentence, weighting.other)
    trust = weighting.trust_score
    if weighting.rankings.confusions is not None and weighting.rankings.confusions.pattern > 0:
        structured_sentence = f"{structured_sentence} {ONE_WAY}"

    # 2. How many, and from which class to which.
    noise = _estimate_noise(of_heard, guessed_rate, given_labels, num_classes, verified, weighting)

    # 3. Probabilities and the suggested cut.
    error_probability, is_guess = _error_probability(weighting, noise.rate, given_labels, noise.rests_on)
    suggestions = _suggest(weighting.rankings.found, given_labels, noise.rests_on, weighting)
    is_label_issue = _likely_wrong(trust, error_probability, is_guess=is_guess)

    # 4. Where the witnesses part.
    num_voters = 0 if pooled is None else pooled.num_voters
    nobody = np.zeros(len(given_labels), np.int16)
    agreement = nobody if pooled is None else pooled.num_against
    speakers = nobody if pooled is None else pooled.num_speakers
    return Consensus(
        trust_score=trust,
        error_probability=error_probability,
        error_probability_is_guess=is_guess,
        is_label_issue=is_label_issue,
        is_doubtful=is_label_issue | (np.isfinite(trust) & (2 * agreement > speakers)),
        suggested_label=suggestions.labels,
        suggested_probability=suggestions.probabilities,
        suggestion_is_calibrated=suggestions.is_calibrated,
        agreement=agreement,
        num_voters=num_voters,
        disagreement=_spread(ranks),
        witness_names=tuple(w.name for w in witnesses),
        witness_ranks=ranks,
        weights=weighting.weights,
        weights_are_learned=weighting.is_learned,
        weighting=weighting.name,
        weights_sentence=weighting.sentence,
        confusions=weighting.rankings.confusions,
        confusions_share=weighting.confusions_share,
        confusion_ranks=weighting.rankings.by_class,
        rank_correlations=correlations,
        structured_noise=structured,
        structured_noise_sentence=structured_sentence,
        noise_rate=noise.rate,
        transition=noise.transition,
        guessed_noise_rate=noise.guessed_rate,
        guessed_transition=noise.guessed_transition,
        learning=weighting.learning,
        calibrating=weighting.calibrating,
        exchangeability=noise.check,
    )


def rank_percentiles(scores: NDArray[np.floating], labeled: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return (N,) mid-rank percentiles in (0, 1) among labeled samples with a score; NaN elsewhere.

    Ties share their mean rank, so that the order of samples never matters.
    """
    values = np.asarray(scores)
    spoken = labeled & np.isfinite(values)
    percentiles = np.full(len(values), np.nan, dtype=np.float32)
    if spoken.any():
        percentiles[spoken] = (scipy.stats.rankdata(values[spoken]) - 0.5) / spoken.sum()
    return percentiles


def split_roles(verified: Verified, *, parted: bool = False) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the (m,) masks of the rows that may choose or teach weights and of those that calibrate.

    From ``MIN_ROWS_FOR_WEIGHTS`` on, half of the rows teach. Below, where the witnesses ``parted``, the first of
    that half choose, from ``MIN_ROWS_TO_CHOOSE`` rows on; else every row that was not trusted calibrates. The split
    looks at the draw only, never at a score or a verdict, so both parts stay random samples.
    """
    free = ~verified.trusted_mask
    second_half = np.arange(verified.size) % 2 == 1
    if verified.calibrates is not None:
        second_half = ~np.asarray(verified.calibrates, dtype=bool)
    if verified.size < MIN_ROWS_FOR_WEIGHTS:
        chooses = free & second_half & (np.cumsum(free & second_half) <= MOST_ROWS_TO_CHOOSE)
        if not parted or verified.size < MIN_ROWS_TO_CHOOSE:
            chooses = np.zeros(verified.size, dtype=bool)
        return chooses, free & ~chooses
    return free & second_half, free & ~second_half


@dataclass(frozen=True, eq=False)
class _Opinions:
    """What the witnesses say, before it is weighed."""

    witnesses: Sequence[Witness]
    given_labels: NDArray[np.integer]
    num_classes: int
    ranks: NDArray[np.float32]
    """(N, W) rank percentiles."""
    unheard: Sequence[str]

    def rankings(self, weighting: Weighting) -> _Rankings:
        """With the ranking by confusions, whose mean prediction follows ``weighting``."""
        weights = weights_of_mean(self.witnesses, self.given_labels, weighting.weights, self.unheard)
        confusions = fit_confusions(self.witnesses, self.given_labels, self.num_classes, weights)
        if confusions is None:
            return _Rankings(self.ranks, None, None, None)
        found = by_confusions(self.witnesses, self.given_labels, confusions)
        by_class = rank_percentiles(found.margin, np.isfinite(found.margin))
        return _Rankings(self.ranks, by_class, confusions, found)


@dataclass(frozen=True, eq=False)
class _Rankings:
    """Orders of the labels: one by each witness, and one by the confusions of classes."""

    ranks: NDArray[np.float32]
    """(N, W) rank percentiles."""
    by_class: NDArray[np.float32] | None
    """(N,) rank percentiles by confusions; None where nobody predicts, as is what follows."""
    confusions: Confusions | None
    found: ByConfusions | None

    @property
    def share(self) -> float:
        """What the ranking by confusions counts beside the weighted mean of the others."""
        return 0.0 if self.confusions is None else self.confusions.share

    def trust(self, weighting: Weighting) -> NDArray[np.float32]:
        """(N,) in [0, 1]; NaN where no witness has an opinion."""
        return joined_trust(self.ranks, weighting, self.by_class, self.share)

    def log_odds(self) -> NDArray[np.float64]:
        """(N, W), and one more column by confusions where there is one."""
        return _log_odds(
            self.ranks if self.by_class is None else np.column_stack([self.ranks, self.by_class])
        )


@dataclass(frozen=True, eq=False)
class _Weighting:
    trust_score: NDArray[np.float32]
    weights: Mapping[str, float]
    name: str
    is_learned: bool
    sentence: str
    learning: NDArray[np.bool_] | None
    calibrating: NDArray[np.bool_] | None
    rankings: _Rankings
    confusions_share: float
    other: Weighting | None = None
    """The second opinion: another weighting that ranks the labels differently, while no row has chosen."""


def _weigh(
    opinions: _Opinions,
    candidates: Sequence[Weighting],
    verified: Verified | None,
    *,
    parted: bool,
) -> _Weighting:
    """Let the safe weighting lead, or the one that verified rows choose, or learn better weights."""
    safe, given_labels = candidates[0], opinions.given_labels
    rankings = opinions.rankings(safe)
    other = _other_ranking(opinions.ranks, candidates)
    trust = rankings.trust(safe)

    def unlearned(
        lead: Weighting,
        sentence: str,
        learning: NDArray[np.bool_] | None = None,
        calibrating: NDArray[np.bool_] | None = None,
    ) -> _Weighting:
        said = f"{sentence}{_with_confusions(rankings.share)}"
        return _Weighting(
            trust,
            lead.weights,
            lead.name,
            False,
            said,
            learning,
            calibrating,
            rankings,
            rankings.share,
            other,
        )

    if verified is None:
        return unlearned(safe, f"{safe.title}: {safe.why}")
    learning, calibrating = split_roles(verified, parted=parted or other is not None)
    rows = verified.subset(learning)
    rows = rows.subset(~rows.is_unsure & np.isfinite(trust[rows.sample_ids]))
    lead, other, sentence = _choose(rankings, candidates, given_labels, rows, other)
    if lead is not safe:
        rankings = opinions.rankings(lead)
        trust = rankings.trust(lead)
    if verified.size < MIN_ROWS_FOR_WEIGHTS:
        return unlearned(lead, sentence, learning, calibrating)
    learned, why = _learn_weights(rankings, trust, given_labels, rows)
    if learned is None:
        return unlearned(lead, f"{sentence} Learned weights are not used: {why}", learning, calibrating)
    trust = rank_percentiles(rankings.log_odds() @ learned, np.isfinite(trust))
    of_witnesses = learned[: len(lead.weights)]
    total = np.abs(of_witnesses).sum()
    weights = {
        name: float(weight / (total or 1.0)) for name, weight in zip(lead.weights, of_witnesses, strict=True)
    }
    share = float(1.0 - total / np.abs(learned).sum())
    said = f"{why}{_with_confusions(share)}"
    return _Weighting(trust, weights, "learned", True, said, learning, calibrating, rankings, share)


def _with_confusions(share: float) -> str:
    """What else the score rests on, to follow the sentence on the witnesses."""
    if not share:
        return ""
    return f" {share:.0%} of the score asks which classes are given for which others."


def weighted_trust(ranks: NDArray[np.float32], weighting: Weighting) -> NDArray[np.float32]:
    """(N,) weighted mean of the (N, W) ranks; a witness without an opinion on a sample does not count there.

    Where only witnesses of weight 0 have one, they count the same: some place in the list is better than none.
    """
    shares = np.array(list(weighting.weights.values()), dtype=np.float32)
    spoken = np.isfinite(ranks)
    total = spoken @ shares
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(spoken, ranks, 0) @ shares / total
    nobody = (total == 0) & spoken.any(axis=1)
    mean[nobody] = np.nanmean(ranks[nobody], axis=1)
    return mean.astype(np.float32)


def joined_trust(
    ranks: NDArray[np.float32],
    weighting: Weighting,
    confusion_ranks: NDArray[np.float32] | None,
    share: float,
) -> NDArray[np.float32]:
    """(N,) mean of two rankings: by the (N, W) ranks as they are weighed, and by confusions, which count ``share``.

    NaN where no witness has an opinion; where only confusions have none, the witnesses decide alone.
    """
    trust = weighted_trust(ranks, weighting)
    if confusion_ranks is None:
        return trust
    own = rank_percentiles(trust, np.isfinite(trust))
    shares = np.where(np.isfinite(confusion_ranks), np.float32(share), np.float32(0))
    return np.asarray((1 - shares) * own + shares * np.nan_to_num(confusion_ranks), dtype=np.float32)


def _choose(
    rankings: _Rankings,
    candidates: Sequence[Weighting],
    given_labels: NDArray[np.integer],
    rows: Verified,
    other: Weighting | None,
) -> tuple[Weighting, Weighting | None, str]:
    """The weighting that leads, the second opinion that is left, and why in words."""
    safe = candidates[0]
    reason = f"{safe.title}: {safe.why}"
    if not rows.size:
        return safe, other, reason
    trust = np.stack([rankings.trust(one)[rows.sample_ids] for one in candidates], axis=1)
    # A witness that says nothing about a row has no opinion on its order.
    found = choose(np.nan_to_num(trust, nan=0.5), rows.is_wrong(given_labels), rows.weights)
    if np.isnan(found.aurocs[0]):
        few = f"{found.num_wrong} wrong and {found.num_right} right verified rows are too few to choose another."
        return safe, other, f"{reason} {few}"
    lead = candidates[found.chosen]
    looked = f"{plural(rows.size, 'verified row')} chose among {len(candidates)} weightings"
    if lead is safe:
        figure = f"area under the curve {found.aurocs[0]:.3f}"
        return safe, None, f"{reason} {looked}; none was clearly better ({figure})."
    figures = f"area under the curve {found.aurocs[found.chosen]:.3f}, {found.aurocs[0]:.3f} by {safe.name}"
    return lead, None, f"{lead.title}: {looked} ({figures}); they calibrate nothing else."


def _other_ranking(ranks: NDArray[np.float32], candidates: Sequence[Weighting]) -> Weighting | None:
    """Of agreement and smoothness the one that does not lead, where it ranks the labels differently."""
    trust = weighted_trust(ranks, candidates[0])
    for one in candidates[1:]:
        if one.name in ("agreement", "smoothness") and candidates[0].name in ("agreement", "smoothness"):
            second = weighted_trust(ranks, one)
            both = np.isfinite(trust) & np.isfinite(second)
            if both.sum() >= MIN_ROWS_FOR_CORRELATION:
                first, other = scipy.stats.rankdata(trust[both]), scipy.stats.rankdata(second[both])
                return one if np.corrcoef(first, other)[0, 1] < OTHER_RANKING else None
    return None


def _with_other(parted: bool, sentence: str, other: Weighting) -> str:
    """Name the second opinion."""
    heaviest = max(other.weights, key=other.weights.__getitem__)
    reason = (
        "samples that look alike favour"
        if other.name == "smoothness"
        else "the other engines and the given labels favour"
    )
    opinion = (
        f"A pattern is likely: {reason} {heaviest} ({other.weights[heaviest]:.0%} by {other.name}), and the list "
        f"would be another one. Verify {MIN_ROWS_TO_CHOOSE} labels to decide."
    )
    return f"{sentence} {opinion}" if parted else opinion


@dataclass(frozen=True, eq=False)
class _Noise:
    """How many labels are wrong and from which class to which, beside what the predictions alone say."""

    rate: NoiseRate
    transition: Transition
    guessed_rate: NoiseRate
    guessed_transition: Transition
    rests_on: Verified | None
    """The verified rows, unless there are none or they cannot be a random sample."""
    check: Exchangeability | None


def _estimate_noise(
    pooled: Pooled | None,
    guessed_rate: NoiseRate,
    given_labels: NDArray[np.integer],
    num_classes: int,
    verified: Verified | None,
    weighting: _Weighting,
) -> _Noise:
    """Guess T from the predictions; verified rows that may be a random sample take both guesses' place."""
    guessed_transition = guess_transition(pooled, num_classes)
    check = _check_draw(given_labels, verified, weighting)
    if check is not None and check.verdict == "refused":
        refused = replace(guessed_rate, sentence=f"{guessed_rate.sentence} {check.sentence}")
        return _Noise(refused, guessed_transition, guessed_rate, guessed_transition, None, check)
    if verified is None:
        return _Noise(guessed_rate, guessed_transition, guessed_rate, guessed_transition, None, check)
    rate = noise_rate_from_verified(given_labels, verified, guessed_rate)
    transition = transition_from_verified(given_labels, verified, guessed_transition)
    return _Noise(rate, transition, guessed_rate, guessed_transition, verified, check)


def _learn_weights(
    rankings: _Rankings,
    plain_trust: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    rows: Verified,
) -> tuple[NDArray[np.float64] | None, str]:
    """Logistic regression of "right" on log-odds ranks; None, and why, where ``plain_trust`` ranks as well."""
    if rankings.ranks.shape[1] == 1:
        return None, "there is only one witness."
    is_right = ~rows.is_wrong(given_labels)
    num_wrong, num_right = int((~is_right).sum()), int(is_right.sum())
    if min(num_wrong, num_right) < MIN_ROWS_OF_A_KIND:
        return None, (
            f"{num_wrong} wrong and {num_right} right verified rows can be used to learn weights; "
            f"this needs {MIN_ROWS_OF_A_KIND} of each and {MIN_ROWS_FOR_WEIGHTS} verified rows in all."
        )
    from sklearn.linear_model import (
        LogisticRegression,  # takes most of a second to import: only where it is used
    )
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    features, stands_for = rankings.log_odds()[rows.sample_ids], rows.weights
    out_of_fold = np.zeros(len(is_right))
    for fit, score in StratifiedKFold(5, shuffle=True, random_state=0).split(features, is_right):
        model = LogisticRegression(C=REGULARIZATION).fit(features[fit], is_right[fit], stands_for[fit])
        out_of_fold[score] = model.decision_function(features[score])
    learned_auroc = roc_auc_score(is_right, out_of_fold, sample_weight=stands_for)
    plain_auroc = roc_auc_score(is_right, plain_trust[rows.sample_ids], sample_weight=stands_for)
    comparison = f"(area under the curve {learned_auroc:.3f} out of fold, {plain_auroc:.3f} without them)"
    coefficients = LogisticRegression(C=REGULARIZATION).fit(features, is_right, stands_for).coef_[0]
    if learned_auroc <= plain_auroc or not np.any(coefficients):
        return (
            None,
            f"learned weights rank no better on {plural(len(is_right), 'verified row')} {comparison}.",
        )
    return coefficients, f"Weights learned from {plural(len(is_right), 'verified row')} {comparison}."


def _log_odds(ranks: NDArray[np.float32]) -> NDArray[np.float64]:
    """(N, W) log-odds of percentiles; a witness without a prediction is in the middle."""
    share = np.where(np.isfinite(ranks), ranks, 0.5).astype(np.float64)
    return np.log(share) - np.log1p(-share)


def _check_draw(
    given_labels: NDArray[np.integer], verified: Verified | None, weighting: _Weighting
) -> Exchangeability | None:
    """Look at the rows that this audit treated like all others."""
    if verified is None or weighting.calibrating is None:
        return None
    return check_draws(weighting.trust_score, given_labels, verified, weighting.calibrating)


def _error_probability(
    weighting: _Weighting,
    noise_rate: NoiseRate,
    given_labels: NDArray[np.integer],
    verified: Verified | None,
) -> tuple[NDArray[np.float64], bool]:
    """Probability that a label is wrong, and whether it is only a guess."""
    trust = weighting.trust_score
    doubt = 1.0 - rank_percentiles(trust, np.isfinite(trust)).astype(np.float64)
    if verified is not None and weighting.calibrating is not None:
        known = weighting.calibrating & ~verified.is_unsure & np.isfinite(trust[verified.sample_ids])
        rows = verified.subset(known)
        if rows.size >= MIN_ROWS_TO_CALIBRATE:
            is_wrong = rows.is_wrong(given_labels)
            return calibrate_error_probability(doubt, rows.sample_ids, is_wrong, weights=rows.weights), False
    return guess_error_probability(doubt, noise_rate.point), True


@dataclass(frozen=True, eq=False)
class _Suggestions:
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    is_calibrated: bool


def _suggest(
    found: ByConfusions | None,
    given_labels: NDArray[np.integer],
    verified: Verified | None,
    weighting: _Weighting,
) -> _Suggestions:
    """Most likely class given that the given label is wrong: p(c) / (1 - p(given)), best c."""
    if found is None:
        return _Suggestions(np.full(len(given_labels), -1), np.full(len(given_labels), np.nan), False)
    labels = found.other_label.astype(np.int64)
    given = np.where(given_labels == UNLABELED, 0.0, found.given_probability).astype(np.float64)
    other = found.other_probability.astype(np.float64)
    chance = np.clip(other / np.maximum(1.0 - given, np.maximum(other, 1e-12)), 0.0, 1.0)
    chance[labels < 0] = np.nan
    if verified is None or weighting.calibrating is None:
        return _Suggestions(labels, chance, False)
    rows = verified.subset(weighting.calibrating)
    rows = rows.subset(rows.is_wrong(given_labels) & (labels[rows.sample_ids] >= 0))
    if rows.size < MIN_ROWS_TO_CALIBRATE:
        return _Suggestions(labels, chance, False)
    is_hit = labels[rows.sample_ids] == rows.true_labels
    wrong_or_free = labels >= 0
    calibrated = calibrate_suggestions(chance, rows.sample_ids, is_hit, weights=rows.weights)
    return _Suggestions(labels, np.where(wrong_or_free, calibrated, np.nan), True)


def _likely_wrong(
    trust: NDArray[np.float32], error_probability: NDArray[np.float64], *, is_guess: bool
) -> NDArray[np.bool_]:
    """Flag where the error probability is above one half; a guessed one is allowed a short first list."""
    flagged = np.nan_to_num(error_probability) > 0.5
    known = int(np.isfinite(trust).sum())
    first = min(FIRST_LIST, known // 4)
    if is_guess and flagged.sum() < first:
        return _flag_lowest(trust, first / max(1, known))
    return flagged


def _flag_lowest(trust: NDArray[np.float32], share: float) -> NDArray[np.bool_]:
    """Flag the least trusted share; samples tied at the cut stay unflagged together."""
    known = np.sort(trust[np.isfinite(trust)])
    count = round(share * len(known))
    if count <= 0:
        return np.zeros(len(trust), dtype=bool)
    if count >= len(known):
        return np.isfinite(trust)
    return trust < known[count]


def _spread(ranks: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N,) highest minus lowest rank; NaN where nobody has an opinion."""
    spoken = np.isfinite(ranks)
    high = np.where(spoken, ranks, -np.inf).max(axis=1)
    low = np.where(spoken, ranks, np.inf).min(axis=1)
    return np.where(spoken.any(axis=1), high - low, np.nan).astype(np.float32)


def _rank_correlations(ranks: NDArray[np.float32]) -> NDArray[np.float64]:
    """(W, W) Spearman correlation over the samples that both have an opinion on."""
    num = ranks.shape[1]
    correlations = np.eye(num)
    for a in range(num):
        for b in range(a + 1, num):
            both = np.isfinite(ranks[:, a]) & np.isfinite(ranks[:, b])
            value = np.nan
            if both.sum() >= MIN_ROWS_FOR_CORRELATION:
                left, right = scipy.stats.rankdata(ranks[both, a]), scipy.stats.rankdata(ranks[both, b])
                if left.std() > 0 and right.std() > 0:
                    value = float(np.corrcoef(left, right)[0, 1])
            correlations[a, b] = correlations[b, a] = value
    return correlations


def _judge_structure(correlations: NDArray[np.float64], names: Sequence[str]) -> tuple[bool, str]:
    """Whether two witnesses part so far that the noise is probably structured, in words."""
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    pairs = [pair for pair in pairs if np.isfinite(correlations[pair])]
    if not pairs:
        return (
            False,
            "Only one witness has ranked enough samples; whether the noise is structured cannot be seen.",
        )
    a, b = min(pairs, key=lambda pair: float(correlations[pair]))
    lowest = float(correlations[a, b])
    if lowest < STRUCTURED_BELOW:
        return True, (
            f"{names[a]} and {names[b]} rank the labels very differently (rank correlation {lowest:.2f}): "
            "the errors probably follow a pattern, such as one class called another. Look at the samples "
            "where the witnesses disagree."
        )
    return False, f"All witnesses rank the labels alike (lowest rank correlation {lowest:.2f})."
