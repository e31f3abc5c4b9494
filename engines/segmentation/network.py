"""A U-Net for images of any size: segmentation-models-pytorch's, from random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import EngineInputError

DEPTH = 4
DECODER = (128, 64, 32, 16)
"""Channels of the decoder's stages, the deepest first."""
STEP = 2**DEPTH
"""Both sides of what the encoder gets are multiples of this."""


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


def reduced_masks(masks: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, H, W) uint8 -> (B, h, w): the class in the middle of each pixel's area."""
    if tuple(masks.shape[1:]) == size:
        return masks
    rows, columns = (
        ((torch.arange(new, device=masks.device) + 0.5) * old / new).long()
        for new, old in zip(size, masks.shape[1:], strict=True)
    )
    return masks[:, rows][:, :, columns]
