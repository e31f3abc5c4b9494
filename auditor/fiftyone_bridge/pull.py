"""Bring back what a person decided in FiftyOne, as reviews with who and when.

A sample's ``last_modified_at`` is when it was decided (we write without touching it). Where both sides changed,
the later decision counts and the other one is kept in the log as taken back; what cannot be understood is
listed and left as it is. The catalog is written first, in one transaction, then FiftyOne is brought in
line with it: a kill between the two is made good by the next pull, and pulling twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlmodel import Session

from auditor.bridges import fiftyone_door
from auditor.catalog import reading, reviews
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, NewReview, Review
from auditor.fiftyone_bridge import labels as labelling
from auditor.fiftyone_bridge import processes, push
from auditor.fiftyone_bridge.fields import BASE, INDEX, review_document
from auditor.fiftyone_bridge.labels import Labels, Value
from auditor.fiftyone_bridge.merge import (
    TAG_OF,
    Base,
    Said,
    decision_tags,
    has_changed,
    spoken,
    understand,
    wanted_tags,
)
from auditor.fiftyone_bridge.samples import (
    Here,
    base_of,
    read_samples,
    tag_changes,
    updates,
)
from auditor.ground.errors import ReviewError
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.vocabulary import DECISIONS, UNDO
from auditor.review import decisions as reviewing

SOURCE = "fiftyone"


@dataclass(frozen=True)
class Listed:
    """Something about one sample that a person should look at."""

    sample_id: int
    filepath: str
    kind: str
    """``unknown``, ``contradiction`` or ``both changed``."""
    text: str


@dataclass(frozen=True)
class Pulled:
    """What a pull brought."""

    name: str
    counts: dict[str, int]
    """Reviews written, by decision."""
    num_same: int
    """Changed samples that already show the current decision."""
    listed: list[Listed]
    num_foreign: int
    """Samples that only FiftyOne knows; nothing is taken from them."""
    num_missing: int
    """Samples that were deleted in FiftyOne; nothing is taken from that, and a push brings them back."""

    @property
    def sentence(self) -> str:
        """Return what came, in one sentence."""
        done = ", ".join(f"{count} {decision}" for decision, count in sorted(self.counts.items()) if count)
        listed = f"; please look at {len(self.listed)}" if self.listed else ""
        return f"{done or 'nothing new'}{listed}."


@dataclass
class _Work:
    """What the changed samples come to."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    undone: list[Review] = field(default_factory=list)
    overruled: list[dict[str, Any]] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    num_same: int = 0


def pull_decisions(
    name: str, *, reviewer: str, to: str | None = None, progress: OnProgress | None = None
) -> Pulled:
    """Take the decisions that were made in FiftyOne since the last push or pull.

    Raises:
        NotFoundError: no such dataset.
        FiftyOneError: it was never pushed, or FiftyOne cannot be used.
        ReviewError: no reviewer's name.
    """
    dataset = reading.dataset(name)
    fiftyone = fiftyone_door.connect()
    with fiftyone_door.explained(), processes.alone(f"push-{dataset.id}"):
        target = push.find(fiftyone, dataset, to)
        return pull_samples(target, target, dataset, reviewer=reviewer, progress=progress)


def pull_samples(
    target: Any, samples: Any, dataset: Dataset, *, reviewer: str, progress: OnProgress | None = None
) -> Pulled:
    """The same for some ``samples`` of the FiftyOne dataset ``target`` (a view of it, or itself)."""
    if not reviewer.strip():
        raise ReviewError("A decision needs the reviewer's name.", field="reviewer")
    here = read_samples(samples, labelling.of(dataset))
    with session() as open_session:
        work = _understood(open_session, dataset, here, reviewer.strip(), progress)
        counts = _record(open_session, dataset.id, work, reviewer.strip())
    mirror(target, dataset, work.settled, here)
    known = sum(i < dataset.num_samples for i in here.ids)
    return Pulled(
        name=target.name,
        counts=counts,
        num_same=work.num_same,
        listed=work.listed,
        num_foreign=here.num_foreign,
        num_missing=dataset.num_samples - known if samples is target else 0,
    )


def mirror(target: Any, dataset: Dataset, sample_ids: Sequence[int], here: Here | None = None) -> None:
    """Let these samples in FiftyOne show the current decisions of the catalog."""
    if not sample_ids:
        return
    labels = labelling.of(dataset)
    here = here or read_samples(target.match({INDEX: {"$in": list(sample_ids)}}), labels)
    with session() as open_session:
        given_labels = labels.given(dataset.id)
        standing = {i: reviews.standing(open_session, dataset.id, i) for i in sample_ids}
        counting = reviews.outcomes(open_session, dataset.id, sample_ids)
        verdicts = {i: row for (_, i), row in reviews.verdicts(open_session, dataset.id).items()}
    import fiftyone

    operations: list[Any] = []
    for i in sample_ids:
        if i not in here.ids:
            continue
        given = given_labels[i]
        added, removed = tag_changes(decision_tags(here.tags[i]), wanted_tags(standing[i]))
        cleaned = labels.cleaned(counting.get(i), given)
        values: dict[str, Any] = {
            "review": review_document(counting.get(i), verdicts.get(i), given, labels),
            BASE: base_of(standing[i], here.labels[i], cleaned).to_text(),
        }
        if cleaned != here.cleaned[i]:
            values["cleaned"] = labels.document(fiftyone, cleaned)
        operations += updates(here.ids[i], values, added, removed)
    target._bulk_write(operations, ids=[here.ids[i] for i in sample_ids if i in here.ids])


