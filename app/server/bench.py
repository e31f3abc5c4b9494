"""What the review bench asks for: pages of suspects, the story of one sample, and verdicts to keep.

Plain mappings in, plain mappings out; ``routes.py`` puts HTTP around it and the tests call it directly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from app.server import bodies, geometry
from auditor.catalog import datasets, folders, reading, reviews, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit
from auditor.ground.errors import AuditorError, CatalogError, NotFoundError, ReviewError
from auditor.ground.settings import Settings, settings
from auditor.ground.vocabulary import CLASSIFICATION, DISPUTED, RULING
from auditor.ground.wording import engines_against, odds_of_wrong
from auditor.pictures import cache
from auditor.results import arrays, new_classes, queues, ranking
from auditor.results import progress as review_progress
from auditor.review import decisions, schema

MOST_DRAWN = 60_000
"""Points of a map that travel to the browser first, under a megabyte; a region is looked up among all samples."""
MOST_IN_VIEW = 200_000
"""Points of the part of a map that is in view, which follow them."""
Box = tuple[float, float, float, float]
DOUBTFUL = 2 / 3
"""A suspect less likely wrong than this is not ticked on a card: it waits for a look of its own."""
EXEMPLARS = 6
LEAST_ON_CARD, MOST_ON_CARD = 3, 24
"""Suspects of one pair of classes on a card: fewer come on one of mixed pairs, more on a further card."""


def _audit_of_classes(audit_id: int) -> Audit:
    """The audit, of a dataset whose labels are classes: masks and numbers have screens of their own.

    Raises:
        ReviewError: it is of masks or numbers.
        NotFoundError: no such audit.
    """
    audit, dataset = reading.audit_and_dataset(audit_id)
    if dataset.task != CLASSIFICATION:
        raise ReviewError(
            f"The labels of {dataset.name} are no classes; open the screen of its kind of labels."
        )
    return audit


def queue(payload: Mapping[str, Any]) -> dict[str, Any]:
    """One page of suspects behind ``after``: a rank, or a sample_id where the queue has the order of the files."""
    body = schema.read(bodies.Queue, payload)
    where, after, limit = body.filters, body.after, min(queues.MAX_PAGE, body.limit or 60)
    audit = _audit_of_classes(body.audit)
    elsewhere: list[str] = []
    if body.reviewer is None or not where.get("undecided"):
        page = queues.page(audit, where, after=after, limit=limit)
    else:
        page, elsewhere = queues.leased_page(audit, where, after, limit, body.reviewer, body.ahead or 0)
    standing = _review_ids(audit, page)
    return {"items": [_item(row, standing, audit) for row in page.to_dict("records")], "elsewhere": elsewhere}


def cards(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The card to settle next: suspects that are given one class and look like one other, leased to the reviewer.

    Pairs come in the order of their expected corrections, then cards of mixed pairs, whose classes are None.
    ``pair`` is None where fewer than ``LEAST_ON_CARD`` suspects are left; ``expected`` counts those of this pair,
    ``cards`` the pairs that are left, this one among them, and ``singles`` the suspects that are of none of these.
    None of them counts what was put off (``passed``).
    """
    body = schema.read(bodies.Cards, payload)
    audit = _audit_of_classes(body.audit)
    where = {**body.filters, "issues": True, "undecided": True, "free_for": body.reviewer, "sort": None}
    where["apart_from"] = body.passed
    table = ask(scores.pair_counts, audit, queues.suspect_filter(where, audit))
    table = table[(table.given_label >= 0) & (table.suggested_label >= 0)]
    pairs = table[table["count"] >= LEAST_ON_CARD].sort_values("expected", ascending=False, kind="stable")
    rows = [{**row, "pair": (row["given_label"], row["suggested_label"])} for row in pairs.to_dict("records")]
    singles = int(table["count"].sum())
    mixed: dict[Any, Any] = {
        "pair": (None, None),
        "count": singles,
        "expected": float(table["expected"].sum()),
    }
    for number, row in enumerate([*rows, mixed]):
        given, suggested = row["pair"]
        one = {**where, "given": given, "suggested": suggested}
        page = queues.page(audit, one, limit=MOST_ON_CARD)
        page = page[(page.given_label >= 0) & (page.suggested_label >= 0)]
        held, _ = queues.lease(audit.dataset_id, [int(sample) for sample in page.sample_id], body.reviewer)
        page = page[~page.sample_id.isin(list(held))]
        if len(page) < LEAST_ON_CARD:
            continue
        if given is None:  # what looks alike lies together
            page = page.sort_values(["suggested_label", "given_label"], kind="stable")
        shown = rows[number:]
        return {
            "pair": {
                "given": given,
                "suggested": suggested,
                "count": int(row["count"]),
                "expected": float(row["expected"]),
                "isUnverified": _is_guess(audit),
                "like": {}
                if given is None
                else {
                    "given": ask(scores.most_trusted, audit.id, given, EXEMPLARS),
                    "suggested": ask(scores.most_trusted, audit.id, suggested, EXEMPLARS),
                },
            },
            "items": [_item(each, {}, audit) for each in page.to_dict("records")],
            "cards": len(shown),
            "singles": singles - sum(one["count"] for one in shown),
        }
    return {"pair": None, "items": [], "cards": 0, "singles": singles}


