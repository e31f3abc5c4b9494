"""One batch weighed by a meta step: what the single network and the pair of networks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from engines.l2b.config import L2BConfig
from engines.l2b.step import MetaForward, meta_forward
from engines.l2b.weights import Weights, fixed_weights, meta_weights
from engines.meta import draw_meta_batch, one_hot, resolve_source
from engines.shared.device import autocast, make_generator
from engines.shared.run import Run

MIN_DIRECTION_NORM = 1e-6
"""If ||v|| is below this, a step is plain cross-entropy."""
Weighing = Callable[[Tensor, Tensor, Tensor], Weights]
"""Raw derivatives alpha and beta (B,), and which samples are labeled (B,) bool -> weights."""
COUNTS = ("meta_steps", "fallback_steps", "zero_weight_steps")


class Draws:
    """The random streams of one pass over the samples, made from its names alone: a resumed run draws the same.

    The order is drawn on the CPU, the same for every device; the rest on ``device``.
    """

    def __init__(self, seed: int, *stream: int | str, device: torch.device | str = "cpu") -> None:
        self.order = make_generator(seed, "order", *stream)
        self.moves, self.meta, self.mix = (
            make_generator(seed, name, *stream, device=device) for name in ("augment", "meta", "mixup")
        )


class Weigher:
    """Weighs batches, and counts how that went: on the device, so that no step waits for an answer."""

    def __init__(self, run: Run, config: L2BConfig, augment: str, weights: Weighing = meta_weights) -> None:
        self._run, self._config, self._weights, self._augment = run, config, weights, augment
        self.source = resolve_source(run.data.given_labels, run.data.trusted_mask)
        """``trusted`` or ``mixture``."""
        weight = run.data.trusted_weight
        self._trusted_weight = None if weight is None else torch.from_numpy(weight.copy()).to(run.device)
        self.counts = dict.fromkeys(COUNTS, 0)

    @property
    def counts(self) -> dict[str, int]:
        """Return how many steps had a meta step, were plain for want of one, and gave every sample the weight 0."""
        return {name: int(value) for name, value in self._counts.items()}

    @counts.setter
    def counts(self, counts: Mapping[str, int]) -> None:
        place = self._run.device
        self._counts = {name: torch.full((), value, device=place) for name, value in counts.items()}

    def count(self, name: str, happened: Tensor | int = 1) -> None:
        """Add one to the count ``name``, or whether something ``happened`` (0-d)."""
        self._counts[name] += happened

    def forward(
        self,
        network: nn.Module,
        index: Tensor,
        images: Tensor,
        targets: Tensor,
        meta_rows: Tensor,
        draws: Draws,
    ) -> MetaForward | None:
        """Logits and raw derivatives of the samples ``index``; None where fewer than two meta rows are free.

        All tensors are on the device.
        """
        run, config = self._run, self._config
        rows = draw_meta_batch(
            meta_rows, run.labels, index, config.meta_batch_size, draws.meta, weight=self._trusted_weight
        )
        if len(rows) < 2:
            self.count("fallback_steps")
            return None
        self.count("meta_steps")
        meta_targets = one_hot(run.labels[rows], run.data.num_classes)
        meta_images = run.inputs(rows, self._augment, draws.moves)
        with autocast(config.precision, run.device):
            return meta_forward(network, images, targets, meta_images, meta_targets)

    def weigh(self, found: MetaForward, has_target: Tensor, learning_rate: float) -> tuple[Weights, Tensor]:
        """Weights of the batch, eq. (6) to (8), and its signed derivatives D_v f / ||v||."""
        signed = found.alpha / found.meta.norm.clamp(min=1e-30)
        is_plain = found.meta.norm.double() < MIN_DIRECTION_NORM
        # lambda, eq. (6); eta cancels.
        weights = self._weights(learning_rate * found.alpha, learning_rate * found.beta, has_target)
        is_zero = ~(weights.alpha.any() | weights.beta.any())
        self.count("fallback_steps", is_plain)
        self.count("zero_weight_steps", is_zero & ~is_plain)
        pairs = zip(fixed_weights(has_target), weights, strict=True)
        return Weights(*(torch.where(is_plain, fixed, found) for fixed, found in pairs)), signed
