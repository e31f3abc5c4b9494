"""Whole training steps of UMN against the paper's formulas written out, in float64, for every setting."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from engines.contract import EngineResult, EpochRecord, EvaluationSet, TrainingData
from engines.umn import SPEC, model
from engines.umn.config import UMNConfig
from engines.umn.networks import build_stacked_vae
from tests.engines.literal_double import (
    States,
    Steps,
    assert_same,
    in_double,
    named_start,
    parameters,
)
from tests.engines.literal_vae import LiteralUMN, hidden_in

SEED = 3


def small_data(
    *,
    size: tuple[int, int] = (4, 5),
    channels: int = 1,
    labels: tuple[int, ...] = (0, 1, 2, 0, -1, 1, 2, -1, -1),
    heldout: int = 0,
) -> TrainingData:
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (len(labels), channels, *size), dtype=np.uint8)
    evaluation = None
    if heldout:
        more = random.integers(0, 256, (heldout, channels, *size), dtype=np.uint8)
        evaluation = EvaluationSet(more, random.integers(0, 3, heldout))
    return TrainingData(images, np.array(labels), 3, evaluation=evaluation)


def settings(**changed: Any) -> UMNConfig:
    base: dict[str, Any] = {
        "network": "umn_mlp",
        "epochs": 2,
        "batch_size": 5,
        "learning_rate": 3e-3,
        "views": 1,
        "rotations": 1,
        "latent_a": 3,
        "latent_b": 2,
        "labeled_share": 0.6,
    }
    return UMNConfig(**{**base, **changed})


def trained(
    data: TrainingData, config: UMNConfig
) -> tuple[list[LiteralUMN], Steps, States, list[EpochRecord], EngineResult]:
    steps, states, records = Steps(), States(), []
    with steps.watched():
        result = SPEC.train(data, config, seed=SEED, device="cpu", on_epoch=records.append, checkpoint=states)
    literal = [
        LiteralUMN(
            data, config, SEED, rotation, named_start(member["model"], steps.start[rotation]), config.network
        )
        for rotation, member in enumerate(states.all[0]["members"])
    ]
    return literal, steps, states, records, result


def assert_steps_agree(data: TrainingData, config: UMNConfig) -> None:
    """Every step's weights, every epoch's guider, running statistics and reported losses."""
    with in_double():
        literal, steps, states, records, _ = trained(data, config)
        done = [0] * len(literal)
        for epoch in range(config.epochs):
            for one in literal:
                one.epoch(epoch)
                saved = states.all[epoch]["members"][one.rotation]
                for values in one.trace:
                    wanted = parameters(values)
                    found = steps.after[one.rotation][done[one.rotation]]
                    where = f"rotation {one.rotation}, epoch {epoch}, step {done[one.rotation]}"
                    assert_same(dict(zip(wanted, found, strict=True)), wanted, where)
                    done[one.rotation] += 1
                assert_same(saved["model"], one.w, f"epoch {epoch}, model")
                assert_same(saved["guider"], one.g, f"epoch {epoch}, guider")
            said = {**records[epoch].losses, "train_accuracy": records[epoch].metrics["train_accuracy"]}
            wanted_losses = {
                name: np.mean([one.losses[name] for one in literal]) for name in literal[0].losses
            }
            assert said == pytest.approx(wanted_losses, rel=1e-9, abs=1e-9)
        assert done == [len(after) for after in steps.after]
        assert min(done) >= 3


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"label_loss": "linear", "elbo_scale": "sum", "standardized": False},
        {"lambda_y": 2.5},
        {"network": "mlp", "augment": "none"},
        {"input_noise": 0.2},
        {"gamma": 0.4},
        {"gamma": 0.6, "input_noise": 0.3},
        {"augment": "shift"},
        {"augment": "shift", "gamma": 0.3},
        {"optimizer": "sgd", "weight_decay": 0.1, "learning_rate": 0.01, "schedule": "constant"},
        {"weight_decay": 0.05, "schedule": "linear_tail", "epochs": 3},
        {"rotations": 2},
        {"labeled_share": None},
    ],
    ids=lambda changed: ",".join(f"{name}={value}" for name, value in changed.items()) or "defaults",
)
def test_train__steps_are_those_of_the_paper(changed: dict[str, Any]) -> None:
    assert_steps_agree(small_data(), settings(**changed))


def test_train__steps_of_fully_labeled_data() -> None:
    """One pass over the labeled rows; the remainder of one joins the batch before it."""
    data = small_data(labels=(0, 1, 2, 0, 1, 2, 0))
    assert_steps_agree(data, settings(batch_size=3))


def test_train__guider_follows_an_epoch_and_a_half() -> None:
    """Only from seven steps an epoch on is that more than the smallest decay."""
    data = small_data(labels=(0, 1, 2, *[-1] * 8))
    assert_steps_agree(data, settings(batch_size=2, labeled_share=0.5))


def test_train__steps_of_colour_images_with_a_decoder_of_convolutions() -> None:
    assert_steps_agree(small_data(size=(9, 10), channels=3), settings(network="mlp"))


def test_train__steps_whose_classes_are_summed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "Y_CHUNK", 2)
    assert_steps_agree(small_data(), settings())


def test_train__steps_whose_images_are_decoded_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "DECODED_SIDE", 3)
    assert_steps_agree(small_data(), settings())


def test_train__steps_with_dropout_batch_norm_and_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 13-layer net: the guider is in evaluation mode, the learner's ε in training mode."""
    monkeypatch.setattr(model, "build_stacked_vae", partial(build_stacked_vae, width=4))
    config = settings(network="umn13", gamma=0.5, optimizer="sgd")
    assert_steps_agree(small_data(size=(12, 12)), config)


