"""L2B against its own equations: virtual step, backward through a backward, weights, weighted step; in float64.

The engine finds the weights by a directional derivative. Here they are found as the paper defines them: the loss
on the meta batch after a virtual step is differentiated by the weights of that step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from engines.contract import TrainingData
from engines.l2b import SPEC, weighing
from engines.l2b.config import L2BConfig
from engines.meta import meta_set
from engines.meta.meta_set import draw_meta_batch, mixture_meta_set
from engines.shared.device import make_generator
from engines.shared.loader import augment, epoch_batches
from tests.engines.helpers import digits_data
from tests.engines.literal import (
    ROUNDING,
    assert_same_weights,
    clipped,
    double_network,
    first_weights,
    gradients_of,
    log_softmax,
    losses_of,
    margin_of,
    mean_log_probs,
    networks_in,
    optimizer_of,
    pixels,
    rate_at,
    standardized,
    trust_of,
    untouched_copy,
    watch,
)

SEED = 2
NAN = float("nan")
BASE: dict[str, Any] = {
    "network": "mlp",
    "epochs": 3,
    "warmup_epochs": 1,
    "batch_size": 14,
    "meta_batch_size": 9,
    "learning_rate": 0.1,
    "optimizer": "sgd",
    "weight_decay": 0.02,
    "clip_norm": 0.8,
    "augment": "none",
    "views": 2,
    "late_epochs": 2,
}


class Literal:
    """One run of L2B on a few digits; the meta set is what is confirmed, where anything is."""

    shortest = 1e-6
    """Least length of v."""

    def __init__(self, data: TrainingData, config: L2BConfig) -> None:
        self.data, self.config, self.is_confirmed = data, config, bool(data.trusted_mask.any())
        self.images, self.labels = standardized(data), [int(y) for y in data.given_labels]
        self.network = double_network(config, data, first_weights(SPEC, data, config, seed=SEED)[0][0])
        self.optimizer = optimizer_of(config, self.network)
        self.margins: list[list[float]] = [[] for _ in self.labels]
        self.visits: list[list[dict[str, float]]] = [[] for _ in self.labels]
        self.step_losses = [NAN] * len(self.labels)
        self.counts = {"meta_steps": 0, "fallback_steps": 0, "zero_weight_steps": 0}
        self.after_epoch: list[dict[str, Tensor]] = []
        self.epoch_losses: list[float] = []
        self.hits: list[float] = []
        self.now: list[dict[str, list[float]]] = []

    def run(self) -> None:
        """All epochs."""
        config = self.config
        first_meta = min(config.warmup_epochs, config.epochs // 2)
        for epoch in range(config.epochs):
            meta = self.meta_rows() if epoch >= first_meta else None
            late = epoch >= max(config.epochs - config.late_epochs, first_meta)
            self.epoch(epoch, meta, late)
            self.after_epoch.append({n: v.clone() for n, v in self.network.state_dict().items()})

    def rows(self, meta: Tensor | None) -> list[int]:
        """Labeled samples; after the warm-up unlabeled ones too."""
        rows = [i for i, label in enumerate(self.labels) if label >= 0 or meta is not None]
        if not self.config.train_on_trusted:
            rows = [i for i in rows if not self.data.trusted_mask[i]]
        return rows

    def meta_rows(self) -> Tensor:
        """Trusted samples, or this epoch's small losses."""
        if self.is_confirmed:
            return torch.tensor([i for i, yes in enumerate(self.data.trusted_mask) if yes])
        loss = list(self.step_losses)
        if self.config.meta_losses == "evaluation" or all(math.isnan(v) for v in loss):
            says = mean_log_probs(self.network, self.images, 1)
            loss = [-float(says[i, y]) if y >= 0 else NAN for i, y in enumerate(self.labels)]
        known = [v for v in loss if not math.isnan(v)]
        found = mixture_meta_set(
            np.array([(v - min(known)) / (max(known) - min(known)) for v in loss]),
            self.data.given_labels,
            self.data.trusted_mask,
            per_class=self.config.meta_per_class,
            max_steps=self.config.meta_mixture_steps,
        )
        return found.rows

    def prepared(self, rows: Tensor, moves: torch.Generator) -> Tensor:
        """Images of ``rows`` as the network sees them in training."""
        if self.config.augment == "none":
            return self.images[rows]
        return standardized(self.data, augment(pixels(self.data)[rows], self.config.augment, moves))

    def epoch(self, epoch: int, meta: Tensor | None, late: bool) -> None:
        """One pass."""
        config = self.config
        rate = rate_at(config.schedule, config.learning_rate, epoch, config.epochs)
        order, moves, draw = (make_generator(SEED, name, epoch) for name in ("order", "augment", "meta"))
        self.network.train()
        total, hits, labeled = 0.0, 0, 0
        now = {name: [NAN] * len(self.labels) for name in ("alpha", "beta")}
        rows = self.rows(meta)
        for batch in epoch_batches(torch.tensor(rows), config.batch_size, order):
            labels = [self.labels[i] for i in batch.tolist()]
            images = self.prepared(batch, moves)
            targets = self.one_hot(labels)
            step = self.step(batch, images, targets, meta, moves, draw, rate)
            logits, a, b, signed, loss = step
            total += loss * len(batch)
            for place, i in enumerate(batch.tolist()):
                own = int(logits[place].argmax())
                hits += own == labels[place]
                labeled += labels[place] >= 0
                if labels[place] >= 0:
                    self.step_losses[i] = -float(log_softmax(logits)[place, labels[place]])
                    self.margins[i].append(margin_of(logits[place], labels[place]))
                seen = self.visit(
                    a[place], b[place], None if signed is None else signed[place], own, labels[place]
                )
                if late:
                    self.visits[i].append(seen)
                now["alpha"][i], now["beta"][i] = seen["alpha"] * len(batch), seen["beta"] * len(batch)
                seen["alpha"], seen["beta"] = now["alpha"][i], now["beta"][i]
        self.epoch_losses.append(total / len(rows))
        self.hits.append(hits / labeled)
        self.now.append(now)

    @staticmethod
    def visit(a: float, b: float, signed: float | None, own: int, label: int) -> dict[str, float]:
        """What a visit says; of an unlabeled sample only beta."""
        if label < 0:
            return {
                "alpha": NAN,
                "beta": b,
                "share": NAN,
                "alpha_signed": NAN,
                "harmful": NAN,
                "visit_trust": NAN,
            }
        share = a / (a + b) if a + b else NAN
        trust = 1.0 if own == label and a > 0 else (0.5 if math.isnan(share) else share)
        if signed is None:
            return {
                "alpha": a, "beta": b, "share": share, "alpha_signed": NAN, "harmful": NAN, "visit_trust": NAN,
            }  # fmt: skip
        return {
            "alpha": a, "beta": b, "share": share,
            "alpha_signed": signed, "harmful": float(signed < 0), "visit_trust": trust,
        }  # fmt: skip

    def one_hot(self, labels: list[int]) -> Tensor:
        """A row a label; all 0 without one."""
        result = torch.zeros(len(labels), self.data.num_classes, dtype=torch.float64)
        for i, label in enumerate(labels):
            if label >= 0:
                result[i, label] = 1.0
        return result

    def step(
        self,
        batch: Tensor,
        images: Tensor,
        targets: Tensor,
        meta: Tensor | None,
        moves: torch.Generator,
        draw: torch.Generator,
        rate: float,
    ) -> tuple[Tensor, list[float], list[float], list[float] | None, float]:
        """Weigh the batch and learn from it; logits, weights, signed derivatives, loss."""
        config, network = self.config, self.network
        has_label = [float(row.sum()) > 0 for row in targets]
        signed, a, b = None, None, None
        if meta is not None:
            rows = draw_meta_batch(meta, self.data_labels(), batch, config.meta_batch_size, draw)
            if len(rows) >= 2:
                self.counts["meta_steps"] += 1
                meta_images = self.prepared(rows, moves)
                meta_labels = [self.labels[i] for i in rows.tolist()]
                raw_a, raw_b, norm = self.raw_weights(images, targets, meta_images, meta_labels)
                signed = [value / norm for value in raw_a]
                if norm < self.shortest:
                    self.counts["fallback_steps"] += 1
                else:
                    a, b = self.weights(raw_a, raw_b, has_label)
                    self.counts["zero_weight_steps"] += not any(a + b)
            else:
                self.counts["fallback_steps"] += 1
        _, logits = network(images)
        pseudo = [int(row.argmax()) for row in logits]
        if a is None or b is None:
            a, b = self.plain_weights(has_label)
        log_probs = log_softmax(logits)
        loss = torch.zeros((), dtype=torch.float64)
        for i in range(len(batch)):
            f = -(targets[i] * log_probs[i]).sum()
            g = -log_probs[i, pseudo[i]]
            loss = loss + a[i] * f + b[i] * g
        self.optimizer.step(clipped(gradients_of(loss, network), config.clip_norm), rate)
        return logits.detach(), a, b, signed, float(loss.detach())

    def data_labels(self) -> Tensor:
        """Given labels (N,)."""
        return torch.tensor(self.labels)

    def plain_weights(self, has_label: list[bool]) -> tuple[list[float], list[float]]:
        """Mean cross-entropy of the labeled samples."""
        count = len(has_label)
        known = max(sum(has_label), 1)
        return [yes / known for yes in has_label], [0.0] * count

    def raw_weights(
        self, images: Tensor, targets: Tensor, meta_images: Tensor, meta_labels: list[int]
    ) -> tuple[list[float], list[float], float]:
        """-dG(theta^)/da_i and -dG(theta^)/db_i at a = b = 0 of a virtual step of length 1, and ||grad G||."""
        twin = untouched_copy(self.network)
        names = [name for name, _ in twin.named_parameters()]
        theta = dict(twin.named_parameters())
        _, logits = untouched_call(twin, theta, images)
        log_probs = log_softmax(logits)
        pseudo = [int(row.argmax()) for row in logits]
        eps_a = torch.zeros(len(images), dtype=torch.float64, requires_grad=True)
        eps_b = torch.zeros(len(images), dtype=torch.float64, requires_grad=True)
        objective = torch.zeros((), dtype=torch.float64)
        for i in range(len(images)):
            objective = objective - eps_a[i] * (targets[i] * log_probs[i]).sum()
            objective = objective - eps_b[i] * log_probs[i, pseudo[i]]
        pulls = torch.autograd.grad(
            objective, [theta[n] for n in names], create_graph=True, materialize_grads=True
        )
        moved = {name: theta[name] - pull for name, pull in zip(names, pulls, strict=True)}
        _, meta_logits = untouched_call(twin, moved, meta_images)
        meta_loss = sum(losses_of(meta_logits, meta_labels)) / len(meta_labels)
        slope_a, slope_b = torch.autograd.grad(meta_loss, [eps_a, eps_b], retain_graph=True)
        slope = torch.autograd.grad(meta_loss, list(moved.values()))
        norm = math.sqrt(sum(float((g**2).sum()) for g in slope))
        return (-slope_a).tolist(), (-slope_b).tolist(), norm

    @staticmethod
    def weights(
        raw_a: list[float], raw_b: list[float], has_label: list[bool]
    ) -> tuple[list[float], list[float]]:
        """Eqs. (7), (8)."""
        a = [max(v, 0.0) * yes for v, yes in zip(raw_a, has_label, strict=True)]
        b = [max(v, 0.0) for v in raw_b]
        total = sum(a) + sum(b) or 1.0
        return [v / total for v in a], [v / total for v in b]


