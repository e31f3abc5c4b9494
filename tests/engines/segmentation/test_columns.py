"""A head on what a pretrained network sees at each place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from torch.nn import functional as F

from engines.contract import EngineInputError, EpochRecord, MaskData, TrainingCancelled
from engines.registry import ENGINES
from engines.segmentation.network import FINER, SEEN_SIDE, Columns, Head
from tests.engines.helpers import Kept
from tests.shapes import draw_shapes

NAME = "timm:test_efficientnet"
SHAPES = draw_shapes(10, size=24)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of weights of a tiny EfficientNet, as they are drawn."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "tiny.pth"
    torch.save(timm.create_model(NAME.partition(":")[2]).state_dict(), path)
    return path


def test_columns__are_the_stages_of_the_network_at_one_size(weights: Path) -> None:
    columns = Columns(NAME, str(weights), side=64)
    images = torch.rand(2, 3, 64, 48)
    whole = timm.create_model(NAME.partition(":")[2], num_classes=0)
    whole.load_state_dict(torch.load(weights, weights_only=True), strict=False)
    standardised = (images - torch.tensor(columns.mean)[:, None, None]) / torch.tensor(columns.std)[
        :, None, None
    ]
    stages = whole.eval().forward_intermediates(standardised, intermediates_only=True)
    read = [one for one in stages if one.shape[2] in (16, 8, 4)]
    size = (8, 6)
    literal = torch.cat(
        [F.avg_pool2d(read[0], 2), read[1], F.interpolate(read[2], size=size, mode="bilinear")], dim=1
    )
    found = columns(images)
    assert found.shape[2:] == size
    torch.testing.assert_close(found, literal)
    assert not any(value.requires_grad for value in columns.parameters())


def test_columns__small_and_grey_images_are_seen_larger_and_in_three_channels(weights: Path) -> None:
    columns = Columns(NAME, str(weights))
    grey = torch.rand(1, 1, 40, 20)
    found = columns(grey)
    assert found.shape[2:] == (SEEN_SIDE // 8, SEEN_SIDE // 16)
    torch.testing.assert_close(found, columns(grey.expand(-1, 3, -1, -1)))


def test_head__features_are_means_and_logits_are_finer_than_the_columns() -> None:
    columns = torch.rand(2, 7, 5, 4)
    features, logits = Head(7, 3).eval()(columns)
    torch.testing.assert_close(features, columns.mean(dim=(2, 3)))
    assert logits.shape == (2, 3, 5 * FINER, 4 * FINER)


def test_columns__a_network_without_stages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    torch.save(timm.create_model("mixer_s32_224").state_dict(), path)
    with pytest.raises(EngineInputError, match="mixer_s32_224 has no stages for masks"):
        Columns("timm:mixer_s32_224", str(path))


def test_train_masks__on_columns_goes_on_where_it_was_killed_and_judges_at_full_size(weights: Path) -> None:
    spec = ENGINES["cross_entropy"]
    config = spec.config_type_on("masks")().for_finetuning(NAME, str(weights), 64)
    config = replace(config, epochs=2)
    data, kept = MaskData(SHAPES.images, SHAPES.masks, 3), Kept()

    def stop(record: EpochRecord) -> None:
        if (record.stage, record.epoch) == ("fold 2", 0):
            raise TrainingCancelled

    whole = spec.train_masks(data, config, device="cpu")
    with pytest.raises(TrainingCancelled):
        spec.train_masks(data, config, device="cpu", on_epoch=stop, checkpoint=kept)
    resumed = spec.train_masks(data, config, device="cpu", checkpoint=kept)
    assert (whole.given_prob == resumed.given_prob).all()
    assert whole.predicted.shape == SHAPES.masks.shape
    assert whole.is_out_of_sample
    assert np.isfinite(whole.embeddings).all()
    assert whole.provenance.notes["network"] == f"head, {NAME}"
