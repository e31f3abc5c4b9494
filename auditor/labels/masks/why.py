"""Why a region of a mask is doubted, in words.

Class names come from a user's files: the text is data, and whoever shows it must escape it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from auditor.ground.wording import percent
from auditor.labels.masks.pixels import Region

NEARLY_ALL = 0.95
LEAST_BORDER = 0.1
"""Less of a border that touches the suggested class says nothing."""


def region_sentences(
    region: Region,
    given: NDArray[np.uint8],
    said: Sequence[Mapping[str, NDArray[Any]]],
    class_names: Sequence[str],
) -> str:
    """Return what the engines see in the region, how much of its class it is and what it touches.

    Args:
        region: of this mask.
        given: (H, W) the mask as it came in.
        said: by engine its ``predicted`` class and ``predicted_prob``, each (H, W).
        class_names: by class.
    """
    label, suggested = class_names[region.given], class_names[region.suggested]
    of_class = region.area / max(1, int((given == region.given).sum()))
    found = [_seen(region, said, class_names), f"It is {_part(of_class)} of what is {label!r} in this mask."]
    around = ndimage.binary_dilation(region.pixels, np.ones((3, 3))) & ~region.pixels
    touching = float((given[around] == region.suggested).mean()) if around.any() else 0.0
    if touching >= LEAST_BORDER:
        found.append(f"{_part(touching).capitalize()} of its border touches {suggested!r}.")
    return " ".join(found)


def _part(share: float) -> str:
    return "all" if share >= NEARLY_ALL else percent(share)


def _seen(region: Region, said: Sequence[Mapping[str, NDArray[Any]]], class_names: Sequence[str]) -> str:
    """Return how many engines see which class."""
    votes = [int(np.bincount(one["predicted"][region.pixels]).argmax()) for one in said]
    same, agree, total = votes.count(region.suggested), votes.count(region.given), len(votes)
    who = {1: "The engine", 2: "Both engines"}.get(total, f"All {total} engines")
    if same < total:
        who = f"{same} of {total} engines"
    sees = "sees" if total == 1 or same == 1 else "see"
    found = f"{who} {sees} {class_names[region.suggested]!r} here"
    if agree:
        found += f"; {agree} {'agrees' if agree == 1 else 'agree'} with {class_names[region.given]!r}"
    return f"{found}."
