"""SimCLR on the user's own images: two kinds of pictures come to lie apart, whatever their labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engines.backbones import learn_features
from engines.contract import EngineInputError


class Steps:
    """A clock that ticks at every look, so that a run does the same steps on every machine."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def two_kinds() -> np.ndarray:
    """20 dark and 20 bright noisy pictures with stripes of two directions."""
    random = np.random.default_rng(0)
    stripes = np.tile(np.repeat([0, 1], 4), 2)
    pictures = random.integers(0, 60, (40, 3, 16, 16))
    pictures[:20] += 150 * stripes[:, None]
    pictures[20:] += 150 * stripes[None, :]
    return pictures.astype(np.uint8)


def learned(seconds: float) -> np.ndarray:
    return learn_features(two_kinds(), seconds=seconds, seed=1, device=torch.device("cpu"), clock=Steps())


def test_learn_features__a_picture_is_nearest_to_its_own_kind() -> None:
    features = learned(12)
    assert features.shape[:2] == (40, 2)
    flat = features[:, 0] - features[:, 0].mean(axis=0)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    alike = flat @ flat.T
    np.fill_diagonal(alike, -2)
    kind = np.arange(40) < 20
    assert (kind[alike.argmax(axis=1)] == kind).mean() > 0.9
    np.testing.assert_array_equal(features, learned(12))


def test_learn_features__refuses_too_few_images_and_no_time() -> None:
    with pytest.raises(EngineInputError, match="3 images and 5 seconds"):
        learn_features(two_kinds()[:3], seconds=5, device=torch.device("cpu"))
    with pytest.raises(EngineInputError, match="0 seconds"):
        learn_features(two_kinds(), seconds=0, device=torch.device("cpu"))
