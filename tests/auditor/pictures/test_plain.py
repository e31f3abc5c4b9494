"""How light and how sharp pictures are."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFilter
from sklearn.datasets import load_sample_image

from auditor.pictures import plain

FLOWER = Image.fromarray(load_sample_image("flower.jpg")).resize((96, 64))


def measured(image: Image.Image) -> tuple[float, float]:
    return plain.of_picture(np.asarray(image).transpose(2, 0, 1))


def test_of_picture__blur_and_darkness_are_told_apart() -> None:
    light, sharp = measured(FLOWER)
    assert light == pytest.approx(np.asarray(FLOWER).mean(), rel=1e-4)
    blurred = measured(FLOWER.filter(ImageFilter.GaussianBlur(1.5)))
    assert blurred[1] < 0.5 * sharp
    assert blurred[0] == pytest.approx(light, rel=0.02)
    dark = measured(FLOWER.point(lambda level: level // 4))
    assert dark[0] < 0.3 * light
    assert dark[1] > 0.8 * sharp, "little contrast is no blur"


def test_of_picture__the_black_around_it_does_not_count() -> None:
    square = Image.new("RGB", (96, 96))
    square.paste(FLOWER, (0, 16))
    assert measured(square) == pytest.approx(measured(FLOWER))
    assert measured(Image.new("RGB", (8, 8))) == (0, 0)
