"""Pretrained networks behind one door: those of timm and torchvision, by name, with weights from a file.

``backbone("timm:mobilenetv3_large_100", weights)`` is a network that sees images as its weights want them and
says what it saw: (B, D) features, no classes. ``pretrained_network`` puts a new head on it, to train it further.
Building never downloads: weights come from a file of plain tensors (``.safetensors``, or ``.pth`` and ``.bin`` read
without unpickling anything but tensors).
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import logging
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.contract import EngineInputError
from engines.networks.torchvision_networks import TORCHVISION, torchvision_backbone

TIMM = "timm:"
DOORS = (TIMM, TORCHVISION)
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
LARGEST_SIDE = 224
"""A backbone that was trained on larger images (DINOv2: 518 px) is fed this many unless told otherwise."""


@dataclass(frozen=True)
class InputConfig:
    """How the weights want their images."""

    side: int
    """Height and width in pixels."""
    mean: tuple[float, ...]
    """By channel, on the [0, 1] scale."""
    std: tuple[float, ...]
    interpolation: str
    """``bicubic`` or ``bilinear``."""


class Backbone(nn.Module):
    """A network without its classifier: standardised images (B, 3, side, side) in, features (B, D) out."""

    def __init__(self, name: str, network: nn.Module, feature_size: int, config: InputConfig) -> None:
        super().__init__()
        self.name, self.feature_size, self.config = name, feature_size, config
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.network(x)
        return features


class PretrainedNetwork(nn.Module):
    """A backbone that trains on, with a linear head of ours: images (B, C, H, W) in [0, 1] in, of any size.

    It resizes and standardises by itself, as the weights want it: whoever feeds it standardises nothing.
    """

    def __init__(self, trunk: Backbone, num_classes: int) -> None:
        super().__init__()
        self.feature_size = trunk.feature_size
        self.trunk = trunk
        self.head = nn.Linear(trunk.feature_size, num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.trunk(as_the_weights_want(x, self.trunk.config))
        return features, self.head(features)


def is_pretrained(name: str, weights: str | Path | None) -> bool:
    """Return whether ``build_network`` makes a ``PretrainedNetwork``: of all of timm, of torchvision's with
    weights.
    """
    return name.startswith(TIMM) or (name.startswith(TORCHVISION) and weights is not None)


def pretrained_network(
    name: str, weights: str | Path | None, num_classes: int, *, side: int | None = None
) -> PretrainedNetwork:
    """``backbone`` with a head for K classes that is drawn from torch's global generator, in training mode.

    Raises:
        EngineInputError: as ``backbone``.
    """
    return PretrainedNetwork(open_backbone(name, weights, side=side), num_classes).train()


def as_the_weights_want(images: Tensor, config: InputConfig) -> Tensor:
    """Whole images, standardised: (B, C, H, W) in [0, 1], grey or RGB, any size -> (B, 3, side, side).

    Of an image that is not square the largest square in the middle.
    """
    mean, std = (
        torch.tensor(values, device=images.device)[:, None, None] for values in (config.mean, config.std)
    )
    return (cropped(images, config, (1.0, 0.5, 0.5)) - mean) / std


def input_config(name: str, side: int | None = None) -> InputConfig:
    """Return how ``name`` wants its images, ``side`` px large where one is given. Builds no network.

    Raises:
        EngineInputError: unknown name.
    """
    if name.startswith(TIMM):
        return _timm_config(name, side)
    if name.startswith(TORCHVISION):
        return _torchvision_config(name, side)
    raise EngineInputError(f"there is no backbone {name!r}; write {TIMM}NAME or {TORCHVISION}NAME.")


@dataclass(frozen=True)
class WeightsSource:
    """Where a library has the weights of a network from."""

    repository: str | None
    """On the Hugging Face hub."""
    url: str | None
    licence: str | None


def weights_source(name: str) -> WeightsSource:
    """Return where the weights of ``name`` would come from. Asks nobody and downloads nothing.

    Raises:
        EngineInputError: unknown name.
    """
    if name.startswith(TIMM):
        cfg = _pretrained_cfg(name)
        return WeightsSource(cfg.hf_hub_id or None, cfg.url or None, cfg.license)
    input_config(name)
    import torchvision

    url = torchvision.models.get_model_weights(name.removeprefix(TORCHVISION)).DEFAULT.url
    return WeightsSource(None, url, None)


def fetch_checked(url: str, path: Path, *, progress: bool) -> None:
    """Download a file of torchvision with torch's own client, which checks the hash in the file's name.

    The only function here that uses the network, and only for whoever calls it by name.

    Raises:
        Whatever the client raises; ``path`` is then not there.
    """
    wanted = re.search(r"-([a-f0-9]{8,})\.", path.name)
    torch.hub.download_url_to_file(url, str(path), wanted.group(1) if wanted else None, progress)


def open_backbone(name: str, weights: str | Path | None, *, side: int | None = None) -> Backbone:
    """The network called ``name`` without its classifier, in evaluation mode, on the CPU.

    ``weights``: a file of plain tensors; None leaves the weights as they are drawn from torch's global generator
    (which only tests want). ``side``: pixels, default the weights' own, at most 224.

    Raises:
        EngineInputError: unknown name, no such file, a file that does not fit or holds more than tensors, or images
            of a size that the network does not take.
    """
    config = input_config(name, side)
    if name.startswith(TIMM):
        network, size = _timm_network(name, weights, config)
    else:
        network, size = torchvision_backbone(
            name.removeprefix(TORCHVISION), (config.side, config.side), weights
        )
    built = Backbone(name, network, size, config).eval()
    _try_forward(built)
    return built.to(memory_format=torch.channels_last)


def weights_hash(path: str | Path) -> str:
    """SHA-256 of a weights file, 64 hexadecimal digits.

    Raises:
        EngineInputError: there is no such file.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EngineInputError(f"the weights file {path} cannot be read ({error.strerror}).") from error


