"""The views of an image that a backbone sees: the whole of it, its mirror image, and corners.

The weights' own recipe shows the centre alone and leaves a quarter of the picture out. Whole pictures find more:
the noise model's average precision was .776 in place of .728 on 341 photos (six draws), and .556 in place of .534
on 3,000 pictures of 32 px.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from engines.contract import EngineInputError
from engines.networks import InputConfig, cropped, normalized

CORNERS = ((0.0, 0.0, False), (1.0, 1.0, True), (0.0, 1.0, False), (1.0, 0.0, True))
"""The corner views in their order: vertical and horizontal place, and whether they are mirrored."""
MOST_VIEWS = 2 + len(CORNERS)
CORNER_SHARE = 0.8
"""Share of the shorter side that a corner view keeps."""


def check_views(num_views: int) -> None:
    """Raise EngineInputError unless there are so many views."""
    if not 1 <= num_views <= MOST_VIEWS:
        raise EngineInputError(f"views must be 1 to {MOST_VIEWS}, got {num_views}.")


def views_of(images: Tensor, config: InputConfig, num_views: int) -> Iterator[Tensor]:
    """Views of a batch as the backbone wants them, one after the other.

    Args:
        images: (B, C, H, W) uint8, grey or RGB, any size.
        config: of ``engines.networks.pretrained.input_config``.
        num_views: V, 1 to 6. View 0 is the whole image (the largest square in its middle), 1 its mirror image, 2 to
            5 are corners, every second one mirrored.

    Yields:
        (B, 3, side, side) float32, standardised, stored channels last.

    Raises:
        EngineInputError: there are not so many views.
    """
    check_views(num_views)
    whole = normalized(cropped(images, config, (1.0, 0.5, 0.5)), config)
    yield whole
    if num_views > 1:
        yield whole.flip(3)
    for vertical, horizontal, is_mirrored in CORNERS[: max(0, num_views - 2)]:
        corner = normalized(cropped(images, config, (CORNER_SHARE, vertical, horizontal)), config)
        yield corner.flip(3) if is_mirrored else corner
