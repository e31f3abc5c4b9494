"""Real images as frozen networks see them, in files: what ``guess``, ``annotators`` and ``qa.truth`` read.

    python -m benchmarks.frozen [FOLDER]

Makes what is missing of ``NAME.npz`` in the folder, with ``features`` (N, D) float16, ``truth`` (N,) and the labels
that people gave (``aggre``, ``random1``) or planted confusions (``confused``): all 50,000 training images of
CIFAR-10 at 160 px, in their order, and the photos of clothes at 224 px, each as the two networks see them that come
with the installation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.backbones import weights
from auditor.bridges import backbone_bridge
from benchmarks import backbones, images
from benchmarks.backbones import NETWORKS, SIDES, WORK

FOLDER = WORK.parent / "frozen"
ROWS_AT_ONCE = 1_000


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    make(parser.parse_args().folder)


def make(folder: Path = FOLDER) -> Path:
    """Make the files that are missing; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for network in ("lite0", "lite2"):
        path = folder / f"CIFAR-10, {network}.npz"
        if not path.exists():
            pixels, table = images.load("cifar10-train")
            labels = {name: table[f"label_{name}"].to_numpy(dtype=np.int64) for name in ("aggre", "random1")}
            _write(path, _seen(pixels, network, SIDES["cifar"]), table["label"].to_numpy(np.int64), **labels)
        path = folder / f"photos, {network}.npz"
        if not path.exists():
            task = backbones.task_of(backbones.Run("photos", backbones.PHOTOS, 0, network))
            _write(path, task.raw[:, 0], task.truth, confused=task.given)
    return folder


def _seen(pixels: NDArray[np.uint8], network: str, side: int) -> NDArray[np.float16]:
    (name,) = NETWORKS[network]
    parts = [
        backbone_bridge.embed_array(
            pixels[start : start + ROWS_AT_ONCE],
            name=name,
            weights=weights.find(name, None).path,
            side=side,
            views=1,
            device="cpu",
        )[:, 0].astype(np.float16)
        for start in range(0, len(pixels), ROWS_AT_ONCE)
    ]
    return np.concatenate(parts)


def _write(
    path: Path, features: NDArray[np.floating], truth: NDArray[np.int64], **labels: NDArray[np.int64]
) -> None:
    beside = path.with_suffix(".writing.npz")
    np.savez(beside, features=features.astype(np.float16), truth=truth, **labels)  # type: ignore[arg-type]
    beside.replace(path)


if __name__ == "__main__":
    main()
