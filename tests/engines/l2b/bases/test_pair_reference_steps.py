"""DivideMix, UniCon and C2D, with and without L2B's step, against their equations: plain loops in float64.

The engine runs in float64 too, so that every changed line shows. Shared are the layers of the networks, the named
random streams, and the way in which images are moved. L2B's weights are found by the virtual step of
``test_reference_steps``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture
from torch import Tensor, nn

from engines.contract import TrainingData
from engines.l2b import SPEC, training
from engines.l2b import config as l2b_config
from engines.l2b.bases import division, pair
from engines.l2b.bases.semi_supervised import mixup_pairs
from engines.l2b.config import L2BConfig
from engines.meta import meta_set
from engines.meta.meta_set import draw_meta_batch
from engines.shared.device import make_generator
from engines.shared.loader import augment, epoch_batches
from tests.engines.helpers import digits_data
from tests.engines.l2b.test_reference_steps import NAN, Literal
from tests.engines.literal import (
    NO_STEP,
    double_network,
    log_softmax,
    margin_of,
    mean_log_probs,
    networks_in,
    nt_xent,
    pixels,
    rate_at,
    standardized,
    trust_of,
    watch,
)
from tests.engines.literal_double import EXACT, in_double

SEED = 3
BASE: dict[str, Any] = {
    "base": "divide_mix",
    "network": "mlp",
    "epochs": 3,
    "warmup_epochs": 1,
    "batch_size": 12,
    "meta_batch_size": 9,
    "learning_rate": 0.05,
    "optimizer": "sgd",
    "weight_decay": 0.02,
    "clip_norm": 0.3,
    "augment": "shift",
    "views": 2,
    "late_epochs": 2,
}


CONSTANTS = {"RAMP_EPOCHS": 1.5, "UNLABELED_WEIGHT": 7.0, "CONTRASTIVE_BATCH": 20, "CONTRASTIVE_WEIGHT": 0.5}
"""In place of the published ones, so that a wrong use of them shows."""


class Momentum:
    """SGD with momentum 0.9; what has no gradient stays as it is."""

    def __init__(self, parameters: list[Tensor], weight_decay: float) -> None:
        self.parameters, self.weight_decay = parameters, weight_decay
        self.velocity: dict[int, Tensor] = {}

    def step(self, loss: Tensor, rate: float, largest: float = 0.0) -> None:
        """One step on the gradient of ``loss``, its norm cut off at ``largest`` where that is above 0."""
        gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        norm = math.sqrt(sum(float((g**2).sum()) for g in gradients if g is not None))
        shrink = min(largest / (norm + 1e-6), 1.0) if largest else 1.0  # torch adds 1e-6
        with torch.no_grad():
            for i, (p, g) in enumerate(zip(self.parameters, gradients, strict=True)):
                if g is None:
                    continue
                pull = g * shrink + self.weight_decay * p
                self.velocity[i] = 0.9 * self.velocity[i] + pull if i in self.velocity else pull
                p -= rate * self.velocity[i]


class LiteralPair(Literal):
    """One run of a base on a few digits, with or without L2B's step, judged by confirmed samples or not."""

    def __init__(self, data: TrainingData, config: L2BConfig, *, has_step: bool, is_confirmed: bool) -> None:
        self.data, self.config, self.has_step, self.is_confirmed = data, config, has_step, is_confirmed
        self.images, self.labels = standardized(data), [int(y) for y in data.given_labels]
        _, states = watch(SPEC, data, L2BConfig(**{**config.as_dict(), "learning_rate": NO_STEP}), seed=SEED)
        self.nets = [double_network(config, data, one) for one in networks_in(states[0])]
        self.projections = [self.projection(one) for one in states[0]["pair"]["projections"]]
        self.fresh_optimizers()
        self.margins = [[] for _ in self.labels]
        self.beliefs: list[np.ndarray] = []
        self.counts = {"meta_steps": 0, "fallback_steps": 0, "zero_weight_steps": 0}
        self.visits = [[] for _ in self.labels]
        self.after_epoch: list[list[dict[str, Tensor]]] = []  # type: ignore[assignment]
        self.losses: list[float] = []
        self.labeled_part: list[int] = []
        self.trains = [config.train_on_trusted or not yes for yes in data.trusted_mask]

    def projection(self, weights: dict[str, Tensor]) -> nn.Module:
        if not weights:
            return nn.Identity()
        shapes = [v.shape for n, v in weights.items() if n.endswith("weight") and v.dim() == 2]
        layers: list[nn.Module] = [nn.Linear(shapes[0][1], shapes[0][0])]
        if self.config.base == "unicon":
            layers.append(nn.BatchNorm1d(shapes[0][0]))
        else:
            layers += [nn.ReLU(), nn.Linear(shapes[1][1], shapes[1][0])]
        found = nn.Sequential(*layers).double()
        names = {name for name, _ in found.named_parameters()}
        found.load_state_dict({n: v for n, v in weights.items() if n in names}, strict=False)
        return found

    def fresh_optimizers(self) -> None:
        pairs = zip(self.nets, self.projections, strict=True)
        self.optimizers = [
            Momentum([*net.parameters(), *extra.parameters()], self.config.weight_decay)
            for net, extra in pairs
        ]

    # --- epochs

    def run(self) -> None:
        config = self.config
        if config.base == "c2d":
            for epoch in range(config.first_labeled_epoch):
                self.without_labels(epoch)
                self.note()
            head = {"head.weight", "head.bias"}
            learned = {n: v for n, v in self.nets[0].state_dict().items() if n not in head}
            self.nets[1].load_state_dict(learned, strict=False)
            self.projections = [nn.Identity(), nn.Identity()]
            self.fresh_optimizers()
            self.after_epoch[-1] = self.weights_now()
        for epoch in range(config.epochs):
            self.rate = rate_at(config.schedule, config.learning_rate, epoch, config.epochs)
            if epoch < min(config.warmup_epochs, config.epochs // 2):
                losses = [self.warm_up(k, epoch) for k in range(2)]
            elif config.base == "unicon":
                losses = [self.pass_over(k, epoch, self.uniform(self.look())) for k in range(2)]
            else:
                said = self.look()
                parts = [self.mixture(said[k]) for k in range(2)]
                losses = [self.pass_over(k, epoch, parts[1 - k]) for k in range(2)]
            self.losses.append(sum(losses) / 2)
            self.note()

    def note(self) -> None:
        self.after_epoch.append(self.weights_now())

    def weights_now(self) -> list[dict[str, Tensor]]:
        return [{n: v.clone() for n, v in net.state_dict().items()} for net in self.nets]

    def moved(self, rows: Tensor, kind: str, moves: torch.Generator) -> Tensor:
        return standardized(self.data, augment(pixels(self.data)[rows], kind, moves))

    def without_labels(self, epoch: int) -> None:
        config = self.config
        order, moves = (make_generator(SEED, n, "self_supervised", epoch) for n in ("order", "augment"))
        rows = torch.tensor([i for i, yes in enumerate(self.trains) if yes])
        for batch in epoch_batches(rows, CONSTANTS["CONTRASTIVE_BATCH"], order):
            views = torch.cat([self.moved(batch, "strong", moves) for _ in range(2)])
            loss = self.contrast(0, views, 0.5)
            self.optimizers[0].step(loss, config.learning_rate)

    def contrast(self, k: int, views: Tensor, temperature: float) -> Tensor:
        return nt_xent(self.projections[k](self.nets[k].train()(views)[0]), temperature)

    def warm_up(self, k: int, epoch: int) -> float:
        config, total = self.config, 0.0
        order, moves = (make_generator(SEED, n, epoch, k) for n in ("order", "augment"))
        rows = torch.tensor([i for i, y in enumerate(self.labels) if y >= 0 and self.trains[i]])
        for batch in epoch_batches(rows, config.batch_size, order):
            says = log_softmax(self.nets[k].train()(self.moved(batch, config.augment, moves))[1])
            loss = torch.zeros((), dtype=torch.float64)
            for row, i in zip(says, batch.tolist(), strict=True):
                loss = loss - row[self.labels[i]] / len(batch)
            self.optimizers[k].step(loss, self.rate, config.clip_norm)
            total += float(loss.detach()) * len(batch)
        return total / len(rows)

    # --- who is believed

    def look(self) -> list[Tensor]:
        """What both say of the images as they are, kept in float32 as scores are."""
        said = [mean_log_probs(net, self.images, 1).to(torch.float32).double() for net in self.nets]
        for says in said:
            for i, label in enumerate(self.labels):
                if label >= 0:
                    self.margins[i].append(margin_of(says[i], label))
        return said

    def mixture(self, says: Tensor) -> tuple[list[int], list[float], np.ndarray]:
        losses = [-float(says[i, y]) if y >= 0 else NAN for i, y in enumerate(self.labels)]
        rows = [i for i, y in enumerate(self.labels) if y >= 0]
        values = np.array(losses)[rows][:, None]
        values = (values - values.min()) / (values.max() - values.min())
        steps = self.config.meta_mixture_steps
        two = GaussianMixture(2, tol=1e-2, reg_covar=5e-4, max_iter=steps, random_state=0).fit(values)
        clean = np.full(len(self.labels), np.nan)
        clean[rows] = two.predict_proba(values)[:, int(np.argmin(two.means_[:, 0]))]
        clean[self.data.trusted_mask] = 1.0
        inside = min(max(division.BELIEVED, np.nanmin(clean) + 1e-5), np.nanmax(clean) - 1e-5)
        labeled = [i for i in rows if clean[i] > inside and self.trains[i]]
        return labeled, list(clean), clean

    def uniform(self, said: list[Tensor]) -> tuple[list[int], list[float], np.ndarray]:
        divergence = []
        for i, y in enumerate(self.labels):
            if y < 0:
                divergence.append(NAN)
                continue
            p = (said[0][i].exp() + said[1][i].exp()) / 2
            e = torch.zeros_like(p)
            e[y] = 1.0
            m = (p + e) / 2
            own = float((p * (p / m).log()).sum()) / 2 + float((e[y] / m[y]).log()) / 2
            divergence.append(0.0 if self.data.trusted_mask[i] else own)
        rows = [i for i, y in enumerate(self.labels) if y >= 0 and self.trains[i]]
        middle = np.mean([divergence[i] for i in rows])
        share = np.mean([divergence[i] < middle for i in rows])
        classes = sorted({self.labels[i] for i in rows})
        labeled = [i for i in rows if self.data.trusted_mask[i]]
        for c in classes:
            members = sorted((i for i in rows if self.labels[i] == c), key=lambda i: divergence[i])
            labeled += members[: max(1, math.floor(share * len(rows) / len(classes) + 1e-9))]
        weight = [0.0 if math.isnan(d) else 1.0 if d < 0.5 else 1 - d for d in divergence]
        return sorted(set(labeled)), weight, 1 - np.array(divergence) / math.log(2)

    # --- steps

    def pass_over(self, k: int, epoch: int, part: tuple[list[int], list[float], np.ndarray]) -> float:
        config, (labeled, weight, clean), total = self.config, part, 0.0
        self.beliefs.append(clean)
        if k == 0:
            self.labeled_part = labeled
        rest = [i for i, yes in enumerate(self.trains) if yes and i not in set(labeled)]
        order, moves, meta, mixed = (
            make_generator(SEED, name, epoch, k) for name in ("order", "augment", "meta", "mixup")
        )
        first = min(config.warmup_epochs, config.epochs // 2)
        batches = list(epoch_batches(torch.tensor(labeled), config.batch_size, order))
        size = config.batch_size
        if config.base == "unicon":
            size = max(2, int(size / (2 * (len(labeled) / (len(labeled) + len(rest))))))
        queue: list[Tensor] = []
        late = epoch >= max(config.epochs - config.late_epochs, first)
        for number, x in enumerate(batches):
            if not queue:
                queue = list(epoch_batches(torch.tensor(rest), size, order))
            u = queue.pop(0)
            time = (epoch + number / len(batches) - first) / CONSTANTS["RAMP_EPOCHS"]
            strength = CONSTANTS["UNLABELED_WEIGHT"] * min(max(time, 0), 1)
            total += self.mixmatch(k, x, u, weight, strength, moves, mixed) * len(x)
            if k == 0 and self.has_step:
                self.bootstrap(x, u, moves, meta, late)
        return total / len(labeled)

    def mixmatch(
        self,
        k: int,
        x: Tensor,
        u: Tensor,
        weight: list[float],
        strength: float,
        moves: torch.Generator,
        mixed: torch.Generator,
    ) -> float:
        config, num, classes = self.config, len(x), self.data.num_classes
        own, peer = self.nets[k].train(), self.nets[1 - k].eval()
        views = [self.moved(rows, config.augment, moves) for rows in (x, x, u, u)]
        with torch.no_grad():
            mine = log_softmax(own(torch.cat(views))[1]).exp()
            other = log_softmax(peer(torch.cat(views[2:]))[1]).exp()
        targets = torch.zeros(2 * (num + len(u)), classes, dtype=torch.float64)
        for place, i in enumerate(x.tolist()):
            y = torch.zeros(classes, dtype=torch.float64)
            y[self.labels[i]] = 1.0
            said = (mine[place] + mine[num + place]) / 2
            refined = (weight[i] * y + (1 - weight[i]) * said) ** (1 / 0.5)
            targets[place] = targets[num + place] = refined / refined.sum()
        for place in range(len(u)):
            a, b = 2 * num + place, 2 * num + len(u) + place
            said = (mine[a] + mine[b] + other[place] + other[len(u) + place]) / 4
            guess = said ** (1 / 0.5)
            targets[a] = targets[b] = guess / guess.sum()
        if config.base == "unicon":
            views = [self.moved(rows, "strong", moves) for rows in (x, x, u, u)]
        inputs = torch.cat(views)
        share, partner = mixup_pairs(len(inputs), 4.0, mixed)
        share = max(share, 1 - share)
        blend = torch.stack([share * inputs[i] + (1 - share) * inputs[j] for i, j in enumerate(partner)])
        aims = [share * targets[i] + (1 - share) * targets[j] for i, j in enumerate(partner)]
        says = log_softmax(own(blend)[1])
        loss = torch.zeros((), dtype=torch.float64)
        for i in range(2 * num):
            loss = loss - (aims[i] * says[i]).sum() / (2 * num)
        for i in range(2 * num, len(says)):
            loss = loss + strength * ((says[i].exp() - aims[i]) ** 2).sum() / (2 * len(u) * classes)
        for c in range(classes):
            loss = loss + (1 / classes) * ((1 / classes) / says[:, c].exp().mean()).log()
        if config.base == "unicon":
            loss = loss + CONSTANTS["CONTRASTIVE_WEIGHT"] * self.contrast(k, torch.cat(views[2:]), 0.05)
        self.optimizers[k].step(loss, self.rate)
        self.inputs, self.targets = inputs, targets
        return float(loss.detach())

    def bootstrap(
        self, x: Tensor, u: Tensor, moves: torch.Generator, meta: torch.Generator, late: bool
    ) -> None:
        config, self.network = self.config, self.nets[0].train()
        index = torch.cat([x, x, u, u])
        trusted = [i for i, yes in enumerate(self.data.trusted_mask) if yes]
        pool = torch.tensor(trusted if self.is_confirmed else self.labeled_part)
        rows = draw_meta_batch(pool, self.data_labels(), index, config.meta_batch_size, meta)
        if len(rows) < 2:
            self.counts["fallback_steps"] += 1
            return
        self.counts["meta_steps"] += 1
        meta_images = self.moved(rows, config.augment, moves)
        meta_labels = [self.labels[i] for i in rows.tolist()]
        raw_a, raw_b, norm = self.raw_weights(self.inputs, self.targets, meta_images, meta_labels)
        signed = [value / norm for value in raw_a]
        a, b = self.weights(
            [self.rate * v for v in raw_a], [self.rate * v for v in raw_b], [True] * len(raw_a)
        )
        self.counts["zero_weight_steps"] += not any(a + b)
        logits = self.network(self.inputs)[1]
        says = log_softmax(logits)
        loss = torch.zeros((), dtype=torch.float64)
        for i in range(len(index)):
            loss = loss - a[i] * (self.targets[i] * says[i]).sum() - b[i] * says[i, int(logits[i].argmax())]
        self.optimizers[0].step(loss, self.rate, config.clip_norm)
        if late:
            for place, i in enumerate(x.tolist()):
                own = int(logits[place].argmax())
                seen = self.visit(a[place], b[place], signed[place], own, self.labels[i])
                self.visits[i].append(seen | {"alpha": a[place] * len(index), "beta": b[place] * len(index)})
            for place, i in enumerate(u.tolist()):
                beta = b[2 * len(x) + place] * len(index)
                self.visits[i].append(dict.fromkeys(self.visit(1, 1, 1, 0, 0), NAN) | {"beta": beta})


ALONE = {"has_step": False}
"""What is no field: the base alone, the meta set of confirmed samples however few."""
CONFIRMED = {"is_confirmed": True}
CASES: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {
    "divide_mix": ({}, ALONE),
    "divide_mix, one step of the mixture": ({"meta_mixture_steps": 1, "epochs": 2}, ALONE),
    "divide_mix, l2b": ({}, {}),
    "divide_mix, l2b on confirmed": ({"train_on_trusted": False}, CONFIRMED),
    "divide_mix without a warm-up": ({"warmup_epochs": 0, "epochs": 2}, {}),
    "divide_mix, batch norm": ({"network": "conv3", "epochs": 2}, {}),
    "unicon": ({"base": "unicon"}, ALONE),
    "unicon, l2b": ({"base": "unicon", "batch_size": 6, "meta_batch_size": 4, "epochs": 2}, {}),
    "c2d": ({"base": "c2d", "network": "conv3"}, ALONE),
    "c2d, l2b": ({"base": "c2d"}, {}),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_train__of_a_base_is_the_literal_run(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = digits_data(50, num_unlabeled=4, num_trusted=12)
    config = L2BConfig(**{**BASE, **CASES[case][0]})
    how = {"has_step": True, "is_confirmed": False, **CASES[case][1]}
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(pair, name, value)
    monkeypatch.setattr(l2b_config, "SELF_SUPERVISED_EPOCHS", 2)
    if case == "c2d":
        monkeypatch.setattr(division, "BELIEVED", 0.03)
    if how["is_confirmed"]:
        monkeypatch.setattr(meta_set, "MIN_TRUSTED_PER_CLASS", 0)
    if not how["has_step"]:
        monkeypatch.setattr(training, "train_pair", partial(pair.train_pair, has_step=False))
    with in_double():
        result, states = watch(SPEC, data, config, seed=SEED)
        literal = LiteralPair(data, config, **how)
        literal.run()
    tolerance = EXACT if config.network == "mlp" else 1000 * EXACT  # batch norm divides by small deviations
    assert len(states) == len(literal.after_epoch) == config.first_labeled_epoch + config.epochs
    for number, (state, wanted) in enumerate(zip(states, literal.after_epoch, strict=True)):
        for found, weights in zip(networks_in(state), wanted, strict=True):
            for name, value in weights.items():
                torch.testing.assert_close(
                    found[name].double(), value.double(), rtol=0, atol=tolerance,
                    msg=lambda m, n=name, e=number: f"epoch {e}, {n}: {m}",
                )  # fmt: skip

    labeled_epochs = result.history[config.first_labeled_epoch :]
    losses = [one.losses["train_loss"] for one in labeled_epochs]
    np.testing.assert_allclose(losses, literal.losses, rtol=1e-4)
    says = torch.stack([mean_log_probs(net, literal.images, config.views) for net in literal.nets]).mean(0)
    np.testing.assert_allclose(result.pred_probs, log_softmax(says).exp(), atol=1e-6)
    margin = [margin_of(row, label) for row, label in zip(says, literal.labels, strict=True)]
    over = [sum(one) / len(one) if one else NAN for one in literal.margins]
    np.testing.assert_allclose(result.trust_score, trust_of(margin, over), atol=1e-6)
    np.testing.assert_allclose(result.signals["believed"], np.mean(literal.beliefs, axis=0), atol=1e-6)
    notes = result.provenance.notes
    assert {name: notes[name] for name in literal.counts} == literal.counts
    if literal.has_step:
        assert literal.counts["meta_steps"] > 1
        if not literal.is_confirmed:
            believed = np.mean(literal.beliefs, axis=0)[literal.labeled_part]
            assert notes["meta_purity_estimate"] == pytest.approx(np.nanmean(believed), abs=1e-6)
        for name in ("alpha", "beta", "share", "alpha_signed", "harmful", "visit_trust"):
            wanted = [[v[name] for v in one if not math.isnan(v[name])] for one in literal.visits]
            np.testing.assert_allclose(
                result.signals[name], [np.mean(one) if one else NAN for one in wanted],
                rtol=1e-5, atol=1e-6, err_msg=name,
            )  # fmt: skip
