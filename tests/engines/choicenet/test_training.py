"""The ChoiceNet engine: config, networks, the step, variants, signals, and what it finds on real digits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.metrics import auroc
from engines.choicenet import training as choicenet_training
from engines.choicenet.cholesky import CholeskyBlock, Mixture
from engines.choicenet.config import ChoiceNetConfig, choicenet_learning_rate
from engines.choicenet.networks import MixtureNetwork, ResidualTrunk, build_mixture_network
from engines.choicenet.signals import (
    VisitSignals,
    _wrong_label_rate,
    batch_signals,
    final_signals,
    fit_temperature,
    published_flags,
    report_notes,
)
from engines.choicenet.training import _sample_losses, _step, _Training, train
from engines.contract import EngineInputError, EngineResult, EpochRecord, TrainingCancelled, TrainingData
from engines.shared.run import Run
from tests.engines.helpers import MemoryCheckpoint, digits_data

CPU = torch.device("cpu")
TINY = ChoiceNetConfig(network="mlp", epochs=2, batch_size=32, views=1, warmup_epochs=1)


def training_of(data: TrainingData, config: ChoiceNetConfig) -> _Training:
    standardized = config.input_scale == "standardized"
    return _Training(Run("choicenet", data, config, device="cpu", standardized=standardized), config)


def _mixture(batch: int = 6, num_outputs: int = 4) -> Mixture:
    torch.manual_seed(0)
    mixture: Mixture = CholeskyBlock(5, num_outputs, num_components=3, rho_start=0.8)(torch.randn(batch, 5))
    return mixture


def test_config__all_problems_at_once() -> None:
    with pytest.raises(EngineInputError, match=r"trust is 'best'.*rho_ref is 0\.0.*inverse_precision is 0"):
        ChoiceNetConfig(trust="best", rho_ref=0.0, inverse_precision=0.0)


def test_preset__paper_holds_what_is_published() -> None:
    paper = ChoiceNetConfig.preset("paper")
    assert (paper.num_components, paper.rho_ref, paper.inverse_precision) == (10, 1.0, 1e-4)
    assert (paper.lambda_reg, paper.lambda_kl, paper.weight_decay) == (1e-4, 1e-4, 1e-5)
    assert (paper.epochs, paper.batch_size, paper.learning_rate, paper.adam_epsilon) == (41, 256, 1e-5, 1e-6)
    assert (paper.outer, paper.sharing, paper.rho_start, paper.warmup_epochs) == ("sqrt", "shared", 0.0, 0)


def test_learning_rate__steps_at_half_and_three_quarters() -> None:
    config = ChoiceNetConfig(schedule="steps", epochs=8, learning_rate=1.0)
    rates = [choicenet_learning_rate(config, epoch) for epoch in range(8)]
    assert rates == [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01]


def test_residual_trunk__paper_shapes_and_initialisation() -> None:
    torch.manual_seed(0)
    trunk = ResidualTrunk(channels=1, image_size=(28, 28))
    features, _ = trunk(torch.rand(2, 1, 28, 28))
    assert features.shape == (2, 256)
    assert trunk.blocks[0].identity[0].kernel_size == (3, 3)
    assert isinstance(trunk.blocks[1].identity, nn.Identity)
    linear = trunk.tail[1]
    assert linear.weight.shape == (256, 64 * 7 * 7)
    assert float(linear.weight.detach().std()) == pytest.approx(0.01, rel=0.02)
    # Cut at two standard deviations on both sides; 36,864 weights come near both ends.
    drawn = trunk.blocks[1].main[0].weight.detach()
    assert float(drawn.min()) == pytest.approx(-0.02, rel=0.01)
    assert float(drawn.max()) == pytest.approx(0.02, rel=0.01)
    with pytest.raises(EngineInputError, match="at least 4 x 4"):
        ResidualTrunk(channels=1, image_size=(3, 8))


@pytest.mark.parametrize(
    ("image_size", "flat"),
    [
        *(((28, 28), 7 * 7), ((32, 32), 8 * 8), ((64, 48), 8 * 6), ((224, 224), 8 * 8)),
        *(((36, 36), 5 * 5), ((64, 32), 8 * 8), ((32, 64), 8 * 8)),
    ],
)
def test_residual_trunk__weights_stay_bounded_for_large_images(
    image_size: tuple[int, int], flat: int
) -> None:
    trunk = ResidualTrunk(channels=3, image_size=image_size, width=4)
    linear = trunk.tail[1]
    assert isinstance(linear, nn.Linear)
    assert linear.in_features == 4 * flat
    assert trunk(torch.rand(2, 3, *image_size))[0].shape == (2, 256)


@pytest.mark.parametrize(
    "name", ["mlp", "conv3", "preact_resnet18", "mnist_residual", "torchvision:resnet18"]
)
def test_build_mixture_network__block_on_every_kind_of_trunk(name: str) -> None:
    config = ChoiceNetConfig(network=name, width=4 if name[:5] != "torch" else 0)
    network = build_mixture_network(config, name, (3, 32, 32), num_classes=7)
    features, logits = network.eval()(torch.rand(2, 3, 32, 32))
    assert logits.shape == (2, 7)
    assert features.shape == (2, network.feature_size)
    _, mixture = network.mixture(torch.rand(2, 3, 32, 32))
    assert mixture.means().shape == (2, 5, 7)


def test_sample_losses__warmup_leaves_the_correlations_alone() -> None:
    torch.manual_seed(0)
    block = CholeskyBlock(5, 4, num_components=3, rho_start=0.8, head_scale=0.3)
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    features = torch.randn(6, 5)
    for warmup in (True, False):
        block.zero_grad()
        fit, _ = _sample_losses(TINY, block(features), labels, torch.Generator(), warmup=warmup)
        fit.sum().backward()
        grad = block.rho_head.weight.grad
        assert (grad is not None and bool(grad.abs().sum() > 0)) is not warmup
        assert block.target_weight.grad is not None
        assert float(block.target_weight.grad.abs().sum()) > 0


def test_block__components_start_apart() -> None:
    block = CholeskyBlock(5, 4, num_components=5, rho_start=0.8, head_scale=0.0)
    rho = block.train()(torch.randn(2, 5)).rho
    torch.testing.assert_close(rho[0].detach(), torch.tensor([0.95, 0.8, 0.6, 0.4, 0.2]))


def test_step__clips_every_element_and_adds_the_l2_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choicenet_training, "GRAD_CLIP", 0.5)
    data, _ = digits_data(40)
    config = dataclasses.replace(TINY, optimizer="sgd", learning_rate=1.0, weight_decay=0.1)
    run = training_of(data, config)
    weight = run.network.head.target_weight
    assert isinstance(weight, nn.Parameter)
    before = weight.detach().clone()
    factor = torch.full_like(before, 0.2)
    factor[0] = 40.0
    _step(run, (factor * weight).sum())
    expected = before - (factor + 0.1 * before).clamp(-0.5, 0.5)
    torch.testing.assert_close(weight.detach(), expected)


def test_train__gives_a_result() -> None:
    data, _ = digits_data(60, num_unlabeled=5, with_evaluation=True)
    result = train(data, TINY, device="cpu")
    np.testing.assert_allclose(result.pred_probs.sum(axis=1), 1.0, atol=1e-5)
    assert np.isnan(result.trust_score[:5]).all()
    for values in (result.trust_score, result.signals["p_target"], result.signals["rho"]):
        assert np.isfinite(values[5:]).all()
    assert 0 <= result.history[-1].metrics["heldout_accuracy"] <= 1


def test_train__resumed_is_bitwise_the_same() -> None:
    data, _ = digits_data(60)
    config = dataclasses.replace(TINY, epochs=3, trust="published")

    def stop(record: EpochRecord) -> None:
        if record.epoch == 1:
            raise TrainingCancelled("stop")

    whole = train(data, config, device="cpu", seed=3)
    kept = MemoryCheckpoint()
    with pytest.raises(TrainingCancelled, match="stop"):
        train(data, config, device="cpu", seed=3, on_epoch=stop, checkpoint=kept)
    resumed = train(data, config, device="cpu", seed=3, checkpoint=kept)
    np.testing.assert_array_equal(whole.pred_probs, resumed.pred_probs)
    np.testing.assert_array_equal(whole.trust_score, resumed.trust_score)
    np.testing.assert_array_equal(whole.signal_history["rho"], resumed.signal_history["rho"])


def test_train__paper_runs() -> None:
    data, _ = digits_data(48)
    config = dataclasses.replace(ChoiceNetConfig.preset("paper"), epochs=2, batch_size=16, width=4)
    result = train(data, config, device="cpu")
    assert np.isfinite(result.trust_score).all()
    assert result.provenance.notes["temperature"] == 1.0


@pytest.mark.parametrize("num_classes", [2, 1000])
def test_train__two_and_a_thousand_classes(num_classes: int) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 1, 8, 8), dtype=np.uint8)
    labels = rng.integers(0, num_classes, 40).astype(np.int64)
    result = train(TrainingData(images, labels, num_classes), TINY, device="cpu")
    assert result.pred_probs.shape == (40, num_classes)
    assert np.isfinite(result.trust_score).all()


@pytest.fixture(scope="module")
def found() -> tuple[EngineResult, np.ndarray]:
    """800 digits with 20 % wrong labels, one run."""
    data, wrong = digits_data(800, with_evaluation=True)
    config = dataclasses.replace(ChoiceNetConfig.preset("quick"), network="mlp", batch_size=32, epochs=25)
    return train(data, config, device="cpu"), wrong


def test_train__trust_and_label_aware_signals_find_wrong_labels(
    found: tuple[EngineResult, np.ndarray],
) -> None:
    result, wrong = found
    assert auroc(wrong, -result.trust_score) > 0.95
    assert auroc(wrong, -result.signals["p_target"]) > 0.95
    assert auroc(wrong, -result.signals["rho"]) > 0.75
    assert result.history[-1].metrics["heldout_accuracy"] > 0.8


def test_train__component_1_accuracy_estimates_the_noise(found: tuple[EngineResult, np.ndarray]) -> None:
    result, wrong = found
    notes = result.provenance.notes
    assert notes["noise_rate_estimate"] == pytest.approx(wrong.mean(), abs=0.08)
    assert notes["training_accuracy"] + notes["noise_rate_estimate"] == pytest.approx(1.0)
    assert notes["flagged_by_rule"] == pytest.approx(wrong.sum(), rel=0.4)


def test_train__mean_of_rho_history_is_kept_by_epoch(found: tuple[EngineResult, np.ndarray]) -> None:
    result, _ = found
    history = result.signal_history["rho"]
    assert history.shape == (25, 800)
    assert float(np.abs(history).max()) <= 1.0


def test_final_signals__agree_with_a_forward_of_the_images() -> None:
    data, _ = digits_data(30, num_unlabeled=4)
    run = training_of(data, TINY)
    network: MixtureNetwork = run.network.eval()
    with torch.no_grad():
        features, mixture = network.mixture(run.run.rows.batch(torch.arange(30)))
    signals, mean_rho = final_signals(network, features.numpy(), data.given_labels, CPU)
    expected = batch_signals(mixture, torch.from_numpy(data.given_labels).clamp_min(0))
    for name in ("rho", "gamma_1", "p_target"):
        assert np.isnan(signals[name][:4]).all()
        np.testing.assert_allclose(signals[name][4:], expected[name][4:].numpy(), rtol=1e-5)
    np.testing.assert_allclose(signals["rho_x"], expected["rho_x"].numpy(), rtol=1e-5)
    assert float(mean_rho[0]) == 1.0


@pytest.mark.parametrize("mode", [True, False])
def test_final_signals__leaves_the_mode_of_the_network(mode: bool) -> None:
    network = build_mixture_network(ChoiceNetConfig(), "mlp", (6,), num_classes=3).train(mode)
    size = network.feature_size
    final_signals(network, np.ones((4, size), dtype=np.float32), np.array([0, 1, 2, -1]), torch.device("cpu"))
    assert network.training is mode


def test_visit_signals__moving_average_starts_after_a_tenth() -> None:
    visits = VisitSignals(3, CPU)
    mixture = _mixture(batch=2)
    rows, labels = torch.tensor([0, 2]), torch.tensor([1, 3])
    values = batch_signals(mixture, labels)["p_target"].numpy()
    visits.update(rows, mixture, labels)
    visits.end_epoch(0, 20)
    assert np.isnan(visits.averages()["p_target"]).all()
    visits.end_epoch(2, 20)
    np.testing.assert_allclose(visits.averages()["p_target"][[0, 2]], values)
    assert np.isnan(visits.averages()["p_target"][1])
    flipped = torch.tensor([0, 0])
    visits.update(rows, mixture, flipped)
    visits.end_epoch(3, 20)
    then = batch_signals(mixture, flipped)["p_target"].numpy()
    np.testing.assert_allclose(visits.averages()["p_target"][[0, 2]], 0.9 * values + 0.1 * then, rtol=1e-5)


def test_visit_signals__a_state_brings_the_last_visits_and_the_averages() -> None:
    visits, resumed = VisitSignals(3, CPU), VisitSignals(3, CPU)
    rows, mixture = torch.tensor([0, 2]), _mixture(batch=2)
    for epoch, labels in enumerate(([1, 3], [0, 0])):
        visits.update(rows, mixture, torch.tensor(labels))
        visits.end_epoch(epoch, 2)
    resumed.load_state_dict(visits.state_dict())
    for one, other in ((visits.now(), resumed.now()), (visits.averages(), resumed.averages())):
        for name, values in one.items():
            assert np.isfinite(values[[0, 2]]).all()
            np.testing.assert_array_equal(other[name], values)


def test_fit_temperature__recovers_scale_and_noise_rate() -> None:
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.normal(size=(8000, 5))
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    true = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    wrong = rng.random(8000) < 0.3
    given = np.where(wrong, (true + rng.integers(1, 5, 8000)) % 5, true)
    given[:100] = -1
    temperature, rate = fit_temperature((logits / 2.0).astype(np.float32), given)
    assert temperature == pytest.approx(0.5, rel=0.15)
    assert rate == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(("scale", "expected"), [(1.0, 1.0), (100.0, 20.0), (0.01, 0.05)])
def test_fit_temperature__one_where_calibrated_and_bounded_elsewhere(scale: float, expected: float) -> None:
    # Of ten rows with probability 0.9 (0.6, 0.3) for class 0, nine (six, three) are of class 0.
    tenths = np.repeat([9, 1, 6, 3], 10)
    given = np.where(np.tile(np.arange(10), 4) < tenths, 0, 1)
    log_probs = np.log(np.stack([tenths, 10 - tenths], axis=1) / 10).astype(np.float32)
    assert fit_temperature(scale * log_probs, given)[0] == pytest.approx(expected)


def test_wrong_label_rate__maximum_likelihood_by_hand() -> None:
    # Likelihood of a row of the first kind 0.9 - 0.8 r, of the second 0.1 + 0.8 r: at 70 of 100, r = 0.25.
    p_given = np.repeat([0.9, 0.1], [70, 30])
    assert _wrong_label_rate(p_given, 1.0 - p_given) == pytest.approx(0.25, abs=1e-6)


def test_fit_temperature__nothing_to_fit() -> None:
    assert fit_temperature(np.zeros((3, 4), dtype=np.float32), np.full(3, -1)) == (1.0, 0.0)
    assert fit_temperature(np.zeros((3, 1), dtype=np.float32), np.zeros(3, dtype=np.int64)) == (1.0, 0.0)


def test_published_flags__needs_both_conditions() -> None:
    flags = published_flags(
        np.array([0, 1, 1, 1]),
        np.array([0, 0, 0, -1]),
        np.array([0.0, 0.05, 0.2, np.nan], dtype=np.float32),
        10,
    )
    assert flags.tolist() == [False, True, False, False]


def test_report_notes__collapse_is_seen() -> None:
    ones = np.ones(4, dtype=np.float32)
    common = {
        "predicted": np.array([0, 1, 1, 0]),
        "labels": np.array([0, 1, 0, -1]),
        "signals": {"p_target": np.array([0.9, 0.8, 0.1, np.nan], dtype=np.float32), "rho": ones},
        "num_classes": 2,
    }
    notes = report_notes(**common, mean_rho=np.array([1.0, 0.999, 0.995]))  # type: ignore[arg-type]
    assert notes["components_collapsed"] is True
    assert notes["training_accuracy"] == pytest.approx(2 / 3)
    assert notes["flagged_by_rule"] == 1
    for second in (0.4, 0.99):
        notes = report_notes(**common, mean_rho=np.array([1.0, second, 0.995]))  # type: ignore[arg-type]
        assert notes["components_collapsed"] is False
