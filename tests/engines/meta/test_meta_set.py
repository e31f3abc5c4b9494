"""Who is believed, and that nobody judges itself."""

from __future__ import annotations

import numpy as np
import torch

from engines.meta.meta_set import (
    draw_meta_batch,
    mixture_meta_set,
    resolve_source,
    split_halves,
    trusted_meta_set,
)

LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, -1], dtype=np.int64)
NOBODY = np.zeros(len(LABELS), dtype=bool)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_draw_meta_batch__never_holds_a_sample_that_it_judges() -> None:
    labels = torch.arange(60) % 3
    rows, judged = torch.arange(0, 60, 2), torch.arange(0, 30)
    for seed in range(20):
        batch = draw_meta_batch(rows, labels, judged, 12, generator(seed))
        assert not set(batch.tolist()) & set(judged.tolist())
        assert set(batch.tolist()) <= set(rows.tolist())
        assert len(set(batch.tolist())) == 12


def test_draw_meta_batch__takes_classes_in_equal_shares() -> None:
    labels = torch.tensor([0] * 50 + [1] * 10 + [2] * 2)
    batch = draw_meta_batch(torch.arange(62), labels, torch.tensor([0, 1]), 12, generator())
    assert torch.bincount(labels[batch]).tolist() == [5, 5, 2]


def test_draw_meta_batch__a_single_place_goes_to_every_class_in_turn() -> None:
    labels = torch.arange(30) % 3
    seen = {
        int(labels[draw_meta_batch(torch.arange(30), labels, torch.tensor([0]), 1, generator(seed))])
        for seed in range(30)
    }
    assert seen == {0, 1, 2}


def test_draw_meta_batch__returns_what_is_left() -> None:
    labels = torch.tensor([0, 1, 2])
    assert draw_meta_batch(torch.arange(3), labels, torch.tensor([0, 2]), 8, generator()).tolist() == [1]
    assert len(draw_meta_batch(torch.arange(3), labels, torch.arange(3), 8, generator())) == 0


def test_split_halves__shares_every_class() -> None:
    labels = torch.tensor([0, 1, 0, 1, 0, 1, 1, 1])
    first, second = split_halves(torch.arange(8), labels)
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(8))
    assert abs(int((labels[first] == 0).sum()) - int((labels[second] == 0).sum())) <= 1
    assert abs(int((labels[first] == 1).sum()) - int((labels[second] == 1).sum())) <= 1


def test_mixture_meta_set__takes_the_smallest_losses_of_each_class() -> None:
    losses = np.array([0.1, 0.2, 3.0, 0.15, 2.9, 0.1, 0.12, 3.1, 3.0, 3.2, np.nan])
    meta = mixture_meta_set(losses, LABELS, NOBODY, per_class=2)
    # Class 2 has no believed sample and lends its two smallest losses.
    assert meta.rows.tolist() == [0, 3, 5, 6, 8, 9]
    assert meta.source == "mixture"
    assert meta.purity < 0.7
    assert meta.smallest_class == 2


def test_mixture_meta_set__keeps_trusted_samples_whatever_their_loss() -> None:
    losses = np.array([0.1, 0.2, 3.0, 0.15, 2.9, 0.1, 0.12, 3.1, 0.1, 0.2, np.nan])
    trusted = NOBODY.copy()
    trusted[7] = True
    meta = mixture_meta_set(losses, LABELS, trusted, per_class=1)
    assert 7 in meta.rows.tolist()
    assert 2 not in meta.rows.tolist()


def test_warnings__name_small_and_unconfirmed_and_impure_sets() -> None:
    losses = np.array([0.1, 0.2, 3.0, 0.15, 2.9, 0.1, 0.12, 3.1, 3.0, 3.2, np.nan])
    texts = mixture_meta_set(losses, LABELS, NOBODY, per_class=2).warnings()
    assert len(texts) == 3
    for text, word in zip(texts, ("is small", "not confirmed by a person", "is impure"), strict=True):
        assert word in text
    labels = np.repeat(np.arange(2), 60)
    assert trusted_meta_set(labels, np.ones(120, dtype=bool)).warnings() == []


def test_resolve_source__needs_five_trusted_of_every_class() -> None:
    labels = np.repeat(np.arange(3), 10)
    trusted = np.tile(np.arange(10) < 5, 3)
    assert resolve_source(labels, trusted) == "trusted"
    trusted[0] = False
    assert resolve_source(labels, trusted) == "mixture"


def test_draw_meta_batch__within_a_class_rows_come_as_often_as_they_stand_for() -> None:
    labels, weight = torch.zeros(40, dtype=torch.int64), torch.ones(40)
    weight[20:] = 9.0  # drawn from the rest: each stands for nine of the head's
    seen = torch.zeros(40)
    for seed in range(300):
        seen[
            draw_meta_batch(
                torch.arange(40),
                labels,
                torch.tensor([], dtype=torch.int64),
                4,
                generator(seed),
                weight=weight,
            )
        ] += 1
    assert 5 < float(seen[20:].sum() / seen[:20].sum()) < 12
