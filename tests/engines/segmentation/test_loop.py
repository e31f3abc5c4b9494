"""Engines for masks on small shapes: what they find, how they go on, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engines.contract import IGNORED_PIXEL, EngineInputError, EpochRecord, MaskData, TrainingCancelled
from engines.cross_entropy.masks import step
from engines.registry import ENGINES
from engines.segmentation.loop import MaskFold, probabilities, train_masks
from engines.segmentation.network import UNet, reduced_masks
from engines.shared.device import make_generator
from engines.shared.folds import fold_rows, trained_rows
from engines.shared.run import Run
from tests.engines.helpers import Kept
from tests.shapes import draw_shapes

NAMES = [name for name, spec in ENGINES.items() if "masks" in spec.other_configs]
SHAPES = draw_shapes(10, size=24)
SHORT = {"epochs": 2, "batch_size": 4}


def config_of(name: str, **fields: Any) -> Any:
    return replace(ENGINES[name].config_type_on("masks")(), **(SHORT | fields))


def data_of(**fields: Any) -> MaskData:
    return MaskData(**({"images": SHAPES.images, "masks": SHAPES.masks, "num_classes": 3} | fields))


@pytest.mark.parametrize("name", NAMES)
def test_train_masks__a_killed_run_goes_on_and_ends_as_one_that_was_not(name: str) -> None:
    masks = SHAPES.masks.copy()
    masks[0] = IGNORED_PIXEL
    masks[1, :3] = IGNORED_PIXEL
    data, kept = data_of(masks=masks), Kept()

    def stop(record: EpochRecord) -> None:
        if (record.stage, record.epoch) == ("fold 2", 0):
            raise TrainingCancelled

    before = masks.copy()
    whole = ENGINES[name].train_masks(data, config_of(name), device="cpu")
    with pytest.raises(TrainingCancelled):
        ENGINES[name].train_masks(data, config_of(name), device="cpu", on_epoch=stop, checkpoint=kept)
    seen: list[tuple[str, int]] = []
    resumed = ENGINES[name].train_masks(
        data,
        config_of(name),
        device="cpu",
        on_epoch=lambda record: seen.append((record.stage, record.epoch)),
        checkpoint=kept,
    )
    assert seen == [("fold 2", 1)]
    assert (whole.given_prob == resumed.given_prob).all()
    assert (whole.predicted == resumed.predicted).all()
    assert whole.provenance.notes == resumed.provenance.notes
    assert (masks == before).all()
    assert whole.is_out_of_sample
    assert (whole.given_prob[masks == IGNORED_PIXEL] == 1).all()
    known = whole.predicted == masks
    assert np.allclose(whole.given_prob[known], whole.predicted_prob[known])
    assert (whole.given_prob <= 1).all()


def test_train_masks__judges_other_masks_than_it_trains_on() -> None:
    given = SHAPES.masks.copy()
    given[3] = 0
    heard: dict[int, np.ndarray] = {}

    def listen(rows: np.ndarray, probs: np.ndarray) -> None:
        heard.update(zip(rows.tolist(), probs, strict=True))

    found = ENGINES["cross_entropy"].train_masks(
        data_of(judged=given), config_of("cross_entropy"), device="cpu", on_probabilities=listen
    )
    assert sorted(heard) == list(range(10))
    assert np.allclose(found.given_prob[3], heard[3][0], atol=1e-3)
    assert np.allclose(sum(heard[3]), 1, atol=1e-5)


def test_train_masks__steps_train_on_what_is_there_where_nothing_is_mirrored() -> None:
    given = torch.from_numpy(SHAPES.masks)
    modes = []

    def looked_at(fold: MaskFold, index: torch.Tensor) -> torch.Tensor:
        images, masks = fold.batch(index)
        modes.append(fold.network.training)
        assert torch.equal(masks, given[index].long())
        assert torch.equal(images, fold.images(index))
        return step(fold, index)

    config = config_of("cross_entropy", augment="none")
    silent: dict[str, Any] = {"on_epoch": None, "checkpoint": None, "on_probabilities": None}
    train_masks("cross_entropy", data_of(), config, looked_at, seed=0, device="cpu", **silent)
    assert modes
    assert all(modes)  # also after an epoch's end has judged


def test_fold_rows__every_image_is_judged_by_a_network_that_did_not_see_it() -> None:
    parts = fold_rows(torch.arange(9), 3, make_generator(0, "folds"))
    assert sorted(torch.cat(parts).tolist()) == list(range(9))
    for number, part in enumerate(parts):
        assert not set(part.tolist()) & set(trained_rows(parts, number).tolist())
    alone = fold_rows(torch.arange(9), 1, make_generator(0, "folds"))
    assert trained_rows(alone, 0).tolist() == list(range(9))


def test_network__takes_images_of_any_size() -> None:
    network = UNet("resnet18", 1, 4).eval()
    features, logits = network(torch.zeros(2, 1, 20, 37))
    assert logits.shape == (2, 4, 20, 37)
    assert features.shape[0] == 2


def test_network__features_are_means_of_the_last_stage_of_the_image_filled_up() -> None:
    network = UNet("resnet18", 1, 4).eval()
    images = torch.rand(2, 1, 20, 37)
    filled = torch.nn.functional.pad(images, (0, 48 - 37, 0, 32 - 20), mode="replicate")
    last = network.net.encoder(filled)[-1]
    features, logits = network(images)
    torch.testing.assert_close(features, last.flatten(2).mean(dim=2))
    torch.testing.assert_close(logits, network.net(filled)[:, :, :20, :37])


def test_network__an_unknown_encoder_is_refused() -> None:
    with pytest.raises(EngineInputError, match="there is no encoder 'resnet19'"):
        UNet("resnet19", 1, 4)


@pytest.mark.parametrize("views", [1, 2])
def test_probabilities__are_means_over_the_image_and_its_mirror_image(views: int) -> None:
    data = data_of()
    config = config_of("cross_entropy", views=views)
    run = Run("cross_entropy", data, config, device="cpu")
    network = UNet("resnet18", SHAPES.images.shape[1], 3).eval()
    index = torch.tensor([4, 1])
    features, found = probabilities(network, run.inputs(index), run, config, (24, 24))
    images = run.inputs(index)
    plain = network(images)[1].softmax(dim=1)
    mirrored = network(images.flip(3))[1].flip(3).softmax(dim=1)
    expected = plain if views == 1 else (plain + mirrored) / 2
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(features, network(images)[0].detach())
    assert not torch.allclose(plain, mirrored, atol=1e-4)


def test_reduced_masks__takes_the_class_in_the_middle_of_each_area() -> None:
    masks = torch.arange(6, dtype=torch.uint8).repeat_interleave(2).repeat(1, 12, 1)
    assert reduced_masks(masks, (3, 6))[0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert reduced_masks(masks, (3, 3))[0, 0].tolist() == [1, 3, 5]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"masks": np.full((10, 24, 24), 7, np.uint8)}, r"masks\[0\] holds the class 7, outside 0\.\.2"),
        ({"masks": SHAPES.masks[:5]}, r"masks must be \(10, 24, 24\) uint8"),
        ({"trusted": np.zeros(3, bool)}, r"trusted must be \(10,\) bool"),
        ({"num_classes": 1}, "masks need 2 to 254 classes"),
    ],
)
def test_mask_data__refuses_what_cannot_be_trained_on(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(EngineInputError, match=said):
        data_of(**fields)


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        (np.zeros((10, 24, 24), np.uint8), "only class 0 occurs in the masks"),
        (np.full((10, 24, 24), IGNORED_PIXEL, np.uint8), "0 images have a mask; an audit of masks needs"),
    ],
)
def test_train_masks__refuses_masks_with_nothing_to_learn(masks: np.ndarray, said: str) -> None:
    with pytest.raises(EngineInputError, match=said):
        ENGINES["cross_entropy"].train_masks(data_of(masks=masks), config_of("cross_entropy"), device="cpu")
