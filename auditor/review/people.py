"""How well people judge: planted controls whose answer is settled, and how far people agree with each other.

A control is a sample that two people have already judged alike, or one that an audit trusts most in its class. It
is shown on Verify like any drawn sample, without the suggestion, to somebody who never said anything about it. Its
verdict is kept under a kind of its own (``vocabulary.CONTROL``): it decides no label, is in no draw and backs no
promise. The owner sets for each dataset which share of the looks they are (``set_control_rate``); until then
``AUDITOR_CONTROLS`` says it, or none are planted.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from auditor.catalog import audits, datasets, draws, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import NewReview, Review
from auditor.ground.errors import VerificationError
from auditor.ground.vocabulary import (
    BLIND,
    CONTROL,
    KEEP,
    LABEL,
    NOT_CLEAR,
    RELABEL,
    SUSPECT,
    UNDO,
    from_verdict,
)
from auditor.review import blind
from auditor.statistics import Interval, rate_interval

EXEMPLARS_A_CLASS = 3
"""Most trusted samples of a class that may be planted."""
MOST_RATE = 0.5
FEWEST_SHARED = 10
"""Samples that two people must both have judged before their kappa, or all people's alpha, is worth a figure."""
FEWEST_FOR_ALPHA = 3
"""People; of two, Cohen's kappa says how far they agree."""


@dataclass(frozen=True)
class Person:
    """What is known about one reviewer."""

    name: str
    num_verdicts: int
    """Samples that they judged, controls apart."""
    right: Interval
    """Share of planted controls that they judged as settled; holds at every number of controls."""
    agrees: Interval
    """Share of the samples that others judged too on which they say the same as the others' majority."""


@dataclass(frozen=True)
class Pair:
    """How far two people agree."""

    first: str
    second: str
    num_shared: int
    num_same: int
    kappa: float | None
    """Cohen's kappa (1960): agreement beyond chance, 1 = always; None for too few samples or one answer alone."""


@dataclass(frozen=True)
class People:
    """Everybody who judged labels of a dataset."""

    persons: list[Person]
    pairs: list[Pair]
    alpha: float | None = None
    """Krippendorff's alpha (1970, nominal) among three people or more, over samples that two or more judged: 1 =
    they always agree, 0 = as chance does. None for fewer people or samples, one answer alone, or without nltk."""
    num_shared: int = 0
    """Samples that two people or more judged."""
    lacks: str = ""
    """What to install where alpha is None because a package is missing."""


def control_rate(dataset_id: int) -> float:
    """The share of looks on Verify that are controls: as the owner set it, else ``AUDITOR_CONTROLS``, else 0.

    Raises:
        VerificationError: nobody set it and ``AUDITOR_CONTROLS`` is no share from 0 to 0.5.
        NotFoundError: there is no such dataset.
    """
    with session() as open_session:
        chosen = datasets.by_id(open_session, dataset_id).control_rate
    if chosen is not None:
        return chosen
    text = os.environ.get("AUDITOR_CONTROLS", "0")
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    return _checked(rate, f"AUDITOR_CONTROLS is {text!r}")


def set_control_rate(dataset_id: int, rate: float) -> None:
    """Let a share ``rate`` of the looks on Verify be controls from now on; what was judged stays as it is.

    Raises:
        VerificationError: it is no share from 0 to 0.5.
        NotFoundError: there is no such dataset.
    """
    _checked(rate, f"the rate of controls is {rate!r}")
    with session() as open_session:
        datasets.by_id(open_session, dataset_id)
        datasets.change(open_session, dataset_id, control_rate=rate)


def _checked(rate: float, given: str) -> float:
    if not 0.0 <= rate <= MOST_RATE:
        raise VerificationError(f"{given}; use a share from 0 to {MOST_RATE}, such as 0.05.")
    return rate


