"""Images through a network: views, processes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engines.backbones import RowsDone, embed, embed_rows, seeing, views_of
from engines.contract import EngineError, EngineInputError
from engines.networks.pretrained import input_config, open_backbone

NAME = "timm:mobilenetv3_small_050"
CPU = torch.device("cpu")


def some_images(number: int = 10, channels: int = 3, side: int = 40) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (number, channels, side, side), dtype=np.uint8)


def test_views_of__whole_mirror_and_corners() -> None:
    config = input_config("timm:vit_tiny_patch16_224", side=64)  # whose own recipe keeps 90 % in the middle
    image = torch.arange(80, dtype=torch.uint8).expand(1, 1, 80, 80)  # brighter to the right
    views = list(views_of(image, config, 6))
    assert len(views) == 6
    assert all(view.shape == (1, 3, 64, 64) for view in views)
    edges = (views[0][0, 0, 0, [0, -1]] * config.std[0] + config.mean[0]) * 255
    assert edges.tolist() == pytest.approx([0, 79], abs=1.5)
    assert torch.equal(views[1], views[0].flip(3))
    means = [float(view.mean()) for view in views]
    assert means[2] == pytest.approx(means[5], abs=1e-5)  # both lie on the left, one is mirrored
    assert means[2] < means[0] < means[3]
    assert float(views[2][0, 0, 0, 0]) < float(views[2][0, 0, 0, -1])
    assert float(views[3][0, 0, 0, 0]) > float(views[3][0, 0, 0, -1])


@pytest.mark.parametrize("number", [0, 7])
def test_views_of__refuses_other_numbers(number: int) -> None:
    with pytest.raises(EngineInputError, match="1 to 6"):
        next(views_of(torch.zeros(1, 3, 8, 8, dtype=torch.uint8), input_config(NAME, 32), number))


@pytest.mark.parametrize("channels", [1, 3])
def test_embed__who_stands_beside_an_image_does_not_matter(channels: int) -> None:
    network = seeing(NAME, None, side=32, device=CPU)
    images = some_images(channels=channels)
    whole = embed(images, network, views=3, device=CPU, batch_size=10)
    parts = embed(images, network, views=3, device=CPU, batch_size=3)
    assert whole.shape == (10, 3, network.feature_size)
    assert whole.dtype == np.float16
    np.testing.assert_array_equal(whole, parts)
    assert not np.array_equal(whole[:, 0], whole[:, 1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("side", [40, 200])
def test_embed__a_card_sees_what_a_cpu_sees(side: int) -> None:
    images = np.repeat(np.repeat(some_images(6, side=side // 8), 8, axis=2), 8, axis=3)
    found = [
        embed(images, seeing(NAME, None, side=64, device=device), views=3, device=device).astype(np.float32)
        for device in (CPU, torch.device("cuda"))
    ]
    assert np.linalg.norm(found[0] - found[1]) < 0.08 * np.linalg.norm(found[0])  # bfloat16 on the card


def test_embed__says_which_image_gave_no_number() -> None:
    network = open_backbone(NAME, None, side=32)
    with torch.no_grad():
        for value in network.parameters():
            value.mul_(torch.inf)
    with pytest.raises(EngineError, match="for image 0"):
        embed(some_images(3), network, views=1, device=CPU)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("workers", [1, 3])
def test_embed_rows__writes_the_rows_that_are_asked_for_and_stops_when_told(workers: int) -> None:
    network = seeing(NAME, None, side=32, device=CPU, workers=workers)
    images = some_images(60)
    features = np.zeros((60, 1, network.feature_size), dtype=np.float16)
    done: list[tuple[int, int]] = []
    three = [(0, 4), (4, 9), (20, 23)]

    def run(ranges: list[tuple[int, int]], on_done: RowsDone) -> None:
        embed_rows(
            *(images, features, ranges, network), views=1, device=CPU, workers=workers, on_done=on_done
        )

    run(three, lambda start, end: done.append((start, end)))
    assert sorted(done) == three
    whole = embed(images, network, views=1, device=CPU)
    asked = np.r_[0:9, 20:23]
    np.testing.assert_array_equal(features[asked], whole[asked])
    assert not np.delete(features, asked, axis=0).any()

    def stop(_start: int, _end: int) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        run([(start, start + 4) for start in range(24, 60, 4)], stop)
    assert not features[24 + 4 * 2 * workers :].any()
