"""The loop of an engine for masks: what its folds train on, and the final pass, around a method's own step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from engines.contract import IGNORED_PIXEL, Checkpoint, MaskData, MaskResult, OnEpoch, OnProbabilities
from engines.segmentation.config import MaskConfig
from engines.segmentation.network import Columns, Head, UNet, reduced_masks
from engines.shared.device import autocast, seeded_init
from engines.shared.folds import Fold, Trained, pieces, train_folds
from engines.shared.run import Run

DROPPED = 0.2
"""Share of the columns' channels that a step leaves out: AUROC on 90 street scenes .92, without .89."""


@dataclass(eq=False)
class MaskFold(Fold[MaskConfig]):
    """A fold that trains on images and masks."""

    columns: Tensor | None = None
    """(N, D, h, w) what a pretrained network sees of every image; None: the images themselves."""

    def images(self, index: Tensor) -> Tensor:
        """(B, C, h, w) standardised images, or what a pretrained network sees of them."""
        return inputs(self.run, index, self.columns)

    def masks(self, index: Tensor) -> Tensor:
        """(B, h, w) int64 classes at the size that is trained on; 255 where there is none."""
        masks = reduced_masks(self.run.labels[index.cpu()], (self.run.rows.shape[1], self.run.rows.shape[2]))
        return masks.to(self.run.device).long()

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Images and masks, each pair mirrored or not by a draw; of columns a draw leaves some channels out."""
        images, masks = self.images(index), self.masks(index)
        if self.config.augment == "none":
            return images, masks
        if self.columns is not None:
            drawn = torch.rand(images.shape[:2], generator=self.draws["augment"], device=images.device)
            images = images * (drawn >= DROPPED)[:, :, None, None] / (1 - DROPPED)
        turned = torch.rand(len(index), generator=self.draws["augment"], device=images.device) < 0.5
        images = torch.where(turned[:, None, None, None], images.flip(3), images)
        return images, torch.where(turned[:, None, None], masks.flip(2), masks)


def train_masks(
    engine: str,
    data: MaskData,
    config: MaskConfig,
    step: Callable[[MaskFold, Tensor], Tensor],
    *,
    seed: int,
    device: str,
    on_epoch: OnEpoch | None,
    checkpoint: Checkpoint | None,
    on_probabilities: OnProbabilities | None,
    before_epoch: Callable[[MaskFold], None] | None = None,
) -> MaskResult:
    """Train one network a fold and judge every pixel; see ``contract.TrainMasks``.

    Memory: the images as they are, one network and its optimizer, a state a fold, and five bytes a pixel.

    Raises:
        EngineInputError: too few images have a mask, or one class only.
    """
    run = Run(engine, data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint)

    columns = None if config.weights is None else _columns(run, config)
    config = config.lengthened(len(run.labeled) - len(run.labeled) // max(2, config.folds))

    def build(number: int) -> nn.Module:
        with seeded_init(seed, "network", number):
            if columns is not None:
                return Head(columns.shape[1], data.num_classes).to(run.device)
            return UNet(config.network, run.rows.shape[0], data.num_classes).to(run.device)

    fold = partial(MaskFold, columns=columns)
    done = train_folds(fold, run, config, build, step, before_epoch)
    return _judge(run, config, data, done, build(0), columns, on_probabilities)


def _columns(run: Run, config: MaskConfig) -> Tensor:
    """Return (N, D, h, w) float16: what a pretrained network sees of every image, in a file that goes with it."""
    assert config.weights is not None
    network = Columns(config.network, config.weights, config.image_side).to(run.device)
    everything = torch.arange(run.data.num_samples, device=run.device)
    with tempfile.TemporaryFile() as file:
        found: NDArray[np.float16] | None = None
        for index in pieces(everything, run.scoring_batch):
            seen = network(run.inputs(index)).half().cpu().numpy()
            if found is None:
                found = np.memmap(file, np.float16, "w+", shape=(len(everything), *seen.shape[1:]))
            found[index.cpu().numpy()] = seen
    assert found is not None
    return torch.from_numpy(found)


def inputs(run: Run, index: Tensor, columns: Tensor | None) -> Tensor:
    """Return what the network of a fold sees of the images at ``index``, on the device."""
    return run.inputs(index) if columns is None else columns[index.cpu()].to(run.device).float()


def pixel_losses(logits: Tensor, masks: Tensor) -> Tensor:
    """-log p(class) of each pixel: (B, K, h, w), (B, h, w) -> (B, h, w); 0 where it has no class."""
    logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    return F.cross_entropy(logits, masks, ignore_index=IGNORED_PIXEL, reduction="none")


def plain_step(
    network: nn.Module, optimizer: torch.optim.Optimizer, logits: Tensor, masks: Tensor, clip_norm: float
) -> Tensor:
    """One step by the mean loss of all pixels that have a class, of logits with their graph; returns the loss.

    Masks are reduced to the size of the logits.
    """
    masks = reduced_masks(masks, (logits.shape[2], logits.shape[3]))
    total = pixel_losses(logits, masks).sum() / (masks != IGNORED_PIXEL).sum().clamp(min=1)
    return descend(network, optimizer, total, clip_norm)


def descend(network: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor, clip_norm: float) -> Tensor:
    """One step down ``loss``, its gradient cut to the norm ``clip_norm``; returns it without a graph."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    clip_grad_norm_(network.parameters(), clip_norm)
    optimizer.step()
    return loss.detach()


def probabilities(
    network: nn.Module, images: Tensor, run: Run, config: MaskConfig, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Features (B, D) and class probabilities (B, K, H, W) of a network in evaluation mode, at ``size``.

    ``images``: of ``inputs``.
    """
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
    trained: Trained,
    network: nn.Module,
    columns: Tensor | None,
    on_probabilities: OnProbabilities | None,
) -> MaskResult:
    """The final pass: each image by the network that did not train on it; images without a mask by the last one.

    ``network`` takes the weights of each.
    """
    num, _, height, width = data.images.shape
    predicted = np.zeros((num, height, width), np.uint8)
    predicted_prob = np.zeros((num, height, width), np.float16)
    given_prob = np.ones((num, height, width), np.float16)
    embeddings: NDArray[np.float32] | None = None
    judged = data.judged_masks
    for number in range(len(trained.parts)):
        network.load_state_dict(trained.states[number])
        network.eval()
        for index in pieces(trained.judged_rows(run, number), run.scoring_batch):
            images = inputs(run, index, columns)
            features, probs = probabilities(network, images, run, config, (height, width))
            at = index.cpu().numpy()
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
    kind = "U-Net" if columns is None else "head"
    notes = {"network": f"{kind}, {config.network}", "folds": len(trained.parts), **trained.counts}
    return MaskResult(
        predicted=predicted,
        predicted_prob=predicted_prob,
        given_prob=given_prob,
        embeddings=embeddings,
        history=run.recorder.history,
        provenance=run.provenance(notes),
        is_out_of_sample=trained.is_out_of_sample,
    )
