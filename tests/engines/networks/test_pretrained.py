"""Pretrained networks by name: timm's and torchvision's real creation and loading, with random weights."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import safetensors.torch
import timm
import torch
import torchvision

from engines.contract import EngineInputError
from engines.networks.pretrained import (
    cropped,
    input_config,
    normalized,
    open_backbone,
    pretrained_network,
    weights_hash,
)

SMALL = "timm:mobilenetv3_small_050"


def random_weights(folder: Path, name: str, suffix: str = ".safetensors") -> Path:
    """A file as a hub has it: the whole classifier of a freshly drawn network."""
    library, _, short = name.partition(":")
    torch.manual_seed(7)
    network = timm.create_model(short) if library == "timm" else torchvision.models.get_model(short)
    path = folder / f"weights{suffix}"
    if suffix == ".safetensors":
        safetensors.torch.save_file(network.state_dict(), path)
    else:
        torch.save(network.state_dict(), path)
    return path


@pytest.mark.parametrize("name", [SMALL, "timm:resnet10t", "torchvision:resnet18"])
@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_backbone__says_what_the_network_with_these_weights_says(
    tmp_path: Path, name: str, suffix: str
) -> None:
    path = random_weights(tmp_path, name, suffix)
    built = open_backbone(name, path, side=64)
    library, _, short = name.partition(":")
    images = torch.randn(2, 3, 64, 64)
    torch.manual_seed(7)
    whole = timm.create_model(short) if library == "timm" else torchvision.models.get_model(short)
    whole.eval()
    with torch.inference_mode():
        if library == "timm":
            expected = whole.forward_head(whole.forward_features(images), pre_logits=True)
        else:
            whole.fc = torch.nn.Identity()
            expected = whole(images)
        found = built(images)
    assert found.shape == (2, built.feature_size)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_backbone__position_embeddings_follow_the_side(tmp_path: Path) -> None:
    name = "timm:vit_tiny_patch16_224"
    path = random_weights(tmp_path, name)
    assert open_backbone(name, path, side=96)(torch.zeros(1, 3, 96, 96)).shape == (1, 192)


def test_backbone__does_not_disturb_the_global_generator() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    open_backbone("timm:resnet10t", None, side=64)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("timm:mobilenetv3_larg_100", "timm:mobilenetv3_large_100"),
        ("torchvision:resnet19", "torchvision:resnet18"),
        ("resnet18", "timm:NAME"),
    ],
)
def test_backbone__an_unknown_name_is_answered_with_a_near_one(name: str, near: str) -> None:
    with pytest.raises(EngineInputError, match=near):
        open_backbone(name, None)


def test_backbone__foreign_weights_are_refused(tmp_path: Path) -> None:
    path = random_weights(tmp_path, "timm:vit_tiny_patch16_224")
    with pytest.raises(EngineInputError, match="does not fit timm:resnet10t: it lacks"):
        open_backbone("timm:resnet10t", path)


def test_backbone__weights_that_lack_a_part_are_refused(tmp_path: Path) -> None:
    path = random_weights(tmp_path, "timm:resnet10t")
    state = safetensors.torch.load_file(path)
    del state["layer2.0.conv1.weight"]
    safetensors.torch.save_file(state, path)
    with pytest.raises(EngineInputError, match=r"layer2\.0\.conv1\.weight"):
        open_backbone("timm:resnet10t", path)


class Attack:
    """What a pickle may do when it is opened."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.witness,))


def test_backbone__nothing_but_tensors_is_unpickled(tmp_path: Path) -> None:
    path, witness = tmp_path / "weights.pth", tmp_path / "ran"
    path.write_bytes(pickle.dumps({"conv1.weight": Attack(witness)}, protocol=2))
    for name in ("timm:resnet10t", "torchvision:resnet18"):
        with pytest.raises(EngineInputError, match="weights.pth"):
            open_backbone(name, path)
    assert not witness.exists()


