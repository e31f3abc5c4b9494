"""The loop of an engine for masks: folds, epochs, checkpoints and the final pass, around a method's own step.

Every image is judged by a network that was trained on the other folds, so that what the network says about a pixel
is not what it was told about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import IGNORED_PIXEL, Checkpoint, MaskData, MaskResult, OnEpoch, OnProbabilities
from engines.segmentation.config import MaskConfig
from engines.segmentation.network import UNet, reduced_masks
from engines.shared.config import learning_rate_at, make_optimizer, set_learning_rate
from engines.shared.device import autocast, make_generator, seeded_init
from engines.shared.loader import epoch_batches
from engines.shared.losses import require_finite
from engines.shared.run import Run


@dataclass(eq=False)
class Fold:
    """One network on its way: what a step of a method works with."""

    run: Run
    config: MaskConfig
    number: int
    rows: Tensor
    """(M,) int64 the images that it trains on."""
    network: nn.Module
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    draws: dict[str, torch.Generator] = field(default_factory=dict)
    """The random streams of this epoch by name."""
    counts: dict[str, int] = field(default_factory=dict)
    """What a method wants to be told about its steps."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What a method keeps for an epoch."""

    def images(self, index: Tensor) -> Tensor:
        """(B, C, h, w) standardised images."""
        return self.run.inputs(index)

    def masks(self, index: Tensor) -> Tensor:
        """(B, h, w) int64 classes at the size that is trained on; 255 where there is none."""
        masks = reduced_masks(self.run.labels[index], (self.run.rows.shape[1], self.run.rows.shape[2]))
        return masks.to(self.run.device).long()

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Images and masks, each pair mirrored or not by a draw."""
        images, masks = self.images(index), self.masks(index)
        if self.config.augment == "none":
            return images, masks
        turned = torch.rand(len(index), generator=self.draws["augment"]) < 0.5
        turned = turned.to(images.device)
        images = torch.where(turned[:, None, None, None], images.flip(3), images)
        return images, torch.where(turned[:, None, None], masks.flip(2), masks)


Step = Callable[[Fold, Tensor], Tensor]
"""Trains on the rows (B,) and returns the loss, 0-d without a graph."""
BeforeEpoch = Callable[[Fold], None]


def train_masks(
    engine: str,
    data: MaskData,
    config: MaskConfig,
    step: Step,
    *,
    seed: int,
    device: str,
    on_epoch: OnEpoch | None,
    checkpoint: Checkpoint | None,
    on_probabilities: OnProbabilities | None,
    before_epoch: BeforeEpoch | None = None,
) -> MaskResult:
    """Train one network a fold and judge every pixel; see ``contract.TrainMasks``.

    Memory: the images as they are, one network and its optimizer, a state a fold, and five bytes a pixel.

    Raises:
        EngineInputError: too few images have a mask, or one class only.
    """
    run = Run(engine, data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint)
    parts = fold_rows(run.labeled, config.folds, make_generator(seed, "folds"))
    state = run.resume(total_epochs=len(parts) * config.epochs)
    done: list[dict[str, Tensor]] = [] if state is None else list(state["done"])
    counts: dict[str, int] = {} if state is None else dict(state["counts"])
    for number in range(len(done), len(parts)):
        fold = _new_fold(run, config, number, parts, counts)
        first = 0
        if state is not None and state["network"] is not None:
            fold.network.load_state_dict(state["network"])
            fold.optimizer.load_state_dict(state["optimizer"])
            first, state = state["epoch"], None
        for epoch in range(first, config.epochs):
            loss = _train_epoch(fold, epoch, step, before_epoch)
            run.epoch(
                epoch,
                {"train_loss": loss},
                {},
                {},
                stage="train" if len(parts) == 1 else f"fold {number + 1}",
                state=lambda fold=fold, epoch=epoch: {  # type: ignore[misc]
                    "done": done,
                    "counts": fold.counts,
                    "network": fold.network.state_dict(),
                    "optimizer": fold.optimizer.state_dict(),
                    "epoch": epoch + 1,
                },
            )
        done.append({name: value.clone() for name, value in fold.network.state_dict().items()})
    return _judge(run, config, data, parts, done, counts, on_probabilities)


def fold_rows(labeled: Tensor, folds: int, generator: torch.Generator) -> list[Tensor]:
    """The images with a mask in ``folds`` parts of nearly equal size, drawn at random; each rising.

    Never more parts than there are pairs of images: a batch needs two.
    """
    order = labeled[torch.randperm(len(labeled), generator=generator)]
    return [part.sort().values for part in order.tensor_split(min(folds, max(1, len(labeled) // 2)))]


def trained_rows(parts: list[Tensor], number: int) -> Tensor:
    """The images that the network of part ``number`` trains on: those of the others, or all where it is alone."""
    others = [part for at, part in enumerate(parts) if at != number]
    return torch.cat(others or parts).sort().values


def _new_fold(run: Run, config: MaskConfig, number: int, parts: list[Tensor], counts: dict[str, int]) -> Fold:
    with seeded_init(run.seed, "network", number):
        network = UNet(config.network, run.rows.shape[0], run.data.num_classes)
    network = network.to(run.device)
    optimizer = make_optimizer(network, config)
    return Fold(run, config, number, trained_rows(parts, number), network, optimizer, counts=counts)


def _train_epoch(fold: Fold, epoch: int, step: Step, before: BeforeEpoch | None) -> float:
    names = ("order", "augment", "meta")
    fold.epoch = epoch
    fold.draws = {name: make_generator(fold.run.seed, name, fold.number, epoch) for name in names}
    set_learning_rate(fold.optimizer, learning_rate_at(fold.config, epoch))
    if before is not None:
        before(fold)
    fold.network.train()
    loss = torch.zeros((), device=fold.run.device)
    for index in epoch_batches(fold.rows, fold.config.batch_size, fold.draws["order"]):
        loss += step(fold, index) * len(index)
    mean = float(loss) / len(fold.rows)
    require_finite(mean)
    return mean


def pixel_one_hot(masks: Tensor, num_classes: int) -> Tensor:
    """(B, h, w) int64 in {0..K-1, 255} -> (B, K, h, w) float32; all 0 where there is no class."""
    known = masks != IGNORED_PIXEL
    found = F.one_hot(torch.where(known, masks, 0), num_classes).movedim(-1, 1).float()
    return found * known[:, None]


def pixel_losses(logits: Tensor, masks: Tensor) -> Tensor:
    """-log p(class) of each pixel: (B, K, h, w), (B, h, w) -> (B, h, w); 0 where it has no class."""
    logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    return F.cross_entropy(logits, masks, ignore_index=IGNORED_PIXEL, reduction="none")


def probabilities(
    network: nn.Module, run: Run, index: Tensor, config: MaskConfig, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Features (B, D) and class probabilities (B, K, H, W) of a network in evaluation mode, at ``size``."""
    images = run.inputs(index)
    with torch.no_grad(), autocast(config.precision, run.device):
        features, logits = network(images)
        views = [logits]
        if config.views > 1:
            views.append(network(images.flip(3))[1].flip(3))
    probs = torch.stack([_at_size(one.float(), size).softmax(dim=1) for one in views]).mean(dim=0)
    return features.float(), probs


