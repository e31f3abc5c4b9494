"""A simple model out of fold: it sees classes that are there, and cannot repeat what it did not learn from."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from auditor.audits.out_of_fold import disagreement
from auditor.statistics import OutOfFold, share_for_head
from auditor.statistics.noise import guess_noise_rate
from auditor.statistics.witnesses import Pooled, Witness, pool_predictions


def digits(noise: float, num: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = load_digits()
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(found.target))[:num]
    images = (found.images[rows, None] * 15).astype(np.uint8)
    true = found.target[rows].astype(np.int64)
    wrong = rng.random(num) < noise
    return images, np.where(wrong, (true + 1) % 10, true), true


def network_that_says(labels: np.ndarray, given: np.ndarray, surely: float) -> Pooled | None:
    probs = np.full((len(labels), 10), (1 - surely) / 9, dtype=np.float32)
    probs[np.arange(len(labels)), labels] = surely
    trust = probs[np.arange(len(labels)), given]
    return pool_predictions([Witness("network", trust, probs)], given, 10)


def test_disagreement__is_the_noise_and_its_own_mistakes() -> None:
    clean, noisy = (disagreement(*digits(noise, 1500)[:2]) for noise in (0.0, 0.2))
    assert clean is not None
    assert noisy is not None
    assert clean.num_differ / 1500 < 0.15
    assert 0.2 < noisy.num_differ / 1500 < 0.4


def test_disagreement__of_features_and_of_nothing_to_learn_from() -> None:
    images, given, _ = digits(0.1, 300)
    flat = images.reshape(300, -1).astype(np.float32)
    plain, views = disagreement(flat, given), disagreement(np.stack([flat, flat], axis=1), given)
    assert plain == views
    assert plain is not None
    assert disagreement(images[:8], given[:8]) is None
    assert disagreement(images, np.zeros(300, dtype=np.int64)) is None
    found = disagreement(images, np.where(np.arange(300) < 200, -1, given))
    assert found is not None
    assert found.num_rows == 100


def test_guess_noise_rate__a_network_that_repeats_every_label_is_not_believed() -> None:
    for num in (60, 340, 1700):
        images, given, true = digits(0.12, num)
        pooled = network_that_says(given, given, 0.999)
        found = guess_noise_rate(pooled, num, out_of_fold=disagreement(images, given))
        assert found.low <= (given != true).mean() <= found.high
        assert found.point >= 0.1
        assert "repeat nearly all labels" in found.sentence
        assert "between 0 % and 0 %" not in found.sentence


def test_guess_noise_rate__on_a_small_set_less_than_a_model_out_of_fold_contradicts_is_not_believed() -> None:
    """The networks contradict three of the labels; nothing tells whether they know more than the model does."""
    _, given, _ = digits(0.12, 60)
    says = np.where(np.arange(60) % 20 == 0, (given + 1) % 10, given)
    pooled = network_that_says(says, given, 0.999)
    alone = guess_noise_rate(pooled, 60)
    found = guess_noise_rate(pooled, 60, out_of_fold=OutOfFold(50, 60))
    assert found.point == max(alone.point, 0.1)
    assert "can be memorised" in found.sentence
    assert "can be memorised" not in guess_noise_rate(pooled, 60, out_of_fold=OutOfFold(6, 60)).sentence
    assert (
        "can be memorised"
        not in guess_noise_rate(pooled, 3_000, out_of_fold=OutOfFold(2_500, 3_000)).sentence
    )
    beside = guess_noise_rate(pooled, 60, out_of_fold=OutOfFold(50, 60), alike=0.3)
    assert beside.point == (alone.point + 0.3) / 2  # a second reading is there


def test_guess_noise_rate__a_network_that_knows_half_of_the_wrong_labels_by_heart_does_not_end_the_range() -> (
    None
):
    """It looks like a good one: it is sure, and it contradicts many labels, but far fewer than are wrong."""
    images, given, true = digits(0.4, 1700)
    says = np.where(np.arange(1700) % 2 == 0, true, given)
    pooled = network_that_says(says, given, 0.999)
    alone = guess_noise_rate(pooled, 3_000)
    found = guess_noise_rate(pooled, 3_000, out_of_fold=disagreement(images, given, seed=1))
    truth = (given != true).mean()
    assert alone.high < truth <= found.high
    assert (found.point, share_for_head(found)) == (alone.point, share_for_head(alone))
    assert "repeat" not in found.sentence


def test_guess_noise_rate__a_network_that_contradicts_as_much_is_believed() -> None:
    _, given, true = digits(0.12, 1700)
    pooled = network_that_says(true, given, 0.955)
    found = guess_noise_rate(pooled, 1700, out_of_fold=OutOfFold(800, 1700))
    assert "repeat" not in found.sentence
    assert abs(found.point - (given != true).mean()) < 0.03