def untouched_call(
    network: nn.Module, parameters: dict[str, Tensor], images: Tensor
) -> tuple[Tensor, Tensor]:
    """Forward in training mode whose running statistics are thrown away."""
    buffers = {name: value.clone() for name, value in network.named_buffers()}
    result: tuple[Tensor, Tensor] = functional_call(network, {**parameters, **buffers}, (images,))
    return result


CASES: dict[str, dict[str, Any]] = {
    "l2b": {},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
    "no clipping": {"clip_norm": 0.0, "learning_rate": 0.03},
    "linear_tail": {"schedule": "linear_tail"},
    "cosine_to_zero": {"schedule": "cosine_to_zero", "warmup_epochs": 5},
    "not on trusted": {"train_on_trusted": False, "meta_batch_size": 64},
    "mixture": {"meta_per_class": 3},
    "mixture without a warm-up": {"meta_per_class": 2, "warmup_epochs": 0},
    "mixture of losses in training": {"meta_losses": "training", "meta_per_class": 3},
    "the same without a warm-up": {"meta_losses": "training", "meta_per_class": 3, "warmup_epochs": 0},
    "moved images": {"augment": "shift"},
    "batch norm": {"network": "conv3", "learning_rate": 0.03, "epochs": 2},
    "weak direction": {},
}


