"""From pixels to trust, regions and a suggested mask."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.labels.masks import pixels
from auditor.pictures.masks import IGNORED

SIDE = 20


def half() -> np.ndarray:
    """Class 0 on the left, 1 on the right."""
    mask = np.zeros((SIDE, SIDE), np.uint8)
    mask[:, SIDE // 2 :] = 1
    return mask


def test_softmin__lies_between_mean_and_minimum_and_is_that_of_cleanlab() -> None:
    from cleanlab.internal.multilabel_scorer import softmin as theirs

    values = np.random.default_rng(0).uniform(0, 1, 50)
    found = pixels.softmin(values)
    assert values.min() < found < values.mean()
    assert found == pytest.approx(float(theirs(values[None], temperature=0.1, axis=1)[0]))
    assert np.isnan(pixels.softmin(np.empty(0)))


def test_pixel_trust__is_one_where_the_given_class_is_the_likeliest() -> None:
    given, best = np.array([[0.6, 0.1, 0.0]]), np.array([[0.6, 0.8, 0.0]])
    assert pixels.pixel_trust(given, best)[0].tolist() == pytest.approx([1.0, 0.125, 0.0])


def test_suggested_mask__changes_sure_regions_and_leaves_small_ones_borders_and_ignored_pixels() -> None:
    given = half()
    given[15:, 15:] = IGNORED
    predicted = given.copy()
    predicted[2:8, 2:8] = 1  # large and sure
    predicted[12, 2:4] = 1  # small
    predicted[0:8, 12:18] = 0  # large, but hardly likelier
    predicted[15:, 15:] = 0
    best = np.full(given.shape, 0.9, np.float32)
    own = np.where(predicted == given, 0.9, 0.1).astype(np.float32)
    own[0:8, 12:18] = 0.6
    found = pixels.suggested_mask(given, predicted, best, own)
    wanted = given.copy()
    wanted[2:8, 2:8] = 1
    assert (found == wanted).all()


def test_regions__are_connected_pixels_of_one_change_the_largest_first() -> None:
    given, suggested = half(), half()
    suggested[0:5, 0:4] = 1
    suggested[10:14, 0:4] = 2
    suggested[14, 4] = 2  # touches at a corner
    trust = np.where(given == suggested, 1.0, 0.25)
    found = pixels.regions(given, suggested, trust)
    assert [(one.number, one.given, one.suggested, one.area) for one in found] == [
        (1, 0, 1, 20),
        (2, 0, 2, 17),
    ]
    assert found[1].box == (0, 10, 5, 15)
    assert found[0].doubt == pytest.approx(0.75)


def test_class_trust__is_of_the_classes_that_occur() -> None:
    trust = np.where(half() == 1, 0.5, 1.0).astype(np.float32)
    found = pixels.class_trust(trust, half(), 3)
    assert found[:2].tolist() == pytest.approx([1.0, 0.5])
    assert np.isnan(found[2])
    assert pixels.image_trust(trust, half()) == pytest.approx(0.75)


def test_together__needs_engines_that_agree() -> None:
    given = np.zeros((1, 3), np.uint8)

    def said(predicted: list[int], best: list[float], own: list[float]) -> dict[str, np.ndarray]:
        return {
            "predicted": np.array([predicted], np.uint8),
            "predicted_prob": np.array([best], np.float16),
            "given_prob": np.array([own], np.float16),
        }

    one = said([1, 1, 0], [0.9, 0.9, 0.8], [0.1, 0.1, 0.8])
    other = said([1, 2, 0], [0.7, 0.7, 0.6], [0.2, 0.2, 0.6])
    predicted, best, own = pixels.together(given, [one, other])
    assert predicted[0].tolist() == [1, 1, 0]
    assert best[0].tolist() == pytest.approx([0.8, 0.45, 0.7], abs=1e-3)
    assert own[0].tolist() == pytest.approx([0.15, 0.15, 0.7], abs=1e-3)
