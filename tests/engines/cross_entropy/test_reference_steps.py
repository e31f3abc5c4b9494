"""The plain engine against a literal form of itself: whole runs of a few steps, from images to trust."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engines.contract import TrainingData
from engines.cross_entropy import SPEC
from engines.cross_entropy.training import CrossEntropyConfig
from engines.shared.device import make_generator
from engines.shared.loader import augment, epoch_batches
from tests.engines.helpers import digits_data
from tests.engines.literal import (
    ROUNDING,
    assert_same_weights,
    double_network,
    features_of,
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
    watch,
)

SEED = 3
BASE = {
    "network": "mlp",
    "epochs": 2,
    "batch_size": 12,
    "learning_rate": 0.05,
    "optimizer": "sgd",
    "weight_decay": 0.02,
    "augment": "none",
    "views": 3,
}


def folds_of(data: TrainingData, folds: int) -> list[int]:
    """Labeled samples in random order, sorted by class, dealt to the folds in turn; -1 without a label."""
    labeled = [i for i, label in enumerate(data.given_labels) if label >= 0]
    shuffled = [labeled[j] for j in torch.randperm(len(labeled), generator=make_generator(SEED, "folds"))]
    fold = [-1] * data.num_samples
    for place, i in enumerate(sorted(shuffled, key=lambda i: data.given_labels[i])):
        fold[i] = place % folds
    return fold


class Literal:
    """One run, fold after fold."""

    def __init__(self, data: TrainingData, config: CrossEntropyConfig) -> None:
        self.data, self.config = data, config
        self.images = standardized(data)
        self.labels = data.given_labels
        self.begun = first_weights(SPEC, data, config, seed=SEED)
        self.margins: list[list[float]] = [[] for _ in self.labels]
        self.networks: list[nn.Module] = []
        self.after_epoch: list[dict[str, Tensor]] = []
        self.epoch_losses: list[float] = []
        self.each_loss: list[list[float]] = []
        self.epoch_margins: list[list[float]] = []

    def fit(self, number: int, rows: list[int]) -> nn.Module:
        """Train one network on ``rows``."""
        config = self.config
        network = double_network(config, self.data, self.begun[number * config.epochs][0])
        optimizer = optimizer_of(config, network)
        network.train()
        for epoch in range(config.epochs):
            rate = rate_at(config.schedule, config.learning_rate, epoch, config.epochs)
            order = make_generator(SEED, "order", number, epoch)
            moves = make_generator(SEED, "augment", number, epoch)
            seen, now, each = [], [float("nan")] * len(self.labels), [float("nan")] * len(self.labels)
            for batch in epoch_batches(torch.tensor(rows), config.batch_size, order):
                images = self.images[batch]
                if config.augment != "none":
                    images = standardized(self.data, augment(pixels(self.data)[batch], config.augment, moves))
                _, logits = network(images)
                losses = losses_of(logits, self.labels[batch])
                loss = sum(losses) / len(batch)
                optimizer.step(gradients_of(loss, network), rate)
                for row, loss, i in zip(logits.detach(), losses, batch.tolist(), strict=True):
                    each[i] = float(loss.detach())
                    now[i] = margin_of(row, int(self.labels[i]))
                    self.margins[i].append(now[i])
                seen += [float(value.detach()) for value in losses]
            self.epoch_losses.append(sum(seen) / len(seen))
            self.each_loss.append(each)
            self.epoch_margins.append(now)
            self.after_epoch.append({n: v.clone() for n, v in network.state_dict().items()})
        self.networks.append(network)
        return network

    def run(self) -> tuple[Tensor, Tensor]:
        """All fits; mean log-probabilities of those that may judge, features of the first fold."""
        config, count = self.config, len(self.labels)
        fold = folds_of(self.data, config.folds)
        votes: list[list[Tensor]] = [[] for _ in range(count)]
        for left_out in range(config.folds):
            inside = [i for i in range(count) if fold[i] >= 0 and (config.folds == 1 or fold[i] != left_out)]
            says = mean_log_probs(self.fit(left_out, inside), self.images, config.views)
            for i in range(count):
                if fold[i] in (left_out, -1):
                    votes[i].append(says[i])
        mean = torch.stack([torch.stack(one).mean(dim=0) for one in votes])
        return mean, features_of(self.networks[0], self.images)


CASES = {
    "plain": {},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
    "constant": {"schedule": "constant", "epochs": 3},
    "linear_tail": {"schedule": "linear_tail", "epochs": 3},
    "batch norm": {"network": "conv3", "learning_rate": 0.02, "epochs": 1},
    "moved images": {"augment": "shift", "epochs": 1},
    "folds": {"folds": 3, "epochs": 1},
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_train__is_the_literal_run(case: str) -> None:
    data, _ = digits_data(40, num_unlabeled=3, num_trusted=4)
    config = CrossEntropyConfig(**{**BASE, **CASES[case]})
    result, states = watch(SPEC, data, config, seed=SEED)
    literal = Literal(data, config)
    log_probs, features = literal.run()

    # Weights after every epoch of every fit, in the order of the fits.
    assert len(states) == len(literal.after_epoch)
    tolerance = ROUNDING if config.network == "mlp" else 10 * ROUNDING
    for i, state in enumerate(states):
        scratch = double_network(config, data, {})
        scratch.load_state_dict(literal.after_epoch[i])
        assert_same_weights(networks_in(state)[0], scratch, tolerance)

    # What is said about every sample.
    np.testing.assert_allclose(result.pred_probs, log_softmax(log_probs).exp(), atol=tolerance)
    np.testing.assert_allclose(result.embeddings, features, atol=10 * tolerance)
    given = data.given_labels
    margin = [margin_of(log_probs[i], int(given[i])) for i in range(len(given))]
    area = [sum(one) / len(one) if one else float("nan") for one in literal.margins]
    trust = trust_of(margin) if config.folds > 1 else trust_of(margin, area)
    np.testing.assert_allclose(result.trust_score, trust, atol=1e-6)
    assert result.is_out_of_sample == (config.folds > 1)
    normal = log_softmax(log_probs)
    loss = [-float(normal[i, given[i]]) if given[i] >= 0 else float("nan") for i in range(len(given))]
    np.testing.assert_allclose(result.signals["loss"], loss, rtol=1e-3, atol=tolerance)
    np.testing.assert_allclose(result.signals["margin"], area, rtol=1e-3, atol=10 * tolerance)

    # The curves.
    for i, record in enumerate(result.history):
        assert record.losses["train_loss"] == pytest.approx(literal.epoch_losses[i], abs=1e-4)
        now = np.array(literal.epoch_margins[i])
        assert record.metrics["train_accuracy"] == pytest.approx(np.mean(now[np.isfinite(now)] > 0))
        history = result.signal_history  # float16
        np.testing.assert_allclose(history["margin"][i], now, rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(history["loss"][i], literal.each_loss[i], rtol=2e-3, atol=2e-3)


def test_train__every_fit_begins_with_other_weights() -> None:
    data, _ = digits_data(40)
    config = CrossEntropyConfig(**{**BASE, "folds": 4, "epochs": 1})
    heads = [begun[0]["head.weight"] for begun in first_weights(SPEC, data, config, seed=SEED)]
    assert len(heads) == 4
    assert all(not torch.equal(heads[i], heads[j]) for i in range(4) for j in range(i))


def test_train__heldout_accuracy_is_that_of_the_evaluation_set() -> None:
    data, _ = digits_data(40, with_evaluation=True)
    config = CrossEntropyConfig(**BASE)
    result, states = watch(SPEC, data, config, seed=SEED)
    evaluation = data.evaluation
    assert evaluation is not None
    for record, state in zip(result.history, states, strict=True):
        network = double_network(config, data, networks_in(state)[0])
        images = torch.from_numpy(evaluation.images.astype(np.float64) / 255.0)
        says = mean_log_probs(network, standardized(data, images), 1).argmax(dim=1).numpy()
        assert record.metrics["heldout_accuracy"] == pytest.approx(np.mean(says == evaluation.labels))