def percentile(values: np.ndarray) -> np.ndarray:
    """(values below + half of the equal ones) / number, among those that are numbers."""
    known = [value for value in values if not np.isnan(value)]
    return np.array([(np.sum(known < v) + np.sum(known == v) / 2) / len(known) for v in values])


def margin(log_probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Given class minus the best other; NaN without a label."""
    found = np.full(len(labels), np.nan)
    for row, label in enumerate(labels):
        if label >= 0:
            found[row] = log_probs[row, label] - np.delete(log_probs[row], label).max()
    return found


@pytest.mark.parametrize("aggregate", ["ema", "final"])
@pytest.mark.parametrize(
    "changed",
    [
        {"rotations": 2, "views": 3},
        {"rotations": 2, "views": 2, "input_noise": 0.5, "standardized": False},
        {},
        {"rotations": 2, "audits": 2},
    ],
    ids=["two rotations", "noise", "one rotation", "every other epoch"],
)
def test_train__verdict_is_the_mean_of_guider_and_learner_where_hidden(
    changed: dict[str, Any], aggregate: str
) -> None:
    """ε and margins of the audited epochs, and the final views, each from the model that had the label hidden."""
    audited = [1, 3] if changed.get("audits") else [0, 1, 2, 3]
    config = settings(**{"epochs": 4, "learning_rate": 4e-3, "epsilon_aggregate": aggregate, **changed})
    data = small_data(heldout=7)
    labels, num = data.given_labels, data.num_samples
    with in_double():
        literal, _, states, records, result = trained(data, config)
        judge = hidden_in(labels, config.rotations, SEED)
        epsilon, margins = np.full((4, num), np.nan), np.full((4, num), np.nan)
        for epoch in range(4):
            for one in literal:
                one.epoch(epoch)
            if epoch not in audited:
                assert not records[epoch].signals
                assert "judged_agreement" not in records[epoch].metrics
                assert "heldout_accuracy" in records[epoch].metrics
                continue
            agreed = []
            for row in np.flatnonzero(labels >= 0):
                one = literal[judge[row]]
                guider, learner = (one.log_probs(which)[row] for which in ("guider", "learner"))
                label = labels[row]
                epsilon[epoch, row] = abs(np.exp(guider[label]) - np.exp(learner[label]))
                both = (guider + learner) / 2
                margins[epoch, row] = both[label] - np.delete(both, label).max()
                agreed.append(int(both.argmax()) == label)
            record = records[epoch]
            np.testing.assert_allclose(record.signals["epsilon"], epsilon[epoch], rtol=2e-3, atol=1e-6)
            assert record.metrics["judged_agreement"] == pytest.approx(np.mean(agreed))
            assert data.evaluation is not None
            for name, which in (("heldout_accuracy", "guider"), ("heldout_accuracy_learner", "learner")):
                right = [
                    one.log_probs(which, data.evaluation.images).argmax(1) == data.evaluation.labels
                    for one in literal
                ]
                assert record.metrics[name] == pytest.approx(np.mean(right))
        final = {
            which: np.stack([
                np.mean([one.log_probs(which, views=config.views)[row] for one in literal], axis=0)
                if label < 0
                else literal[judge[row]].log_probs(which, views=config.views)[row]
                for row, label in enumerate(labels)
            ])
            for which in ("guider", "learner")
        }  # fmt: skip
        embedding = literal[0].embedding()
        found = states.all[-1]["margin"]["sum"].numpy()
        np.testing.assert_allclose(found, np.nan_to_num(margins[audited]).sum(0), rtol=1e-4, atol=1e-5)
    both = (final["guider"] + final["learner"]) / 2
    probs = {name: np.exp(v) / np.exp(v).sum(1, keepdims=True) for name, v in {**final, "both": both}.items()}
    np.testing.assert_allclose(result.pred_probs, probs["both"], atol=1e-6)
    np.testing.assert_allclose(result.embeddings, embedding, atol=1e-5)
    given = np.arange(num), np.maximum(labels, 0)
    missing = labels < 0
    for name in ("guider", "learner"):
        wanted = np.where(missing, np.nan, probs[name][given])
        np.testing.assert_allclose(result.signals[f"{name}_probability"], wanted, atol=1e-6)
    disagree = np.where(missing, np.nan, probs["guider"].argmax(1) != probs["learner"].argmax(1))
    np.testing.assert_array_equal(result.signals["networks_disagree"], disagree)
    epsilon, margins = epsilon[audited], margins[audited]
    decays = 0.1 * 0.9 ** np.arange(len(audited) - 1, -1, -1)
    wanted_epsilon = {
        "ema": (decays[:, None] * epsilon).sum(0) / (1 - 0.9 ** len(audited)),
        "final": epsilon[-1],
    }[aggregate]
    np.testing.assert_allclose(result.signals["epsilon"], wanted_epsilon, atol=1e-6)
    evidence = [margins.mean(0), *(margin(final[which], labels) for which in ("guider", "learner"))]
    trust = np.where(missing, np.nan, np.mean([percentile(values) for values in evidence], axis=0))
    np.testing.assert_allclose(result.trust_score, trust, atol=1e-6)
    assert result.is_out_of_sample == (config.rotations > 1)
