"""Random samples: which labels are drawn, to be judged by a person who does not see the suggestion.

Such a sample alone lets anybody say how many labels are wrong, so it is kept apart from reviews of suspects, which
are not random. Rows at even places of a draw calibrate, rows at odd places may be trusted by the next audit; the
draw fixes which is which before anybody looks.

A draw leaves out what people have decided already: that is known and counted as it is, and nobody is asked twice.
A draw *for the rate* takes every other label with the same chance. A draw *for promises* takes most rows from the
head of an audit's ranking, twice as many labels as are guessed to be wrong, and some from the rest: about half of
its looks settle a wrong label, and inside the head few of them back a promise. The head is chosen from scores
alone, so inside it, and inside the rest, every label has the same chance; the draw keeps both chances.
"""

from __future__ import annotations

import functools
import math
import shlex
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from auditor import kind
from auditor.catalog import audits, datasets, draws, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Dataset, Draw, NewDraw, Review
from auditor.ground.errors import VerificationError
from auditor.ground.numbers import number_text
from auditor.ground.settings import Settings, settings
from auditor.ground.vocabulary import NOT_CLEAR, PROMISES, PURPOSES, RATE
from auditor.ground.wording import plural
from auditor.statistics import NoiseRate, draw_zones, share_for_head

FIRST_SIZE = 200
"""Rows of a first draw: enough to see a list of a tenth of the labels."""
FEWEST = 20
"""Rows of a first draw of a small set, if it has as many: fewer say next to nothing."""
FEWEST_FOR_PROMISES = 60
"""Rows below which a draw is uniform unless somebody says: they back no list, and of a head they tell little of the
rest."""


def draw(
    dataset_name: str, size: int, *, seed: int = 0, purpose: str = RATE, tolerance: float | None = None
) -> Draw:
    """Draw ``size`` labeled samples at random that no earlier draw holds and nobody has decided on.

    ``purpose``: ``rate`` draws uniformly, so that uniform draws together are again a uniform sample; ``promises``
    draws most from the head of the newest finished audit's ranking and some from the rest. ``tolerance``, of
    numbers only: a given one is wrong where it is farther than this from what the person says.

    Raises:
        VerificationError: fewer labeled samples are left than asked for, the purpose is unknown, no audit has
            ranked the labels yet, or numbers without a tolerance or with another one than in earlier draws.
    """
    return ask(draw_in, dataset_name, size, seed, purpose, tolerance)


