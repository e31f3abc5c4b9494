"""What an audit says of all masks together."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.labels.masks.judging import judge
from auditor.pictures.masks import IGNORED

SIDE = 24
Said = dict[str, np.ndarray]


def scene(num: int = 40) -> tuple[np.ndarray, Said]:
    """(masks, what an engine says of them).

    It sees class 1 along the border of class 0 in every mask, a little likelier, and in mask 3 a square of class 2
    in the middle of class 0, for sure. Class 1 is given on the left.
    """
    random = np.random.default_rng(0)
    given = np.zeros((num, SIDE, SIDE), np.uint8)
    given[:, :, :8] = 1
    given[:, 0] = IGNORED
    predicted, seen, own = given.copy(), np.full(given.shape, 0.9), np.full(given.shape, 0.9)
    predicted[given == IGNORED] = 0
    for row in range(num):
        top, height = random.integers(2, 10, 2)
        at = np.s_[row, top : top + height + 3, 8:11]
        likely = random.uniform(0.7, 0.8)
        predicted[at], seen[at], own[at] = 1, likely, 0.95 - likely
    square = np.s_[3, 8:18, 13:23]
    predicted[square], seen[square], own[square] = 2, 0.98, 0.001
    return given, {"predicted": predicted, "predicted_prob": seen, "given_prob": own}


def test_judge__what_an_engine_confuses_in_every_mask_is_no_suspect() -> None:
    given, said = scene()
    found = judge(given, [said], 3)
    assert np.flatnonzero(found.largest >= 0).tolist() == [3]
    assert found.order.argmin() == 3
    assert found.wrong.argmax() == 3
    assert found.wrong[3] > 0.9
    changes = found.suggested != given
    assert changes[3, 8:18, 13:23].all()
    assert changes.sum() == 100
    assert (found.doubt[3, 8:18, 13:23] == min(254, round(255 * found.wrong[3]))).all()
    assert (found.doubt[given == IGNORED] == 0).all()


def test_judge__masks_without_a_region_come_last_by_the_trust_of_their_pixels() -> None:
    given, said = scene()
    for row, pixels in ((5, 3), (6, 1)):  # too small for a region
        said["predicted"][row] = np.where(given[row] == IGNORED, 0, given[row])
        at = np.s_[row, 20, 12 : 12 + pixels]
        said["predicted"][at], said["predicted_prob"][at], said["given_prob"][at] = 2, 0.9, 0.05
    found = judge(given, [said], 3)
    assert np.argsort(found.order)[-2:].tolist() == [5, 6]
    assert found.wrong[[5, 6]].tolist() == [0, 0]


def test_judge__a_mask_without_a_judged_pixel_has_no_trust() -> None:
    given, said = scene()
    given[7] = IGNORED
    found = judge(given, [said], 3)
    assert np.isnan(found.wrong[7])
    assert np.isnan(found.order[7])
    assert np.isfinite(np.delete(found.order, 7)).all()


@pytest.mark.parametrize("num", [1, 4])
def test_judge__of_few_masks_every_region_is_a_suspect(num: int) -> None:
    given, said = scene(40)
    of_few = {name: values[:num] for name, values in said.items()}
    found = judge(given[:num], [of_few], 3)
    assert (found.largest >= 0).all()