# --- What changed, and what it means --------------------------------------------------------------------


def _understood(
    open_session: Session, dataset: Dataset, here: Here, reviewer: str, progress: OnProgress | None
) -> _Work:
    labels, work = labelling.of(dataset), _Work()
    known_labels, given_labels = labels.known, labels.given(dataset.id)
    decisions = reviews.decisions(open_session, dataset.id)
    known = sorted(i for i in here.ids if i < dataset.num_samples)
    ticker = Ticker(progress, "reading decisions", len(known))
    for done, i in enumerate(known):
        ticker.at(done)
        given = given_labels[i]
        base, tags = Base.from_text(here.bases[i], given), decision_tags(here.tags[i])
        label, cleaned = here.labels[i], here.cleaned[i]
        if not has_changed(base, tags, label, cleaned):
            continue
        compared, edited = spoken(base, label, cleaned)
        if edited not in (label, compared.label) and label != base.label:
            text = f"its label was changed to {label!r} and its cleaned to {edited!r}; cleaned counts"
            work.listed.append(Listed(i, here.paths[i], "contradiction", text))
        said = understand(
            compared, tags, edited, given=given, suggested=here.suggested[i], classes=known_labels
        )
        if said.problem is not None:
            kind = "unknown" if said.decision is None else "contradiction"
            work.listed.append(Listed(i, here.paths[i], kind, said.problem))
        if said.decision is not None:
            _settle(open_session, dataset, labels, work, here, i, base, said, decisions.get(i), reviewer)
    return work


def _settle(
    open_session: Session,
    dataset: Dataset,
    labels: Labels,
    work: _Work,
    here: Here,
    i: int,
    base: Base,
    said: Said,
    standing: Review | None,
    reviewer: str,
) -> None:
    """Put one sample's decision where it belongs: recorded, taken back, the same as ours, or overruled."""
    work.settled.append(i)
    row = {
        "sample_id": i,
        "decision": said.decision,
        "label": None,
        "labels": None,
        "reviewer": reviewer,
        "created_at": here.modified[i],
    } | labels.columns(said.label)
    if _same(labels, said, standing):
        work.num_same += 1
        return
    stands_id = None if standing is None else standing.id
    if stands_id != base.review_id:
        ours, when = _ours(open_session, dataset, labels, i, standing)
        theirs = _words(labels, said.decision, said.label)
        wins = here.modified[i] > when
        work.listed.append(
            Listed(
                i,
                here.paths[i],
                "both changed",
                f"{ours} at {when:%Y-%m-%d %H:%M} here, {theirs} at {here.modified[i]:%Y-%m-%d %H:%M} in "
                f"FiftyOne; the later one, {theirs if wins else ours}, counts",
            )
        )
        if not wins:
            if said.decision != UNDO:
                work.overruled.append(row)
            return
    if said.decision != UNDO:
        work.rows.append(row)
    elif standing is not None:
        work.undone.append(standing)


def _same(labels: Labels, said: Said, standing: Review | None) -> bool:
    if standing is None:
        return said.decision == UNDO
    if said.decision == UNDO:
        return False
    assert said.decision is not None
    return TAG_OF[standing.decision] == said.decision and labels.value(standing) == said.label


def _ours(
    open_session: Session, dataset: Dataset, labels: Labels, i: int, standing: Review | None
) -> tuple[str, datetime]:
    """The current decision in the catalog and its time, in words."""
    if standing is not None:
        words = _words(labels, standing.decision, labels.value(standing))
        return f"{words} by {standing.reviewer}", standing.created_at
    log = reviews.log(open_session, dataset.id, i)
    return f"undone by {log[-1].reviewer}", log[-1].created_at


def _words(labels: Labels, decision: str | None, label: Value | None) -> str:
    if decision == UNDO:
        return "taken back"
    return str(decision) if label is None else f"{decision} to {labels.of_value(label)!r}"


# --- Into the catalog -----------------------------------------------------------------------------------


def _record(open_session: Session, dataset_id: int, work: _Work, reviewer: str) -> dict[str, int]:
    applied = reviewing.apply_rows(open_session, dataset_id, work.rows, source=SOURCE)
    counts = Counter({decision: n for decision, n in applied.items() if decision in DECISIONS})
    for standing in work.undone:
        reviews.undo(open_session, standing, reviewer, source=SOURCE)
        counts[UNDO] += 1
    for values in work.overruled:
        review = reviews.append(
            open_session,
            NewReview(dataset_id=dataset_id, source=SOURCE, note="a later decision counts", **values),
        )
        reviews.append(
            open_session,
            NewReview(
                dataset_id=dataset_id,
                sample_id=review.sample_id,
                decision=UNDO,
                reviewer=review.reviewer,
                source=SOURCE,
                reverts=review.id,
                note="a later decision counts",
            ),
        )
        counts["overruled"] += 1
    return dict(counts)