def usual_purpose(dataset_name: str, size: int) -> str:
    """Return what a further draw is for unless somebody says: promises once an audit has ranked the labels.

    A draw of fewer than ``FEWEST_FOR_PROMISES`` rows is for the rate.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        has_ranking = audits.latest_finished(open_session, dataset.id) is not None
    return PROMISES if has_ranking and size >= FEWEST_FOR_PROMISES else RATE


def zones_in_words(row: Draw) -> str:
    """``, 140 of the 9,000 most suspicious labels and 60 of the rest``; empty for a uniform draw."""
    if not row.head:
        return ""
    head, rest = row.zones
    suspicious = plural(head["size"], "most suspicious label")
    return f", {head['drawn']} of the {suspicious} and {rest['drawn']} of the rest"


def num_drawn(dataset_id: int) -> int:
    """Rows of all draws, judged or not."""
    return sum(len(row.sample_ids) for row in ask(draws.of_dataset, dataset_id))


def next_size(dataset_id: int) -> int:
    """Return how many rows the next draw should have: of a small set a third, later twice the largest.

    The intervals of an enlarged sample hold at every size, which makes them wider: a few more rows would not help.
    """
    rows, num_left = _drawn_and_left(dataset_id)
    if not rows:  # a set that is all verified has nothing left to promise
        return min(num_left, FIRST_SIZE, max(FEWEST, num_left // 30 * 10))
    return min(num_left, max([FIRST_SIZE, *(2 * row.size for row in rows)]))


def num_left(dataset_id: int) -> int:
    """Return how many labels a further draw could take: in question, not drawn yet, and decided by nobody."""
    return _drawn_and_left(dataset_id)[1]


def _drawn_and_left(dataset_id: int) -> tuple[list[Draw], int]:
    with session() as open_session:
        rows = draws.of_dataset(open_session, dataset_id)
        decided = [i for i, row in reviews.outcomes(open_session, dataset_id).items() if is_settled(row)]
        apart = datasets.in_question(open_session, dataset_id, decided)
    drawn = {sample for row in rows for sample in row.sample_ids}
    return rows, num_in_question(dataset_id) - len(drawn | set(apart))


def num_in_question(dataset_id: int) -> int:
    """Return how many labels can be drawn; counted once, for an import settles it."""
    return _num_in_question(settings(), dataset_id, str(ask(datasets.by_id, dataset_id).created_at))


@functools.lru_cache(maxsize=64)
def _num_in_question(home: Settings, dataset_id: int, version: str) -> int:  # noqa: ARG001
    return ask(datasets.num_in_question, dataset_id)


def tolerance_of(dataset_id: int) -> float | None:
    """The tolerance of the draws of a dataset of numbers; None before the first."""
    return next((row.tolerance for row in ask(draws.of_dataset, dataset_id)), None)


def tolerance_sentence(dataset_id: int) -> str:
    """Return which numbers are wrong, by the tolerance of the draws; empty for other labels and before the
    first draw.
    """
    tolerance = tolerance_of(dataset_id)
    if tolerance is None:
        return ""
    return f"Wrong is a number that is farther than {number_text(tolerance)} from the one that a person saw."


def next_command(dataset_name: str) -> str:
    """The command that draws as many rows as there are to draw; empty where every label was drawn."""
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        size = next_size(dataset.id)
    known = tolerance_of(dataset.id)
    named = "T" if known is None else number_text(known)
    tolerance = f" --tolerance {named}" if kind.of(dataset).needs_tolerance else ""
    return (
        f"auditor verify {shlex.quote(dataset_name)} --draw {size}{tolerance} --out sample.csv"
        if size
        else ""
    )


def in_question(open_session: Session, dataset_id: int) -> NDArray[np.bool_]:
    """(N,) bool: what can be drawn. Labels that the source itself calls trusted are not in question."""
    labels = datasets.given_labels(open_session, dataset_id)
    return (labels >= 0) & ~datasets.trusted_in_source(open_session, dataset_id)


def ranked(open_session: Session, audit: Audit, pool: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return what can be drawn, the most suspicious first; what the audit has no score for stands last.

    By trust, as promises read it: the order of a list moves while people review.
    """
    known = scores.columns(open_session, audit.id, ("sample_id", "trust_score"))
    trust = np.full(int(max(known["sample_id"].max(), pool.max())) + 1, np.nan)
    trust[known["sample_id"]] = known["trust_score"]
    return np.asarray(pool[np.argsort(trust[pool], kind="stable")], dtype=np.int64)