def planted(
    dataset_id: int, pending: Sequence[tuple[int, int]], reviewer: str, rate: float
) -> list[tuple[int, int]]:
    """The (draw_id, sample_id) pairs with controls behind a ``rate`` of them, the same ones at every call.

    A control stands under the draw of the sample before it, so that nothing on the screen tells it apart.
    """
    if not rate or not pending:
        return list(pending)
    free = ask(_free_controls, dataset_id, reviewer, {sample for _, sample in pending})
    dealt: list[tuple[int, int]] = []
    for draw_id, sample in pending:
        dealt.append((draw_id, sample))
        if free and _chance(reviewer, sample) < rate:
            dealt.append((draw_id, free.pop(0)))
    return dealt


def record(draw_id: int, sample_id: int, decision: str, *, label: int | None, reviewer: str) -> str:
    """Record a blind verdict of the Verify screen, on a drawn sample or on a control planted among them.

    Returns what asks for another look, as ``blind.record`` does.

    Raises:
        VerificationError: as ``blind.record``, which also refuses what is no control.
    """
    with session() as open_session:
        row = draws.get(open_session, draw_id)
        is_control = sample_id not in row.sample_ids and sample_id in _answers(open_session, row.dataset_id)
        classes = len(datasets.by_id(open_session, row.dataset_id).class_names)
        is_fit = decision != LABEL or (label is not None and 0 <= label < classes)
        if is_control and is_fit and reviewer.strip():
            datasets.lock(open_session, row.dataset_id)
            sample = datasets.sample(open_session, row.dataset_id, sample_id)
            said, corrected = from_verdict(decision, label, sample.given_label)
            verdict = NewReview(
                dataset_id=row.dataset_id,
                sample_id=sample_id,
                kind=CONTROL,
                decision=said,
                label=corrected,
                reviewer=reviewer.strip(),
                source="verify",
            )
            reviews.append(open_session, verdict)
            return ""
    return blind.record(draw_id, sample_id, decision, label=label, reviewer=reviewer)


def people(dataset_id: int) -> People:
    """Accuracy on controls and agreement, by person and by pair; no promise rests on any of it."""
    with session() as open_session:
        log = reviews.log(open_session, dataset_id, kinds=[SUSPECT, BLIND, CONTROL])
        answers = _answers(open_session, dataset_id)
        given = datasets.given_labels(open_session, dataset_id)
    said = _said(log, given.tolist())
    controls = [row for row in log if row.kind == CONTROL and row.decision != UNDO]
    names = sorted(set(said) | {row.reviewer for row in controls})
    persons = []
    for name in names:
        own = {row.sample_id: row for row in controls if row.reviewer == name and row.sample_id in answers}
        right = sum(_answer(row, int(given[sample])) == answers[sample] for sample, row in own.items())
        shared = [
            verdict == others[0]
            for sample, verdict in said.get(name, {}).items()
            if (others := _majority(said, sample, apart_from=name))
        ]
        persons.append(
            Person(
                name,
                len(said.get(name, {})),
                rate_interval(right, len(own), is_watched=True),
                rate_interval(sum(shared), len(shared), is_watched=True),
            )
        )
    pairs = [_pair(said, *two) for two in itertools.combinations(sorted(said), 2)]
    return People(persons, [pair for pair in pairs if pair.num_shared], *_alpha(said))


def _said(log: Sequence[Review], given: Sequence[int]) -> dict[str, dict[int, str]]:
    """By person and sample, the latest answer that was not taken back: a class, or why there is none."""
    undone = {row.reverts for row in log if row.decision == UNDO}
    found: dict[str, dict[int, str]] = {}
    for row in log:
        if row.kind in (SUSPECT, BLIND) and row.decision != UNDO and row.id not in undone:
            found.setdefault(row.reviewer, {})[row.sample_id] = _answer(row, given[row.sample_id])
    return found


def _answer(row: Review, given: int) -> str:
    if row.decision == KEEP:
        return str(given)
    return str(row.label) if row.decision == RELABEL else row.decision