def _at_size(logits: Tensor, size: tuple[int, int]) -> Tensor:
    if tuple(logits.shape[2:]) == size:
        return logits
    return F.interpolate(logits, size=size, mode="bilinear", align_corners=False)


def _judge(
    run: Run,
    config: MaskConfig,
    data: MaskData,
    parts: list[Tensor],
    done: list[dict[str, Tensor]],
    counts: dict[str, int],
    on_probabilities: OnProbabilities | None,
) -> MaskResult:
    """The final pass: each image by the network that did not train on it; images without a mask by the last one."""
    num, _, height, width = data.images.shape
    predicted = np.zeros((num, height, width), np.uint8)
    predicted_prob = np.zeros((num, height, width), np.float16)
    given_prob = np.ones((num, height, width), np.float16)
    embeddings: NDArray[np.float32] | None = None
    network = UNet(config.network, run.rows.shape[0], data.num_classes).to(run.device)
    judged = data.judged_masks
    unlabeled = torch.from_numpy(np.flatnonzero(~data.labeled))
    for number, part in enumerate(parts):
        network.load_state_dict(done[number])
        network.eval()
        rows = torch.cat([part, unlabeled]).sort().values if number == len(parts) - 1 else part
        for index in _pieces(rows, run.scoring_batch):
            features, probs = probabilities(network, run, index, config, (height, width))
            at = index.numpy()
            given = torch.from_numpy(judged[at]).to(probs.device).long()
            best = probs.max(dim=1)
            own = probs.gather(1, torch.where(given == IGNORED_PIXEL, 0, given)[:, None]).squeeze(1)
            own = torch.where(given == IGNORED_PIXEL, 1.0, own)
            predicted[at] = best.indices.cpu().numpy().astype(np.uint8)
            predicted_prob[at] = best.values.cpu().numpy().astype(np.float16)
            given_prob[at] = own.cpu().numpy().astype(np.float16)
            if embeddings is None:
                embeddings = np.zeros((num, features.shape[1]), np.float32)
            embeddings[at] = features.cpu().numpy()
            if on_probabilities is not None:
                on_probabilities(at, probs.cpu().numpy())
    assert embeddings is not None
    notes = {"network": f"U-Net, {config.network}", "folds": len(parts), **counts}
    return MaskResult(
        predicted=predicted,
        predicted_prob=predicted_prob,
        given_prob=given_prob,
        embeddings=embeddings,
        history=run.recorder.history,
        provenance=run.provenance(notes),
        is_out_of_sample=len(parts) > 1,
    )


def _pieces(rows: Tensor, size: int) -> Iterator[Tensor]:
    yield from (piece for piece in rows.split(size) if len(piece))
