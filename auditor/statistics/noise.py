"""How many labels are wrong, which classes they move between, and what nobody can tell from the labels.

With a verified sample every statement carries an interval that covers as often as it says. Without one there
is only a *guess*: several estimators that read the witnesses' predictions, and the range between them. On
human noise such estimators were off by a factor of two to four in either direction, so the range is shown and
no number of it is promised.

T[i, j] = P(given = j | true = i) throughout; rows sum to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.ground.wording import percent, plural
from auditor.statistics.intervals import Interval, rate_interval
from auditor.statistics.rates import part_interval
from auditor.statistics.separation import ONE_GROUP, otsu_share
from auditor.statistics.witnesses import NO_CLASS, Pooled, Verified, row_chunks

MEMORISED = 0.25
"""Networks that contradict less than this share of what a model out of fold contradicts, and less than ``REPEATED``
of all labels, may have memorised them."""
REPEATED = 0.03
SMALL_SET = 2_000
"""Labels below which a network may have memorised them in any case."""
MIXTURE_POINTS = 2_000
"""Quantiles of the margin that the mixture is fitted to: bounded work, and blind to the order of samples."""
OUT_OF_FOLD = "out of fold, at most"
"""The estimator that a simple model gives; its own mistakes are in it."""
BLIND_POINT = 0.1
"""Share that is shown first when no witness predicts classes; a place to start looking, not an estimate."""
NO_GROUPS = 0.6
"""Separation of the margins at and below which nothing is counted by groups; a normal distribution has .64."""
GAP_OF_WEAK = 0.23
"""How much more often all predictions differ from the labels than the surest of them, from where on this is taken
for mistakes of the networks alone. Seen on MNIST (strong networks, .06 to .13), the published probabilities (.07
to .10) and CIFAR-10 (weak networks, .2 to .28), one seed of each."""
SUREST_SHARE = 0.2
"""Rows with the surest predictions: a network's own mistakes are rare there, but so are errors on hard images."""
GUESS_ROWS = 20.0
"""Verified rows that the predictions' guess of the noise rate counts for."""
PRIOR_ROWS = 5.0
"""Rows of the predictions' guess that each verified row of T is smoothed with."""
MIN_CLASS_SIZE = 20
"""Fewer samples than this in a class cannot tell right from wrong."""
MAX_DOUBTFUL = 0.5
"""Above this share of doubtful labels the class's own labels no longer define it."""
TRADING_SHARE = 0.2
"""Both directions of a pair above this share: the two classes trade places."""
MIN_FLOW = 3
"""Doubtful labels that a direction needs before a pair is worth naming."""


@dataclass(frozen=True)
class NoiseRate:
    """Share of wrong labels among the labeled samples."""

    low: float
    point: float
    high: float
    kind: str
    """``"interval"`` (from verified rows) or ``"guess"`` (a range of estimators, nothing promised)."""
    sentence: str
    estimators: Mapping[str, float] = field(default_factory=dict)
    """The single guesses by name; empty with verified rows."""
    interval: Interval | None = None


@dataclass(frozen=True)
class OutOfFold:
    """What a simple model says of labels that it did not learn from."""

    num_differ: int
    """Rows on which it predicts another class than the given one."""
    num_rows: int


