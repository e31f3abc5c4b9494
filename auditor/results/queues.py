"""Queues of suspects: which samples a filter names, page by page, and who looks at which of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.catalog import audits, claims, datasets, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Review
from auditor.ground.errors import NotFoundError
from auditor.ground.settings import Settings, settings
from auditor.pictures import plain
from auditor.results import arrays
from auditor.review import log
from auditor.work import mean_distances, nearest_neighbors

MAX_PAGE = 300
"""Most samples of a page."""
MAX_SELECTED = 30_000
"""Most samples of a region that a queue holds, the most suspicious of them."""
ASKED_OF_REGION = 1_000
"""Samples of a region that are asked for at a time."""
MOST_ALIKE = 60
"""Nearest samples of one: a page of the grid."""
NAMES_SAMPLES = ("#", "~")
"""What a search begins with that names a sample by its number: the sample, or those like it."""
COPIES, OUTLIERS, DIM = "copies", "outliers", "dim"
"""Queues of pictures that are conspicuous for themselves, whatever their label."""
LONE_SHARE, LEAST_LONE = 0.02, 12
"""Share of the pictures that are least like the others, or darkest and most blurred, and how many at least."""
MOST_PAGES_SEARCHED = 40
"""Pages that are searched for samples on which one engine differs, before the queue counts as ended."""


def page(audit: Audit, where: Mapping[str, Any], *, after: int | None = None, limit: int) -> pd.DataFrame:
    """Return a page of the queue that ``where`` names, behind the place ``after``."""
    return ask(_page, audit, where, after, limit)


def leased_page(
    audit: Audit, where: Mapping[str, Any], after: int | None, limit: int, reviewer: str, ahead: int
) -> tuple[pd.DataFrame, list[str]]:
    """Return a page of what nobody else looks at, its first ``ahead`` samples leased; or who holds the rest."""
    with session() as open_session:
        datasets.lock(open_session, audit.dataset_id)
        claims.give_up(open_session, audit.dataset_id, reviewer)
        found = _page(open_session, audit, {**where, "free_for": reviewer}, after, limit)
        first = [int(one) for one in found.sample_id.head(ahead)]
        _take(open_session, audit.dataset_id, first, reviewer)
        if len(found):
            return found, []
        rest = [int(one) for one in _page(open_session, audit, where, after, limit).sample_id]
        held = claims.holders(open_session, audit.dataset_id, rest, apart_from=reviewer)
    return found, sorted(set(held.values()))


def lease(
    dataset_id: int, sample_ids: Sequence[int], reviewer: str
) -> tuple[dict[int, str], dict[int, Review]]:
    """Lease samples to a reviewer, or longer those that the reviewer has.

    Returns who looks at the others, and what counts now of all that are decided; both by sample_id.

    Raises:
        NotFoundError: there is no such dataset.
    """
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        if not datasets.has(open_session, dataset_id):
            raise NotFoundError(f"There is no dataset {dataset_id}; it was removed.")
        held = _take(open_session, dataset_id, sample_ids, reviewer)
        return held, reviews.outcomes(open_session, dataset_id, sample_ids)


_LEFT: set[str] = set()
"""Names that this process saw given up. A page that their window had asked for before may be dealt afterwards."""


def leave(reviewer: str) -> None:
    """End all leases of a reviewer, who goes by another name from now on; the old one leases nothing more."""
    _LEFT.add(reviewer)
    ask(claims.give_up, None, reviewer)


def _take(open_session: Session, dataset_id: int, sample_ids: Sequence[int], reviewer: str) -> dict[int, str]:
    """Lease what is free to the reviewer, unless that name was left; returns who holds the others."""
    if reviewer in _LEFT:
        return claims.holders(open_session, dataset_id, sample_ids, apart_from=reviewer)
    return claims.take(open_session, dataset_id, sample_ids, reviewer)


def deal(
    dataset_id: int, pending: Sequence[tuple[int, int]], reviewer: str, ahead: int
) -> list[tuple[int, int]]:
    """Return (draw_id, sample_id) pairs, those that others look at last; lease the first ``ahead`` free ones."""
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        others = claims.holders(
            open_session, dataset_id, [sample for _, sample in pending], apart_from=reviewer
        )
        dealt = sorted(pending, key=lambda one: one[1] in others)
        first = [sample for _, sample in dealt[:ahead] if sample not in others]
        _take(open_session, dataset_id, first, reviewer)
    return dealt


def sizes(audit: Audit, where: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Return how many samples a queue holds now, with its checked ones, and how many of those are checked.

    The first is None where only the queue's pages tell (``_page``).
    """
    if where.get("engine") is not None:
        return None, None, None
    asked = suspect_filter({**where, "undecided": False, "decided": False}, audit)
    whole = _whole_count(audit, asked)
    checked = ask(scores.count, audit, dataclasses.replace(asked, only_decided=True))
    total = checked if where.get("decided") else whole
    if where.get("undecided") and not where.get("decided"):
        total = ask(scores.count_undecided, audit, asked, whole)
    return total, whole, checked


