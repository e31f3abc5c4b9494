"""Strong views."""

from __future__ import annotations

import numpy as np
import torch

from engines.shared.device import make_generator
from engines.shared.loader import ImageStore
from engines.shared.strong import strong_views
from tests.engines.helpers import digits


def test_strong_views__are_images_of_the_same_form_and_another_at_every_draw() -> None:
    images = torch.rand((20, 3, 16, 16), generator=make_generator(0))
    generator = make_generator(1)
    first, second = strong_views(images, generator), strong_views(images, generator)
    assert first.shape == images.shape
    assert (first >= 0).all()
    assert (first <= 1).all()
    assert ((first - second).abs().mean(dim=(1, 2, 3)) > 0.01).all()
    torch.testing.assert_close(strong_views(images, make_generator(1)), first)


def test_strong_views__of_an_image_are_nearer_to_it_than_to_others() -> None:
    images = torch.from_numpy(digits(40)[0] / np.float32(255))
    views = strong_views(images, make_generator(0))
    distance = torch.cdist(views.flatten(1), images.flatten(1))
    assert (distance.argmin(dim=1) == torch.arange(40)).float().mean() > 0.5


def test_strong_views__mirror_photographs_and_never_grey_images() -> None:
    ramp = torch.linspace(0, 1, 16).expand(60, 1, 16, 16)
    rises = strong_views(ramp, make_generator(0)).mean(dim=(1, 2)).diff(dim=1).sum(dim=1) > 0
    assert rises.all()
    photos = strong_views(ramp.expand(60, 3, 16, 16), make_generator(0))
    rises = photos.mean(dim=(1, 2)).diff(dim=1).sum(dim=1) > 0
    assert 15 < int(rises.sum()) < 45


def test_strong_views__one_photograph_in_five_is_grey() -> None:
    images = torch.rand((400, 3, 4, 4), generator=make_generator(0))
    spread = strong_views(images, make_generator(1)).std(dim=1).amax(dim=(1, 2))
    assert 50 < int((spread < 1e-6).sum()) < 110


def test_strong_views__crops_are_up_to_a_third_wider_or_higher_than_they_are_high_or_wide() -> None:
    ramp = torch.linspace(0.4, 0.6, 64).expand(400, 1, 64, 64)
    rises = [
        strong_views(image, make_generator(0)).diff(dim=along).median(dim=3).values.median(dim=2).values
        for image, along in ((ramp, 3), (ramp.mT, 2))
    ]
    ratio = rises[0] / rises[1]
    assert 0.74 < ratio.min() < 0.78
    assert 1.3 < ratio.max() < 1.34
    whole = (ratio - 1).abs() < 0.05  # as many are nearly square as the logarithm's even spread says
    assert 0.1 < whole.float().mean() < 0.3


def test_moved__strong_views_come_by_their_name() -> None:
    store = ImageStore(digits(10)[0], "cpu")
    rows = torch.arange(10)
    torch.testing.assert_close(
        store.moved(rows, "strong", make_generator(4)), strong_views(store.batch(rows), make_generator(4))
    )