@dataclass(frozen=True, eq=False)
class Transition:
    """T[i, j] = P(given = j | true = i) with a range for every cell."""

    matrix: NDArray[np.float64]
    """(K, K) rows sum to 1."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    kind: str
    """``"interval"`` (each cell at 95 %) or ``"guess"``."""
    sentence: str
    counts: NDArray[np.int64] | None = None
    """(K, K) verified rows by [true, given]; None for a guess."""


@dataclass(frozen=True)
class ErrorsLeft:
    """What the reviews have settled and what is expected to be left."""

    found: int
    """Wrong labels that a person found, in the sample and among the suspects."""
    low: int
    point: int
    high: int
    kind: str
    """``"interval"`` or ``"guess"``, as the noise rate it comes from."""
    sentence: str

    @property
    def has_middle(self) -> bool:
        """Something backs a number between the ends: a random sample, and more than an end."""
        return self.kind == "interval" and (self.point > self.low or self.low == self.high)


@dataclass(frozen=True)
class ClassPair:
    """Two classes whose labels seem to be exchanged."""

    first: int
    second: int
    first_given_second: int
    """Doubtful labels that say ``second`` where ``first`` is suggested."""
    second_given_first: int
    """Doubtful labels that say ``first`` where ``second`` is suggested."""
    first_share: float
    """``second_given_first`` as a share of the labels that say ``first``."""
    second_share: float
    """``first_given_second`` as a share of the labels that say ``second``."""
    trades_places: bool
    """Both shares above TRADING_SHARE, or verified rows show it: labels alone cannot tell which class is which."""


@dataclass(frozen=True)
class ClassReport:
    """One class as its given labels show it."""

    label: int
    num_samples: int
    num_doubtful: int
    expected_wrong: float
    """Sum of error probabilities over the class's samples."""
    interval: Interval | None
    """Share wrong from verified rows; None without any in this class."""
    cannot_be_judged: bool
    why: str
    """Why it cannot be judged; empty where it can."""


def guess_noise_rate(
    pooled: Pooled | None,
    num_labeled: int,
    *,
    out_of_fold: OutOfFold | None = None,
    alike: float | None = None,
) -> NoiseRate:
    """Return the range of several estimators; a guess that promises nothing.

    Networks that trained long on few images repeat their labels, right or wrong, and then every estimator that
    reads them says that all is well. A simple model that never saw the label it judges cannot: what it says
    otherwise, its own mistakes among it, is an upper reading. It always counts into the range, since networks that
    learned only a part of the wrong labels by heart look like good ones (``benchmarks/results/noise_guess.md``).
    Where the two are far apart the networks' opinion is
    worth nothing, and no number of the range is better than another. On small sets (``SMALL_SET``) it counts as
    little wherever it lies below what that model surely contradicts: nobody can tell there whether the networks
    know more than the model or have memorised the labels.

    ``alike`` is what samples say that look alike in features of a backbone (``clusterability.noise_share``). It
    reads high where the networks' predictions read low, so the point lies in the middle between the two.
    """
    if pooled is None:
        return NoiseRate(
            0.0,
            BLIND_POINT,
            1.0,
            "guess",
            "Nothing is known about the share of wrong labels: no witness predicts classes and no row is "
            "verified. Verify a random sample.",
        )
    estimators = _noise_rate_estimators(pooled)
    point = next(iter(estimators.values()))
    memorised = by_heart = ""
    if out_of_fold is not None:
        seen = rate_interval(out_of_fold.num_differ, out_of_fold.num_rows)
        differ = estimators.get("predictions differ", 1.0)
        is_memorised = differ < REPEATED and differ < MEMORISED * seen.low
        if is_memorised:
            point = float(np.clip(BLIND_POINT, min(estimators.values()), seen.high))
            memorised = " The networks repeat nearly all labels, so their opinion says little here."
        elif num_labeled < SMALL_SET and point < seen.low:
            point = point if alike is not None else float(np.clip(BLIND_POINT, point, seen.high))
            by_heart = " So few labels can be memorised, so the networks' opinion says little here."
        estimators[OUT_OF_FOLD] = seen.high
    if alike is not None:
        estimators["samples that look alike"] = alike
        point = alike if memorised else (point + alike) / 2
    low, high = min(estimators.values()), max(*estimators.values(), 1.0 / max(1, num_labeled))
    sentence = (
        f"A guess: between {percent(low)} and {percent(high)} of {plural(num_labeled, 'label')} may be wrong "
        f"({plural(len(estimators), 'estimator')}, none verified).{memorised}{by_heart} "
        "Verify a random sample to know."
    )
    return NoiseRate(low, point, high, "guess", sentence, estimators)