def scores_version(audit: Audit) -> str:
    """Return what changes whenever the audit's scores do, and with an audit that has the id of a removed one."""
    return f"{audit.created_at} {audit.finished_at} {arrays.ranked_at(audit)}"


def _whole_count(audit: Audit, where: scores.SuspectFilter) -> int:
    """Return how many samples a filter leaves that asks nothing about decisions: counted once for the audit's
    scores.
    """
    summary = audit.summary
    kept = {
        scores.SuspectFilter(): summary.num_ranked,
        scores.SuspectFilter(only_issues=True): summary.num_label_issues,
    }
    if (known := kept.get(where)) is not None:
        return known
    if where.decided_by is not None or where.free_for is not None:
        return ask(scores.count, audit, where)
    return _counted(settings(), audit.id, scores_version(audit), where)


@functools.lru_cache(maxsize=256)
def _counted(home: Settings, audit_id: int, version: str, where: scores.SuspectFilter) -> int:  # noqa: ARG001
    return ask(scores.count, ask(audits.get, audit_id), where)


def suspect_filter(
    where: Mapping[str, Any], audit: Audit, *, after: int | None = None
) -> scores.SuspectFilter:
    """The filter that a page's mapping names; a region of the map becomes the samples inside it."""
    region, share = where.get("region"), where.get("share")
    search = str(where.get("search") or "").strip()
    ids = None if region is None else sorted(worst_inside(audit, region).sample_id.tolist())
    if where.get("disputed"):
        disputed = set(log.disputed(audit.dataset_id))
        ids = sorted(disputed if ids is None else disputed & set(ids))[:MAX_SELECTED]
    if (those := {OUTLIERS: outliers, DIM: dim}.get(str(where.get("pictures")))) is not None:
        ids = sorted(set(those(audit)) if ids is None else set(those(audit)) & set(ids))
    if search[:1] in NAMES_SAMPLES:
        asked = [int(search[1:])] if search[1:].isdecimal() else []
        if search.startswith("~"):
            asked = alike(audit, asked[0]) if asked else []
        ids = asked if ids is None else sorted(set(asked) & set(ids))
    return scores.SuspectFilter(
        given_label=where.get("given"),
        suggested_label=where.get("suggested"),
        split=where.get("split"),
        only_issues=bool(where.get("issues")),
        only_copies=where.get("pictures") == COPIES,
        only_undecided=bool(where.get("undecided")),
        only_decided=bool(where.get("decided")),
        min_agreement=where.get("agreement"),
        min_disagreement=where.get("disagreement"),
        max_rank=where.get("max_rank"),
        by_sample=by_sample(where),
        after=after,
        filepath_has=search if search and search[0] not in NAMES_SAMPLES else None,
        decided_by=where.get("by"),
        free_for=where.get("free_for"),
        share=None if share is None else (int(share[0]), int(share[1])),
        sample_ids=None if ids is None else tuple(ids),
        apart_from=tuple(where.get("apart_from") or ()),
    )


def alike(audit: Audit, sample_id: int) -> list[int]:
    """The sample and its nearest with the same given label, the nearest first; [] where there is no such sample.

    Near is by cosine in the audit's features, else in what its first engine learned.
    """
    return _alike(settings(), audit.id, scores_version(audit), sample_id)


@functools.lru_cache(maxsize=32)
def _alike(home: Settings, audit_id: int, version: str, sample_id: int) -> list[int]:  # noqa: ARG001
    audit = ask(audits.get, audit_id)
    given = ask(datasets.given_labels, audit.dataset_id)
    if sample_id >= len(given):
        return []
    points = arrays.embeddings(audit_id, arrays.nearness_of(audit_id))
    same = np.flatnonzero(given == given[sample_id])
    at = int(np.searchsorted(same, sample_id))
    near, _ = nearest_neighbors(points[same], np.array([at]), num_neighbors=MOST_ALIKE)
    return [sample_id, *same[near[0]].tolist()]


def outliers(audit: Audit) -> list[int]:
    """The samples that are least like all others: those whose nearest are farthest away, at most a page.

    Near is by cosine in the audit's features, else in what its first engine learned.
    """
    return _outliers(settings(), audit.id, str(audit.finished_at))


@functools.lru_cache(maxsize=8)
def _outliers(home: Settings, audit_id: int, version: str) -> list[int]:  # noqa: ARG001
    space = arrays.nearness_of(audit_id)
    if not space:
        return []
    away = mean_distances(arrays.embeddings(audit_id, space), arrays.array(audit_id, space, "neighbours"))
    return np.argsort(-away, kind="stable")[: _few_of(len(away))].tolist()


def _few_of(number: int) -> int:
    return min(MAX_PAGE, max(LEAST_LONE, int(LONE_SHARE * number)))


