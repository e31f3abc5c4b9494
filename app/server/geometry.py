"""Arithmetic of the map: which points a polygon holds, and how points travel to the browser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

GRID = 128
"""Cells a side in which a part of the points is chosen: their numbers fit 16 bits."""
UNDECIDED = 255
UNLABELED = 65_535


def frame(points: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """The lower corner of a square around the points, and its side."""
    low, high = np.nanmin(points, axis=0).astype(np.float64), np.nanmax(points, axis=0).astype(np.float64)
    side = float(max((high - low).max(), 1e-9)) * 1.04
    return (low + high) / 2 - side / 2, side


def stratified(points: NDArray[np.floating], most: int) -> NDArray[np.int64]:
    """At most so many of the (N, 2) points, in their order: as dense everywhere as all of them, but never nothing.

    Every ``GRID`` x ``GRID``-th of their square gives its first point, and then as many as its share.
    """
    num = len(points)
    if num <= most:
        return np.arange(num)
    corner, side = frame(points)
    places = np.clip((points - corner.astype(np.float32)) * np.float32(GRID / side), 0, GRID - 1).astype(
        np.uint16
    )
    cell = places[:, 0] * np.uint16(GRID) + places[:, 1]
    order = np.argsort(cell, kind="stable")
    is_first = np.diff(cell[order], prepend=cell[order[0]] + 1) != 0
    first = order[is_first][:most]
    rest = order[~is_first]
    left = most - len(first)
    others = rest[np.linspace(0, max(0, len(rest) - 1), min(left, len(rest))).astype(np.int64)]
    return np.sort(np.concatenate([first, others]))


def pack(
    points: NDArray[np.floating],
    samples: NDArray[np.integer],
    *,
    given: NDArray[np.integer],
    suggested: NDArray[np.integer],
    trust: NDArray[np.floating],
    is_issue: NDArray[np.bool_],
    tags: Mapping[int, str],
) -> bytes:
    """The points of some samples and what colours them, from the (N, 2) points of all.

    First how many are here and how many there are (uint32), and the frame of all (3 float32); then column after
    column, little endian: sample (uint32), x, y, given, suggested (uint16 each, -1 as 65535), trust in 255ths with
    255 for "none", is_issue, tag (uint8 each). That is 15 bytes a sample. Behind them, as a JSON list, the names of
    the tags, the most frequent ``UNDECIDED`` of them: the column holds places in it, 255 where there is none.
    """
    corner, side = frame(points)
    here = np.asarray(points[samples], dtype=np.float64)
    placed = np.clip(np.rint((here - corner) / side * 65_535), 0, 65_535)
    decided = np.full(len(samples), UNDECIDED, dtype=np.uint8)
    frequent = [name for name, _ in Counter(tags.values()).most_common(UNDECIDED)]
    places = {name: place for place, name in enumerate(frequent)}
    if tags:
        known = np.array(sorted(tags))
        at = np.minimum(np.searchsorted(known, samples), len(known) - 1)
        codes = np.array([places.get(tags[one], UNDECIDED) for one in known.tolist()], dtype=np.uint8)
        decided = np.where(known[at] == samples, codes[at], decided)
    trusted = np.where(np.isnan(trust), 255, np.clip(np.rint(trust * 254), 0, 254))
    columns = [
        np.asarray(samples, dtype="<u4"),
        placed[:, 0].astype("<u2"),
        placed[:, 1].astype("<u2"),
        np.where(given < 0, UNLABELED, given).astype("<u2"),
        np.where(suggested < 0, UNLABELED, suggested).astype("<u2"),
        trusted.astype(np.uint8),
        is_issue.astype(np.uint8),
        decided,
    ]
    counts = np.array([len(samples), len(points)], dtype="<u4")
    head = counts.tobytes() + np.array([*corner, side], dtype="<f4").tobytes()
    return head + b"".join(column.tobytes() for column in columns) + json.dumps(list(places)).encode()
