"""Any torchvision classifier as a network that returns (features, logits), or as a backbone with weights."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from engines.contract import EngineInputError

ImageSize = tuple[int, int]
TORCHVISION = "torchvision:"


class TorchvisionNetwork(nn.Module):
    """A torchvision classifier whose last linear layer is ours; grey images become three equal channels."""

    def __init__(self, backbone: nn.Module, feature_size: int, num_classes: int) -> None:
        super().__init__()
        self.feature_size = feature_size
        self.backbone = backbone
        self.head = nn.Linear(feature_size, num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.backbone(x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x)
        return features, self.head(features)


def torchvision_network(
    name: str, channels: int, image_size: ImageSize, num_classes: int
) -> TorchvisionNetwork:
    """torchvision's classifier ``name``, freshly drawn.

    Raises:
        EngineInputError: unknown name, no linear last layer, or images of a wrong size.
    """
    backbone, feature_size = torchvision_backbone(name, image_size, None)
    network = TorchvisionNetwork(backbone, feature_size, num_classes)
    _try_forward(network, name, channels, image_size)
    return network


def torchvision_backbone(
    name: str, image_size: ImageSize, weights: str | Path | None
) -> tuple[nn.Module, int]:
    """torchvision's classifier ``name`` without its last linear layer, and the size of what it returns.

    Raises:
        EngineInputError: unknown name, no linear last layer, images of a wrong size, or weights that do not fit.
    """
    backbone = _torchvision_classifier(name, image_size)
    linear = [(path, part) for path, part in backbone.named_modules() if isinstance(part, nn.Linear)]
    if not linear:
        raise EngineInputError(
            f"{TORCHVISION}{name} does not end in a linear layer; "
            f"use another, for example {TORCHVISION}resnet18."
        )
    path, last = linear[-1]
    parent, _, attribute = path.rpartition(".")
    setattr(backbone.get_submodule(parent), attribute, nn.Identity())
    if weights is not None:
        _load_weights(backbone, Path(weights), path, name)
    return backbone, last.in_features


def _torchvision_classifier(name: str, image_size: ImageSize) -> nn.Module:
    import torchvision  # takes seconds, which every process that trains would pay

    # Only these take the image size; the two with auxiliary heads return something else while training.
    options: dict[str, object] = {}
    if name.startswith("vit_"):
        options["image_size"] = image_size[0]
    if name in ("inception_v3", "googlenet"):
        options |= {"aux_logits": False, "init_weights": True}
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise EngineInputError(
            f"torchvision has no classifier {name!r}; it has {', '.join(known[:4])}, ... resnet18, resnet50."
        )
    try:
        backbone: nn.Module = torchvision.models.get_model(name, weights=None, **options)
    except (ValueError, RuntimeError, AssertionError) as error:
        raise _wrong_size(name, image_size) from error
    return backbone


def _load_weights(backbone: nn.Module, path: Path, head: str, name: str) -> None:
    """Load a plain state_dict file; its own last layer is left out, everything else must fit."""
    if not path.is_file():
        raise EngineInputError(f"there is no weights file {path}.")
    try:
        if path.suffix == ".safetensors":
            state = safetensors.torch.load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises a dozen unrelated types on foreign files
        raise EngineInputError(
            f"{path} cannot be read as a plain state_dict ({type(error).__name__}); "
            "save one with torch.save(model.state_dict(), path)."
        ) from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise EngineInputError(
            f"{path} holds no plain state_dict; save one with torch.save(model.state_dict(), path)."
        )
    state = {
        key: value
        for key, value in state.items()
        if not key.startswith((f"{head}.", "AuxLogits.", "aux1.", "aux2."))
    }
    try:
        backbone.load_state_dict(state)
    except RuntimeError as error:
        detail = " ".join(str(error).split())[:200]
        raise EngineInputError(f"{path} does not fit {TORCHVISION}{name}: {detail}") from error


def _try_forward(network: TorchvisionNetwork, name: str, channels: int, image_size: ImageSize) -> None:
    """One black image through the network: finds images that are too small before training starts."""
    network.eval()
    try:
        with torch.no_grad():
            features, _ = network(torch.zeros(1, channels, *image_size))
        fits = features.shape == (1, network.feature_size)
    except (RuntimeError, ValueError, AssertionError) as error:
        raise _wrong_size(name, image_size) from error
    if not fits:
        raise EngineInputError(
            f"the last linear layer of {TORCHVISION}{name} is not its output; use {TORCHVISION}resnet18."
        )
    network.train()


def _wrong_size(name: str, image_size: ImageSize) -> EngineInputError:
    return EngineInputError(
        f"{TORCHVISION}{name} does not take images of {image_size[0]} x {image_size[1]} px; import them at "
        f"another size (224 suits all), or use {TORCHVISION}resnet18 or conv4."
    )
