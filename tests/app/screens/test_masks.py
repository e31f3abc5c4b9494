"""The page of masks: what its view of a random sample records."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from app.server import masks
from auditor.masks import results
from auditor.review import decisions, random_sample
from tests.app.screens.opened import open_page, press
from tests.masked import WRONG, Audited

NEAR = 40
"""The line travels as JPEG."""


def test_masks__a_random_sample_is_judged_without_a_suggestion(audited_masks: Audited) -> None:
    dataset = audited_masks.dataset
    app = open_page("masks", "shapes")
    app.radio[0].set_value("Random sample").run()
    app.number_input[0].set_value(2)
    press(app, "Draw")
    (_, first), (_, second) = random_sample.pending(dataset.id)
    press(app, "It is wrong")
    press(app, "It is right")
    found = {i: (row.decision, row.kind, row.labels) for i, row in decisions.outcomes(dataset.id).items()}
    assert found == {first: ("relabel", "blind", None), second: ("keep", "blind", None)}
    assert random_sample.standing(dataset.id).true_labels.tolist() == [-1, 0]
    assert masks.card({"audit": audited_masks.audit_id, "sample": first})["decision"] is None
    press(app, "Undo my last verdict")
    assert random_sample.pending(dataset.id) == [(1, second)]


def test_outlined__shows_the_given_mask_alone(audited_masks: Audited) -> None:
    shown = np.asarray(Image.open(io.BytesIO(masks.outlined(audited_masks.dataset, WRONG[0], 96))))
    given = np.asarray(results.given_masks(audited_masks.dataset)[WRONG[0]])
    orange = (np.abs(shown.astype(int) - masks.COLOURS[masks.GIVEN]) < NEAR).all(-1)
    assert orange.shape == (96, 96)
    borders = masks._outline(given.repeat(3, 0).repeat(3, 1))
    np.testing.assert_array_equal(orange, borders)
