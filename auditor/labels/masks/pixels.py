"""From what engines say about pixels to trust in a mask, its doubtful regions and a suggested mask.

Pure functions of arrays; letters: H x W pixels, K classes. ``IGNORED`` pixels are never judged and never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from auditor.pictures.masks import IGNORED

TEMPERATURE = 0.1
"""Of the softmin, as cleanlab's segmentation summary has it."""
SURE = 0.4
"""How much likelier than the given class another one must be for a pixel to be doubtful."""
SMALLEST_SHARE = 0.002
"""A region with a smaller share of the judged pixels is left as it is: borders are never drawn twice alike."""
SMALLEST_PIXELS = 9
MOST_REGIONS = 40
"""Regions of an image that are offered, the largest first."""


@dataclass(frozen=True, eq=False)
class Region:
    """Connected pixels of one given class that should rather have one other class."""

    number: int
    """From 1, the largest first."""
    given: int
    suggested: int
    pixels: NDArray[np.bool_]
    """(H, W)"""
    area: int
    doubt: float
    """How likely it is wrong, in [0, 1]."""

    @property
    def box(self) -> tuple[int, int, int, int]:
        """(left, top, right, bottom), the last two just outside."""
        rows, columns = np.flatnonzero(self.pixels.any(1)), np.flatnonzero(self.pixels.any(0))
        return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def pixel_trust(
    given_prob: NDArray[np.floating], predicted_prob: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Probability of the given class over that of the likeliest one, in [0, 1]; 1 where they are the same."""
    highest = np.maximum(predicted_prob.astype(np.float32), 1e-6)
    return np.minimum(1.0, given_prob.astype(np.float32) / highest).astype(np.float32)


def together(
    given: NDArray[np.uint8], said: Sequence[Mapping[str, NDArray[Any]]]
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """(predicted, its probability, probability of the given class) of all engines, each (H, W), by their mean.

    Of each engine the likeliest class and the given one are known; a class that an engine names neither way counts
    as 0 there, so that a suggestion needs engines that agree.
    """
    given_prob = np.mean([one["given_prob"].astype(np.float32) for one in said], axis=0)
    predicted, best = given.copy(), np.where(given == IGNORED, 1.0, given_prob).astype(np.float32)
    for one in said:
        support = np.mean(
            [
                np.where(
                    other["predicted"] == one["predicted"], other["predicted_prob"].astype(np.float32), 0.0
                )
                for other in said
            ],
            axis=0,
        )
        wins = (support > best) & (given != IGNORED) & (one["predicted"] != given)
        predicted, best = np.where(wins, one["predicted"], predicted), np.where(wins, support, best)
    return predicted, best.astype(np.float32), given_prob.astype(np.float32)


def softmin(values: NDArray[np.floating], temperature: float = TEMPERATURE) -> float:
    """The mean of ``values`` in which small ones weigh most: between the mean and the minimum; NaN of none."""
    if not values.size:
        return float("nan")
    scaled = (1.0 - values.astype(np.float64)) / temperature
    weights = np.exp(scaled - scaled.max())
    return float((values * weights).sum() / weights.sum())


def class_trust(
    trust: NDArray[np.float32], given: NDArray[np.uint8], num_classes: int
) -> NDArray[np.float32]:
    """(K,) softmin of the trust of each class's pixels in one image; NaN where it does not occur."""
    return np.array([softmin(trust[given == one]) for one in range(num_classes)], np.float32)


def suggested_mask(
    given: NDArray[np.uint8],
    predicted: NDArray[np.uint8],
    predicted_prob: NDArray[np.floating],
    given_prob: NDArray[np.floating],
) -> NDArray[np.uint8]:
    """(H, W) the given mask, but the likeliest class where that is much likelier over a region of some size."""
    surplus = predicted_prob.astype(np.float32) - given_prob.astype(np.float32)
    changed = (surplus > SURE) & (given != IGNORED) & (predicted != given)
    found = np.where(changed, predicted, given)
    smallest = smallest_region(given)
    for pixels in _components(given, found):
        if pixels.sum() < smallest:
            found[pixels] = given[pixels]
    return found


def smallest_region(given: NDArray[np.uint8]) -> int:
    """Pixels from which on a region of this mask is offered."""
    return max(SMALLEST_PIXELS, round(SMALLEST_SHARE * int((given != IGNORED).sum())))


def regions(
    given: NDArray[np.uint8], suggested: NDArray[np.uint8], trust: NDArray[np.floating]
) -> list[Region]:
    """The connected regions in which the suggestion differs, the largest first, at most ``MOST_REGIONS``."""
    parts = list(_components(given, suggested))
    parts.sort(key=lambda pixels: -int(pixels.sum()))
    found = []
    for number, pixels in enumerate(parts[:MOST_REGIONS], start=1):
        first = tuple(np.argwhere(pixels)[0])
        area = int(pixels.sum())
        doubt = float(1.0 - trust[pixels].astype(np.float64).mean())
        found.append(Region(number, int(given[first]), int(suggested[first]), pixels, area, doubt))
    return found


def _components(given: NDArray[np.uint8], suggested: NDArray[np.uint8]) -> list[NDArray[np.bool_]]:
    """Connected pixels (also at corners) of one given and one suggested class, in reading order of the classes."""
    differs = (given != suggested) & (given != IGNORED)
    pairs = given.astype(np.int32) * 256 + suggested
    found = []
    for pair in np.unique(pairs[differs]).tolist():
        labeled, count = ndimage.label(differs & (pairs == pair), structure=np.ones((3, 3)))
        found += [labeled == number for number in range(1, count + 1)]
    return found


def image_trust(trust: NDArray[np.float32], given: NDArray[np.uint8]) -> float:
    """Trust in a whole mask, in [0, 1]: the mean over its judged pixels; NaN where it has none.

    Measured beside other summaries and those of cleanlab in benchmarks/results/masks.md.
    """
    known = given != IGNORED
    return float(trust[known].astype(np.float64).mean()) if known.any() else float("nan")
