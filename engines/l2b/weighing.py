"""One batch weighed by a meta step: what the single network and the pair of networks have in common."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engines.l2b.config import L2BConfig
from engines.l2b.step import MetaForward, meta_forward
from engines.l2b.weights import META_VARIANTS, Weights, fixed_weights, meta_weights
from engines.meta.directional import lookahead_parameters, one_hot
from engines.meta.meta_set import draw_meta_batch, resolve_source
from engines.shared.device import autocast, make_generator
from engines.shared.run import Run


class Draws:
    """The random streams of one pass over the samples, made from its names alone: a resumed run draws the same."""

    def __init__(self, seed: int, *stream: int | str) -> None:
        self.order, self.moves, self.meta, self.mix = (
            make_generator(seed, name, *stream) for name in ("order", "augment", "meta", "mixup")
        )


class Weigher:
    """Weighs batches, and counts how that went."""

    def __init__(self, run: Run, config: L2BConfig, augment: str) -> None:
        self._run, self._config = run, config
        self._augment = augment if config.augment_meta else "none"
        self.source: str
        """``trusted`` or ``mixture``; variants without a meta step have none."""
        if config.variant in META_VARIANTS:
            self.source = resolve_source(config.meta_source, run.data.given_labels, run.data.trusted_mask)
        weight = run.data.trusted_weight
        self._trusted_weight = None if weight is None else torch.from_numpy(weight.copy())
        self.counts = {"meta_steps": 0, "fallback_steps": 0, "zero_weight_steps": 0}

    def forward(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        index: Tensor,
        images: Tensor,
        targets: Tensor,
        meta_rows: Tensor,
        draws: Draws,
    ) -> MetaForward | None:
        """Logits and raw derivatives of the samples ``index``; None where fewer than two meta rows are free."""
        run, config = self._run, self._config
        rows = draw_meta_batch(
            meta_rows, run.labels, index, config.meta_batch_size, draws.meta, weight=self._trusted_weight
        )
        if len(rows) < 2:
            self.counts["fallback_steps"] += 1
            return None
        self.counts["meta_steps"] += 1
        meta_targets = one_hot(run.labels[rows].to(run.device), run.data.num_classes)
        look = config.lookahead == "optimizer"
        with autocast(config.precision, run.device):
            return meta_forward(
                network, images, targets, run.inputs(rows, self._augment, draws.moves), meta_targets,
                derivative=config.derivative,
                at=lookahead_parameters(network, optimizer) if look else None,
            )  # fmt: skip

    def weigh(self, found: MetaForward, has_target: Tensor, learning_rate: float) -> tuple[Weights, Tensor]:
        """Weights of the batch, eq. (6) to (8), and its signed derivatives D_v f / ||v||."""
        config = self._config
        signed = found.alpha / found.meta.norm.clamp(min=1e-30)
        if float(found.meta.norm) < config.min_direction_norm:
            self.counts["fallback_steps"] += 1
            return fixed_weights(has_target), signed
        scale = config.meta_learning_rate * learning_rate  # eta lambda, eq. (6)
        weights = meta_weights(
            scale * found.alpha,
            scale * found.beta,
            has_target,
            variant=config.variant,
            normalization=config.normalization,
            temperature=config.softmax_temperature,
        )
        self.counts["zero_weight_steps"] += int(not (weights.alpha.any() or weights.beta.any()))
        return weights, signed
