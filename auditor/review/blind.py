"""Blind verdicts on drawn samples: recorded at once, never overwritten, undone by another row of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlmodel import Session

from auditor import kind
from auditor.catalog import datasets, draws, reviews
from auditor.catalog.db import ask, session
from auditor.catalog.records import Draw, NewReview, Review
from auditor.ground.errors import VerificationError
from auditor.ground.vocabulary import (
    BLIND,
    DISPUTED,
    UNDO,
)
from auditor.kind import Said
from auditor.review import schema

OWN, OTHERS = "unlike your own decision, which stands", "in dispute with what others said"
ASKS_OWN = (
    "You decided something else on it before, and that stands. Look once more: Suspects, People differ."
)
ASKS_OTHERS = (
    "Somebody else said something else, so its label stays. Look once more: Suspects, People differ."
)


def record(
    draw_id: int,
    sample_id: int,
    decision: str,
    *,
    label: int | None = None,
    number: float | None = None,
    labels: Sequence[int] | None = None,
    reviewer: str,
) -> str:
    """Record one blind verdict: ``label`` (with the class, number or set that is seen), ``exclude`` or ``unsure``.

    Returns what asks for another look because somebody, or the reviewer before, said something else; else ``""``.

    Raises:
        VerificationError: the sample is not in the draw, or the verdict is none of these.
        ReviewError: a value is of another type, such as a class 1.5.
    """
    fields = {
        "draw": draw_id,
        "sample": sample_id,
        "decision": decision,
        "label": label,
        "number": number,
        "labels": labels,
        "reviewer": reviewer,
    }
    said = schema.read(schema.BlindVerdict, fields)
    return ask(_record, said)


def undo(draw_id: int, sample_id: int, *, reviewer: str) -> None:
    """Take back the reviewer's verdict; the sample waits to be judged again. Nothing happens where there is none.

    Raises:
        VerificationError: somebody else's later verdict counts.
    """
    with session() as open_session:
        row = draws.get(open_session, draw_id)
        datasets.lock(open_session, row.dataset_id)
        stands = _standing(open_session, row, sample_id)
        if stands is None:
            return
        if stands.reviewer != reviewer.strip():
            raise VerificationError(
                f"{stands.reviewer} judged sample {sample_id} after you; that verdict is not yours to undo."
            )
        key, taken_back = (draw_id, sample_id), Said(UNDO)
        _add_new(open_session, row.dataset_id, key, taken_back, reviewer.strip(), stands)


def pending(dataset_id: int) -> list[tuple[int, int]]:
    """(draw_id, sample_id) still to be judged, in drawing order."""
    with session() as open_session:
        done = reviews.verdicts(open_session, dataset_id)
        rows = draws.of_dataset(open_session, dataset_id)
    return [
        (row.id, sample)
        for row in rows
        for sample in row.sample_ids
        if row.id and (row.id, sample) not in done
    ]


def num_judged(dataset_id: int) -> int:
    """Verdicts that count."""
    return len(ask(reviews.verdicts, dataset_id))


def is_near(number: float, given: float, tolerance: float) -> bool:
    """Return whether a given number is right: no farther from the one that was seen than the tolerance."""
    # One part in 10^9 of slack: 0.3 is 0.1 away from 0.2 for everybody but a computer.
    return abs(number - given) <= tolerance + 1e-9 * max(abs(number), abs(given), tolerance)


def _record(open_session: Session, blind: schema.BlindVerdict) -> str:
    draw_id, sample_id, decision = blind.draw, blind.sample, blind.decision
    row = draws.get(open_session, draw_id)
    dataset = datasets.by_id(open_session, row.dataset_id)
    if sample_id not in row.sample_ids:
        raise VerificationError(f"Sample {sample_id} is not part of draw {draw_id}; only drawn ones count.")
    if not blind.reviewer.strip():
        raise VerificationError("A verdict needs the reviewer's name.")
    datasets.lock(open_session, row.dataset_id)
    sample = datasets.sample(open_session, row.dataset_id, sample_id)
    seen = Said(decision, blind.label, blind.number, _set(blind.labels))
    said = kind.of(dataset).judged(seen, dataset, sample, row)
    stands = _standing(open_session, row, sample_id)
    reviewer = blind.reviewer.strip()
    _add_new(open_session, row.dataset_id, (draw_id, sample_id), said, reviewer, stands)
    return {OWN: ASKS_OWN, OTHERS: ASKS_OTHERS}.get(
        _asks(open_session, row.dataset_id, sample_id, reviewer), ""
    )


def _asks(open_session: Session, dataset_id: int, sample_id: int, reviewer: str) -> str:
    """``OWN`` where the reviewer's decision says something else than their verdict, ``OTHERS`` in a dispute."""
    log = reviews.log(open_session, dataset_id, sample_id)
    counts = reviews.counting(log)
    if counts is not None and counts.decision == DISPUTED:
        return OTHERS
    mine = [one for one in reviews.verdicts_of(log) if one.reviewer == reviewer]
    return OWN if mine and reviews.differs_from_own(log, mine[0]) else ""


def _standing(open_session: Session, row: Draw, sample_id: int) -> Review | None:
    """The verdict that counts on a sample of the draw, or None."""
    log = reviews.log(open_session, row.dataset_id, sample_id)
    return reviews.latest_verdicts(log).get((row.id, sample_id))


def record_all(dataset_id: int, verdicts: Mapping[tuple[int, int], Said], reviewer: str) -> Counter[str]:
    """Record checked verdicts by (draw_id, sample_id).

    Returns how many were left to whom, and how many ask for another look.
    """
    if verdicts and not reviewer:
        raise VerificationError("A verdict needs the reviewer's name.")
    left: Counter[str] = Counter()
    with session() as open_session:
        datasets.lock(open_session, dataset_id)  # a verdict given meanwhile would be overruled unseen
        # Once: reading it for every row takes minutes.
        log = reviews.log(open_session, dataset_id, kinds=[BLIND])
        standing_now = reviews.latest_verdicts(log)
        own = {
            (row.draw_id, row.sample_id, row.decision, row.label, row.number, _set(row.labels))
            for row in log
            if row.reviewer == reviewer
        }
        for key, said in verdicts.items():
            stands = standing_now.get(key)
            if stands is not None and stands.reviewer != reviewer and (*key, *said) in own:
                left[f"left to {stands.reviewer}, who judged later"] += 1
                continue
            _add_new(open_session, dataset_id, key, said, reviewer, stands)
            if asks := _asks(open_session, dataset_id, key[1], reviewer):
                left[asks] += 1
    return left


def _add_new(
    open_session: Session,
    dataset_id: int,
    key: tuple[int, int],
    said: Said,
    reviewer: str,
    stands: Review | None,
) -> None:
    """Append a verdict; one that is resent is no second one."""
    stood = stands and Said(stands.decision, stands.label, stands.number, _set(stands.labels))
    if stands is None or stood != said or stands.reviewer != reviewer:
        draw_id, sample_id = key
        verdict = NewReview(
            dataset_id=dataset_id,
            draw_id=draw_id,
            sample_id=sample_id,
            kind=BLIND,
            decision=said.decision,
            label=said.label,
            number=said.number,
            labels=None if said.labels is None else list(said.labels),
            reviewer=reviewer,
            source="verify",
            reverts=stands.id if stands is not None and said.decision == UNDO else None,
        )
        reviews.append(open_session, verdict)


def _set(labels: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if labels is None else tuple(labels)