def cropped(images: Tensor, config: InputConfig, box: tuple[float, float, float]) -> Tensor:
    """A square part of each image at the size that the backbone takes.

    Args:
        images: (B, C, H, W) uint8 or float, grey or RGB, any size.
        config: the side and the interpolation.
        box: (share, vertical, horizontal): share of the shorter side that is kept, and where the part lies in
            the rest, 0 = top or left, 1 = bottom or right.

    Returns:
        (B, 3, side, side) of the same type, stored channels last; grey becomes three equal channels.
    """
    share, vertical, horizontal = box
    height, width = images.shape[2:]
    kept = max(1, round(share * min(height, width)))
    top, left = round(vertical * (height - kept)), round(horizontal * (width - kept))
    # On uint8, channels last: torch's fast path on CPUs, several times quicker than floats.
    part = images[:, :, top : top + kept, left : left + kept].contiguous(memory_format=torch.channels_last)
    if kept != config.side:
        is_whole = part.is_cuda and not part.is_floating_point()  # cards interpolate floats alone
        part = functional.interpolate(
            part.float() if is_whole else part,
            size=(config.side, config.side),
            mode=config.interpolation,
            antialias=True,
            align_corners=False,
        )
        part = part.round_().clamp_(0, 255).to(images.dtype) if is_whole else part
    return part.expand(-1, 3, -1, -1) if part.shape[1] == 1 else part


def normalized(images: Tensor, config: InputConfig) -> Tensor:
    """(B, 3, H, W) uint8 -> float32, standardised as the weights want it, stored channels last."""
    mean = torch.tensor(config.mean, device=images.device)[:, None, None]
    std = torch.tensor(config.std, device=images.device)[:, None, None]
    scaled = images.contiguous(memory_format=torch.channels_last).float()
    return scaled.mul_(1 / (255.0 * std)).sub_(mean / std)


# --- timm -------------------------------------------------------------------------------------------------


def _timm_config(name: str, side: int | None) -> InputConfig:
    cfg = _pretrained_cfg(name)
    channels, own, _ = cfg.input_size
    if channels != 3:
        raise EngineInputError(f"{name} takes images of {channels} channels; use one for RGB images.")
    # One mode of interpolation is named "random" where a network was trained with several.
    interpolation = cfg.interpolation if cfg.interpolation in ("bicubic", "bilinear") else "bicubic"
    chosen = side or _multiple(min(own, LARGEST_SIDE), own)
    return InputConfig(chosen, tuple(cfg.mean), tuple(cfg.std), interpolation)