@pytest.mark.parametrize("content", [b"", b"not tensors", b"\x80"])
@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".txt"])
def test_backbone__a_broken_file_is_named(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"weights{suffix}"
    path.write_bytes(content)
    with pytest.raises(EngineInputError, match=f"weights{suffix}"):
        open_backbone("timm:resnet10t", path)
    with pytest.raises(EngineInputError, match="there is no weights file"):
        open_backbone("timm:resnet10t", tmp_path / "none.pth")


def test_input_config__the_weights_own_recipe() -> None:
    config = input_config("timm:mobilenetv3_large_100")
    assert (config.side, config.interpolation) == (224, "bicubic")
    assert config.mean == pytest.approx((0.485, 0.456, 0.406))
    assert input_config("timm:vit_small_patch14_dinov2").side == 224
    assert input_config("torchvision:resnet18", side=96).side == 96


def test_normalized__is_the_recipe_of_timm_on_an_image_of_the_right_size() -> None:
    config = input_config("timm:mobilenetv3_large_100")
    image = torch.randint(0, 256, (1, 3, 256, 256), dtype=torch.uint8)
    found = normalized(cropped(image, config, (0.875, 0.5, 0.5)), config)
    assert cropped(image, config, (1.0, 0.5, 0.5)).shape == (1, 3, 224, 224)
    middle = image[:, :, 16:240, 16:240].float() / 255
    mean, std = (torch.tensor(values)[:, None, None] for values in (config.mean, config.std))
    torch.testing.assert_close(found, (middle - mean) / std, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 30, 70), (3, 400, 90), (1, 1, 5)])
def test_cropped__any_size_and_colour(shape: tuple[int, int, int]) -> None:
    config = input_config("timm:resnet10t", side=64)
    images = torch.randint(0, 256, (2, *shape), dtype=torch.uint8)
    found = cropped(images, config, (0.875, 0.0, 1.0))
    assert found.shape == (2, 3, 64, 64)
    assert found.dtype == torch.uint8
    if shape[0] == 1:
        assert torch.equal(found[:, 0], found[:, 2])


def test_weights_hash__tells_files_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "a.pth", tmp_path / "b.pth"
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    assert weights_hash(first) != weights_hash(second)
    assert weights_hash(first) == weights_hash(first)
    with pytest.raises(EngineInputError, match="cannot be read"):
        weights_hash(tmp_path)


@pytest.mark.parametrize("channels", [1, 3])
def test_pretrained_network__standardises_as_its_weights_want(tmp_path: Path, channels: int) -> None:
    name = "timm:test_vit"  # its weights want a mean of .5, unlike those of most networks
    path = random_weights(tmp_path, name)
    torch.manual_seed(3)
    network = pretrained_network(name, path, 5, side=32).eval()
    assert input_config(name).mean == (0.5, 0.5, 0.5)
    images = torch.rand(2, channels, 32, 32)
    features, logits = network(images)
    expected = open_backbone(name, path, side=32)((images.expand(-1, 3, -1, -1) - 0.5) / 0.5)
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(logits, network.head(features))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 41, 30), (1, 33, 100)])
def test_pretrained_network__takes_images_of_any_size_and_looks_at_the_middle(
    shape: tuple[int, int, int],
) -> None:
    network = pretrained_network("timm:test_resnet", None, 2, side=32).eval()
    images = torch.rand(2, *shape)
    short = min(shape[1:])
    top, left = (round((side - short) / 2) for side in shape[1:])
    middle = images[:, :, top : top + short, left : left + short]
    torch.testing.assert_close(network(images), network(middle))


def test_pretrained_network__trains_whole_from_the_same_weights(tmp_path: Path) -> None:
    path = random_weights(tmp_path, "timm:test_resnet")
    networks = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        networks.append(pretrained_network("timm:test_resnet", path, 3, side=32))
    one, other = (dict(network.named_parameters()) for network in networks)
    different = {name for name, value in one.items() if not torch.equal(value, other[name])}
    assert different == {"head.weight", "head.bias"}
    networks[0](torch.rand(4, 3, 32, 32))[1].square().sum().backward()
    assert [name for name, value in one.items() if value.grad is None] == []
