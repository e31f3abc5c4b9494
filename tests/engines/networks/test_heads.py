"""Heads on features, and the door that builds a network for rows of either form."""

from __future__ import annotations

import pytest
import torch

from engines.contract import EngineInputError
from engines.networks.heads import build_for_shape, build_head, resolve_for_shape


@pytest.mark.parametrize(
    ("name", "width", "feature_size"), [("mlp", None, 256), ("mlp", 7, 7), ("linear", None, 5)]
)
def test_build_head__features_and_logits(name: str, width: int | None, feature_size: int) -> None:
    torch.manual_seed(0)
    head = build_head(name, 5, 3, width)
    values = torch.randn(4, 5)
    features, logits = head(values)
    assert head.feature_size == feature_size
    assert features.shape == (4, feature_size)
    assert logits.shape == (4, 3)
    if name == "linear":
        assert torch.equal(features, values)
    else:
        assert (features >= 0).all()


def test_build_for_shape__images_or_features() -> None:
    assert build_for_shape("mlp", (5,), 3)(torch.zeros(2, 5))[1].shape == (2, 3)
    assert build_for_shape("conv3", (1, 8, 12), 3)(torch.zeros(2, 1, 8, 12))[1].shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("auto", (64,), "mlp"),
        ("linear", (64,), "linear"),
        ("auto", (3, 32, 32), "conv4"),
        ("auto", (3, 23, 23), "conv3"),
        ("cnn9", (3, 32, 32), "cnn9"),
    ],
)
def test_resolve_for_shape__cases(name: str, shape: tuple[int, ...], expected: str) -> None:
    assert resolve_for_shape(name, shape, device="cpu") == expected


@pytest.mark.parametrize("name", ["conv4", "torchvision:resnet18", "nonsense"])
def test_resolve_for_shape__a_network_of_images_is_refused_on_features(name: str) -> None:
    with pytest.raises(
        EngineInputError, match=f"network '{name}' takes images and these are features; use mlp"
    ):
        resolve_for_shape(name, (64,), device="cpu")
