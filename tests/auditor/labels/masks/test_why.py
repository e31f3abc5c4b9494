"""Why a region is doubted, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.labels.masks import pixels, why

NAMES = ["ground", "disc", "sky"]


def picture() -> tuple[np.ndarray, np.ndarray]:
    """(given, right): ground beside a disc of which a part is drawn as sky, and a patch of sky far from it."""
    right = np.zeros((20, 20), np.uint8)
    right[:, 10:] = 1
    right[0:2, 0:2] = 2
    given = right.copy()
    given[6:12, 14:20] = 2
    return given, right


def said_by(*predicted: np.ndarray, prob: float = 0.9) -> list[dict[str, Any]]:
    return [{"predicted": one, "predicted_prob": np.full(one.shape, prob, np.float32)} for one in predicted]


def region_of(given: np.ndarray, right: np.ndarray) -> pixels.Region:
    return pixels.regions(given, right, np.where(given == right, 1.0, 0.1))[0]


@pytest.mark.parametrize(
    ("right_of", "prob", "first"),
    [
        ((True,), 0.9, "The engine sees 'disc' here."),
        ((True, True), 0.9, "Both engines see 'disc' here."),
        ((True, True, True), 0.9, "All 3 engines see 'disc' here."),
        ((True, True, False), 0.9, "2 of 3 engines see 'disc' here; 1 agrees with 'sky'."),
    ],
)
def test_sentences__name_the_models_that_see_it(right_of: tuple[bool, ...], prob: float, first: str) -> None:
    given, right = picture()
    said = said_by(*(right if one else given for one in right_of), prob=prob)
    assert why.region_sentences(region_of(given, right), given, said, NAMES).startswith(first)


def test_sentences__tell_how_much_of_its_class_it_is_and_what_it_touches() -> None:
    given, right = picture()
    region, said = region_of(given, right), said_by(right)
    found = why.region_sentences(region, given, said, NAMES)
    assert found.endswith("It is 90 % of what is 'sky' in this mask. All of its border touches 'disc'.")
    given[given == 1] = 0
    given[0:2, 0:2] = 0
    found = why.region_sentences(region, given, said, NAMES)
    assert found.endswith("It is all of what is 'sky' in this mask.")
