"""What charts are drawn from: curves, areas, shares and places, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from app.panels import charts
from auditor.results.statements import Move

MARKS = ("wrong", "right")


def test_detection_curves__are_those_of_every_cut_and_leave_out_what_has_no_score() -> None:
    rng = np.random.default_rng(0)
    is_wrong = rng.random(200) < 0.3
    doubt = is_wrong + rng.normal(size=200)
    doubt[::10] = np.nan
    points = charts.detection_curves({"one": doubt, "other": -doubt}, is_wrong)
    known = np.isfinite(doubt)
    for name, sign in (("one", 1), ("other", -1)):
        curve = points[points.engine == name]
        assert len(curve) == known.sum() == 180
        area = charts.area_under(curve.recall.to_numpy(), curve.false_share.to_numpy())
        assert area == pytest.approx(roc_auc_score(is_wrong[known], sign * doubt[known]))
    for cut in (0, 59, 179):
        flagged = doubt[known] >= np.sort(doubt[known])[::-1][cut]
        row = points[points.engine == "one"].iloc[cut]
        assert row.recall == pytest.approx(recall_score(is_wrong[known], flagged))
        assert row.precision == pytest.approx(precision_score(is_wrong[known], flagged))


def test_detection_curves__of_many_rows_are_thinned_from_the_first_to_the_last() -> None:
    points = charts.detection_curves({"one": np.arange(5_000.0)}, np.arange(5_000) >= 4_000)
    assert len(points) == 300
    assert (points.recall.iloc[-1], points.false_share.iloc[-1], points.precision.iloc[0]) == (1, 1, 1)


def test_places__the_most_suspicious_is_last_whichever_way_a_signal_points() -> None:
    history = np.array([[0.1, 0.9, 0.5, np.nan], [3.0, 1.0, 2.0, 5.0]])
    assert charts.places(history, "suspect")[0][:3] == pytest.approx([1 / 3, 1, 2 / 3])
    assert charts.places(history, "clean")[1] == pytest.approx([1 / 4, 3 / 4, 1 / 2, 0])
    assert np.isnan(charts.places(history, "clean")[0, 3])


def test_histogram__shares_are_of_each_kind_alone_and_both_ends_count() -> None:
    values = np.array([0.0, 0.0, 1.0, 0.5, np.nan])
    table = charts.histogram(values, np.array([True, True, True, False, True]), MARKS)
    wrong, right = (table[table.kind == kind] for kind in MARKS)
    assert (wrong.share.iloc[0], wrong.share.iloc[-1]) == pytest.approx((2 / 3, 1 / 3))
    assert wrong.share.sum() == pytest.approx(1)
    assert right[right.share > 0][["bin", "share"]].to_numpy().tolist() == [[0.5, 1.0]]
    assert charts.histogram(values, np.zeros(5, dtype=bool), MARKS).share.iloc[0] == 0


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
    cells = charts.move_cells(moves, ["cat", "dog"]).set_index(["given", "right"])
    assert cells.loc[("dog", "cat")].tolist() == [2, 3, 5, "3 + 2 ✓", "4 to 9"]
    assert cells.loc[("cat", "dog")].tolist() == [0, 1, 1, "1", ""]
    assert cells.loc[("cat", "cat")].number == 0
    many = charts.move_cells([*moves, Move(250, 7, 0, 9)], [f"class {i}" for i in range(300)])
    assert many.given.unique().tolist() == ["class 0", "class 1", "class 250"], "rows with something in them"
    assert many.right.unique().tolist() == ["class 0", "class 1", "class 7"]