def _noise_rate_estimators(pooled: Pooled) -> dict[str, float]:
    """Single guesses, the one to show first.

    Strong networks err seldom: nearly all their predictions that differ are wrong labels, and those on the surest
    rows too few, because people err on hard images. Weak networks err often, but seldom where they are surest. So
    the gap between both shares is taken for mistakes of the networks as far as it is large itself
    (``GAP_OF_WEAK``). Of weak networks the reading by groups of margins (``_of_weak``) counts where it says less.
    What this gives on every run of the benchmark is in ``benchmarks/results/noise_guess.md``; errors on hard
    images that a network has half memorised are guessed low.
    """
    spoken = np.isfinite(pooled.given_probability)
    given = pooled.given_probability[spoken].astype(np.float64)
    other = np.nan_to_num(pooled.other_probability[spoken].astype(np.float64))
    if not len(given):
        return {"no predictions": BLIND_POINT}
    joint = _calibrate_joint(pooled.confident_joint, pooled.soft_joint.sum(axis=0))
    margin = np.log(np.clip(given, 1e-7, 1)) - np.log(np.clip(other, 1e-7, 1))
    differs, sureness = margin < 0, np.maximum(given, other)
    predicted = pooled.predicted_label[spoken]
    guesses = {
        "surest of each class differ": _surest_of_each_class(differs, sureness, predicted),
        "surest of all differ": _surest_of_each_class(differs, sureness, np.zeros_like(predicted)),
        "mixture of margins": _mixture_share(margin),
        "confident joint": float(1.0 - np.trace(joint) / max(joint.sum(), 1e-12)),
        "predictions differ": float(np.mean(differs)),
    }
    differ, surest = guesses["predictions differ"], guesses["surest of each class differ"]
    theirs = float(
        np.clip((differ - surest) / GAP_OF_WEAK, 0.0, 1.0)
    )  # share of the gap that is the networks' own
    lower = (1 - theirs) * surest + theirs * min(surest, _of_weak(margin, guesses))
    # Of weak networks even the surest predictions may be mistakes, as often as they differ.
    guesses["surest of each class differ, less mistakes"] = (1 - theirs) * surest
    return {"all together": float((1 - theirs) * differ + theirs * lower)} | guesses


def _of_weak(margin: NDArray[np.float64], guesses: Mapping[str, float]) -> float:
    """The lower group of margins by confident learning where there are two, else the surest or a mixture."""
    seen = float(np.clip((otsu_share(margin) - NO_GROUPS) / (ONE_GROUP - NO_GROUPS), 0.0, 1.0)) ** 2
    blurred = min(guesses["surest of each class differ"], guesses["mixture of margins"])
    return seen * guesses["confident joint"] + (1 - seen) * blurred


def _surest_of_each_class(
    differs: NDArray[np.bool_], sureness: NDArray[np.float64], predicted: NDArray[np.int32]
) -> float:
    """Share that differs among the surest rows of each predicted class, weighted by the classes' sizes."""
    total = 0.0
    for label in np.unique(predicted):
        rows = np.flatnonzero(predicted == label)
        surest = sureness[rows] >= np.quantile(sureness[rows], 1 - SUREST_SHARE)
        total += len(rows) * float(np.mean(differs[rows[surest]]))
    return total / len(predicted)


def _mixture_share(margin: NDArray[np.float64]) -> float:
    """Weight of the lower of two normal components, where it lies on the side of another class."""
    num_points = min(MIXTURE_POINTS, len(margin))
    points = np.quantile(margin, (np.arange(num_points) + 0.5) / num_points)
    if len(np.unique(points)) < 10:
        return float(np.mean(margin < 0))
    from sklearn.mixture import GaussianMixture  # takes most of a second to import: only where it is used

    mixture = GaussianMixture(
        2, means_init=np.quantile(points, [[0.05], [0.75]]), reg_covar=1e-3, random_state=0
    )
    posterior = mixture.fit(points[:, None]).predict_proba(points[:, None])
    lower = int(np.argmin(mixture.means_[:, 0]))
    if mixture.means_[lower, 0] >= 0:
        return float(np.mean(margin < 0))
    return float(posterior[:, lower].mean())