def _multiple(side: int, own: int) -> int:
    """A side near ``side`` that patches of 14, 16 or 32 px divide as they divide the network's own side."""
    patch = next((size for size in (32, 16, 14) if own % size == 0), 1)
    return max(patch, side // patch * patch)


def _pretrained_cfg(name: str) -> Any:
    try:
        import timm
    except ImportError as error:
        raise EngineInputError(
            f"{name} needs the package timm: pip install 'label-auditor[backbones]'."
        ) from error

    short = name.removeprefix(TIMM)
    architecture = short.partition(".")[0]
    if not timm.is_model(architecture):
        near = difflib.get_close_matches(architecture, timm.list_models(), n=1, cutoff=0.4)
        hint = f" did you mean {TIMM}{near[0]}?" if near else ""
        raise EngineInputError(f"timm has no network {short!r};{hint or ' timm.list_models() names them.'}")
    cfg = timm.get_pretrained_cfg(short)
    if cfg is None:
        cfg = timm.models.PretrainedCfg()
    return cfg


def _timm_network(name: str, weights: str | Path | None, config: InputConfig) -> tuple[nn.Module, int]:
    import timm

    short = name.removeprefix(TIMM)
    cfg = _pretrained_cfg(name)
    options: dict[str, Any] = {"num_classes": 0}
    if cfg.fixed_input_size:
        options["img_size"] = config.side  # position embeddings are resampled when the weights are loaded
    try:
        with _quiet(), torch.random.fork_rng(devices=[]):
            network: nn.Module = timm.create_model(short, **options)
    except (RuntimeError, ValueError, KeyError, AssertionError, AttributeError, TypeError) as error:
        raise EngineInputError(f"{name} cannot be built: {_line(error)}") from error
    if weights is not None:
        network = _with_weights(name, short, network, options, Path(weights))
    return network, int(getattr(network, "num_features", 0))


def _with_weights(
    name: str, short: str, drawn: nn.Module, options: dict[str, Any], weights: Path
) -> nn.Module:
    """The network built again with the weights of the file; ``drawn`` has the same random start without them.

    Raises:
        EngineInputError: the file does not hold every weight of the network.
    """
    import timm

    if (state := _renamed(_readable(weights), drawn)) is not None:
        drawn.load_state_dict(state, strict=False)
        return drawn
    overlay: dict[str, Any] = {"pretrained": True, "pretrained_cfg_overlay": {"file": str(weights)}}
    try:
        with _quiet(), torch.random.fork_rng(devices=[]):
            network: nn.Module = timm.create_model(short, **options, **overlay)
    except (RuntimeError, ValueError, KeyError, AssertionError, AttributeError, TypeError, OSError) as error:
        raise EngineInputError(f"{weights} does not fit {name}: {_line(error)}") from error
    # Without a classifier timm loads what it finds and only logs the rest: a foreign file would leave the network
    # as it was drawn. Constants (a norm's ones) may be equal by right; random draws may not.
    before = dict(drawn.named_parameters())
    missing = [
        key
        for key, value in network.named_parameters()
        if value.numel() > 1 and value.min() < value.max() and torch.equal(value, before[key])
    ]
    if missing:
        raise EngineInputError(
            f"{weights} does not fit {name}: it lacks {len(missing)} of its weights ({missing[0]}, ...)."
        )
    return network


STEM_AND_HEAD = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2"}
DEPTHWISE = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
"""A block that does not widen first."""
INVERTED = dict(
    zip(
        ["_expand_conv", "_bn0", "_depthwise_conv", "_bn1", "_project_conv", "_bn2"],
        ["conv_pw", "bn1", "conv_dw", "bn2", "conv_pwl", "bn3"],
        strict=True,
    )
)


def _renamed(path: Path, drawn: nn.Module) -> dict[str, Tensor] | None:
    """Weights of an EfficientNet under the names of its other PyTorch edition, by timm's names.

    None where the file has other names. That edition counts its blocks through, timm within each stage; its
    counters of batches and its classifier are left out.

    Raises:
        EngineInputError: a tensor is missing or has another shape than ``drawn``'s.
    """
    if path.suffix == ".safetensors":
        return None
    given = torch.load(path, map_location="cpu", weights_only=True)
    if "_conv_stem.weight" not in given:
        return None
    stages = getattr(drawn, "blocks", [])
    places = [f"blocks.{i}.{j}" for i, stage in enumerate(stages) for j in range(len(stage))]
    found: dict[str, Tensor] = {}
    for key, value in given.items():
        match = re.fullmatch(r"(?:_blocks\.(\d+)\.)?(\w+)\.(\w+)", key)
        if match is None or match[2] == "_fc" or match[3] == "num_batches_tracked":
            continue
        if match[1] is None:
            found[f"{STEM_AND_HEAD.get(match[2])}.{match[3]}"] = value
        elif int(match[1]) < len(places):
            is_wide = f"_blocks.{match[1]}._expand_conv.weight" in given
            part = (INVERTED if is_wide else DEPTHWISE).get(match[2])
            found[f"{places[int(match[1])]}.{part}.{match[3]}"] = value
    for key, value in drawn.state_dict().items():
        if not key.endswith("num_batches_tracked") and (key not in found or found[key].shape != value.shape):
            raise EngineInputError(
                f"{path} does not fit {type(drawn).__name__}: its {key} is missing or of another shape."
            )
    return found


def _readable(path: Path) -> Path:
    """``path`` if it holds plain tensors.

    Raises:
        EngineInputError: not there, of another kind, or broken.
    """
    if not path.is_file():
        raise EngineInputError(f"there is no weights file {path}.")
    if path.suffix not in SUFFIXES:
        raise EngineInputError(f"{path} is no weights file; use one of {', '.join(SUFFIXES)}.")
    try:
        if path.suffix == ".safetensors":
            import safetensors

            with safetensors.safe_open(path, framework="pt") as file:
                file.keys()
        else:
            with _quiet():
                torch.load(path, map_location="meta", weights_only=True)
    except Exception as error:  # both libraries raise a dozen unrelated types on foreign files
        raise EngineInputError(
            f"{path} cannot be read as plain tensors ({type(error).__name__}); "
            "save it with safetensors.torch.save_file(model.state_dict(), path)."
        ) from error
    return path


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """timm logs and warns about what is checked here."""
    logger = logging.getLogger("timm")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


# --- torchvision ------------------------------------------------------------------------------------------


def _torchvision_config(name: str, side: int | None) -> InputConfig:
    import torchvision

    short = name.removeprefix(TORCHVISION)
    try:
        best = torchvision.models.get_model_weights(short).DEFAULT.transforms()
    except (ValueError, AttributeError) as error:
        near = difflib.get_close_matches(short, torchvision.models.list_models(), n=1, cutoff=0.4)
        hint = f" did you mean {TORCHVISION}{near[0]}?" if near else ""
        raise EngineInputError(f"torchvision has no classifier {short!r};{hint}") from error
    own = best.crop_size[0]
    interpolation = best.interpolation.value if best.interpolation.value == "bicubic" else "bilinear"
    return InputConfig(side or own, tuple(best.mean), tuple(best.std), interpolation)


# --- Both -------------------------------------------------------------------------------------------------


def _try_forward(built: Backbone) -> None:
    """One black image: finds sizes that the network does not take before anything is embedded."""
    side = built.config.side
    try:
        with torch.inference_mode():
            shape = tuple(built(torch.zeros(1, 3, side, side)).shape)
    except (RuntimeError, ValueError, AssertionError) as error:
        raise EngineInputError(f"{built.name} does not take images of {side} px: {_line(error)}") from error
    if len(shape) != 2:
        raise EngineInputError(
            f"{built.name} returns {shape} an image, not one row of features; use another."
        )
    built.feature_size = shape[1]


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