def dim(audit: Audit) -> list[int]:
    """The darkest pictures and the most blurred ones, as many of both.

    By rank: what is dark or blurred depends on what a set shows.
    """
    found = plain.light_and_sharp(ask(datasets.by_id, audit.dataset_id))
    worst = np.argsort(found, axis=0, kind="stable")[: _few_of(len(found)) // 2]
    return np.unique(worst).tolist()


def inside(audit: Audit, region: Mapping[str, Any]) -> NDArray[np.int64]:
    """sample_ids, in their order, whose point on a map lies inside the region's polygon."""
    return _inside(settings(), audit.id, str(audit.created_at), *_as_key(region))


@functools.lru_cache(maxsize=8)
def _inside(
    home: Settings,  # noqa: ARG001
    audit_id: int,
    version: str,  # noqa: ARG001
    engine: str,
    polygon: tuple[tuple[float, float], ...],
) -> NDArray[np.int64]:
    points = arrays.map_points(audit_id, engine)
    return np.flatnonzero(contains(np.asarray(polygon, dtype=np.float64), points))


def _as_key(region: Mapping[str, Any]) -> tuple[str, tuple[tuple[float, float], ...]]:
    return str(region["engine"]), tuple((float(x), float(y)) for x, y in region["polygon"])


def worst_inside(audit: Audit, region: Mapping[str, Any]) -> pd.DataFrame:
    """sample_id and rank of the most suspicious samples of a region, at most ``MAX_SELECTED``, the worst first."""
    return _worst_inside(settings(), audit.id, scores_version(audit), *_as_key(region))


@functools.lru_cache(maxsize=32)
def _worst_inside(
    home: Settings,  # noqa: ARG001
    audit_id: int,
    version: str,  # noqa: ARG001
    engine: str,
    polygon: tuple[tuple[float, float], ...],
) -> pd.DataFrame:
    audit = ask(audits.get, audit_id)
    return arrays.worst_of(audit, inside(audit, {"engine": engine, "polygon": polygon}), most=MAX_SELECTED)


def by_sample(where: Mapping[str, Any]) -> bool:
    """Return whether the queue has the order of the files; its places are then sample_ids, not ranks."""
    return where.get("sort") == "files"


def _page(
    open_session: Session, audit: Audit, where: Mapping[str, Any], after: int | None, limit: int
) -> pd.DataFrame:
    """A page of the queue. What one engine sees is no column, so its rows are picked page by page."""
    engine = where.get("engine")
    if where.get("region") is not None and engine is None and not by_sample(where):
        return _page_of_region(open_session, audit, where, after, limit)
    if engine is None:
        return scores.page(open_session, audit, suspect_filter(where, audit, after=after), limit=limit)
    probs, found, picked = arrays.pred_probs(audit.id, str(engine)), 0, []
    for _ in range(MOST_PAGES_SEARCHED):
        page = scores.page(open_session, audit, suspect_filter(where, audit, after=after), limit=MAX_PAGE)
        ids = page.sample_id.to_numpy(dtype=np.int64)
        chosen = page[probs[ids].argmax(axis=1) != page.given_label.to_numpy()] if len(page) else page
        picked.append(chosen)
        found += len(chosen)
        if len(page) < MAX_PAGE or found >= limit:
            break
        after = int(page["sample_id" if by_sample(where) else "rank"].iloc[-1])
    return pd.concat(picked).head(limit)


def _page_of_region(
    open_session: Session, audit: Audit, where: Mapping[str, Any], after: int | None, limit: int
) -> pd.DataFrame:
    """A page of a region: its samples are known by rank, so only the next of them are asked for."""
    worst = worst_inside(audit, where["region"])
    ids = worst.sample_id[worst["rank"] > (-1 if after is None else after)].to_numpy()
    asked, picked, found = suspect_filter({**where, "region": None}, audit), [], 0
    for start in range(0, max(1, len(ids)), ASKED_OF_REGION):
        part = tuple(ids[start : start + ASKED_OF_REGION].tolist())
        if asked.sample_ids is not None:
            part = tuple(set(part) & set(asked.sample_ids))
        page = scores.page(
            open_session, audit, dataclasses.replace(asked, sample_ids=part), limit=limit - found
        )
        picked.append(page)
        found += len(page)
        if found >= limit:
            break
    return pd.concat(picked, ignore_index=True) if found else picked[0]


def contains(polygon: NDArray[np.float64], points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return whether each of the (N, 2) points lies inside the (V, 2) polygon, by the even-odd rule."""
    inside = np.zeros(len(points), dtype=bool)
    if len(polygon) < 3:
        return inside
    # Only points within the polygon's box are worth the walk around its edges.
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    near = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
    x, y = np.asarray(points[near, 0], dtype=np.float64), np.asarray(points[near, 1], dtype=np.float64)
    crossed = np.zeros(len(near), dtype=bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        spans = (y0 > y) != (y1 > y)
        if y0 != y1:
            crossed ^= spans & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    inside[near] = crossed
    return inside