def noise_rate_from_verified(
    given_labels: NDArray[np.integer], verified: Verified, guess: NoiseRate | None = None
) -> NoiseRate:
    """Return the share wrong among all labeled samples with its interval; every random row counts.

    The interval is that of the rows alone. The point leans on the predictions' ``guess`` as on ``GUESS_ROWS`` rows:
    cuts and probabilities follow it, and the first few verdicts must not throw them over.
    """
    part = verified.drawn_from(given_labels)
    num_labeled = int(np.count_nonzero(part))
    is_wrong = verified.is_wrong(given_labels)
    num_wrong, num_unsure = int(is_wrong.sum()), int(verified.is_unsure.sum())
    interval = part_interval(part, verified, is_wrong)
    leaning = 0.0 if guess is None else GUESS_ROWS
    middle = 0.5 * (interval.low + interval.high) if guess is None else guess.point
    decided = float(verified.size - num_unsure)
    seen = interval.estimate if decided and interval.estimate is not None else 0.0
    point = (seen * decided + leaning * middle) / (decided + leaning) if decided + leaning else middle
    point = float(np.clip(point, interval.low, interval.high))
    said = f", {num_unsure} unsure or skipped" if num_unsure else ""
    if not all(stage.is_uniform for stage in verified.stages):
        said += " (most drawn from the head of the ranking, and counted as that)"
    if verified.decided is not None and len(verified.decided.sample_ids):
        known = verified.decided.is_wrong
        said += f", beside {int(known.sum()):,} of {len(known):,} that people had looked at"
    sentence = (
        f"{num_wrong} of {verified.size} randomly drawn labels are wrong{said}: {percent(interval.low)} to "
        f"{percent(interval.high)} of {num_labeled:,} ({percent(interval.level)} interval, "
        f"{interval.kind_in_words})."
    )
    return NoiseRate(interval.low, point, interval.high, "interval", sentence, interval=interval)


def guess_transition(pooled: Pooled | None, num_classes: int) -> Transition:
    """Return T as the predictions see it; the range lies between the confident and the soft joint."""
    if pooled is None:
        eye = np.eye(num_classes)
        unknown = "Nothing is known: no witness predicts classes."
        return Transition(eye, np.zeros_like(eye), np.ones_like(eye), "guess", unknown)
    sizes = pooled.soft_joint.sum(axis=0)
    confident = _normalize_rows(_calibrate_joint(pooled.confident_joint, sizes))
    soft = _normalize_rows(pooled.soft_joint)
    return Transition(
        matrix=confident,
        low=np.minimum(confident, soft),
        high=np.maximum(confident, soft),
        kind="guess",
        sentence="A guess from the witnesses' predictions; verify a random sample to know.",
    )


def transition_from_verified(
    given_labels: NDArray[np.integer], verified: Verified, guess: Transition
) -> Transition:
    """Return T from verified rows, smoothed with the guess where a class has few of them.

    Every cell's interval is exact for the number of verified rows of its true class and ignores the guess. Where
    rows stand for different numbers of labels, shares are weighed by these numbers and the interval is that of as
    many equal rows as they are worth (Kish 1965; Korn and Graubard 1998), which is no longer exact.
    Rows where the judge was unsure may be of any true class: each end of a cell's interval takes the worse.
    """
    num_classes = len(guess.matrix)
    true_labels = np.asarray(verified.true_labels)
    known = true_labels > NO_CLASS
    counts = np.zeros((num_classes, num_classes), dtype=np.int64)
    given = given_labels[verified.sample_ids]
    np.add.at(counts, (true_labels[known], given[known]), 1)
    rows = counts.sum(axis=1)
    worth, unsure_worth = _worth(verified, num_classes, given)
    totals = worth.sum(axis=1)
    matrix = (worth + PRIOR_ROWS * guess.matrix) / (totals[:, None] + PRIOR_ROWS)
    low, high = np.zeros_like(matrix), np.ones_like(matrix)
    for i in np.flatnonzero(rows):
        unsure = unsure_worth[i]
        for hits, doubtful in np.unique(np.stack([worth[i], unsure], axis=1), axis=0):
            cells = (worth[i] == hits) & (unsure == doubtful)
            # Lowest where every unsure row of another given class belongs to i, highest where only these do.
            fewest, most = (
                (hits, max(hits, totals[i] + unsure.sum() - doubtful)),
                (hits + doubtful, totals[i] + doubtful),
            )
            low[i, cells] = rate_interval(*fewest, is_watched=verified.is_watched).low
            high[i, cells] = rate_interval(*most, is_watched=verified.is_watched).high
    thin = int(np.count_nonzero(rows < MIN_CLASS_SIZE))
    sentence = f"From {plural(int(rows.sum()), 'verified row')}, each cell with its own 95 % interval." + (
        f" {thin} of {num_classes} classes {'has' if thin == 1 else 'have'} fewer than {MIN_CLASS_SIZE} verified "
        "rows: their rows lean "
        "on the predictions' guess." * (thin > 0)
    )
    return Transition(
        _normalize_rows(matrix),
        np.minimum(low, matrix),
        np.maximum(high, matrix),
        "interval",
        sentence,
        counts,
    )


