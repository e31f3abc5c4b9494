"""Which engines train the backbone further, on the images: fine-tuning, an opinion that sees what features hide."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from auditor.backbones.features import FeatureSource
from auditor.bridges import engine_bridge
from auditor.bridges.engine_bridge import Pretrained
from auditor.ground.errors import AuditFailedError

PLAIN_ENGINE = "cross_entropy"


class Finetune(enum.StrEnum):
    """Who trains the backbone further: nobody, the plain engine, or every engine of images."""

    NONE = "none"
    PLAIN = "plain"
    ALL = "all"

    def engines(self, names: Sequence[str]) -> list[str]:
        """Return those of the engines ``names`` that do."""
        if self is Finetune.PLAIN:
            return [name for name in names if name == PLAIN_ENGINE]
        return [name for name in names if self is Finetune.ALL and not engine_bridge.needs_features(name)]


def meant(finetune: str | None, source: FeatureSource | None, device: str) -> Finetune:
    """Return what ``finetune`` means on this device.

    None means ``plain`` on a card, where the features are a backbone's, and else ``none``. On human errors the
    plain engine that trains the backbone further finds what no engine on its features does (25,000 images: AUROC
    .957, all engines on the features together .921; benchmarks/results/gpu.md), but on a CPU it takes eleven
    minutes for 3,000 images of 96 px.

    Args:
        finetune: a value of ``Finetune``, or None.
        source: what the engines see; None: images.
        device: a resolved one.

    Raises:
        AuditFailedError: no such value, or there is no backbone to train.
    """
    if finetune is None:
        has_backbone = source is not None and source.weights is not None
        return Finetune.PLAIN if has_backbone and device != "cpu" else Finetune.NONE
    if finetune not in list(Finetune):
        raise AuditFailedError(
            f"Fine-tuning {finetune!r} is unknown; use one of {', '.join(Finetune)}.", field="finetune"
        )
    found = Finetune(finetune)
    if found is not Finetune.NONE:
        backbone(source, found)
    return found


def backbone(source: FeatureSource | None, finetune: Finetune) -> Pretrained:
    """Return the backbone that they train: of several side by side the plain engine trains the first.

    Raises:
        AuditFailedError: there is no backbone, or several for all engines.
    """
    if source is None or source.weights is None:
        raise AuditFailedError(
            "Fine-tuning trains a backbone further, and this audit has none; name one whose weights are here "
            "(`auditor weights list`), or train without it."
        )
    if source.parts and finetune is Finetune.ALL:
        raise AuditFailedError(
            "Fine-tuning trains one backbone further, and this audit has several; name one of them."
        )
    one = source.each[0]
    return Pretrained(one.name, one.weights, one.side)