@pytest.fixture(autouse=True)
def _trusts_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any confirmed samples are the meta set."""
    monkeypatch.setattr(meta_set, "MIN_TRUSTED_PER_CLASS", 1)


@pytest.mark.parametrize("case", sorted(CASES))
def test_train__is_the_literal_run(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_confirmed = not {"meta_per_class", "meta_losses"} & set(CASES[case])
    data, _ = digits_data(56, num_unlabeled=5, num_trusted=16 if is_confirmed else 0)
    config = L2BConfig(**{**BASE, **CASES[case]})
    literal = Literal(data, config)
    if case == "weak direction":
        literal.shortest = 1e9
        monkeypatch.setattr(weighing, "MIN_DIRECTION_NORM", 1e9)
    result, states = watch(SPEC, data, config, seed=SEED)
    literal.run()

    tolerance = 2 * ROUNDING if config.network == "mlp" else 20 * ROUNDING
    assert len(states) == config.epochs
    for state, weights in zip(states, literal.after_epoch, strict=True):
        scratch = double_network(config, data, {})
        scratch.load_state_dict(weights)
        assert_same_weights(networks_in(state)[0], scratch, tolerance)

    # Predictions and trust.
    says = mean_log_probs(literal.network, literal.images, config.views)
    np.testing.assert_allclose(result.pred_probs, log_softmax(says).exp(), atol=10 * tolerance)
    margin = [margin_of(row, label) for row, label in zip(says, literal.labels, strict=True)]
    over = [
        sum(one) / len(one) if one else at_the_end
        for one, at_the_end in zip(literal.margins, margin, strict=True)
    ]
    np.testing.assert_allclose(result.trust_score, trust_of(margin, over), atol=1e-6)

    # Curves and signals.
    for record, loss, hits in zip(result.history, literal.epoch_losses, literal.hits, strict=True):
        assert record.losses["train_loss"] == pytest.approx(loss, abs=1e-3)
        assert record.metrics["train_accuracy"] == pytest.approx(hits, abs=1e-6)
    for name in ("alpha", "beta", "share", "alpha_signed", "harmful", "visit_trust"):
        expected = [mean_of([seen[name] for seen in one]) for one in literal.visits]
        np.testing.assert_allclose(result.signals[name], expected, rtol=1e-2, atol=2e-3, err_msg=name)
    for name in ("alpha", "beta"):
        for e, now in enumerate(literal.now):
            np.testing.assert_allclose(result.signal_history[name][e], now[name], rtol=1e-2, atol=2e-3)
    notes = result.provenance.notes
    assert {name: notes[name] for name in literal.counts} == literal.counts

    rows = literal.meta_rows()
    assert notes["meta_size"] == len(rows)
    expected = residual_alpha(literal, rows)
    np.testing.assert_allclose(result.signals["alpha_residual"], expected, rtol=2e-2, atol=2e-3)


def mean_of(values: list[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return sum(known) / len(known) if known else NAN


def residual_alpha(literal: Literal, rows: Tensor) -> list[float]:
    """<grad f_i, v> / (||v|| max(1 - p_i, 1e-4)) in evaluation mode; v never from the sample's own half."""
    network, labels = literal.network.eval(), literal.labels
    by_class = sorted(rows.tolist(), key=lambda i: labels[i])
    halves = [by_class[0::2], by_class[1::2]]

    def flat_gradient(members: list[int]) -> Tensor:
        _, logits = network(literal.images[members])
        loss = sum(losses_of(logits, [labels[i] for i in members])) / len(members)
        return torch.cat([g.flatten() for g in gradients_of(loss, network)])

    pulls = [flat_gradient(half) for half in halves]
    result = []
    for i, label in enumerate(labels):
        if label < 0:
            result.append(NAN)
            continue
        v = pulls[1] if i in halves[0] else pulls[0] if i in halves[1] else pulls[0] + pulls[1]
        own = flat_gradient([i])
        _, logits = network(literal.images[[i]])
        p = float(log_softmax(logits.detach())[0, label].exp())
        result.append(float(own @ v) / (float(v.norm()) * max(1 - p, 1e-4)))
    return result


