"""What engines for masks share: a U-Net, its config, and the loop around a method's own step."""

from engines.segmentation.config import MaskConfig
from engines.segmentation.loop import MaskFold, plain_step, train_masks

__all__ = ["MaskConfig", "MaskFold", "plain_step", "train_masks"]
