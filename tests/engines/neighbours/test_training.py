"""The neighbours as an engine: what they answer is what ``search`` and ``votes`` say, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from engines.contract import EngineInputError, EpochRecord
from engines.neighbours import SPEC
from engines.neighbours.search import nearest, unit_rows
from engines.neighbours.votes import neighbour_probs
from tests.engines.helpers import digits_data, on_features


def test_train__answers_with_the_votes_of_the_nearest() -> None:
    data = on_features(digits_data(120, num_unlabeled=6)[0])
    heard: list[EpochRecord] = []
    result = SPEC.train(data, SPEC.config_type(neighbours=31), seed=3, device="cpu", on_epoch=heard.append)

    assert data.features is not None
    rows = unit_rows(data.features)
    probs = neighbour_probs(*nearest(rows, 31), data.given_labels, data.num_classes)
    np.testing.assert_array_equal(result.pred_probs, probs)
    np.testing.assert_array_equal(result.embeddings, rows)
    known = np.flatnonzero(data.given_labels >= 0)
    given = data.given_labels[known]
    others = probs[known].copy()
    others[np.arange(len(known)), given] = 0
    own = probs[known, given]
    lead = np.log(own) - np.log(others.max(axis=1))
    assert np.isnan(result.trust_score[:6]).all()
    np.testing.assert_allclose(
        rankdata(result.trust_score[known]), rankdata(lead), atol=1
    )  # ties by rounding
    agreement = result.signals["agreement"]
    assert np.isnan(agreement[:6]).all()
    np.testing.assert_array_equal(agreement[known], own)
    np.testing.assert_array_equal(result.signal_history["agreement"], agreement.astype(np.float16)[None])

    (record,) = result.history
    assert heard == [record]
    assert record.metrics == {"train_accuracy": np.mean(probs[known].argmax(axis=1) == given)}
    assert (record.stage, record.epoch, record.num_epochs, record.progress) == ("votes", 0, 1, 1.0)
    np.testing.assert_array_equal(record.signals["agreement"], agreement.astype(np.float16))
    assert result.is_out_of_sample
    about = result.provenance
    assert (about.engine, about.seed, about.device) == ("neighbours", 3, "cpu")
    assert (about.config, about.notes) == ({"neighbours": 31}, {"neighbours": 31})
    assert about.seconds == record.seconds > 0


def test_train__a_small_set_has_all_others_as_neighbours() -> None:
    data = on_features(digits_data(8)[0])
    result = SPEC.train(data, SPEC.config_type.preset("quick"), device="cpu")
    assert result.provenance.notes == {"neighbours": 7}


def test_train__refuses_what_has_no_neighbours() -> None:
    images, config = digits_data(20)[0], SPEC.config_type.preset("paper")
    with pytest.raises(EngineInputError, match="neighbours need features; give a backbone"):
        SPEC.train(images, config, device="cpu")
    data = on_features(digits_data(2)[0])
    with pytest.raises(EngineInputError, match="at least 3 samples, there are 2"):
        SPEC.train(data, config, device="cpu")
    with pytest.raises(EngineInputError, match="all given labels are missing"):
        SPEC.train(replace(data, given_labels=np.full(2, -1)), config, device="cpu")


def test_config__says_which_sizes_there_are() -> None:
    for size in (11, 1_000):
        assert SPEC.config_type(neighbours=size).neighbours == size
    for size in (10, 1_001):
        with pytest.raises(EngineInputError, match=f"neighbours is {size}, it must be 11 to 1000"):
            SPEC.config_type(neighbours=size)
    config = SPEC.config_type.preset("quick").for_features()
    assert config.work(50, 3, on_features=True) == (0, 20 * 50)
