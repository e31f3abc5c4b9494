"""A user's own table of probabilities: matched by key, refused with the row that is wrong."""

import numpy as np
import pandas as pd
import pytest

from auditor.ground.errors import ImportRefusedError
from auditor.statistics import combine
from auditor.statistics.trust.predictions import (
    probabilities_from_array,
    read_predictions,
    witness_from_frame,
    witness_from_probabilities,
)
from tests.auditor.statistics.worlds import make_witness, make_world

NAMES = ["cat", "dog"]
GIVEN = np.array([0, 1, -1])
IDS = [0, 1, 2]
PATHS = ["a.png", "b.png", "c.png"]


def table(**columns):
    return pd.DataFrame({"cat": [0.9, 0.2, 0.5], "dog": [0.1, 0.8, 0.5], **columns})


def test_witness_from_frame__is_matched_by_key():
    witness = witness_from_frame(table(sample_id=[0, 1, 2]), GIVEN, NAMES, name="mine")
    np.testing.assert_allclose(witness.pred_probs, [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(witness.trust_score, [np.log(9), np.log(4), np.nan], rtol=1e-5)
    assert witness.name == "mine"


def test_witness_from_frame__by_sample_id_covers_a_part():
    frame = table(sample_id=[2, 0, 1]).iloc[:2].rename(columns={"cat": "prob_cat"})
    witness = witness_from_frame(frame, GIVEN, NAMES)
    np.testing.assert_allclose(witness.pred_probs[[2, 0]], [[0.9, 0.1], [0.2, 0.8]], rtol=1e-6)
    assert np.isnan(witness.pred_probs[1]).all()
    assert np.isnan(witness.trust_score[1])


def test_witness_from_frame__by_filepath():
    frame = table(filepath=["c.png", "a.png", "b.png"])
    witness = witness_from_frame(frame, GIVEN, NAMES, filepaths=["a.png", "b.png", "c.png"])
    np.testing.assert_allclose(witness.pred_probs[:, 0], [0.2, 0.5, 0.9], rtol=1e-6)


def test_witness_from_frame__by_paths_in_a_column_of_any_name():
    frame = table(note="c.png", Image=["c.png", "a.png", "b.png"], other=["x", "y", "z"])
    frame["note"] = ["c.png", "a.png", "?"]
    witness = witness_from_frame(frame, GIVEN, NAMES, filepaths=PATHS)
    np.testing.assert_allclose(witness.pred_probs[:, 0], [0.2, 0.5, 0.9], rtol=1e-6)


def test_witness_from_frame__two_keys_have_to_agree():
    agreeing = table(sample_id=[2, 0, 1], filepath=["c.png", "a.png", "b.png"])
    witness = witness_from_frame(agreeing, GIVEN, NAMES, filepaths=PATHS)
    np.testing.assert_allclose(witness.pred_probs[:, 0], [0.2, 0.5, 0.9], rtol=1e-6)
    shifted = table(sample_id=[0, 1, 2], filepath=["a.png", "c.png", "b.png"])
    with pytest.raises(
        ImportRefusedError, match=r"row 1 has sample_id 1, which is 'b\.png', and the path 'c\.png' \(2"
    ):
        witness_from_frame(shifted, GIVEN, NAMES, filepaths=PATHS)


def test_witness_from_frame__empty_rows_have_no_opinion():
    frame = table(sample_id=IDS).assign(cat=[0.9, np.nan, 0.5], dog=[0.1, np.nan, 0.5])
    witness = witness_from_frame(frame, GIVEN, NAMES)
    assert np.isnan(witness.pred_probs).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (table().drop(columns="dog"), r"has no column for class 'dog'.*'prob_dog'"),
        (table(prob_cat=[0, 0, 0]), r"has 2 columns for class 'cat'"),
        (table(sample_id=[0, 1, 7]), r"row 2 is for 7, which is not in the data set \(1 such"),
        (table(sample_id=[0, "x", 2]), r"row 1 is for 'x', which is not in the data set"),
        (table(sample_id=[0, 1, 1]), r"row 2 repeats 1"),
        (table(), r"no column says which row is about which sample; add sample_id"),
        (table(file=["b.png", "a.png", "c.png"]), r"no column says which row"),
        (table(sample_id=IDS).assign(cat=[3.0, -1.0, 2.0]), r"row 0 sums to 3\.1000.*apply softmax"),
        (
            table(sample_id=IDS).assign(cat=[90.0, 20.0, 49.0], dog=[10.0, 80.0, 49.0]),
            r"row 0 sums to 100\.0000.*percentages: divide them by 100",
        ),
        (table(sample_id=IDS).assign(cat=[0.9, None, 0.5]), r"row 1 has an empty or infinite probability"),
        (table(sample_id=IDS).assign(cat=["high", "low", "low"]), r"a probability is not a number"),
        (table(sample_id=IDS).assign(cat=np.nan, dog=np.nan), r"all cells are empty"),
        (table(sample_id=IDS).iloc[:0], r"all cells are empty"),
    ],
)
def test_witness_from_frame__refuses(frame, message):
    with pytest.raises(ImportRefusedError, match=message):
        witness_from_frame(frame, GIVEN, NAMES)


