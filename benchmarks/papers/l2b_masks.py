"""L2B on pixels (section 3.4 of the paper): weight maps alpha and beta for every image of a batch.

f and g of ``engines.l2b`` become the losses of a pixel against its given and its pseudo-class. Both weights come
from one meta step: how much would listening to this pixel lower the loss on a few images whose masks are believed?
The weights are normalised together over all pixels of the batch, eq. (7) and (8).

The meta set is what people confirmed, or, where that is fewer than three images, the share of the images with the
smallest mean loss, chosen anew at every epoch; a meta batch never holds an image of the batch that it judges.

Departures from the paper and its code: a warm-up of plain cross-entropy [added: without it the first pseudo-classes
are noise]; softmax over K classes for a sigmoid; mirrored images for five views of each slice; confirmed images are
trained on too, in place of an extra step on the meta batch, which ``steps_on_meta`` switches on.

No audit uses it: on four of four sets it is behind plain cross-entropy (results/masks.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import (
    IGNORED_PIXEL,
    Checkpoint,
    EngineInputError,
    MaskData,
    MaskResult,
    OnEpoch,
    OnProbabilities,
)
from engines.l2b.weights import Weights, normalize
from engines.meta.directional import (
    MetaGradient,
    directional_derivative,
    forward_with_tangent,
    meta_gradient,
)
from engines.segmentation.config import MaskConfig
from engines.segmentation.loop import MaskFold, descend, pixel_losses, plain_step, train_masks
from engines.shared.config import at_least, check_preset, one_of
from engines.shared.device import memory_errors_explained
from engines.shared.losses import soft_cross_entropy
from engines.shared.work import Work

META_SOURCES = ("auto", "trusted", "small_loss")
FEWEST_TRUSTED = 3
"""Confirmed images from which they alone are the meta set, as in the paper."""
META_STEP = 2.5
"""Plain steps that a meta step takes as long as."""
MIN_DIRECTION = 1e-6


@dataclass(frozen=True, kw_only=True)
class L2BMaskConfig(MaskConfig):
    """The loop on pixels, and the meta step."""

    warmup_epochs: int = 4
    """Epochs of plain cross-entropy at the start, at least 0; never more than half of ``epochs``."""
    meta_batch_size: int = 4
    """Images of a meta batch, at least 1 (the paper's code: 2)."""
    meta_source: str = "auto"
    """``trusted``, ``small_loss``, or ``auto``: trusted where three images of a fold are."""
    meta_share: float = 0.25
    """Share of the images with the smallest loss that is believed, above 0, at most 1."""
    clip_norm: float = 0.8
    """Largest global gradient norm, above 0 (the paper's code: 0.2)."""
    steps_on_meta: bool = False
    """After every weighted step a plain one on the meta batch, as the paper's code takes it."""

    def problems(self) -> list[str]:
        found = [
            *super().problems(),
            *at_least(self, 0, "warmup_epochs"),
            *at_least(self, 1, "meta_batch_size"),
            *one_of(self, "meta_source", META_SOURCES),
        ]
        if not 0 < self.meta_share <= 1:
            found.append(f"meta_share is {self.meta_share}, it must be above 0 and at most 1")
        if not self.clip_norm > 0:
            found.append(f"clip_norm is {self.clip_norm}, it must be above 0")
        if self.precision != "float32":
            found.append("precision must be 'float32': a pixel's tangent is small")
        return found

    @property
    def first_meta_epoch(self) -> int:
        """Epoch (0-based) at which meta steps begin."""
        return min(self.warmup_epochs, self.epochs // 2)

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = super().work(num_rows, num_classes, on_features=on_features)
        late = (self.epochs - self.first_meta_epoch) / self.epochs
        return Work(one.trained * (1 - late + late * META_STEP), one.scored)

    @classmethod
    def preset(cls, name: str) -> L2BMaskConfig:
        """As plain cross-entropy; ``paper``: SGD, no warm-up, and a step on the meta batch, as the code has it."""
        check_preset(name)
        if name == "paper":
            return cls(
                epochs=100, warmup_epochs=0, optimizer="sgd", learning_rate=0.005, weight_decay=5e-4,
                batch_size=2, meta_batch_size=2, clip_norm=0.2, steps_on_meta=True, folds=1,
            )  # fmt: skip
        return cls(epochs={"quick": 12, "standard": 40}[name])


@memory_errors_explained()
def train(
    data: MaskData,
    config: L2BMaskConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
    on_probabilities: OnProbabilities | None = None,
) -> MaskResult:
    """Train with weight maps and judge every pixel; see ``loop.train_masks``.

    Raises:
        EngineInputError: nothing to learn from, or trusted masks are asked for and no fold has any.
    """
    return train_masks(
        "l2b",
        data,
        config,
        step,
        before_epoch=choose_meta_set,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        on_probabilities=on_probabilities,
    )


class PixelMeta(NamedTuple):
    """What one pass over a training batch and a meta batch gives; B images, K classes."""

    logits: Tensor
    """(B, K, h, w) with the graph to train on."""
    pseudo: Tensor
    """(B, K, h, w) one-hot pseudo-classes."""
    alpha: Tensor
    """(B, h, w) D_v f of each pixel's given class; 0 where it has none."""
    beta: Tensor
    """(B, h, w) D_v g of its pseudo-class."""
    meta: MetaGradient


def choose_meta_set(fold: MaskFold) -> None:
    """The rows that are believed in this epoch, under ``notes["meta_rows"]``; none in the warm-up."""
    config = _config(fold)
    fold.notes["meta_rows"] = None
    if fold.epoch < config.first_meta_epoch:
        return
    trusted = fold.rows[torch.isin(fold.rows, fold.run.rows_where(fold.run.data.trusted_mask))]
    if config.meta_source == "trusted" and not len(trusted):
        raise EngineInputError(
            "meta_source is 'trusted' and no mask is confirmed: confirm some, or choose 'auto'."
        )
    if config.meta_source == "trusted" or (config.meta_source == "auto" and len(trusted) >= FEWEST_TRUSTED):
        fold.notes["meta_rows"] = trusted
        return
    losses = image_losses(fold)
    most = max(config.meta_batch_size + 1, round(config.meta_share * len(fold.rows)))
    fold.notes["meta_rows"] = fold.rows[losses.argsort(stable=True)[:most]].sort().values


def image_losses(fold: MaskFold) -> Tensor:
    """(M,) mean loss of the pixels of each image of the fold, as they are and in evaluation mode."""
    fold.network.eval()
    found = []
    with torch.no_grad():
        for index in fold.rows.split(fold.run.scoring_batch):
            masks = fold.masks(index)
            losses = pixel_losses(fold.network(fold.images(index))[1], masks)
            count = (masks != IGNORED_PIXEL).sum(dim=(1, 2)).clamp(min=1)
            found.append(losses.sum(dim=(1, 2)) / count)
    fold.network.train()
    return torch.cat(found)


def step(fold: MaskFold, index: Tensor) -> Tensor:
    """One step on the images at ``index``: plain in the warm-up, else with weight maps."""
    config = _config(fold)
    images, masks = fold.batch(index)
    rows = fold.notes["meta_rows"]
    if rows is not None:
        rows = rows[~torch.isin(rows, index)]
    if rows is None or not len(rows):
        fold.counts["plain_steps"] = fold.counts.get("plain_steps", 0) + 1
        logits = fold.network(images)[1]
        return plain_step(fold.network, fold.optimizer, logits, masks, config.clip_norm)
    order = torch.randperm(len(rows), generator=fold.draws["meta"], device=rows.device)
    drawn = order[: config.meta_batch_size]
    meta_images, meta_masks = fold.batch(rows[drawn])
    fold.counts["meta_steps"] = fold.counts.get("meta_steps", 0) + 1
    loss = weighted_step(
        fold.network,
        fold.optimizer,
        images,
        masks,
        meta_images,
        meta_masks,
        num_classes=fold.run.data.num_classes,
        clip_norm=config.clip_norm,
    )
    if config.steps_on_meta:
        meta_logits = fold.network(meta_images)[1]
        plain_step(fold.network, fold.optimizer, meta_logits, meta_masks, config.clip_norm)
    return loss


def pixel_one_hot(masks: Tensor, num_classes: int) -> Tensor:
    """(B, h, w) int64 in {0..K-1, 255} -> (B, K, h, w) float32; all 0 where there is no class."""
    known = masks != IGNORED_PIXEL
    found = F.one_hot(torch.where(known, masks, 0), num_classes).movedim(-1, 1).float()
    return found * known[:, None]


def weighted_step(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    masks: Tensor,
    meta_images: Tensor,
    meta_masks: Tensor,
    *,
    num_classes: int,
    clip_norm: float,
) -> Tensor:
    """Weigh every pixel of the batch, eq. (5) to (8), and take the weighted step, eq. (9); returns the loss.

    Where the meta batch asks for nothing (||v|| = 0) the step is plain.
    """
    targets = pixel_one_hot(masks, num_classes).to(images.dtype)
    meta_targets = pixel_one_hot(meta_masks, num_classes).to(images.dtype)
    found = pixel_meta(network, images, targets, meta_images, meta_targets)
    known = masks != IGNORED_PIXEL
    if float(found.meta.norm) < MIN_DIRECTION:
        weights = Weights(known / known.sum().clamp(min=1), torch.zeros_like(found.beta))
    else:
        weights = pixel_weights(found.alpha, found.beta, known)
    mixed = weights.alpha[:, None] * targets + weights.beta[:, None] * found.pseudo
    loss = soft_cross_entropy(found.logits, mixed).sum()
    return descend(network, optimizer, loss, clip_norm)


def pixel_meta(
    network: nn.Module, images: Tensor, targets: Tensor, meta_images: Tensor, meta_targets: Tensor
) -> PixelMeta:
    """Eq. (1) to (6) for every pixel: forward the batch and find how each pixel's losses move along v = grad G.

    All targets are (., K, h, w), 0 where a pixel has no class.
    """
    meta = meta_gradient(network, meta_images, meta_targets)
    _, logits, tangent = forward_with_tangent(network, images, meta.direction)
    with torch.no_grad():
        pseudo = pixel_one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)
        alpha = directional_derivative(logits, tangent, targets)
        beta = directional_derivative(logits, tangent, pseudo)
    return PixelMeta(logits, pseudo, alpha, beta, meta)


def pixel_weights(alpha: Tensor, beta: Tensor, known: Tensor) -> Weights:
    """Eq. (7) and (8) over all pixels of the batch together: (B, h, w) each; a pixel without a class gets none."""
    raw, allowed = torch.stack([alpha, beta]), torch.stack([known, known])
    first, second = normalize(raw, allowed)
    return Weights(first, second)


def _config(fold: MaskFold) -> L2BMaskConfig:
    assert isinstance(fold.config, L2BMaskConfig)
    return fold.config