def lease(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Lease samples that come next, or longer those in view.

    ``held``: who looks at the others; ``decided``: who has decided on one meanwhile. Both by sample_id.
    """
    body = schema.read(bodies.Lease, payload)
    held, counting = queues.lease(body.dataset, body.samples[: queues.MAX_PAGE], body.reviewer)
    decided = {str(one): row.reviewer for one, row in counting.items() if row.reviewer != body.reviewer}
    return {"held": {str(one): name for one, name in held.items()}, "decided": decided}


def queue_size(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many samples the queue holds now; None where only its pages tell (see ``queues.sizes``).

    ``whole`` counts the queue's checked samples too, ``checked`` only those; both None for a queue in random order
    and for what one engine sees.
    """
    body = schema.read(bodies.Queue, payload)
    total, whole, checked = queues.sizes(_audit_of_classes(body.audit), body.filters)
    return {"total": total, "whole": whole, "checked": checked}


@folders.checked_once()
def card(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that helps to judge one sample, with the labels of the samples it shows beside it."""
    body = schema.read(bodies.Card, payload)
    audit_id, sample_id = body.audit, body.sample
    audit = _audit_of_classes(audit_id)
    story = arrays.evidence(audit_id, sample_id)

    def trusted(label: int) -> list[int]:
        found = ask(scores.most_trusted, audit_id, label, EXEMPLARS + 1) if label >= 0 else []
        return [one for one in found if one != sample_id][:EXEMPLARS]

    groups = {
        "given": trusted(story.given_label),
        "suggested": trusted(story.suggested_label),
        "neighbours": list(story.neighbours),
        "duplicates": list(story.duplicates),
    }
    rows = reading.samples_by_id(
        audit.dataset_id, sorted({one for group in groups.values() for one in group})
    )
    changed = {
        one: row.label
        for one, row in ask(reviews.outcomes, audit.dataset_id, list(rows)).items()
        if row.label is not None and row.decision != DISPUTED
    }
    said = ask(reviews.opinions, audit.dataset_id, sample_id)
    dataset = ask(datasets.by_id, audit.dataset_id)
    answers = cache.answers(dataset)
    shown = {
        name: [
            {
                "sample": one,
                "given": rows[one].given_label,
                "label": changed.get(one, rows[one].given_label),
                "filepath": rows[one].filepath,
            }
            for one in group
            if one in rows
        ]
        for name, group in groups.items()
    }
    return {
        "sample": sample_id,
        "filepath": story.filepath,
        "answers": [
            {"annotator": (dataset.annotators or [])[who], "label": label}
            for who, label in (answers.of_row(sample_id) if answers is not None else ())
        ],
        "opinions": [
            {"reviewer": one.reviewer, "decision": one.decision, "label": one.label, "labels": one.labels}
            for one in said
        ],
        "classes": [label for label, _ in story.top_classes],
        "engines": [_engine(audit_id, verdict) for verdict in story.verdicts],
        "exemplars": {"given": shown["given"], "suggested": shown["suggested"]},
        "neighbours": shown["neighbours"],
        "neighboursIn": arrays.features_title(audit)
        if story.neighbours_in == arrays.FEATURES
        else "what the engines learned",
        "duplicates": shown["duplicates"],
    }


def record(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Write verdicts, one transaction each, and say for each whether it is in the database.

    A verdict that arrives twice is the same verdict (``decisions.decide``).
    """
    return {"results": [_record_one(verdict) for verdict in schema.read(bodies.Verdicts, payload).verdicts]}


def add_class(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Add a class; returns the names of all, as the page has them."""
    body = schema.read(bodies.NewClass, payload)
    name = ask(datasets.by_id, body.dataset).name
    new_classes.add(name, body.name)
    return {"classNames": reading.dataset(name).names_of_today}


def undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the reviewer's newest action.

    ``undone`` counts its decisions; ``items`` are its samples as they are now, the most suspicious first, at most a
    page of them.
    """
    body = schema.read(bodies.Undo, payload)
    audit = _audit_of_classes(body.audit)
    undone = decisions.undo_last(audit.dataset_id, body.reviewer)
    if not undone:
        return {"undone": 0, "items": []}
    page = ask(scores.page_of, audit, [row.sample_id for row in undone]).head(queues.MAX_PAGE)
    standing = _review_ids(audit, page)
    if page.empty:
        raise ReviewError(f"Sample {undone[0].sample_id} is undone; it is not part of this audit's list.")
    items = [_item(row, standing, audit) for row in page.to_dict("records")]
    return {"undone": len(undone), "items": items}


def newest(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Number of the newest row of the log: windows ask every second whether somebody decided something.

    ``decided``, by sample_id: what counts of ``samples`` where there is a newer row than ``since``.
    """
    body = schema.read(bodies.News, payload)
    dataset_id = _audit_of_classes(body.audit).dataset_id
    number, found = ask(reviews.newest, dataset_id), {}
    if number != body.since and body.samples:
        found = ask(reviews.outcomes, dataset_id, list(body.samples))
    said = ("decision", "label", "labels", "reviewer")
    decided = {
        str(sample): {"review": row.id, **{name: getattr(row, name) for name in said}}
        for sample, row in found.items()
    }
    return {"newest": number, "decided": decided}


def progress(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Progress of the review, for the line above the bench; what comes next is that of the queue ``where``.

    Verdicts rank the rest anew here, once there are enough of them: ``moved`` says so, and is None otherwise.
    """
    body = schema.read(bodies.Queue, payload)
    where = body.filters
    moved = ranking.after_verdicts(body.audit)
    audit = _audit_of_classes(body.audit)
    upcoming = None
    if any(value not in (None, False) for name, value in where.items() if name != "undecided"):
        upcoming = queues.page(audit, {**where, "undecided": True}, limit=review_progress.PACE_WINDOW)
    reviewer = body.reviewer
    seen = review_progress.progress(audit.dataset_id, audit.id, queue=upcoming, reviewer=reviewer)
    newest = ask(reviews.newest, audit.dataset_id)
    told = (
        []
        if reviewer is None or body.since is None
        else ask(reviews.overruled, audit.dataset_id, reviewer, after=body.since)
    )
    return {
        "newest": newest,
        "overruled": [
            {
                "sample": row.sample_id,
                "decision": row.decision,
                "label": row.label,
                "labels": row.labels,
                "reviewer": row.reviewer,
            }
            for row in told
        ],
        "decided": seen.decided,
        "found": seen.found,
        "latest": seen.few_latest,
        "per_minute": seen.per_minute,
        # A guess says nothing of what is left: "0" would read as if the set were clean.
        "expected_left": seen.left.point if seen.left.has_middle else None,
        "isLittleLeft": seen.is_little_left,
        "sentence": seen.advice,
        "end": seen.end,
        "hasSuspects": bool(seen.num_suspects),
        "moved": None if moved is None else moved.sentence,
    }


def map_bytes(audit_id: int, engine: str, box: Box | None = None, *, tag: str = "review") -> bytes:
    """Points of a map and what colours them, packed for the canvas (``geometry.pack``).

    Of many samples an overview: the worst suspects and others, as dense everywhere as all are. A label is that of
    today: as a person decided, else as it was given. ``box`` (left, low, right, high, in the map's coordinates)
    asks for more of a part. ``tag``: what travels of each sample beside its scores: the decision that counts
    (``review``), who made it (``reviewer``), or its ``split``.
    """
    audit = reading.audit(audit_id)
    if engine not in (arrays.FEATURES, *audit.engines):
        raise NotFoundError(f"Audit {audit_id} has no engine {engine!r}.")
    points = arrays.map_points(audit_id, engine)
    most = (MOST_DRAWN, MOST_IN_VIEW)
    table = _drawn(settings(), audit_id, queues.scores_version(audit), engine, box, most)
    told, given = decisions.outcomes(audit.dataset_id), table.given_label.to_numpy().copy()
    for place, sample in enumerate(table.sample_id.tolist() if told else []):
        if sample in told and told[sample].label is not None:
            given[place] = told[sample].label
    if tag == "split":
        tags = {i: one for i, one in enumerate(ask(datasets.splits, audit.dataset_id)) if one is not None}
    else:
        name = "reviewer" if tag == "reviewer" else "decision"
        tags = {i: getattr(row, name) for i, row in told.items() if row.decision != DISPUTED}
    return geometry.pack(
        np.asarray(points),
        table.sample_id.to_numpy(),
        given=given,
        suggested=table.suggested_label.to_numpy(),
        trust=table.trust_score.to_numpy(dtype=np.float64, na_value=np.nan),
        is_issue=table.is_label_issue.to_numpy(dtype=bool),
        tags=tags,
    )


@functools.lru_cache(maxsize=6)
def _drawn(
    home: Settings,  # noqa: ARG001
    audit_id: int,
    version: str,  # noqa: ARG001
    engine: str,
    box: Box | None,
    most: tuple[int, int],
) -> pd.DataFrame:
    """The scores of the samples that are drawn: at most so many of the whole map, and of a part of it."""
    most_drawn, most_in_view = most
    points = arrays.map_points(audit_id, engine)
    if len(points) <= most_drawn:
        return ask(scores.table, audit_id)
    half = most_drawn // 2
    if box is None:
        chosen = geometry.stratified(points, most_drawn - half)
        return ask(scores.part_of_table, audit_id, chosen, worst=half)
    left, low, right, high = box
    inside = np.flatnonzero(_is_between(points[:, 0], left, right) & _is_between(points[:, 1], low, high))
    chosen = inside[geometry.stratified(points[inside], most_in_view)]
    table = ask(scores.part_of_table, audit_id, chosen, worst=half)
    return table[np.isin(table.sample_id, inside)].reset_index(drop=True)


def _is_between(values: NDArray[np.floating], low: float, high: float) -> NDArray[np.bool_]:
    return (values >= low) & (values <= high)


def _record_one(verdict: Mapping[str, Any]) -> dict[str, Any]:
    token = str(verdict.get("token"))
    try:
        said = schema.read(bodies.SeenVerdict, verdict)
        decided = decisions.decide(
            said.dataset,
            said.sample,
            said.decision,
            reviewer=said.reviewer,
            label=said.label,
            labels=said.labels,
            number=said.number,
            source=RULING if said.ruling else "app",
            batch=said.batch,
            note=said.note or None,
            audit_id=said.audit,
        )
    except CatalogError:  # no word against this verdict: the browser keeps it and sends it again
        raise
    except AuditorError as error:
        return {"token": token, "error": str(error)}
    # The reviewer's own verdict from another window is a conflict too.
    conflict = decided.replaced
    # What the reviewer had on the screen when deciding is no surprise.
    if conflict is not None and conflict.id == said.seen:
        conflict = None
    told = None
    if conflict is not None:
        told = {
            "decision": conflict.decision,
            "label": conflict.label,
            "labels": conflict.labels,
            "reviewer": conflict.reviewer,
            "review": conflict.id,
        }
    return {"token": token, "review": decided.review_id, "conflict": told}


def _review_ids(audit: Audit, page: pd.DataFrame) -> dict[int, int]:
    """By sample_id, the number of what stands of those of a page that are decided."""
    decided = [int(one) for one in page.loc[page.decision.notna(), "sample_id"]]
    return ask(reviews.standing_numbers, audit.dataset_id, decided)


def _is_guess(audit: Audit) -> bool:
    """Nothing verified says how likely a label is wrong."""
    return audit.summary.error_probability_is_guess


def _odds(row: Mapping[Any, Any], audit: Audit) -> dict[str, Any]:
    """Return how likely the label is wrong, and whether that is not much; empty where it has no label.

    A share where verified rows say it, else how many engines say otherwise.
    """
    share = row["error_probability"]
    if share is None or math.isnan(share):
        return {"odds": "", "isDoubtful": False}
    if _is_guess(audit):
        engines = len(audit.summary.witnesses)
        return {"odds": engines_against(int(row["agreement"]), engines), "isDoubtful": False}
    return {"odds": odds_of_wrong(share), "isDoubtful": share < DOUBTFUL}


def _item(row: Mapping[Any, Any], review_ids: Mapping[int, int], audit: Audit) -> dict[str, Any]:
    def known(value: Any) -> Any:
        return None if value is None or (isinstance(value, float) and math.isnan(value)) else value

    label = known(row["decided_label"])
    return {
        "sample": int(row["sample_id"]),
        "rank": int(row["rank"]),
        "given": int(row["given_label"]),
        "suggested": int(row["suggested_label"]),
        "isSuspect": bool(row["is_label_issue"]),
        **_odds(row, audit),
        "agreement": int(row["agreement"]),
        "decision": known(row["decision"]),
        "label": None if label is None else int(label),
        "labels": known(row["decided_labels"]),
        "reviewer": known(row["reviewer"]),
        "review": review_ids.get(int(row["sample_id"])),
    }


def _engine(audit_id: int, verdict: arrays.EngineVerdict) -> dict[str, Any]:
    return {
        "title": verdict.title,
        "predicted": verdict.predicted_label,
        "sentence": verdict.sentence,
        "history": _main_history(audit_id, verdict),
    }


def _main_history(audit_id: int, verdict: arrays.EngineVerdict) -> dict[str, Any] | None:
    """The first published signal of the engine that has a history, by epoch."""
    published: Sequence[str] = list(arrays.describe(audit_id, verdict.engine)["signals"])
    for name in [*published, *verdict.history]:
        if name in verdict.history:
            about = arrays.describe(audit_id, verdict.engine)["signals"].get(name, {})
            return {"title": about.get("title", name), "values": verdict.history[name]}
    return None
