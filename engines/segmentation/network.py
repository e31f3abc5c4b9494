"""Networks that judge pixels: a U-Net from random weights, and a head on what a pretrained network sees."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import EngineInputError
from engines.networks import open_backbone

DEPTH = 4
DECODER = (128, 64, 32, 16)
"""Channels of the decoder's stages, the deepest first."""
STEP = 2**DEPTH
"""Both sides of what the encoder gets are multiples of this."""
SEEN_SIDE = 320
"""Pixels of the longest side of what a pretrained network sees: on 90 street scenes of 160 px the Dice of the head
was .61 at twice their size and .57 at their own."""
FINEST, COARSEST = 4, 16
"""Pixels of an image to one of a stage: the stages that the head reads. The one of 32 added nothing."""
HIDDEN = 128
"""Channels of the head."""
FINER = 2
"""Logits to a place of what is seen, along each side."""


class UNet(nn.Module):
    """(B, C, H, W) -> features (B, D) of the deepest stage and logits (B, K, H, W)."""

    def __init__(self, encoder: str, channels: int, num_classes: int) -> None:
        """``encoder`` is a name of segmentation-models-pytorch, such as ``resnet18``.

        Raises:
            EngineInputError: there is no such encoder, or the package is missing.
        """
        super().__init__()
        try:
            import segmentation_models_pytorch as smp  # an extra; it takes seconds to load
        except ImportError as error:
            raise EngineInputError(
                "masks need the package segmentation-models-pytorch: pip install 'label-auditor[masks]'."
            ) from error
        if encoder not in smp.encoders.get_encoder_names():
            raise EngineInputError(
                f"there is no encoder {encoder!r}; take one of segmentation-models-pytorch, such as resnet18."
            )
        self.net = smp.Unet(
            encoder,
            encoder_depth=DEPTH,
            encoder_weights=None,
            decoder_channels=DECODER,
            in_channels=channels,
            classes=num_classes,
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Sides that are no multiple of ``STEP`` are filled up with the image's border."""
        height, width = images.shape[2:]
        padded = F.pad(images, (0, -width % STEP, 0, -height % STEP), mode="replicate")
        stages = self.net.encoder(padded)
        logits = self.net.segmentation_head(self.net.decoder(stages))
        return stages[-1].mean(dim=(2, 3)), logits[:, :, :height, :width]


class Columns(nn.Module):
    """What the middle stages of a pretrained network see at each place: (B, C, H, W) in [0, 1] -> (B, D, h, w).

    Hypercolumns (Hariharan et al., 2015). The network stays as it is.
    """

    def __init__(self, name: str, weights: str, side: int | None = None) -> None:
        """``name`` is a network of timm, ``weights`` its file, ``side`` the longest side of what it sees.

        Raises:
            EngineInputError: unknown name, no such file, a file that does not fit, or a network without stages.
        """
        super().__init__()
        import timm  # an extra; it takes seconds to load

        whole = open_backbone(name, weights)
        try:
            self.stages = timm.create_model(name.partition(":")[2], features_only=True)
            known = whole.network.state_dict()
            self.stages.load_state_dict({key: known[key] for key in self.stages.state_dict()})
        except (RuntimeError, ValueError, AttributeError, KeyError) as error:
            raise EngineInputError(
                f"{name} has no stages for masks; take an EfficientNet or a ResNet."
            ) from error
        self.stages.eval().requires_grad_(False)
        about, self.side = self.stages.feature_info, side or SEEN_SIDE
        self.read = [at for at, step in enumerate(about.reduction()) if FINEST <= step <= COARSEST]
        self.mean, self.std = whole.config.mean, whole.config.std

    def forward(self, images: Tensor) -> Tensor:
        """Grey images become three equal channels; h and w are those of the second of the stages read."""
        scale = self.side / max(images.shape[2:])
        if scale != 1:
            images = F.interpolate(
                images, scale_factor=scale, mode="bilinear", align_corners=False, antialias=True
            )
        images = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
        mean, std = (torch.tensor(one, device=images.device)[:, None, None] for one in (self.mean, self.std))
        with torch.no_grad():
            stages = self.stages((images - mean) / std)
        read = [stages[at] for at in self.read]
        size = read[min(1, len(read) - 1)].shape[2:]
        return torch.cat([_at(one, size) for one in read], dim=1)


class Head(nn.Module):
    """Columns (B, D, h, w) -> their means (B, D) and logits (B, K, h', w'), ``FINER`` times h and w."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, HIDDEN, 1, bias=False),
            nn.BatchNorm2d(HIDDEN),
            nn.ReLU(),
            nn.Conv2d(HIDDEN, HIDDEN, 3, padding=1, bias=False),
            nn.BatchNorm2d(HIDDEN),
            nn.ReLU(),
            nn.Conv2d(HIDDEN, num_classes, 1),
            nn.Upsample(scale_factor=FINER, mode="bilinear"),
        )

    def forward(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        return columns.mean(dim=(2, 3)), self.layers(columns)


def _at(stage: Tensor, size: torch.Size) -> Tensor:
    if stage.shape[2] > size[0]:
        return F.adaptive_avg_pool2d(stage, (size[0], size[1]))
    return F.interpolate(stage, size=size, mode="bilinear", align_corners=False)


def reduced_masks(masks: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, H, W) uint8 -> (B, h, w): the class in the middle of each pixel's area."""
    if tuple(masks.shape[1:]) == size:
        return masks
    rows, columns = (
        ((torch.arange(new, device=masks.device) + 0.5) * old / new).long()
        for new, old in zip(size, masks.shape[1:], strict=True)
    )
    return masks[:, rows][:, :, columns]
