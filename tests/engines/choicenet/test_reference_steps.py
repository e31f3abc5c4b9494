"""Whole training steps of ChoiceNet against its formulas written out, in float64, for every setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engines.choicenet import SPEC, networks, training
from engines.choicenet.config import ChoiceNetConfig
from engines.contract import EngineResult, EpochRecord, EvaluationSet, TrainingData
from tests.engines.literal_choicenet import LiteralChoiceNet
from tests.engines.literal_double import States, Steps, assert_same, in_double, named_start, parameters

SEED = 4


def small_data() -> TrainingData:
    random = np.random.default_rng(6)
    images, heldout = (random.integers(0, 256, (num, 1, 5, 4), dtype=np.uint8) for num in (9, 6))
    labels = np.array([0, 1, -1, 2, 0, 1, 2, 0, -1])
    return TrainingData(images, labels, 3, evaluation=EvaluationSet(heldout, random.integers(0, 3, 6)))


def settings(**changed: Any) -> ChoiceNetConfig:
    base: dict[str, Any] = {
        "network": "mlp",
        "width": 6,
        "epochs": 3,
        "batch_size": 3,
        "learning_rate": 3e-3,
        "augment": "none",
        "views": 1,
        "num_components": 3,
        "warmup_epochs": 1,
    }
    return ChoiceNetConfig(**{**base, **changed})


def trained(
    data: TrainingData, config: ChoiceNetConfig
) -> tuple[LiteralChoiceNet, Steps, States, list[EpochRecord], EngineResult]:
    steps, states, records = Steps(), States(), []
    with steps.watched():
        result = SPEC.train(data, config, seed=SEED, device="cpu", on_epoch=records.append, checkpoint=states)
    start = named_start(states.all[0]["network"], steps.start[0])
    return LiteralChoiceNet(data, config, SEED, start), steps, states, records, result


@pytest.fixture(autouse=True)
def heads_that_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger weights of the heads, so that a step shows what they do."""
    monkeypatch.setattr(networks, "HEAD_SCALE", 0.3)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"warmup_epochs": 0, "sharing": "shared"},
        {"warmup_epochs": 0, "sharing": "shared", "rho_ref": 1.0, "lambda_reg": 0.3},
        {"warmup_epochs": 2, "outer": "full", "sharing": "shared"},
        {"warmup_epochs": 0, "outer": "full", "lambda_kl": 2.0},
        {"warmup_epochs": 0, "inverse_precision": 0.5, "rho_ref": 0.6},
        {"warmup_epochs": 3, "sharing": "shared"},
        {"network": "mnist_residual", "width": 2, "optimizer": "sgd"},
        {"weight_decay": 0.3, "schedule": "steps", "epochs": 4},
        {"weight_decay": 0.5, "optimizer": "sgd", "learning_rate": 0.05},
        {"adam_epsilon": 1e-2, "schedule": "linear_tail", "input_scale": "unit"},
        {"schedule": "constant", "num_components": 1},
    ],
    ids=lambda changed: ",".join(f"{name}={value}" for name, value in changed.items()) or "defaults",
)
def test_train__steps_are_those_of_the_formulas(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step's weights, every epoch's running statistics, visits and reported losses."""
    if changed.get("optimizer") == "sgd":
        monkeypatch.setattr(training, "GRAD_CLIP", 0.05)
    data, config = small_data(), settings(**changed)
    with in_double():
        literal, steps, states, records, _ = trained(data, config)
        done = 0
        for epoch in range(config.epochs):
            literal.epoch(epoch)
            for step, values in enumerate(literal.trace):
                wanted = parameters(values)
                found = dict(zip(wanted, steps.after[0][done + step], strict=True))
                assert_same(found, wanted, f"epoch {epoch}, step {step}")
            assert_same(states.all[epoch]["network"], literal.network, f"epoch {epoch}")
            done += len(literal.trace)
            assert records[epoch].losses == pytest.approx(literal.losses, rel=1e-9, abs=1e-12)
            assert records[epoch].metrics["train_accuracy"] == pytest.approx(literal.train_accuracy)
            for name, values in literal.now.items():
                np.testing.assert_allclose(records[epoch].signals[name], values, rtol=2e-3, atol=1e-4)
        assert done == len(steps.after[0]) >= 3


def percentile(values: np.ndarray) -> np.ndarray:
    """(values below + half of the equal ones) / number, among those that are numbers."""
    known = [value for value in values if not np.isnan(value)]
    return np.array([(np.sum(known < v) + np.sum(known == v) / 2) / len(known) for v in values])


def margin(log_probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Given class minus the best other; NaN without a label."""
    return np.array([
        np.nan if label < 0 else row[label] - np.delete(row, label).max()
        for row, label in zip(log_probs, labels, strict=True)
    ])  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"views": 2},
        {"views": 3, "trust": "published", "outer": "full"},
        {"input_scale": "unit", "trust": "published", "epochs": 10},
        {"network": "mnist_residual", "width": 2, "optimizer": "sgd"},
    ],
    ids=["margin", "full", "published", "trunk"],
)
def test_train__verdict_follows_the_formulas(changed: dict[str, Any]) -> None:
    """Evaluation with rho_1 = 1 and without noise: predictions, the five signals, both kinds of trust."""
    data = small_data()
    config = settings(**changed)
    labels = data.given_labels
    assert data.evaluation is not None
    with in_double():
        literal, _, _, records, result = trained(data, config)
        for epoch in range(config.epochs):
            literal.epoch(epoch)
            heldout = literal.log_probs(data.evaluation.images).argmax(1) == data.evaluation.labels
            assert records[epoch].metrics["heldout_accuracy"] == pytest.approx(heldout.mean())
        log_probs = literal.log_probs(views=config.views)
        with torch.no_grad():
            said = literal.said(dict(literal.network), literal.images, training=False)
            found = literal.signals(torch.arange(len(labels)), said)
            embedding = literal.features(dict(literal.network), literal.images, training=False)
    temperature = result.provenance.notes["temperature"]
    assert (temperature != 1.0) == (config.trust == "margin")
    probs = np.exp(log_probs / temperature)
    np.testing.assert_allclose(result.pred_probs, probs / probs.sum(1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(result.embeddings, embedding.numpy(), atol=1e-5)
    for name in ("rho", "gamma_1", "p_target", "rho_x", "pi_1"):
        unknown = (labels < 0) & (name not in ("rho_x", "pi_1"))
        wanted = np.where(unknown, np.nan, [row[name] for row in found])
        np.testing.assert_allclose(result.signals[name], wanted, atol=1e-5, err_msg=name)
    evidence = [margin(log_probs, labels), literal.margin_sum / np.maximum(literal.visits, 1)]
    if config.trust == "published":
        evidence = [literal.average["rho"], literal.average["p_target"]]
    evidence = [np.where(labels < 0, np.nan, values) for values in evidence]
    trust = np.mean([percentile(values) for values in evidence], axis=0)
    np.testing.assert_allclose(result.trust_score, np.where(labels < 0, np.nan, trust), atol=1e-6)
    accuracy = float(np.mean((log_probs.argmax(1) == labels)[labels >= 0]))
    assert result.provenance.notes["noise_rate_estimate"] == pytest.approx(1 - accuracy)
