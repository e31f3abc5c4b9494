"""How far the work of people is: what was found, what is left, and whether going on is worth it.

Reviews and blind verdicts count together, so that every screen, the report and the command line say the same.
What a decision cannot change is kept between calls: with a million samples the bench asks after every few of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from auditor.catalog import audits, datasets, draws, reading, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Dataset, Review
from auditor.ground.settings import Settings, settings
from auditor.ground.vocabulary import FOUND_WRONG, NOT_CLEAR, SUSPECT
from auditor.ground.wording import no_suspects, percent, plural
from auditor.results import arrays, statements
from auditor.review import decisions, drawing
from auditor.review.decisions import Findings
from auditor.statistics import ErrorsLeft, NoiseRate, first_interval, noise

PAUSE_S = 120.0
"""A longer gap between two decisions is a pause, not reviewing time."""
PACE_WINDOW = 50
"""Decisions that the current hit rate and pace are taken from."""
FEW_LOOKS = 20
"""Rows that a person judges in a few minutes, and latest ones that the end of a queue is told by: a list falls."""
LOW_HIT_RATE = 0.05
NEXT = 40
"""Labels that the end of a queue offers; they are less suspicious, so at most as many are wrong as before."""
FEW_LEFT = 0.01
"""Share of wrong labels up to which a list that yields little may be left; the worst that can be left counts."""


@dataclass(frozen=True)
class ReviewProgress:
    """How far the review of an audit's suspects is."""

    decided: int
    found: int
    """Labels that a person found wrong, reviewing suspects or judging at random."""
    hit_rate: float | None
    """Share of wrong labels among the latest suspects that somebody was sure about; None before the first."""
    per_minute: float | None
    left: ErrorsLeft
    advice: str
    """Whether going on is worth it, in one sentence."""
    few_latest: tuple[int, int]
    """Wrong ones among the latest ``FEW_LOOKS`` of them, and how many these are."""
    num_suspects: int
    """Labels that the audit flags."""
    is_little_left: bool
    """A random sample says that about ``FEW_LEFT`` of the labels in question or fewer are wrong and not found."""
    nothing: str
    """What is said where it flags none."""

    @property
    def end(self) -> str:
        """Return what the end of a queue says, where every suspect is checked: how many of the last ones were
        wrong, and what the next ones may hold.
        """
        if not self.num_suspects:
            return self.nothing
        wrong, latest = self.few_latest
        if not latest:
            return "Next: export the cleaned labels, or verify how many are left."
        labels = plural(latest, "checked label")
        said = f"Of the last {labels} {wrong:,} {'was' if wrong == 1 else 'were'} wrong."
        if wrong < LOW_HIT_RATE * latest:
            return f"{said} Most of what follows is labeled right."
        if self.left.kind == "interval":
            left = self.left
            if not left.has_middle:
                return f"{said} At most {plural(left.high, 'wrong label')} may be left."
            return f"{said} About {plural(left.point, 'wrong label')} may be left ({left.low:,} to {left.high:,})."
        most = round(wrong / latest * NEXT)
        return f"{said} The list goes on: of the next {NEXT} up to about {most:,} may be wrong too."


