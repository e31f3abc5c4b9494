"""One call in scikit-learn's style: ``LabelAuditor().fit(X, y).suspects_``; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from auditor.backbones.features import DEFAULT_VIEWS, choose, deviation
from auditor.bridges import backbone_bridge, engine_bridge
from auditor.statistics import Witness, combine


class LabelAuditor(BaseEstimator):
    """Train engines on images or features and score every label of ``y``.

    Args:
        engines: one name or several; default ``cross_entropy``.
        preset: ``quick``, ``standard`` or ``paper``.
        options: engine -> its settings.
        backbone: a pretrained network such as ``timm:resnet18`` that sees images first; the engines train on its
            features. Default: they train on the images from scratch.
        weights: a file with its weights; default: those on this machine.
        views: in which it sees each image, 1 to 6.
        random_state: the same seed gives the same result.
        device: ``auto``, ``cpu`` or ``cuda``.

    After ``fit``:
        label_quality_: (N,) float in [0, 1], 1 = the given label looks right.
        suspects_: indices of the flagged labels, the most suspicious first.
        suggested_: (N,) the class to use instead, as in ``classes_``.
        noise_rate_: what can be said about how many labels are wrong.
        classes_, n_features_in_ (of features).
    """

    def __init__(
        self,
        engines: str | Sequence[str] = "cross_entropy",
        *,
        preset: str = "quick",
        options: dict[str, dict[str, Any]] | None = None,
        backbone: str | None = None,
        weights: str | Path | None = None,
        views: int = DEFAULT_VIEWS,
        random_state: int = 0,
        device: str = "auto",
    ) -> None:
        self.engines = engines
        self.preset = preset
        self.options = options
        self.backbone = backbone
        self.weights = weights
        self.views = views
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Any:
        """It needs labels."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> LabelAuditor:
        """Score the labels ``y`` (N,) of ``X``: features (N, D), or uint8 images (N, H, W), (N, H, W, C).

        Raises:
            ValueError: the shapes do not fit, there is one class only, or features are given beside a backbone.
            NotFoundError: the backbone has no weights on this machine.
        """
        images, features = None, None
        if np.ndim(X) in (3, 4):
            images = _images(check_array(X, allow_nd=True, ensure_2d=False, dtype=np.uint8))
            y = column_or_1d(y, warn=True)
            check_consistent_length(images, y)
            if self.backbone is not None:
                features = self._seen(images)
                images = images if features is None else None
        else:
            if self.backbone is not None:
                raise ValueError(
                    "X has features, so the backbone sees nothing; give images, or leave it out."
                )
            X, y = validate_data(self, X, y, dtype=np.float32)
            features = np.ascontiguousarray(X[:, None, :])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("LabelAuditor needs two classes or more; y has one class.")
        names = [self.engines] if isinstance(self.engines, str) else list(self.engines)
        configs = engine_bridge.configs(
            names, self.preset, self.options or {}, on_features=features is not None
        )
        witnesses = []
        for name in names:
            result = engine_bridge.train(
                name,
                images,
                labels.astype(np.int64),
                len(self.classes_),
                config=configs[name],
                features=features,
                seed=self.random_state,
                device=self.device,
            )
            witnesses.append(Witness(name, result.trust_score, result.pred_probs, result.is_out_of_sample))
        found = combine(witnesses, labels, len(self.classes_))
        trust = found.reading.trust_score
        self.label_quality_ = trust
        flagged = np.flatnonzero(found.calibrated.is_label_issue)
        self.suspects_ = flagged[np.argsort(trust[flagged], kind="stable")]
        self.suggested_ = self.classes_[np.maximum(found.reading.other_label, 0)]
        self.noise_rate_ = found.guess
        return self

    def _seen(self, images: NDArray[np.uint8]) -> NDArray[np.float16] | None:
        """(N, V, D) features by the backbone; None where it is ``none``."""
        file = None if self.weights is None else Path(self.weights)
        source = choose(self.backbone, file, views=self.views)
        if source is None or source.weights is None:
            return None
        seen = [
            backbone_bridge.embed_array(
                images,
                name=part.name,
                weights=Path(str(part.weights)),
                side=part.side,
                views=part.views,
                device=self.device,
            )
            for part in source.each
        ]
        if len(seen) == 1:
            return seen[0]
        return np.concatenate([one / deviation(one) for one in seen], axis=2).astype(np.float16)


def _images(images: Any) -> Any:
    """(N, C, H, W) uint8."""
    if images.ndim == 3:
        return np.ascontiguousarray(images[:, None])
    is_last = images.shape[3] in (1, 3, 4)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2) if is_last else images)
