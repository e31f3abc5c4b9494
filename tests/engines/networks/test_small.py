"""Every network at every size it claims, published sizes and parameter counts, torchvision's classifiers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from engines.contract import EngineInputError
from engines.networks.small import NETWORKS, UMN13, build_network, choose_network
from engines.shared.device import seeded_init

SMALLEST = {"cnn_small": 16, "cnn6": 8, "cnn9": 28, "umn13": 12}
NARROW = {"cnn9": 8, "umn13": 8, "preact_resnet18": 8, "wrn22_4": 1}
"""Widths that keep the big networks cheap here; shapes do not depend on them."""


def _parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(8, 8), (16, 20), (28, 28), (32, 32)])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_build_network__shapes_or_a_clear_error(name: str, size: tuple[int, int], channels: int) -> None:
    options = {"channels": channels, "image_size": size, "num_classes": 5, "width": NARROW.get(name)}
    if min(size) < SMALLEST.get(name, 1):
        text = f"network {name} needs images of at least {SMALLEST[name]} px, these are {size[0]} x {size[1]}"
        with pytest.raises(EngineInputError, match=f"{text}; use conv3"):
            build_network(name, **options)  # type: ignore[arg-type]
        return
    network = build_network(name, **options)  # type: ignore[arg-type]
    features, logits = network(torch.randn(2, channels, *size))
    assert features.shape == (2, network.feature_size)
    assert logits.shape == (2, 5)
    logits.sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize(
    ("name", "size", "channels", "classes", "features", "parameters"),
    [
        ("mlp", 28, 1, 10, 256, 784 * 256 + 256 + 256 * 10 + 10),
        ("cnn_small", 32, 3, 10, 84, 62_006),  # LeNet-5 on colour images
        ("cnn6", 32, 3, 100, 256, None),
        ("cnn9", 32, 3, 10, 128, None),
        ("preact_resnet18", 32, 3, 10, 512, 11_171_146),  # 11.17 M, without a final norm
        ("wrn22_4", 32, 3, 10, 256, 4_298_970),  # published 4.3 M
        ("umn13", 32, 3, 10, 128, None),
    ],
)
def test_build_network__published_sizes(
    name: str, size: int, channels: int, classes: int, features: int, parameters: int | None
) -> None:
    network = build_network(name, channels=channels, image_size=(size, size), num_classes=classes)
    assert network.feature_size == features
    if parameters is not None:
        assert _parameters(network) == parameters


def test_build_network__small_nets_of_the_measurements() -> None:
    sizes = {
        name: _parameters(build_network(name, channels=3, image_size=(32, 32), num_classes=10))
        for name in ("conv3", "conv4")
    }
    assert sizes["conv4"] == pytest.approx(240_000, rel=0.02)
    assert sizes["conv3"] < sizes["conv4"] / 5


@pytest.mark.parametrize(
    ("side", "maps"),
    [(8, [8]), (23, [23]), (24, [12, 12]), (32, [16, 16]), (64, [32, 32]), (224, [112, 56, 28, 28])],
)
def test_conv4__halves_from_24_px_on_until_a_map_has_32_px(side: int, maps: list[int]) -> None:
    network = build_network("conv4", channels=3, image_size=(side, side), num_classes=2)
    trunk = network.trunk
    assert isinstance(trunk, nn.Sequential)
    found, x = [], torch.zeros(1, 3, side, side)
    for layer in trunk.eval():
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            found.append(x.shape[2])
        if isinstance(layer, nn.MaxPool2d):
            break
    assert found == maps


def test_umn13__trunk_is_the_shared_feature_map() -> None:
    network = build_network("umn13", channels=3, image_size=(32, 32), num_classes=10, width=4)
    assert isinstance(network, UMN13)
    assert network.trunk(torch.randn(1, 3, 32, 32)).shape == (1, network.trunk_size, 6, 6)


def test_preact_resnet18__downsamples_to_4x4_before_pooling() -> None:
    network = build_network("preact_resnet18", channels=3, image_size=(32, 32), num_classes=10, width=2)
    trunk = network.get_submodule("trunk")
    assert trunk[:-2](torch.randn(1, 3, 32, 32)).shape == (1, 16, 4, 4)


def test_build_network__is_seeded_by_the_global_generator() -> None:
    networks = []
    for seed in (0, 0, 1):
        with seeded_init(seed, "network"):
            networks.append(build_network("conv3", channels=1, image_size=(8, 8), num_classes=3))
    first, again, other = (network.state_dict()["trunk.0.weight"] for network in networks)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_build_network__unknown() -> None:
    with pytest.raises(
        EngineInputError, match=r"there is no network 'resnet18'; use one of mlp, .* or torchvision:"
    ):
        build_network("resnet18", channels=3, image_size=(32, 32), num_classes=2)
    with pytest.raises(EngineInputError, match="torchvision has no classifier 'resnet19'"):
        build_network("torchvision:resnet19", channels=3, image_size=(32, 32), num_classes=2)


@pytest.mark.parametrize(
    ("name", "size", "features"),
    [
        ("resnet18", 32, 512),
        ("mobilenet_v3_small", 64, 1024),
        ("shufflenet_v2_x0_5", 40, 1024),
        ("squeezenet1_0", 64, None),
        ("alexnet", 32, None),
        ("vit_b_32", 50, None),
    ],
)
def test_torchvision__features_are_the_last_linears_input(name: str, size: int, features: int | None) -> None:
    options = {"channels": 1, "image_size": (size, size), "num_classes": 4}
    if features is None:
        with pytest.raises(EngineInputError, match=r"does not (end in a linear layer|take images of)"):
            build_network(f"torchvision:{name}", **options)  # type: ignore[arg-type]
        return
    network = build_network(f"torchvision:{name}", **options)  # type: ignore[arg-type]
    assert network.training
    seen, logits = network(torch.randn(2, 1, size, size))
    assert (seen.shape, logits.shape) == ((2, features), (2, 4))


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "resnet18.pt"
    torch.save(torchvision.models.resnet18().state_dict(), path)
    return path


def test_weights__are_loaded_and_the_head_is_new(weights_file: Path) -> None:
    network = build_network(
        "torchvision:resnet18",
        channels=3,
        image_size=(32, 32),
        num_classes=7,
        weights=str(weights_file),
        side=32,
    )
    assert network.training
    stored = torch.load(weights_file, weights_only=True)
    network.eval()
    reference = torchvision.models.resnet18().eval()
    reference.load_state_dict(stored)
    reference.fc = nn.Identity()
    images = torch.rand(2, 3, 32, 32)
    mean, std = (torch.tensor(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    features, logits = network(images)
    torch.testing.assert_close(features, reference((images - mean) / std), rtol=1e-4, atol=1e-5)
    assert logits.shape == (2, 7)


def test_weights__the_network_gets_the_images_as_large_as_it_wants(weights_file: Path) -> None:
    sides: list[int] = []
    for side in (None, 40):
        network = build_network(
            "torchvision:resnet18",
            channels=1,
            image_size=(9, 12),
            num_classes=2,
            weights=str(weights_file),
            side=side,
        ).eval()
        network.trunk.register_forward_pre_hook(lambda _, inputs: sides.append(inputs[0].shape))
        network(torch.rand(1, 1, 9, 12))
    assert sides == [(1, 3, 224, 224), (1, 3, 40, 40)]


def test_weights__of_another_network(weights_file: Path) -> None:
    with pytest.raises(EngineInputError, match=r"does not fit torchvision:resnet34: .*Missing key"):
        build_network(
            "torchvision:resnet34", channels=3, image_size=(32, 32), num_classes=7, weights=str(weights_file)
        )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "there is no weights file"),
        (b"not a file of torch", "cannot be read as a plain state_dict"),
        ([1, 2], "holds no plain state_dict"),
        (torch.nn.Linear(1, 1), "cannot be read as a plain state_dict"),
    ],
)
def test_weights__unusable_file(tmp_path: Path, content: object, text: str) -> None:
    path = tmp_path / "weights.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(EngineInputError, match=text):
        build_network(
            "torchvision:resnet18", channels=3, image_size=(32, 32), num_classes=2, weights=str(path)
        )


def test_weights__need_a_network_that_has_some() -> None:
    with pytest.raises(
        EngineInputError, match="weights need a network timm:<name> or torchvision:<name>, not 'mlp'"
    ):
        build_network("mlp", channels=1, image_size=(8, 8), num_classes=2, weights="w.pt")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [1, 8, 28, 32, 64, 65, 224])
def test_choose_network__can_be_built(side: int, channels: int, device: str) -> None:
    name = choose_network(channels, (side, side), device)
    network = build_network(name, channels=channels, image_size=(side, side), num_classes=2, width=4)
    assert network(torch.randn(2, channels, side, side))[1].shape == (2, 2)
