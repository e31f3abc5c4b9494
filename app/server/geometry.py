"""Arithmetic of the map: which points a polygon holds, and how points travel to the browser."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from auditor.ground.vocabulary import DECISIONS

UNDECIDED = 255
UNLABELED = 65_535


def contains(polygon: NDArray[np.float64], points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether each of the (N, 2) points lies inside the (V, 2) polygon, by the even-odd rule."""
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


def frame(points: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """The lower corner of a square around the points, and its side."""
    low, high = np.nanmin(points, axis=0).astype(np.float64), np.nanmax(points, axis=0).astype(np.float64)
    side = float(max((high - low).max(), 1e-9)) * 1.04
    return (low + high) / 2 - side / 2, side


def pack(
    points: NDArray[np.floating],
    samples: NDArray[np.integer],
    *,
    given: NDArray[np.integer],
    suggested: NDArray[np.integer],
    trust: NDArray[np.floating],
    is_issue: NDArray[np.bool_],
    decisions: Mapping[int, str],
) -> bytes:
    """The points of some samples and what colours them, from the (N, 2) points of all.

    First how many are here and how many there are (uint32), and the frame of all (3 float32); then column after
    column, little endian: sample (uint32), x, y, given, suggested (uint16 each, -1 as 65535), trust in 255ths with
    255 for "none", is_issue, decision (uint8 each). That is 15 bytes a sample. Behind them, as a JSON list, the
    names of the decisions: the column holds places in this list, 255 where nobody decided.
    """
    corner, side = frame(points)
    here = np.asarray(points[samples], dtype=np.float64)
    placed = np.clip(np.rint((here - corner) / side * 65_535), 0, 65_535)
    decided = np.full(len(points), UNDECIDED, dtype=np.uint8)
    occurring = set(decisions.values())
    places = {name: place for place, name in enumerate(one for one in DECISIONS if one in occurring)}
    if decisions:
        decided[list(decisions)] = [places[name] for name in decisions.values()]
    trusted = np.where(np.isnan(trust), 255, np.clip(np.rint(trust * 254), 0, 254))
    columns = [
        np.asarray(samples, dtype="<u4"),
        placed[:, 0].astype("<u2"),
        placed[:, 1].astype("<u2"),
        np.where(given < 0, UNLABELED, given).astype("<u2"),
        np.where(suggested < 0, UNLABELED, suggested).astype("<u2"),
        trusted.astype(np.uint8),
        is_issue.astype(np.uint8),
        decided[samples],
    ]
    counts = np.array([len(samples), len(points)], dtype="<u4")
    head = counts.tobytes() + np.array([*corner, side], dtype="<f4").tobytes()
    return head + b"".join(column.tobytes() for column in columns) + json.dumps(list(places)).encode()
