"""The noise model as an engine: out of fold, resumable, weighed by likelihood, and its choice of directions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.metrics import auroc
from engines.contract import EngineInputError, TrainingCancelled, TrainingData
from engines.noise_model import training
from engines.noise_model.training import NoiseModelConfig, best_dimension, guess_noise_rate, train, weights_of
from engines.shared.components import principal_components
from tests.engines.helpers import MemoryCheckpoint
from tests.engines.noise_model.test_likelihood import CLASSES, drawn


def features_of(rows: NDArray, noise: int = 40, seed: int = 0) -> NDArray:
    """(N, 1, d) features: the rows turned into ``noise`` directions more that say nothing."""
    rng = np.random.default_rng(seed)
    table = np.concatenate([rows, rng.standard_normal((len(rows), noise))], axis=1)
    turned, _ = np.linalg.qr(rng.standard_normal((table.shape[1], table.shape[1])))
    return (table @ turned).astype(np.float32)[:, None]


@pytest.fixture(params=[False, True], ids=["few classes", "many classes"])
def is_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether these few classes count as many: starts alone are compared, and one model is fitted."""
    if request.param:
        monkeypatch.setattr(training, "MANY_CLASSES", 0)
    return bool(request.param)


def test_train__finds_pair_flips_and_says_how_many(is_many: bool) -> None:
    rows, given, true, _ = drawn(1_500, seed=1, flip=0.4)
    result = train(TrainingData(None, given, CLASSES, features=features_of(rows)), NoiseModelConfig())
    assert result.is_out_of_sample
    assert (len(result.provenance.notes["weights"]) == 1) == is_many
    assert auroc(given != true, 1 - result.trust_score) > 0.97
    assert (1 - result.trust_score).mean() == pytest.approx((given != true).mean(), abs=0.05)
    assert (result.pred_probs.argmax(1) == true).mean() > 0.9


def test_train__no_label_judges_itself() -> None:
    """A label that is taken away changes what is said of its sample by no more than the deal of the folds does."""
    rows, given, _, _ = drawn(600, seed=2, flip=0.1)
    data = TrainingData(None, given, CLASSES, features=features_of(rows))
    own = train(data, NoiseModelConfig())
    blank = given.copy()
    blank[7] = -1
    unlabeled = train(TrainingData(None, blank, CLASSES, features=data.features), NoiseModelConfig())
    np.testing.assert_allclose(own.pred_probs[7], unlabeled.pred_probs[7], atol=0.1)
    assert np.isnan(unlabeled.trust_score[7])


@pytest.mark.usefixtures("is_many")
def test_train__goes_on_where_it_was_stopped_with_the_same_result() -> None:
    rows, given, _, _ = drawn(300, seed=4)
    data = TrainingData(None, given, CLASSES, features=features_of(rows))
    whole = train(data, NoiseModelConfig())
    checkpoint = MemoryCheckpoint()

    def stop(record: object) -> None:
        if record.progress > 0.4:  # type: ignore[attr-defined]
            raise TrainingCancelled

    with pytest.raises(TrainingCancelled):
        train(data, NoiseModelConfig(), on_epoch=stop, checkpoint=checkpoint)
    resumed = train(data, NoiseModelConfig(), checkpoint=checkpoint)
    np.testing.assert_array_equal(whole.trust_score, resumed.trust_score)
    np.testing.assert_array_equal(whole.pred_probs, resumed.pred_probs)
    assert len(resumed.history) == len(whole.history)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_train__the_same_bits_twice_on_a_card_and_nearly_those_of_a_cpu() -> None:
    rows, given, _, _ = drawn(1_500, seed=1, flip=0.4)
    data = TrainingData(None, given, CLASSES, features=features_of(rows))
    here, *card = (train(data, NoiseModelConfig(), device=device) for device in ("cpu", "cuda", "cuda"))
    np.testing.assert_array_equal(card[0].trust_score, card[1].trust_score)
    np.testing.assert_allclose(here.trust_score, card[0].trust_score, atol=0.05)


def test_train__learns_from_a_draw_of_many_rows_and_judges_all() -> None:
    rows, given, true, _ = drawn(3_000, seed=6)
    data = TrainingData(None, given, CLASSES, features=features_of(rows))
    result = train(data, NoiseModelConfig(rows_to_fit=600))
    assert result.provenance.notes["rows_fitted"] == 600
    assert auroc(given != true, 1 - result.trust_score) > 0.95


def test_guess_noise_rate__is_what_the_model_doubts_of_a_draw() -> None:
    rows, given, true, _ = drawn(600, seed=1, flip=0.4)
    given[::50] = -1
    data = TrainingData(None, given, CLASSES, features=features_of(rows))
    labeled = np.flatnonzero(given >= 0)
    alone = TrainingData(None, given[labeled], CLASSES, features=data.features[labeled])
    guess = guess_noise_rate(data, seed=3)
    assert guess == pytest.approx(float((1 - train(alone, NoiseModelConfig(), seed=3).trust_score).mean()))
    assert guess == pytest.approx((given != true)[labeled].mean(), abs=0.06)


def test_train__refuses_images() -> None:
    images = np.zeros((8, 1, 4, 4), dtype=np.uint8)
    with pytest.raises(EngineInputError, match="needs features"):
        train(TrainingData(images, np.arange(8) % 2, 2), NoiseModelConfig())


def test_config__names_every_problem() -> None:
    with pytest.raises(EngineInputError, match="folds is 1.*penalty is -1"):
        NoiseModelConfig(folds=1, penalty=-1)


def test_weights_of__falls_with_the_root_of_the_rows() -> None:
    np.testing.assert_allclose(weights_of([-1.0, -1.1], 100), [np.e / (1 + np.e), 1 / (1 + np.e)])


def test_best_dimension__keeps_what_explains_labels_and_no_more() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(CLASSES, size=500)
    means = 3 * rng.standard_normal((CLASSES, 8))
    table = np.concatenate(
        [means[true] + rng.standard_normal((500, 8)), 0.9 * rng.standard_normal((500, 120))], axis=1
    )
    assert best_dimension(table.astype(np.float32), true, CLASSES, (2, 8, 128)) == 8


def test_principal_components__are_those_of_scikit_learn_on_one_scale() -> None:
    from sklearn.decomposition import PCA

    rows = features_of(drawn(200)[0], noise=6)[:, 0]
    found = principal_components(rows, 4)
    expected = PCA(4).fit(rows).transform(rows)
    np.testing.assert_allclose(np.abs(found.of(rows)), np.abs(expected / expected.std()), atol=1e-4)
    views = np.stack([rows, rows + 1], axis=1)
    np.testing.assert_allclose(found.of(views), found.of(rows + 0.5), atol=1e-4)
    np.testing.assert_allclose(found.of_views(views)[:, 0], found.of(rows), atol=1e-4)
