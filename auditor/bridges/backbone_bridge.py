"""The bridge to the backbones of ``engines``: names, sizes, hashes, and the call that embeds.

Like ``engine_bridge`` it imports torch only inside its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.ground.errors import AuditFailedError
from auditor.ground.settings import settings

if TYPE_CHECKING:
    from engines.networks import Backbone, InputConfig

PIECE = {"cpu": 32, "cuda": 256}
"""Images that are embedded between two words about them: a share of a core's, a batch of a card."""
CONVERTED = "converted"
"""Folder of the home: networks as OpenVINO computes them, by a hash; they are made again where they are missing."""


@dataclass(frozen=True)
class Source:
    """Where the library would download a backbone's weights from."""

    repository: str | None
    """On the Hugging Face hub (timm)."""
    url: str | None
    """Of a file (torchvision), or for people where there is a repository."""
    licence: str | None


@contextmanager
def _as_audit_errors() -> Iterator[None]:
    from engines.contract import EngineError

    try:
        yield
    except EngineError as error:
        raise AuditFailedError(f"{str(error)[:1].upper()}{str(error)[1:]}") from error


def input_config(name: str, *, side: int | None = None, views: int = 1) -> InputConfig:
    """Return how a backbone wants its images. Builds no network.

    Raises:
        AuditFailedError: unknown backbone, or views that there are not.
    """
    from engines.backbones import check_views
    from engines.networks import input_config

    with _as_audit_errors():
        check_views(views)
        return input_config(name, side)


def weights_hash(path: Path) -> str:
    """SHA-256 of a weights file.

    Raises:
        AuditFailedError: it cannot be read.
    """
    from engines.networks import weights_hash

    with _as_audit_errors():
        return weights_hash(path)


def size(name: str, weights: Path, *, side: int | None) -> int:
    """D, the features of one view. Builds the network and checks that the weights fit.

    Raises:
        AuditFailedError: they do not.
    """
    from engines.networks import open_backbone

    with _as_audit_errors():
        return open_backbone(name, weights, side=side).feature_size


def probe(
    name: str, weights: Path, shape: tuple[int, int, int], *, side: int | None, views: int, device: str
) -> tuple[float, int]:
    """Seconds of one image on one core (on a card: of the card), and D, the features of one view.

    Raises:
        AuditFailedError: the weights do not fit, or the network cannot take such images.
    """
    from engines.backbones import probe
    from engines.shared.device import resolve_device

    with _as_audit_errors():
        return probe(
            *(name, str(weights), shape),
            side=side,
            views=views,
            device=resolve_device(device),
            kept=settings().home / CONVERTED,
        )


def source(name: str) -> Source:
    """Return where the library has the weights of ``name`` from; asks nobody.

    Raises:
        AuditFailedError: unknown backbone.
    """
    from engines.networks import weights_source

    with _as_audit_errors():
        found = weights_source(name)
    return Source(found.repository, found.url, found.licence)


def download_checked(url: str, path: Path, *, progress: bool) -> None:
    """Fetch a file of torchvision with torch's own client, which checks the hash in the file's name.

    Raises:
        Whatever the client raises; ``path`` is then not there.
    """
    from engines.networks import fetch_checked

    fetch_checked(url, path, progress=progress)


def embed(
    images: Path,
    features: Path,
    ranges: Sequence[tuple[int, int]],
    *,
    name: str,
    weights: Path,
    side: int | None,
    views: int,
    device: str,
    workers: int,
    on_done: Callable[[int, int], None],
) -> None:
    """Embed ranges of rows of ``images`` into ``features``: on a card, or on a CPU with so many threads.

    Raises:
        AuditFailedError: the weights do not fit, or the network cannot take such images.
    """
    pixels = np.load(images, mmap_mode="r", allow_pickle=False)
    target = np.load(features, mmap_mode="r+", allow_pickle=False)

    def written(start: int, end: int) -> None:
        target.flush()
        on_done(start, end)

    from engines.backbones import embed_rows

    with _as_audit_errors():
        network, place = _seeing(name, weights, side, device, workers)
        embed_rows(
            *(pixels, target, ranges, network), views=views, device=place, workers=workers, on_done=written
        )


def _seeing(
    name: str, weights: Path, side: int | None, device: str, workers: int | None
) -> tuple[Backbone, Any]:
    from engines.backbones import seeing
    from engines.shared.device import resolve_device

    place = resolve_device(device)
    kept = settings().home / CONVERTED
    return seeing(name, weights, side=side, device=place, workers=workers, kept=kept), place


def reduce_features(
    features: NDArray[np.floating], given_labels: NDArray[np.int64], num_classes: int, out: Path
) -> int:
    """Write the directions of (N, V, D) ``features`` that are worth reading to ``out``; returns how many.

    Raises:
        AuditFailedError: the labels cannot be audited.
    """
    from engines.noise_model.reduction import reduce_features

    with _as_audit_errors():
        return reduce_features(features, given_labels, num_classes, out)


def reduction_seconds(num_rows: int, num_features: int, num_classes: int) -> float:
    """Return how long ``reduce_features`` takes here, of features of D values."""
    from engines.noise_model.reduction import seconds_of_reduction

    return seconds_of_reduction(num_rows, num_features, num_classes)


def expected_directions() -> int:
    """Return how many numbers of a sample engines read, as long as nobody has reduced its features."""
    from engines.noise_model.reduction import EXPECTED

    return EXPECTED


def embed_array(
    images: NDArray[np.uint8],
    *,
    name: str,
    weights: Path,
    side: int | None,
    views: int,
    device: str,
    on_rows: Callable[[int], None] | None = None,
) -> NDArray[np.float16]:
    """(N, V, D) features of (N, C, H, W) ``images``, computed in this process.

    ``on_rows`` hears how many are done, and may raise to stop.

    Raises:
        AuditFailedError: the weights do not fit, or the network cannot take such images.
    """
    from engines.backbones import embed_rows

    with _as_audit_errors():
        network, place = _seeing(name, weights, side, device, None)
        step = PIECE[place.type]
        ranges = [(at, min(at + step, len(images))) for at in range(0, len(images), step)]
        found = np.empty((len(images), views, network.feature_size), dtype=np.float16)
        done = 0

        def counted(start: int, end: int) -> None:
            nonlocal done
            done += end - start
            if on_rows is not None:
                on_rows(done)

        embed_rows(images, found, ranges, network, views=views, device=place, on_done=counted)
        return found