def test_train__one_free_meta_sample_is_a_plain_step() -> None:
    """All trusted samples but one lie in the batch that they would judge."""
    data, _ = digits_data(30, num_trusted=30)
    config = L2BConfig(**{**BASE, "epochs": 1, "warmup_epochs": 0, "batch_size": 29})
    result, states = watch(SPEC, data, config, seed=SEED)
    literal = Literal(data, config)
    literal.run()
    assert result.provenance.notes["fallback_steps"] == 1
    assert_same_weights(networks_in(states[0])[0], literal.network, 2 * ROUNDING)


def test_train__heldout_accuracy_is_that_of_the_evaluation_set() -> None:
    data, _ = digits_data(56, num_trusted=16, with_evaluation=True)
    config = L2BConfig(**BASE)
    result, states = watch(SPEC, data, config, seed=SEED)
    evaluation = data.evaluation
    assert evaluation is not None
    images = standardized(data, torch.from_numpy(evaluation.images.astype(np.float64) / 255.0))
    for record, state in zip(result.history, states, strict=True):
        says = mean_log_probs(double_network(config, data, networks_in(state)[0]), images, 1)
        hits = says.argmax(dim=1).numpy() == evaluation.labels
        assert record.metrics["heldout_accuracy"] == pytest.approx(np.mean(hits))