def _majority(said: Mapping[str, Mapping[int, str]], sample: int, *, apart_from: str) -> list[str]:
    """What most others say of a sample; empty where nobody else did or they are split."""
    others = [answers[sample] for name, answers in said.items() if name != apart_from and sample in answers]
    ranked = sorted(set(others), key=others.count, reverse=True)
    is_split = len(ranked) > 1 and others.count(ranked[0]) == others.count(ranked[1])
    return [] if is_split else ranked[:1]


def _pair(said: Mapping[str, Mapping[int, str]], first: str, second: str) -> Pair:
    shared = sorted(set(said[first]) & set(said[second]))
    left, right = ([said[name][sample] for sample in shared] for name in (first, second))
    kappa = None
    if len(shared) >= FEWEST_SHARED and len({*left, *right}) > 1:
        from sklearn.metrics import cohen_kappa_score  # half a second that commands need not wait

        kappa = float(cohen_kappa_score(left, right))
    same = sum(one == other for one, other in zip(left, right, strict=True))
    return Pair(first, second, len(shared), same, kappa)


def _alpha(said: Mapping[str, Mapping[int, str]]) -> tuple[float | None, int, str]:
    """Krippendorff's alpha of all together, the number of samples that it rests on, and what it lacks."""
    judged = Counter(sample for answers in said.values() for sample in answers)
    shared = {sample for sample, count in judged.items() if count > 1}
    rows = [
        (name, sample, answers[sample])
        for name, answers in said.items()
        for sample in shared & answers.keys()
    ]
    num_people, num_answers = len({name for name, _, _ in rows}), len({answer for _, _, answer in rows})
    if num_people < FEWEST_FOR_ALPHA or len(shared) < FEWEST_SHARED or num_answers < 2:
        return None, len(shared), ""
    try:
        from nltk.metrics.agreement import AnnotationTask  # seconds that commands need not wait
    except ModuleNotFoundError:
        needs = "Krippendorff's alpha needs the package nltk: pip install 'label-auditor[team]'."
        return None, len(shared), needs
    return float(AnnotationTask(data=rows).alpha()), len(shared), ""


def _answers(open_session: Session, dataset_id: int) -> dict[int, str]:
    """The settled answer of every possible control by sample_id: what two people said alike, then exemplars."""
    given = datasets.given_labels(open_session, dataset_id).tolist()
    by_sample: dict[int, list[str]] = {}
    for answers in _said(reviews.log(open_session, dataset_id, kinds=[SUSPECT, BLIND]), given).values():
        for sample, answer in answers.items():
            by_sample.setdefault(sample, []).append(answer)
    found = {
        sample: said[0]
        for sample, said in by_sample.items()
        if len(said) > 1 and len(set(said)) == 1 and said[0] not in NOT_CLEAR
    }
    audit = audits.latest_finished(open_session, dataset_id)
    if audit is not None:
        for label in range(len(datasets.by_id(open_session, dataset_id).class_names)):
            for sample in scores.most_trusted(open_session, audit.id, label, EXEMPLARS_A_CLASS):
                if sample not in by_sample:
                    found[sample] = str(label)
    return found


def _free_controls(open_session: Session, dataset_id: int, reviewer: str, apart_from: set[int]) -> list[int]:
    """Controls that the reviewer has never seen, in an order of their own."""
    known = {row.sample_id for row in reviews.log(open_session, dataset_id) if row.reviewer == reviewer}
    drawn = {one for row in draws.of_dataset(open_session, dataset_id) for one in row.sample_ids}
    # What was drawn is or will be judged as drawn; under another draw's name it would be a second verdict.
    free = [
        one
        for one in _answers(open_session, dataset_id)
        if one not in known and one not in apart_from and one not in drawn
    ]
    return sorted(free, key=lambda one: _chance(reviewer, one + 1))


def _chance(reviewer: str, sample: int) -> float:
    """A number in [0, 1) that is always the same for a person and a sample."""
    return zlib.crc32(f"{reviewer}/{sample}".encode()) / 2**32
