"""What neighbours in feature space know of predictions and labels: by hand, and where they must not judge."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.statistics import smoothness as module
from auditor.statistics.smoothness import alike
from auditor.statistics.weights import weightings
from auditor.statistics.witnesses import Witness


def witness(probs: NDArray[np.floating], name: str = "w") -> Witness:
    return Witness(name, np.arange(len(probs), dtype=np.float32), probs.astype(np.float32))


def blobs(num: int = 900, classes: int = 3) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels in equal parts, and four neighbours of the same class for each row."""
    labels = np.arange(num) % classes
    steps = classes * np.array([1, 2, 3, 4])
    return labels, (np.arange(num)[:, None] + steps) % num


def sure(labels: NDArray[np.int64], classes: int = 3, share: float = 0.9) -> NDArray[np.float64]:
    probs = np.full((len(labels), classes), (1 - share) / (classes - 1))
    probs[np.arange(len(labels)), labels] = share
    return probs


def test_alike__by_hand() -> None:
    labels, near = blobs()
    found = alike(witness(sure(labels)), labels, near)
    # Neighbours give the class .9; the label follows from the class, which the best T takes for certain.
    assert found.nats == pytest.approx(-np.log(0.9) - np.log(0.9), abs=0.01)
    assert found.beyond == 0.0


def test_alike__a_constant_says_nothing_of_the_label_and_chance_nothing_of_neighbours() -> None:
    labels, near = blobs()
    constant = alike(witness(sure(np.zeros_like(labels), share=1.0)), labels, near)
    assert constant.nats == pytest.approx(np.log(3), abs=1e-3)
    at_random = np.random.default_rng(0).integers(3, size=len(labels))
    assert alike(witness(sure(at_random)), labels, near).nats > 2
    assert alike(witness(np.ones((900, 1))), labels, near).nats == np.inf


def test_alike__memorised_labels_are_longer_and_beyond_what_neighbours_know() -> None:
    labels, near = blobs()
    given = np.where(np.arange(900) % 5 == 0, (labels + 1) % 3, labels)
    parrot, learned = (alike(witness(sure(one)), given, near) for one in (given, labels))
    assert parrot.nats > learned.nats + 0.1
    assert parrot.beyond > 0.25
    assert learned.beyond == pytest.approx(0.0, abs=0.02)


def test_alike__merged_classes_are_longer_although_they_are_smooth() -> None:
    labels, near = blobs()
    merged = np.where(labels == 2, 1, labels)
    assert (
        alike(witness(sure(merged)), labels, near).nats
        > alike(witness(sure(labels)), labels, near).nats + 0.3
    )


def test_alike__only_the_likeliest_of_many_classes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, near = blobs(num=1_000, classes=50)
    probs = sure(labels, classes=50)
    whole = alike(witness(probs), labels, near).nats
    monkeypatch.setattr(module, "MOST_CLASSES", 50)
    assert alike(witness(probs), labels, near).nats == pytest.approx(whole, abs=0.1)


def test_alike__silent_rows_missing_neighbours_and_unlabeled_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels, near = blobs()
    whole = alike(witness(sure(labels)), labels, near).nats
    probs, given = sure(labels), labels.copy()
    probs[::9] = np.nan
    near = near.copy()
    near[1::7, 2:] = -1
    near[4] = -1
    given[5::11] = -1
    assert alike(witness(probs), given, near).nats == pytest.approx(whole, rel=0.02)
    monkeypatch.setattr(module, "BLOCK", 64)
    assert alike(witness(probs), given, near).nats == pytest.approx(whole, rel=0.02)
    assert alike(witness(np.full((900, 3), np.nan)), labels, near).nats == np.inf


def test_weightings__smoothness_leads_where_the_features_serve() -> None:
    labels, near = blobs()
    rng = np.random.default_rng(0)
    given = np.where(rng.random(900) < 0.3, (labels + 1) % 3, labels)
    half = np.where(rng.random(900) < 0.2, (labels + 1) % 3, labels)
    candidates = weightings(
        [witness(sure(labels), "learned"), witness(sure(half), "half")],
        given,
        parted=True,
        noise_rate=0.3,
        neighbours=near,
    )
    names = [one.name for one in candidates]
    assert names[:3] == ["smoothness", "agreement", "equal"]
    assert "learned alone" in names
    assert candidates[0].weights["learned"] > 0.95
    assert all(sum(one.weights.values()) == pytest.approx(1.0) for one in candidates)


def test_weightings__one_that_knows_more_labels_than_the_neighbours_leaves_the_lead_to_agreement() -> None:
    labels, near = blobs()
    given = np.where(np.random.default_rng(0).random(900) < 0.3, (labels + 1) % 3, labels)
    candidates = weightings(
        [witness(sure(labels), "learned"), witness(sure(given), "parrot")],
        given,
        parted=True,
        noise_rate=0.3,
        neighbours=near,
    )
    assert [one.name for one in candidates][:2] == ["agreement", "smoothness"]
    assert candidates[1].weights["learned"] > 0.95


@pytest.mark.parametrize(("memorised", "leader"), [(1, "smoothness"), (2, "agreement")])
def test_weightings__a_single_memoriser_of_three_says_nothing_of_the_features(
    memorised: int, leader: str
) -> None:
    labels, near = blobs()
    rng = np.random.default_rng(0)
    given = np.where(rng.random(900) < 0.3, (labels + 1) % 3, labels)
    learned = [np.where(rng.random(900) < 0.05, (labels + 1) % 3, labels) for _ in range(3 - memorised)]
    probs = [sure(one) for one in [*learned, *[given] * memorised]]
    candidates = weightings(
        [witness(one, str(number)) for number, one in enumerate(probs)],
        given,
        parted=True,
        noise_rate=0.3,
        neighbours=near,
    )
    assert candidates[0].name == leader


def test_weightings__a_witness_whose_classes_lost_their_names_counts_nothing_by_smoothness() -> None:
    labels, near = blobs()
    rng = np.random.default_rng(0)
    given = np.where(rng.random(900) < 0.2, (labels + 1) % 3, labels)
    fair = np.where(rng.random(900) < 0.1, rng.integers(3, size=900), labels)
    exchanged = (labels + 1) % 3
    witnesses = [witness(sure(fair), "fair"), witness(sure(exchanged), "exchanged")]
    candidates = weightings(witnesses, given, parted=True, noise_rate=0.2, neighbours=near)
    fair_one, exchanged_one = (alike(one, given, near) for one in witnesses)
    assert exchanged_one.nats < fair_one.nats
    assert candidates[0].name == "smoothness"
    assert candidates[0].weights == {"fair": 1.0, "exchanged": 0.0}
