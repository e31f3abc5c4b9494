"""The short list of backbones: what each is good for. Any other network of timm or torchvision works too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shelved:
    """One backbone of the short list."""

    name: str
    """As ``--backbone`` takes it."""
    good_for: str
    """One short sentence for people."""


SHELF = (
    Shelved("timm:mobilenetv3_large_100", "small and fast: thousands of photos in minutes on a laptop"),
    Shelved("timm:vit_small_patch14_dinov2", "the default where it is here: ten times slower on a CPU"),
    Shelved("timm:convnext_tiny.in12k_ft_in1k", "between the two in speed, also for fine-tuning"),
    Shelved("timm:vit_base_patch14_dinov2", "best of the list: for a GPU, or for few images"),
    Shelved("torchvision:resnet18", "well known, small"),
)
"""In the order in which they are shown; where several have weights here, audits take the first of ``PREFERRED``."""
PREFERRED = (
    "timm:vit_small_patch14_dinov2",
    "timm:convnext_tiny.in12k_ft_in1k",
    "timm:mobilenetv3_large_100",
    "torchvision:resnet18",
    "timm:vit_base_patch14_dinov2",
)
"""Which one an audit takes by itself. The slowest comes last: it is for whoever names it."""