def draw_in(
    open_session: Session, dataset_name: str, size: int, seed: int, purpose: str, tolerance: float | None
) -> Draw:
    """``draw`` in the caller's transaction."""
    if purpose not in PURPOSES:
        raise VerificationError(f"A draw for {purpose!r} is unknown; use one of {', '.join(PURPOSES)}.")
    if not 0 <= seed < 2**31:
        raise VerificationError(f"The seed is {seed}; use a whole number from 0 to {2**31 - 1}.")
    dataset = datasets.get(open_session, dataset_name)
    datasets.lock(open_session, dataset.id)  # a draw at the same moment would take the same samples
    earlier = draws.of_dataset(open_session, dataset.id)
    _check_tolerance(dataset, tolerance, earlier)
    drawn = np.array([sample for one in earlier for sample in one.sample_ids], dtype=np.int64)
    asked = in_question(open_session, dataset.id)
    counting = reviews.outcomes(open_session, dataset.id)
    decided = [one for one, row in sorted(counting.items()) if asked[one] and is_settled(row)]
    pool = np.setdiff1d(np.flatnonzero(asked), np.concatenate([drawn, np.array(decided, dtype=np.int64)]))
    if size < 1 or size > len(pool):
        raise VerificationError(
            f"{plural(size, 'sample')} cannot be drawn; {plural(len(pool), 'labeled sample', 'are')} left that "
            "nobody drew before or decided on."
        )
    generator = np.random.default_rng([seed, len(earlier)])
    audit = audits.latest_finished(open_session, dataset.id)
    if purpose == RATE:
        chosen = generator.choice(pool, size=size, replace=False)
        row = NewDraw(
            dataset_id=dataset.id,
            seed=seed,
            size=size,
            sample_ids=[int(one) for one in chosen],
            audit_id=None if audit is None else audit.id,
            zones=[_everything(open_session, audit, pool, size) | {"decided": decided}],
            tolerance=tolerance,
        )
        return draws.add(open_session, row)
    if audit is None:
        raise VerificationError(
            f"No audit has ranked the labels of {dataset_name}, so there is no head to draw from; "
            "draw for the rate, or audit first."
        )
    guessed = share_for_head(NoiseRate(**audit.summary.noise_rate))
    drawn_now = draw_zones(ranked(open_session, audit, pool), guessed, size, generator)
    zones: list[dict[str, Any]] = [
        {"name": name, "size": len(zone), "drawn": num, "probability": num / max(1, len(zone))}
        for name, zone, num in (
            ("head", drawn_now.head, drawn_now.num_from_head),
            ("rest", drawn_now.rest, size - drawn_now.num_from_head),
        )
    ]
    zones[0] |= {"samples": drawn_now.head.tolist(), "decided": decided}
    row = NewDraw(
        dataset_id=dataset.id,
        seed=seed,
        size=size,
        sample_ids=drawn_now.sample_ids.tolist(),
        purpose=PROMISES,
        audit_id=audit.id,
        zones=zones,
        tolerance=tolerance,
    )
    return draws.add(open_session, row)


def _everything(
    open_session: Session, audit: Audit | None, pool: NDArray[np.int64], size: int
) -> dict[str, Any]:
    """The zone of a uniform draw, with the samples that a ranking thinks wrong: as many as are guessed to be."""
    zone = {"name": "everything", "size": len(pool), "drawn": size, "probability": size / len(pool)}
    if audit is None:
        return zone
    guessed = share_for_head(NoiseRate(**audit.summary.noise_rate))
    likely_wrong = ranked(open_session, audit, pool)[: round(guessed * len(pool))]
    return zone | {"likely_wrong": likely_wrong.tolist()}


def is_settled(row: Review) -> bool:
    """Return whether somebody looked and what they said of the label is clear."""
    return row.decision not in NOT_CLEAR


def _check_tolerance(dataset: Dataset, tolerance: float | None, earlier: list[Draw]) -> None:
    """A tolerance belongs to numbers, and all draws of a dataset have the same: they are counted together."""
    labels = kind.of(dataset)
    if not labels.needs_tolerance:
        if tolerance is not None:
            raise VerificationError(
                f"The labels of {dataset.name} are {labels.words}; leave the tolerance out."
            )
        return
    if tolerance is None or not (math.isfinite(tolerance) and tolerance >= 0):
        raise VerificationError(
            "Numbers need a tolerance, 0 or more: a given number is wrong where it is farther than this from the "
            "one that you see.",
            field="tolerance",
        )
    before = next((row.tolerance for row in earlier if row.tolerance != tolerance), None)
    if before is not None:
        raise VerificationError(
            f"The earlier draws of {dataset.name} have the tolerance {number_text(before)}; name the same, so that "
            "they can be counted together."
        )
