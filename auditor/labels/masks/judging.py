"""What an audit says about masks, from what its engines say about every pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.labels.masks import pixels, two_groups
from auditor.pictures.masks import IGNORED

LIKELY = 0.5
"""How likely wrong a region is that is offered to people."""


@dataclass(frozen=True, eq=False)
class Judged:
    """N masks of S x S pixels, K classes."""

    suggested: NDArray[np.uint8]
    """(N, S, S) the mask with the likely regions changed."""
    doubt: NDArray[np.uint8]
    """(N, S, S) 255 times how likely the pixel's region is wrong; 0 outside of regions."""
    class_trust: NDArray[np.float32]
    """(N, K) NaN where a class does not occur."""
    wrong: NDArray[np.float64]
    """(N,) how likely the mask's likeliest region is wrong; 0 without one, NaN of a mask without a judged pixel."""
    order: NDArray[np.float64]
    """(N,) what masks are ranked by, the lowest first."""
    largest: NDArray[np.int64]
    """(N,) the class of the largest region that is changed, -1 without one."""


def judge(given: NDArray[np.uint8], said: Sequence[Mapping[str, NDArray[Any]]], num_classes: int) -> Judged:
    """Judge (N, S, S) masks by ``said``: of each engine ``predicted``, ``predicted_prob`` and ``given_prob``.

    Regions in which the engines see another class are ranked by ``two_groups``, over all masks together; a mask by
    its likeliest region, and one without any by the mean trust of its pixels.
    """
    num = len(given)
    suggested = np.empty_like(given)
    class_trust, trust = np.empty((num, num_classes), np.float32), np.empty(num, np.float64)
    seen_as = np.zeros((num_classes, num_classes))
    regions: list[_Region] = []
    for row in range(num):
        mask = np.asarray(given[row])
        predicted, predicted_prob, given_prob = pixels.together(
            mask, [{key: np.asarray(values[row]) for key, values in one.items()} for one in said]
        )
        of_pixels = pixels.pixel_trust(given_prob, predicted_prob)
        suggested[row] = pixels.suggested_mask(mask, predicted, predicted_prob, given_prob)
        class_trust[row] = pixels.class_trust(of_pixels, mask, num_classes)
        trust[row] = pixels.image_trust(of_pixels, mask)
        known = mask != IGNORED
        np.add.at(seen_as, (mask[known], predicted[known]), 1)
        for one in pixels.regions(mask, suggested[row], of_pixels):
            ratio, own = two_groups.says(predicted_prob[one.pixels], given_prob[one.pixels])
            regions.append(_Region(row, one.given, one.suggested, one.area, ratio, own))
    confused = seen_as / np.maximum(1, seen_as.sum(axis=1, keepdims=True))
    scores = np.array(
        [two_groups.score(one.area, one.ratio, confused[one.given, one.seen]) for one in regions]
    )
    chances = two_groups.chances_wrong(scores, np.array([one.own for one in regions]), num)
    wrong, order = np.where(np.isnan(trust), np.nan, 0.0), trust.copy()
    for each, chance, one_score in zip(regions, chances, scores, strict=True):
        wrong[each.row] = max(wrong[each.row], chance)
        order[each.row] = min(order[each.row], scores.min() - one_score - 1.0)  # before all without a region
    doubt, largest = _keep_likely(given, suggested, chances)
    return Judged(suggested, doubt, class_trust, wrong, order, largest)


class _Region(NamedTuple):
    row: int
    given: int
    seen: int
    area: int
    ratio: float
    own: float


def _keep_likely(
    given: NDArray[np.uint8], suggested: NDArray[np.uint8], chances: NDArray[np.float64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return ``Judged.doubt`` and ``Judged.largest``; ``suggested`` keeps the likely regions alone.

    ``chances``: of the regions of all masks, in the order of rows and of ``pixels.regions``.
    """
    doubt, largest, at = np.zeros_like(given), np.full(len(given), -1), 0
    for row in range(len(given)):
        mask = np.asarray(given[row])
        found = pixels.regions(mask, suggested[row], np.ones(mask.shape, np.float32))
        suggested[row] = mask
        for one, chance in zip(found, chances[at : at + len(found)], strict=True):
            doubt[row][one.pixels] = min(254, round(255 * chance))  # never certain
            if chance >= LIKELY:
                suggested[row][one.pixels] = one.suggested
                largest[row] = one.suggested if largest[row] < 0 else largest[row]
        at += len(found)
    return doubt, largest
