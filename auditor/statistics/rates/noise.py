"""How many labels are wrong, which classes they move between, and what nobody can tell from the labels.

With a verified sample every statement carries an interval that covers as often as it says. Without one there
is only the pool's *guess* (``trust``), and nothing is promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.ground.wording import percent, plural
from auditor.statistics.rates.intervals import Interval
from auditor.statistics.rates.parts import part_interval
from auditor.statistics.rates.verified import Verified, row_chunks

GUESS_ROWS = 20.0
"""Verified rows that the predictions' guess of the noise rate counts for: 10 to 40 err least
(``benchmarks/results/constants.md``)."""
MIN_CLASS_SIZE = 10
"""Fewer samples than this in a class are not called judged: from here on classes are ranked as well as larger ones
(``benchmarks/results/constants.md``)."""


@dataclass(frozen=True)
class NoiseRate:
    """Share of wrong labels among the labeled samples."""

    low: float
    point: float
    high: float
    kind: str
    """``"interval"`` (from verified rows) or ``"guess"`` (of the pool, nothing promised)."""
    sentence: str
    interval: Interval | None = None


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
        said += " (most of them from the most suspicious, and counted as that)"
    if verified.decided is not None and len(verified.decided.sample_ids):
        known = verified.decided.is_wrong
        said += f", beside {int(known.sum()):,} of {len(known):,} that people had checked"
    sentence = (
        f"{num_wrong} of {verified.size} labels checked at random are wrong{said}: {percent(interval.low)} to "
        f"{percent(interval.high)} of {num_labeled:,} ({percent(interval.level)} interval, "
        f"{interval.kind_in_words})."
    )
    return NoiseRate(interval.low, point, interval.high, "interval", sentence, interval=interval)


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
        left = "every label in question is checked"
    elif noise_rate.kind != "interval":
        left = f"how many are left is not known (guesses say {low:,} to {high:,})"
    sentence = f"{plural(num_found_wrong, 'wrong label')} found so far; {left}."
    return ErrorsLeft(num_found_wrong, low, point, high, noise_rate.kind, sentence)


def class_reports(
    given_labels: NDArray[np.integer],
    error_probability: NDArray[np.floating],
    is_doubtful: NDArray[np.bool_],
    num_classes: int,
    *,
    intervals: Sequence[Interval] | None = None,
) -> list[ClassReport]:
    """Return one report a class; where labels alone cannot judge it, say so instead of guessing.

    Args:
        given_labels: (N,) int, -1 unlabeled.
        error_probability: (N,) float, NaN where unknown.
        is_doubtful: (N,) bool, usually ``Calibrated.is_label_issue``.
        num_classes: K.
        intervals: of ``per_class_intervals``, where verified rows exist.
    """
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
        why = _why_not_judged(int(sizes[k]), int(doubtful[k]), seen)
        reports.append(ClassReport(k, int(sizes[k]), int(doubtful[k]), float(wrong[k]), seen, bool(why), why))
    return reports


def _why_not_judged(
    size: int,
    num_doubtful: int,
    seen: Interval | None,
) -> str:
    if size < MIN_CLASS_SIZE:
        return f"only {plural(size, 'sample', 'carry')} this label; at least {MIN_CLASS_SIZE} are needed"
    if 2 * num_doubtful > size:
        return (
            f"the engines doubt {percent(num_doubtful / size)} of its labels: either they do not know the class, "
            "or its labels do not define it"
        )
    if seen is not None and seen.low > 0.5:
        labels = plural(seen.num_rows, "verified label")
        return f"{seen.num_hits} of its {labels} are wrong; most name another class"
    return ""