def progress(
    dataset_id: int, audit_id: int, *, queue: pd.DataFrame | None = None, reviewer: str | None = None
) -> ReviewProgress:
    """Return how far the review is, how fast it goes and whether going on is worth it.

    ``queue``: the next undecided suspects where only a part of them is reviewed, as ``scores.page`` gives them;
    None = those of the whole ranking. What is left is about the whole data set either way.
    ``reviewer``: whose pace it is; None = all people together.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, dataset_id)
        if queue is None:
            undecided = scores.SuspectFilter(only_undecided=True)
            upcoming = scores.page(open_session, audit, undecided, limit=PACE_WINDOW)
        else:
            upcoming = queue.head(PACE_WINDOW)
    outcomes = decisions.outcomes(dataset_id)
    known = findings(dataset, outcomes)
    left = errors_left(dataset, audit, known)
    num_in_question = drawing.num_in_question(dataset.id)
    # A class for a sample that had none is no wrong label found.
    looked_at = [row for sample_id, row in outcomes.items() if sample_id in known.decided]
    reviewed = sorted((row for row in looked_at if row.kind == SUSPECT), key=lambda row: row.created_at)
    sure = [row for row in reviewed if row.decision not in NOT_CLEAR][-PACE_WINDOW:]
    hit_rate = sum(row.decision in FOUND_WRONG for row in sure) / len(sure) if sure else None
    return ReviewProgress(
        decided=len(known.decided),
        found=left.found,
        hit_rate=hit_rate,
        few_latest=(sum(row.decision in FOUND_WRONG for row in sure[-FEW_LOOKS:]), len(sure[-FEW_LOOKS:])),
        num_suspects=audit.summary.num_label_issues or 0,
        is_little_left=left.kind == "interval" and left.point <= FEW_LEFT * num_in_question,
        nothing=no_suspects(left.found, is_order_alone=audit.summary.is_order_alone),
        per_minute=_pace([row for row in reviewed if reviewer in (None, row.reviewer)][-PACE_WINDOW:]),
        left=left,
        advice=_advice(
            left,
            num_in_question,
            drawing.num_left(dataset.id),
            hit_rate if len(sure) >= PACE_WINDOW else None,
            upcoming,
            is_part=queue is not None,
            is_guess=audit.summary.error_probability_is_guess,
        ),
    )


def findings(dataset: Dataset, outcomes: dict[int, Review] | None = None) -> Findings:
    """The samples in question that people looked at; ``outcomes`` where the caller has read them already."""
    known = decisions.outcomes(dataset.id) if outcomes is None else outcomes
    asked = ask(datasets.in_question, dataset.id, list(known))
    return decisions.findings(known, asked)


def errors_left(dataset: Dataset, audit: Audit, known: Findings) -> ErrorsLeft:
    """Return how many wrong labels are expected beyond those that people found, as the report says it."""
    return noise.errors_left(
        noise_rate(audit),
        drawing.num_in_question(dataset.id),
        num_found_wrong=len(known.wrong),
        num_found_right=len(known.right),
    )


def noise_rate(audit: Audit) -> NoiseRate:
    """``statements.noise_rate_now``, read again only after a word of a person or with new scores."""
    with session() as open_session:
        newest = (
            reviews.newest(open_session, audit.dataset_id),
            len(draws.of_dataset(open_session, audit.dataset_id)),
        )
    version = f"{audit.created_at} {arrays.ranked_at(audit)}"
    return _noise_rate(settings(), audit.id, version, newest)


@functools.lru_cache(maxsize=64)
def _noise_rate(home: Settings, audit_id: int, version: str, newest: tuple[int, int]) -> NoiseRate:  # noqa: ARG001
    audit = reading.audit(audit_id)
    return statements.noise_rate_now(audit)


def what_a_few_looks_tell(num_left: int) -> str:
    """The next step where nothing is verified, and what it would say of the labels that nobody checked."""
    looks = min(FEW_LOOKS, num_left)
    if looks == num_left:
        return f"{plural(looks, 'label', 'are')} all that nobody checked: do, and it is known"
    most = first_interval(0, looks, num_left).high
    said = f"if none of them is wrong, at most {percent(most)} of all that nobody checked are"
    return f"{plural(looks, 'label')} checked at random tell more: {said}"


def _advice_without_verified(left: ErrorsLeft, hit_rate: float | None, num_left: int) -> str:
    """No count of what is left, and never that it is clean: nothing backs either."""
    if left.high < 1 or not num_left:
        return "Every label in question is checked."
    seen = ""
    if hit_rate is not None:
        seen = f"{percent(hit_rate)} of the last {PACE_WINDOW} were wrong. "
    return f"{seen}How many wrong labels are left is not known. {what_a_few_looks_tell(num_left)}."


def left_in_words(left: ErrorsLeft, where: str = "") -> str:
    """``About 163 wrong labels are left (107 to 318)``; no number in the middle where no random sample backs it."""
    if left.kind != "interval":
        return (
            f"How many wrong labels are left{where} is not known (guesses say {left.low:,} to {left.high:,})"
        )
    if left.point == left.low:  # nothing in the middle that an end does not say
        span = f"{left.low:,}" if left.low == left.high else f"{left.low:,} to {left.high:,}"
        return f"{span} wrong {'label is' if left.high == 1 else 'labels are'} left{where}"
    noun = "wrong label is" if left.point == 1 else "wrong labels are"
    return f"About {left.point:,} {noun} left{where} ({left.low:,} to {left.high:,})"


def wrong_in_words(labels: str, left: ErrorsLeft | None) -> str:
    """``of the labels are wrong``; once people found some ``... were wrong as given, about 24 are left (8 to 39)``.

    ``left`` is None where no audit says it.
    """
    if left is None or not left.found:
        return f"of the {labels} are wrong"
    said = f"of the {labels} were wrong as given"
    if left.kind != "interval":
        return said
    if not left.high:
        return f"{said}, none is left"
    about, number = ("about", left.point) if left.has_middle else ("at most", left.high)
    spread = f" ({left.low:,} to {left.high:,})" if left.has_middle else ""
    return f"{said}, {about} {number:,} {'is' if number == 1 else 'are'} left{spread}"


def _pace(rows: Sequence[Review]) -> float | None:
    times = sorted(row.created_at for row in rows)
    gaps = [(b - a).total_seconds() for a, b in itertools.pairwise(times)]
    working = [gap for gap in gaps if gap <= PAUSE_S]
    return 60 * len(working) / sum(working) if working and sum(working) > 0 else None


def _advice(
    left: ErrorsLeft,
    num_in_question: int,
    num_left: int,
    hit_rate: float | None,
    upcoming: pd.DataFrame,
    *,
    is_part: bool,
    is_guess: bool,
) -> str:
    """Stopping is only called reasonable where verified rows say that even the most that may be left allows it.

    ``is_guess``: nothing calibrates the suspects' probabilities, so no share of the next ones is said.
    """
    if left.kind != "interval":
        return _advice_without_verified(left, hit_rate, num_left)
    if left.high < 1:
        return "No wrong label should be left; stopping is reasonable."
    span = left_in_words(left, " in the whole dataset" if is_part else "")
    if hit_rate is not None and hit_rate < LOW_HIT_RATE:
        few = f"only {percent(hit_rate)} of the last {PACE_WINDOW} were wrong"
        if left.high <= FEW_LEFT * num_in_question:
            return f"{span}, and {few}; stopping is reasonable."
        return f"{span}, but {few}: most of the next suspects are labeled right."
    if upcoming.empty or is_guess:
        if is_guess:
            return f"{span}."
        return f"{span}; this queue has no undecided suspect." if is_part else f"{span}."
    share = percent(float(upcoming.error_probability.astype(float).mean()))
    about = "" if share.startswith(("less", "more")) else "about "
    place = "in this queue, " if is_part else ""
    return f"{span}; {place}{about}{share} of the next {len(upcoming)} should be wrong."