def test_witness_from_frame__counts_like_an_engine():
    world = make_world(500, 2)
    engine = make_witness(world)
    frame = pd.DataFrame(engine.pred_probs, columns=NAMES).assign(sample_id=np.arange(500))
    own = witness_from_frame(frame, world.given_labels, NAMES)
    alone = combine([own], world.given_labels, 2)
    np.testing.assert_allclose(
        alone.reading.trust_score,
        combine([engine], world.given_labels, 2).reading.trust_score,
        atol=2e-3,
    )


def test_witness_from_probabilities__refuses_other_rows():
    with pytest.raises(ImportRefusedError, match=r"\(2, 2\), expected one row for each of 3 samples"):
        witness_from_probabilities(np.full((2, 2), 0.5), GIVEN)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_read_predictions__round_trip(tmp_path, suffix):
    frame, path = table(filepath=["1", "2", "3"]), tmp_path / f"probs{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",", index=False)
    pd.testing.assert_frame_equal(read_predictions(path), frame)


def test_read_predictions__refuses(tmp_path):
    with pytest.raises(ImportRefusedError, match=r"nowhere\.csv does not exist"):
        read_predictions(tmp_path / "nowhere.csv")
    (tmp_path / "model.pkl").write_bytes(b"x")
    with pytest.raises(ImportRefusedError, match=r"model\.pkl is \.pkl; give a \.csv"):
        read_predictions(tmp_path / "model.pkl")
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    with pytest.raises(ImportRefusedError, match=r"broken\.parquet cannot be read as parquet"):
        read_predictions(tmp_path / "broken.parquet")


def test_probabilities_from_array__in_the_order_of_the_dataset(tmp_path):
    path = tmp_path / "model.npy"
    array = table().to_numpy(np.float32).copy()
    array[1] = np.nan
    np.save(path, array)
    found = probabilities_from_array(read_predictions(path), 3, 2, name="mine")
    np.testing.assert_allclose(found, array, atol=1e-6)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((3, 7), 1 / 7), r"mine holds an array of shape \(3, 7\); give 3 rows.* and 2 columns"),
        (np.full((2, 2), 0.5), r"shape \(2, 2\); give 3 rows, one per sample"),
        (np.full(3, 1.0), r"holds an array of shape \(3,\)"),
        (np.array([["a", "b"]] * 3), r"mine holds <U1; give numbers"),
        (np.full((3, 2), np.nan), r"all cells are empty"),
        (np.array([[0.5, 0.5], [np.nan, 1.0], [1.0, 0.0]]), r"row 1 has an empty or infinite"),
    ],
)
def test_probabilities_from_array__refuses(array, message):
    with pytest.raises(ImportRefusedError, match=message):
        probabilities_from_array(array, 3, 2, name="mine")


def test_read_predictions__never_unpickles(tmp_path):
    np.save(tmp_path / "model.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(
        ImportRefusedError,
        match=r"as npy \(it holds Python objects\); save it again\.$",
    ):
        read_predictions(tmp_path / "model.npy")
