"""A user's own table of probabilities: matched by key, refused with the row that is wrong."""

import numpy as np
import pandas as pd
import pytest

from auditor.errors import ImportRefusedError
from auditor.predictions import read_predictions, witness_from_frame, witness_from_probabilities
from auditor.trust import combine
from tests.auditor.worlds import make_witness, make_world

NAMES = ["cat", "dog"]
GIVEN = np.array([0, 1, -1])


def table(**columns):
    return pd.DataFrame({"cat": [0.9, 0.2, 0.5], "dog": [0.1, 0.8, 0.5], **columns})


def test_witness_from_frame__in_order():
    witness = witness_from_frame(table(), GIVEN, NAMES, name="mine")
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


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (table().drop(columns="dog"), r"has no column for class 'dog'.*'prob_dog'"),
        (table(prob_cat=[0, 0, 0]), r"has 2 columns for class 'cat'"),
        (table(sample_id=[0, 1, 7]), r"row 2 is for 7, which is not in the data set \(1 such"),
        (table(sample_id=[0, "x", 2]), r"row 1 is for 'x', which is not in the data set"),
        (table(sample_id=[0, 1, 1]), r"row 2 repeats 1"),
        (table().iloc[:2], r"2 rows for 3 samples; add a column sample_id or filepath"),
        (table().assign(cat=[3.0, -1.0, 2.0]), r"row 0 sums to 3\.1000.*apply softmax"),
        (table().assign(cat=[0.9, None, 0.5]), r"row 1 has an empty or infinite probability"),
        (table().assign(cat=["high", "low", "low"]), r"a probability is not a number"),
    ],
)
def test_witness_from_frame__refuses(frame, message):
    with pytest.raises(ImportRefusedError, match=message):
        witness_from_frame(frame, GIVEN, NAMES)


def test_witness_from_frame__counts_like_an_engine():
    world = make_world(500, 2)
    engine = make_witness(world)
    frame = pd.DataFrame(engine.pred_probs, columns=NAMES)
    own = witness_from_frame(frame, world.given_labels, NAMES)
    alone = combine([own], world.given_labels, 2)
    np.testing.assert_allclose(
        alone.trust_score, combine([engine], world.given_labels, 2).trust_score, atol=2e-3
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


def test_read_predictions__array_in_class_order(tmp_path):
    path = tmp_path / "model.npy"
    np.save(path, table().to_numpy(np.float32))
    frame = read_predictions(path, NAMES)
    expected = witness_from_frame(table(), GIVEN, NAMES)
    found = witness_from_frame(frame, GIVEN, NAMES)
    np.testing.assert_allclose(found.pred_probs, expected.pred_probs, atol=1e-6)
    with pytest.raises(ImportRefusedError, match="3 rows for 4 samples"):
        witness_from_frame(frame, np.append(GIVEN, 0), NAMES)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.full((3, 7), 1 / 7),
            r"model\.npy holds an array of shape \(3, 7\); hand in one row a sample and 2 columns",
        ),
        (np.full(3, 1.0), r"holds an array of shape \(3,\)"),
        (np.array([{"a": 1}], dtype=object), r"model\.npy cannot be read as npy: Object arrays"),
    ],
)
def test_read_predictions__refuses_an_array(tmp_path, array, message):
    np.save(tmp_path / "model.npy", array)
    with pytest.raises(ImportRefusedError, match=message):
        read_predictions(tmp_path / "model.npy", NAMES)
