"""SimCLR on the user's own images: two kinds of pictures come to lie apart, whatever their labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engines.backbones import learn_features, self_supervised
from engines.contract import EngineInputError
from engines.shared.device import make_generator
from engines.shared.strong import strong_views
from tests.engines.literal import nt_xent
from tests.engines.literal_double import EXACT, Steps, in_double


class Ticks:
    """A clock that ticks at every look, so that a run does the same steps on every machine."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def two_kinds() -> np.ndarray:
    """20 dark and 20 bright noisy pictures with stripes of two directions."""
    random = np.random.default_rng(0)
    stripes = np.tile(np.repeat([0, 1], 4), 2)
    pictures = random.integers(0, 60, (40, 3, 16, 16))
    pictures[:20] += 150 * stripes[:, None]
    pictures[20:] += 150 * stripes[None, :]
    return pictures.astype(np.uint8)


def learned(seconds: float) -> np.ndarray:
    return learn_features(two_kinds(), seconds=seconds, seed=1, device=torch.device("cpu"), clock=Ticks())


def test_learn_features__a_picture_is_nearest_to_its_own_kind() -> None:
    features = learned(12)
    assert features.shape[:2] == (40, 2)
    flat = features[:, 0] - features[:, 0].mean(axis=0)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    alike = flat @ flat.T
    np.fill_diagonal(alike, -2)
    kind = np.arange(40) < 20
    assert (kind[alike.argmax(axis=1)] == kind).mean() > 0.9
    np.testing.assert_array_equal(features, learned(12))


def test_learn_features__every_step_is_that_of_the_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_supervised, "BATCH", 12)  # 12, 12, 12 and 4 in an epoch of 40
    images, cpu, steps = two_kinds(), torch.device("cpu"), Steps()
    with in_double(), steps.watched():
        found = learn_features(images, seconds=6, seed=1, device=cpu, clock=Ticks())
        network, projection = self_supervised._networks(images, 1, cpu)
        pixels = torch.from_numpy(images).double() / 255
        single = images.astype(np.float32) / 255  # as the images' own numbers are kept
        mean, deviation = (
            torch.from_numpy(one)[:, None, None] for one in (single.mean((0, 2, 3)), single.std((0, 2, 3)))
        )
        values = [*network.parameters(), *projection.parameters()]
        first, second = [torch.zeros_like(one) for one in values], [torch.zeros_like(one) for one in values]
        wanted = []
        for step in range(6):
            epoch, number = divmod(step, 4)
            if number == 0:
                order, moves = (make_generator(1, name, "simclr", epoch) for name in ("order", "augment"))
                batches = torch.randperm(40, generator=order).split(12)
            rate = 1e-3 * (1 + math.cos(math.pi * step / 6)) / 2
            views = [(strong_views(pixels[batches[number]], moves) - mean) / deviation for _ in range(2)]
            loss = nt_xent(projection(network.train()(torch.cat(views))[0]), 0.5)
            gradients = torch.autograd.grad(loss, values, allow_unused=True)
            with torch.no_grad():
                for i, (value, gradient) in enumerate(zip(values, gradients, strict=True)):
                    if gradient is None:  # the head, which nobody asks
                        continue
                    first[i] = 0.9 * first[i] + 0.1 * gradient
                    second[i] = 0.999 * second[i] + 0.001 * gradient**2
                    spread = (second[i] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
                    value -= rate * 1e-4 * value + rate * first[i] / (1 - 0.9 ** (step + 1)) / spread
            wanted.append([value.detach().clone() for value in values])
        assert len(steps.after[0]) == 6
        for number, (ours, theirs) in enumerate(zip(steps.after[0], wanted, strict=True)):
            for one, other in zip(ours, theirs, strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=EXACT, msg=f"step {number}")
        with torch.no_grad():
            seen = (pixels - mean) / deviation
            own = torch.stack([network.eval()(view)[0] for view in (seen, seen.flip(3))], dim=1)
    np.testing.assert_allclose(found, own.numpy(), rtol=0, atol=1e-6)


def test_learn_features__refuses_too_few_images_and_no_time() -> None:
    with pytest.raises(EngineInputError, match="3 images and 5 seconds"):
        learn_features(two_kinds()[:3], seconds=5, device=torch.device("cpu"))
    with pytest.raises(EngineInputError, match="0 seconds"):
        learn_features(two_kinds(), seconds=0, device=torch.device("cpu"))
