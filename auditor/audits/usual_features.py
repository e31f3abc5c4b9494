"""What an audit looks through where nobody chose: found out on some hundred of its own images and labels.

Weights that come with the installation serve photographs, and not everything else: digits of 8 pixels say more by
their pixels than a network for photographs sees in them. So a linear model learns a sample's given labels once from
the network's features and once from the pixels, and its likelihood on rows that it did not see decides.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from auditor import kind
from auditor.backbones import features, weights
from auditor.backbones.features import FeatureSource
from auditor.bridges import backbone_bridge, engine_bridge
from auditor.catalog import reading
from auditor.catalog.records import Dataset
from auditor.ground.wording import plural
from auditor.pictures import cache

ROWS, CLASSES = 512, 16
"""Looked at: so many rows of the most frequent classes (few rows of each of a thousand would say nothing)."""
SIDE = 96
"""Pixels of the images that the network sees for this."""
COARSE = 16
"""Side in pixels of the images whose pixels are compared."""
COMPONENTS, FOLDS, STRENGTH = 32, 5, 0.1
LEAST = 1e-3
"""Least probability that counts: one row may not decide."""
BETTER = "timm:vit_small_patch14_dinov2"
BOTH_UP_TO = 10_000
"""Images that both networks of the installation look at on CPUs: together they take 2.5 times as long as the first
alone (two minutes and a half for these on two cores), and find more on six of six sets: AUROC .001 to .016 and
average precision .001 to .058 more (benchmarks/results/backbones.md)."""

SMALL, SMALL_SIDE = 32, 160
"""Where more than ``BOTH_UP_TO`` pictures have this longest side in pixels, CPUs look at them at the other
side, in place of 224: twice as fast, and on 24,000 rows it finds as much (AUROC and average precision of the noise
model on four sets: -.0006 and +.0006 on average, benchmarks/results/noise_model.md)."""


def choose_features(
    dataset_name: str,
    name: str | None,
    file: Path | None = None,
    *,
    side: int | None = None,
    views: int = features.DEFAULT_VIEWS,
    one: bool = False,
) -> tuple[FeatureSource | None, str]:
    """Return what an audit looks through (``features.choose``), and a sentence for people: what it is, and why.

    Where nobody chose, here or in ``AUDITOR_BACKBONE``, weights that somebody fetched are taken; else those of the
    installation, unless the pixels tell more about the given labels: both side by side on a GPU or for up to
    ``BOTH_UP_TO`` images, unless only ``one`` network will do; for more, small pictures at ``SMALL_SIDE``.

    Raises:
        AuditorError: as ``features.choose``.
    """
    is_open = name is None and not os.environ.get(features.CHOSEN)
    source = features.choose(name or os.environ.get(features.CHOSEN) or None, file, side=side, views=views)
    if source is None:
        return None, features.WITHOUT if is_open else ""
    if not is_open or _place(source) != weights.INSTALLATION:
        return source, f"{_told_of(source)}."
    dataset = reading.dataset(dataset_name)
    seen, plain = told(source, dataset, kind.of(dataset).values(dataset))
    if plain > seen:
        return None, (
            f"The pixels tell more about the given labels than the features of {source.name} (mean likelihood of "
            f"labels left out: {plain:.2f} and {seen:.2f}), so the engines train on the images from scratch; "
            "name a backbone to overrule this."
        )
    pair = ",".join(each.name for each in weights.here() if each.place == weights.INSTALLATION)
    is_quick = dataset.num_samples <= BOTH_UP_TO or not engine_bridge.is_on_cpu()
    if side is None and not is_quick and max(dataset.height, dataset.width) <= SMALL:
        source = features.choose(source.name, side=SMALL_SIDE, views=views) or source
    if not one and is_quick:
        source = features.choose(pair, side=side, views=views) or source
    come = "they come with the installation"
    return source, f"{_told_of(source)}; {come}. `auditor weights get {BETTER}` has a larger network."


def _told_of(source: FeatureSource) -> str:
    networks = " and ".join(f"{part.name} at {part.side} px" for part in source.each)
    return f"Features of {networks}, {plural(source.views, 'view')} an image"


def told(
    source: FeatureSource, dataset: Dataset, given: NDArray[np.int64] | NDArray[np.float64]
) -> tuple[float, float]:
    """Return how likely labels that were left out are on these features and on the pixels, each a geometric mean.

    ``given``: (N,) classes, -1 where there is none; or numbers, NaN where there is none.
    """
    rows = _rows(given)
    if len(rows) < 2 * FOLDS:
        return 1.0, 0.0  # too few to tell
    images = cache.image_cache(dataset)[rows]
    looked = replace(source, side=SIDE)
    seen = backbone_bridge.embed_array(
        images, name=looked.name, weights=Path(str(looked.weights)), side=looked.side, views=1, device="auto"
    )
    labels = given[rows]
    return likelihood(seen[:, 0], labels), likelihood(_coarse(images).reshape(len(rows), -1), labels)


def likelihood(points: NDArray[Any], given: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Mean (geometric) likelihood of (n,) ``given`` out of fold, by a linear model on components of (n, D) points.

    Of classes a logistic regression; of numbers a ridge regression with normal errors, in units of their deviation.
    """
    from sklearn.decomposition import PCA  # takes a second to import: only where it is used
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import KFold

    num = len(points)
    components = PCA(min(COMPONENTS, num // FOLDS, points.shape[1]), svd_solver="full").fit_transform(
        points.astype(np.float64)
    )
    components /= max(components.std(), 1e-12)
    logs = np.zeros(num)
    for train, rest in KFold(FOLDS, shuffle=True, random_state=0).split(components):
        if given.dtype.kind == "f":
            errors = given[rest] - Ridge(1 / STRENGTH).fit(components[train], given[train]).predict(
                components[rest]
            )
            variance = max(float(np.mean(errors**2) / max(given.var(), 1e-12)), LEAST)
            logs[rest] = -0.5 * np.log(variance)
            continue
        found = np.full(len(rest), LEAST)
        if len(classes := np.unique(given[train])) > 1:
            model = LogisticRegression(C=STRENGTH, max_iter=300).fit(components[train], given[train])
            at = np.searchsorted(classes, given[rest]).clip(max=len(classes) - 1)
            is_known = classes[at] == given[rest]
            probs = model.predict_proba(components[rest])[np.arange(len(rest)), at]
            found = np.maximum(np.where(is_known, probs, 0.0), LEAST)
        logs[rest] = np.log(found)
    return float(np.exp(logs.mean()))


def _coarse(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(n, C, h, w) at most ``COARSE`` px large."""
    if max(images.shape[2:]) <= COARSE:
        return images.astype(np.float32)
    small = [
        [
            np.asarray(Image.fromarray(channel).resize((COARSE, COARSE), Image.Resampling.BOX))
            for channel in image
        ]
        for image in images
    ]
    return np.array(small, dtype=np.float32)


def _place(source: FeatureSource) -> str | None:
    found = weights.present(source.name)
    return None if found is None or str(found.path) != source.weights else found.place


def _rows(given: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.intp]:
    if given.dtype.kind == "f":
        known = np.flatnonzero(np.isfinite(given))
    else:
        counts = np.bincount(given[given >= 0])
        known = np.flatnonzero(np.isin(given, np.argsort(-counts, kind="stable")[:CLASSES]))
    return np.sort(np.random.default_rng(0).permutation(known)[:ROWS])