def _worth(
    verified: Verified, num_classes: int, given: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows, and unsure rows, by [true, given] class: each true class in the equal rows that it is worth."""
    true_labels = np.asarray(verified.true_labels)
    weights = verified.weights
    known = true_labels > NO_CLASS
    worth = np.zeros((num_classes, num_classes))
    np.add.at(worth, (true_labels[known], given[known]), weights[known])
    squares = np.bincount(true_labels[known], weights=weights[known] ** 2, minlength=num_classes)
    unsure = np.bincount(
        given[verified.is_unsure], weights=weights[verified.is_unsure], minlength=num_classes
    )
    scale = np.divide(worth.sum(axis=1), squares, out=np.ones(num_classes), where=squares > 0)[:, None]
    # Sums of weights differ in their last digits by the order of the rows.
    return np.round(worth * scale, 9), np.round(unsure[None, :] * scale, 9)


def _calibrate_joint(joint: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every given label's column to its number of samples; an empty column trusts its label."""
    filled = joint + np.diag(np.where(joint.sum(axis=0) > 0, 0.0, 1.0))
    scaled: NDArray[np.float64] = filled / filled.sum(axis=0) * sizes
    return scaled


def _normalize_rows(joint: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = joint.sum(axis=1, keepdims=True)
    empty = sums[:, 0] <= 0
    rows: NDArray[np.float64] = np.where(sums > 0, joint, np.eye(len(joint))) / np.where(sums > 0, sums, 1.0)
    rows[empty] = np.eye(len(joint))[empty]
    return rows


def errors_left(
    noise_rate: NoiseRate, num_labeled: int, *, num_found_wrong: int, num_found_right: int
) -> ErrorsLeft:
    """Return how many wrong labels are expected beyond those that a person has settled.

    The interval is that of the noise rate, cut to what the verdicts have made certain: at least as many
    wrong labels as were found, at most all that nobody found right.

    Args:
        noise_rate: for the labels as given.
        num_labeled: labeled samples.
        num_found_wrong: labels that a person judged wrong (verified rows and reviewed suspects, each once).
        num_found_right: labels that a person judged right.
    """
    ceiling = num_labeled - num_found_right
    most = max(ceiling, num_found_wrong)
    edges = (
        np.floor(noise_rate.low * num_labeled + 1e-6),
        np.round(noise_rate.point * num_labeled),
        np.ceil(noise_rate.high * num_labeled - 1e-6),
    )
    low, point, high = (int(np.clip(edge, num_found_wrong, most)) - num_found_wrong for edge in edges)
    left = f"about {point:,} are left ({low:,} to {high:,})"
    if noise_rate.kind == "interval" and point == low:
        left = f"{low:,} are left" if low == high else f"{low:,} to {high:,} are left"
    elif noise_rate.kind != "interval" and not high:
        left = "somebody looked at every label in question"
    elif noise_rate.kind != "interval":
        left = f"how many are left is not known (guesses say {low:,} to {high:,})"
    sentence = f"{plural(num_found_wrong, 'wrong label')} found so far; {left}."
    return ErrorsLeft(num_found_wrong, low, point, high, noise_rate.kind, sentence)


def trading_pairs(
    given_labels: NDArray[np.integer],
    suggested_labels: NDArray[np.integer],
    is_doubtful: NDArray[np.bool_],
    num_classes: int,
    *,
    transition: Transition | None = None,
) -> list[ClassPair]:
    """Return the pairs of classes with doubtful labels in both directions, strongest two-way flow first.

    Networks that learned two classes the wrong way round doubt none of their labels. Where ``transition`` comes
    from verified rows, its intervals show such a pair all the same.
    """
    doubtful = is_doubtful & (given_labels >= 0) & (suggested_labels >= 0)
    flow = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(flow, (given_labels[doubtful], suggested_labels[doubtful]), 1)
    sizes = np.maximum(np.bincount(given_labels[given_labels >= 0], minlength=num_classes), 1)
    seen = np.zeros((num_classes, num_classes), dtype=bool)
    if transition is not None and transition.kind == "interval":
        seen = np.minimum(transition.low, transition.low.T) >= TRADING_SHARE
    pairs = []
    for first, second in np.argwhere(np.triu((np.minimum(flow, flow.T) >= MIN_FLOW) | seen, k=1)):
        outward, back = int(flow[first, second]), int(flow[second, first])
        shares = (outward / sizes[first], back / sizes[second])
        pairs.append(
            ClassPair(
                first=int(first),
                second=int(second),
                first_given_second=back,
                second_given_first=outward,
                first_share=float(shares[0]),
                second_share=float(shares[1]),
                trades_places=bool(min(shares) >= TRADING_SHARE or seen[first, second]),
            )
        )
    return sorted(
        pairs, key=lambda pair: (-min(pair.first_share, pair.second_share), pair.first, pair.second)
    )


def class_reports(
    given_labels: NDArray[np.integer],
    error_probability: NDArray[np.floating],
    is_doubtful: NDArray[np.bool_],
    pairs: Sequence[ClassPair],
    class_names: Sequence[str],
    *,
    intervals: Sequence[Interval] | None = None,
) -> list[ClassReport]:
    """Return one report a class; where labels alone cannot judge it, say so instead of guessing.

    Args:
        given_labels: (N,) int, -1 unlabeled.
        error_probability: (N,) float, NaN where unknown.
        is_doubtful: (N,) bool, usually ``Consensus.is_doubtful``.
        pairs: of ``trading_pairs``.
        class_names: K names.
        intervals: of ``per_class_intervals``, where verified rows exist.
    """
    num_classes = len(class_names)
    sizes, doubtful = np.zeros(num_classes, np.int64), np.zeros(num_classes, np.int64)
    wrong = np.zeros(num_classes)
    for rows in row_chunks(len(given_labels), 1):
        labeled = given_labels[rows] >= 0
        given = given_labels[rows][labeled]
        sizes += np.bincount(given, minlength=num_classes)
        doubtful += np.bincount(given[is_doubtful[rows][labeled]], minlength=num_classes)
        share = np.nan_to_num(error_probability[rows][labeled])
        wrong += np.bincount(given, weights=share, minlength=num_classes)
    reports = []
    for k in range(num_classes):
        seen = intervals[k] if intervals is not None and intervals[k].num_rows else None
        why = _why_not_judged(k, int(sizes[k]), int(doubtful[k]), seen, pairs, class_names)
        reports.append(ClassReport(k, int(sizes[k]), int(doubtful[k]), float(wrong[k]), seen, bool(why), why))
    return reports


def _why_not_judged(
    label: int,
    size: int,
    num_doubtful: int,
    seen: Interval | None,
    pairs: Sequence[ClassPair],
    class_names: Sequence[str],
) -> str:
    if size < MIN_CLASS_SIZE:
        return f"only {plural(size, 'sample', 'carry')} this label; at least {MIN_CLASS_SIZE} are needed"
    if num_doubtful > MAX_DOUBTFUL * size:
        return (
            f"the engines doubt {percent(num_doubtful / size)} of its labels: either they do not know the class, "
            "or its labels do not define it"
        )
    if seen is not None and seen.low > MAX_DOUBTFUL:
        labels = plural(seen.num_rows, "verified label")
        return f"{seen.num_hits} of its {labels} are wrong; most name another class"
    for pair in pairs:
        if pair.trades_places and label in (pair.first, pair.second):
            partner = class_names[pair.second if label == pair.first else pair.first]
            return f"it trades places with {partner!r}; the labels alone cannot tell which is which"
    return ""
