"""L2B as a whole: the meta step on small networks, and training on real 8-px digits."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from benchmarks.papers.l2b_ablation import plain as plain_weights
from engines.contract import EngineInputError, EpochRecord, EvaluationSet, TrainingCancelled, TrainingData
from engines.l2b import weighing
from engines.l2b.config import l2b_learning_rate
from engines.l2b.signals import residual_alpha
from engines.l2b.step import MetaForward, meta_forward
from engines.l2b.training import SPEC, L2BConfig, train, train_one
from engines.meta.directional import MetaGradient, one_hot
from engines.networks.small import build_network
from engines.shared.rows import open_rows
from engines.shared.run import Run
from engines.shared.scoring import Scores
from tests.engines.helpers import MemoryCheckpoint

TINY = L2BConfig(
    network="mlp", epochs=3, warmup_epochs=1, batch_size=32, meta_batch_size=16, learning_rate=2e-3, views=1,
    augment="none", meta_per_class=5,
)  # fmt: skip


def digits(num: int, *, trusted: int = 0, unlabeled: int = 0) -> tuple[TrainingData, NDArray[np.bool_]]:
    """The first digits of scikit-learn with 45 % pair flips; ``trusted`` right labels first, then unlabeled."""
    bunch = load_digits()
    images = (bunch.images[:num, None] * 15.9).astype(np.uint8)
    true = bunch.target[:num].astype(np.int64)
    flip = np.random.default_rng(0).random(num) < 0.45
    flip[: trusted + unlabeled] = False
    given = np.where(flip, (true + 1) % 10, true)
    given[trusted : trusted + unlabeled] = -1
    return TrainingData(images, given, 10, trusted=np.arange(num) < trusted), flip


def digits_batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    images = torch.from_numpy(load_digits().images[:96, None] / 16).float()
    targets = one_hot(torch.from_numpy(load_digits().target[:96].astype(np.int64)), 10)
    return images[:64], targets[:64], images[64:], targets[64:]


class Linear(nn.Module):
    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.head = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.flatten(1), self.head(x.flatten(1))


def test_weigh__signed_alpha_is_the_derivative_along_v_of_length_one() -> None:
    run = Run("l2b", digits(20)[0], TINY, device="cpu")
    direction = torch.tensor([0.03, 0.04])
    meta = MetaGradient({"weight": direction}, direction.norm(), torch.tensor(1.0), torch.zeros(2, 10))
    one_of_ten = torch.eye(10)[:3]
    found = MetaForward(one_of_ten, one_of_ten, torch.tensor([0.01, -0.02, 0.0]), torch.zeros(3), meta)
    _, signed = weighing.Weigher(run, TINY, "none").weigh(found, torch.ones(3, dtype=torch.bool), 0.1)
    torch.testing.assert_close(signed, torch.tensor([0.2, -0.4, 0.0]))


def test_meta_forward__logistic_regression_tells_flipped_from_right() -> None:
    torch.manual_seed(0)
    true = torch.arange(400) % 2
    samples = torch.randn(400, 64) + (2 * true[:, None] - 1) * 0.3
    flipped = torch.rand(300) < 0.3
    given = torch.where(flipped, 1 - true[:300], true[:300])
    found = meta_forward(Linear(2), samples[:300], one_hot(given, 2), samples[300:], one_hot(true[300:], 2))
    assert roc_auc_score(~flipped.numpy(), found.alpha.numpy()) > 0.95


def test_meta_forward__changes_running_statistics_exactly_once() -> None:
    images, targets, meta_images, meta_targets = digits_batch()
    torch.manual_seed(0)
    mine = build_network("conv3", channels=1, image_size=(8, 8), num_classes=10)
    plain = copy.deepcopy(mine)
    meta_forward(mine, images, targets, meta_images, meta_targets)
    plain(images)
    for (name, found), wanted in zip(mine.named_buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(found, wanted, msg=name)


def test_meta_forward__takes_the_first_of_tied_classes() -> None:
    network = Linear()
    nn.init.zeros_(network.head.weight)
    nn.init.zeros_(network.head.bias)
    images, targets, meta_images, meta_targets = digits_batch()
    found = meta_forward(network, images, targets, meta_images, meta_targets)
    assert (found.pseudo.argmax(dim=1) == 0).all()


def test_train__finds_pair_flips_with_trusted_samples() -> None:
    data, flip = digits(700, trusted=150)
    config = replace(TINY, epochs=12, warmup_epochs=3, meta_batch_size=64)
    result = train(data, config, device="cpu")
    rest = np.arange(700) >= 150
    found = roc_auc_score(~flip[rest], result.trust_score[rest])
    plain = train_one(Run("l2b", data, config, seed=0, device="cpu"), config, weights=plain_weights)
    assert found > 0.9
    assert found > roc_auc_score(~flip[rest], plain.trust_score[rest]) + 0.05
    assert roc_auc_score(~flip[rest], result.signals["visit_trust"][rest]) > 0.8
    assert result.provenance.notes["meta_source"] == "trusted"
    assert "The meta set is small" in result.provenance.notes["warnings"][0]


def test_train__unlabeled_samples_have_beta_but_no_alpha_and_no_trust() -> None:
    data, _ = digits(200, trusted=60, unlabeled=40)
    result = train(data, TINY, device="cpu")
    missing = ~data.labeled
    assert np.isnan(result.trust_score[missing]).all()
    assert np.isnan(result.signals["alpha"][missing]).all()
    assert np.isnan(result.signals["alpha_residual"][missing]).all()
    assert (result.signals["beta"][missing] >= 0).all()
    assert np.isfinite(result.trust_score[~missing]).all()


def test_train__a_look_between_epochs_leaves_batch_norm_learning() -> None:
    data, _ = digits(120)
    config = replace(TINY, network="conv3", epochs=2)
    seen = replace(data, evaluation=EvaluationSet(data.images, data.given_labels))
    watched, alone = (train(one, config, device="cpu") for one in (seen, data))
    np.testing.assert_array_equal(watched.trust_score, alone.trust_score)


def test_train__records_one_weight_per_visit_and_epoch() -> None:
    data, _ = digits(200, trusted=60)
    result = train(data, TINY, device="cpu")
    alpha, beta = result.signal_history["alpha"], result.signal_history["beta"]
    assert alpha.shape == (3, 200)
    assert (alpha[0] == 1).all()  # warm-up is plain cross-entropy
    assert (beta[0] == 0).all()
    # Each of the 6 or 7 batches has weights of sum 1, kept times the batch size.
    assert np.nansum(alpha[2].astype(np.float64) + beta[2]) == pytest.approx(200, rel=0.01)
    assert set(result.signals) == set(SPEC.signals)


def test_train__the_last_pass_over_all_samples_also_chooses_the_last_meta_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes, score = [], Run.score

    def counted(run: Run, *arguments: Any, **options: Any) -> Scores:
        passes.append(options)
        return score(run, *arguments, **options)

    monkeypatch.setattr(Run, "score", counted)
    train(digits(120)[0], replace(TINY, meta_losses="evaluation"), device="cpu")
    assert len(passes) == 3  # before each of two epochs with meta steps, and in the end


def test_train__trusted_samples_outside_training_are_judged_all_the_same() -> None:
    data, _ = digits(300, trusted=60)
    result = train(data, replace(TINY, train_on_trusted=False), device="cpu")
    assert np.isnan(result.signals["alpha"][:60]).all()
    assert np.isfinite(result.signals["alpha"][60:]).all()
    assert np.isfinite(result.signals["alpha_residual"]).all()
    assert np.isfinite(result.trust_score).all()


def test_train__falls_back_where_the_meta_set_is_the_batch() -> None:
    data, _ = digits(60, trusted=0)
    result = train(data, replace(TINY, batch_size=64), device="cpu")
    assert result.provenance.notes["fallback_steps"] == 2
    assert result.provenance.notes["meta_steps"] == 0
    assert (result.signals["alpha"] == 1).all()


def test_train__falls_back_where_the_direction_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "MIN_DIRECTION_NORM", 1e9)
    data, _ = digits(200, trusted=60)
    result = train(data, TINY, device="cpu")
    assert result.provenance.notes["fallback_steps"] == result.provenance.notes["meta_steps"] > 0
    assert (result.signals["alpha"] == 1).all()
    assert (result.signals["beta"] == 0).all()


def test_train__a_direction_of_exactly_zero_is_a_derivative_of_zero() -> None:
    """Black and white images and a large step: every meta sample is fitted to p = 1, its gradient is 0."""
    images, labels = np.zeros((60, 1, 8, 8), dtype=np.uint8), np.arange(60) % 2
    images[1::2] = 255
    data = TrainingData(images, labels, 2, trusted=np.arange(60) < 20)
    result = train(data, replace(TINY, learning_rate=10.0), device="cpu")
    assert result.provenance.notes["fallback_steps"] == result.provenance.notes["meta_steps"] > 0
    assert (result.signals["alpha_signed"] == 0).all()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimizer": "sgd", "learning_rate": 0.02, "schedule": "cosine_to_zero"},
        {"meta_losses": "evaluation"},
        {"meta_losses": "training"},
    ],
    ids=str,
)
def test_train__every_option_resumes_to_the_same_bits(changes: dict[str, Any]) -> None:
    data, _ = digits(150, trusted=0 if "meta_losses" in changes else 60, unlabeled=10)
    config = replace(TINY, **changes)
    whole = train(data, config, device="cpu")
    checkpoint = MemoryCheckpoint()

    def stop(record: EpochRecord) -> None:
        if record.epoch == 1:
            raise TrainingCancelled("enough")

    with pytest.raises(TrainingCancelled, match="enough"):
        train(data, config, device="cpu", on_epoch=stop, checkpoint=checkpoint)
    again = train(data, config, device="cpu", checkpoint=checkpoint)
    np.testing.assert_array_equal(again.pred_probs, whole.pred_probs)
    np.testing.assert_array_equal(again.trust_score, whole.trust_score)
    for name, values in whole.signals.items():
        np.testing.assert_array_equal(again.signals[name], values, err_msg=name)
    assert np.isfinite(whole.pred_probs).all()
    assert again.provenance.notes == whole.provenance.notes


def test_l2b_config__lists_every_problem() -> None:
    with pytest.raises(EngineInputError, match=r"base is 'x'.*meta_batch_size is 1.*warmup_epochs is -1"):
        L2BConfig(base="x", meta_batch_size=1, warmup_epochs=-1)


def test_l2b_config__paper_preset_is_the_published_one() -> None:
    config = L2BConfig.preset("paper")
    assert (config.epochs, config.warmup_epochs, config.batch_size, config.clip_norm) == (300, 10, 512, 0.25)
    assert (config.optimizer, config.learning_rate, config.weight_decay) == ("sgd", 0.15, 5e-4)
    assert config.meta_mixture_steps == 10
    assert l2b_learning_rate(config, 0) == 0.15
    assert l2b_learning_rate(config, 150) == pytest.approx(0.075)
    assert l2b_learning_rate(config, 300) == pytest.approx(0)
    assert L2BConfig.paper("isic2019").augment == "turn_crop_flip"


def test_residual_alpha__measures_the_direction_of_the_meta_gradient_and_not_its_length() -> None:
    """With weights of 0 every class is equally likely, so images 1,000 times darker only scale both gradients."""
    data, _ = digits(40)
    network = Linear()
    network.head = nn.Linear(64, 10, bias=False)
    nn.init.zeros_(network.head.weight)
    store = open_rows(data.inputs, "cpu")
    labels = torch.from_numpy(data.given_labels)

    def signal(scale: float) -> NDArray[np.float32]:
        dark = (torch.zeros(1), torch.full((1,), scale))
        return residual_alpha(network, store, dark, labels, torch.arange(20), num_classes=10, batch_size=16)

    np.testing.assert_allclose(1e3 * signal(1e5), signal(1e2), rtol=1e-2, atol=1e-6)


def test_train__two_free_meta_samples_are_enough_for_a_meta_step() -> None:
    result = train(digits(80, trusted=40)[0], replace(TINY, meta_batch_size=2), device="cpu")
    assert result.provenance.notes["meta_steps"] > 0
