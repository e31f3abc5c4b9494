"""What charts are drawn from: places, bands and cells, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from app.panels import charts
from auditor.results.statements import Move

MARKS = ("wrong", "right")


def test_places__the_most_suspicious_is_last_whichever_way_a_signal_points() -> None:
    history = np.array([[0.1, 0.9, 0.5, np.nan], [3.0, 1.0, 2.0, 5.0]])
    assert charts.places(history, "suspect")[0][:3] == pytest.approx([1 / 3, 1, 2 / 3])
    assert charts.places(history, "clean")[1] == pytest.approx([1 / 4, 3 / 4, 1 / 2, 0])
    assert np.isnan(charts.places(history, "clean")[0, 3])


def test_bands__a_row_an_epoch_and_kind_and_none_for_a_kind_that_nobody_is() -> None:
    history = np.array([[0.0, 0.5, 1.0, 0.2], [np.nan, 0.5, 0.7, 0.4]])
    is_wrong = np.array([True, True, True, False])
    table = charts.bands(history, is_wrong, MARKS).set_index(["kind", "epoch"])
    assert table.loc[("wrong", 1)].tolist() == pytest.approx([0.1, 0.5, 0.9])
    assert table.loc[("wrong", 2)].mid == pytest.approx(0.6)
    assert table.loc[("right", 2)].tolist() == pytest.approx([0.4] * 3)
    assert set(charts.bands(history, np.ones(4, dtype=bool), MARKS).kind) == {"wrong"}


def test_move_cells__a_row_of_the_matrix_is_a_given_label() -> None:
    moves = [Move(1, 0, 2, 3, (4, 9)), Move(0, 1, 0, 1)]
    cells = charts.move_cells(moves, ["cat", "dog"], {0: 10, 1: 20}).set_index(["given", "right"])
    assert cells.loc[("dog", "cat")].tolist() == [2, 3, 5, "3 +2", "4 to 9", 0]
    assert cells.loc[("cat", "dog")].tolist() == [0, 1, 1, "1", "", 0]
    assert cells.loc[("cat", "cat")].tolist() == [0, 0, 0, "", "", 9], "those that nobody doubts"
    assert cells.loc[("dog", "dog")].sure == 15
    many = charts.move_cells([*moves, Move(250, 7, 0, 9)], [f"class {i}" for i in range(300)])
    assert many.given.unique().tolist() == ["class 0", "class 1", "class 250"], "rows with something in them"
    assert many.right.unique().tolist() == ["class 0", "class 1", "class 7"]
