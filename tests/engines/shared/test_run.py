"""What surrounds every engine's loop: set-up, going on from a checkpoint, the record, the result."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import timm
import torch
from torch import nn

from engines.contract import EngineInputError, EpochRecord, EvaluationSet, TrainingCancelled, TrainingData
from engines.networks.pretrained import PretrainedNetwork
from engines.shared.checkpoint import CheckpointError
from engines.shared.config import LoopConfig
from engines.shared.device import computes_in_bfloat16
from engines.shared.loader import scoring_batch, standardize
from engines.shared.run import Run
from engines.shared.scoring import feature_views, heldout_accuracy
from tests.engines.helpers import MemoryCheckpoint, digits, digits_data, on_features

CONFIG = LoopConfig(network="mlp", epochs=3, batch_size=16, views=2)
SIGNAL = {"loss": np.zeros(40)}


def run_of(data: TrainingData | None = None, config: LoopConfig = CONFIG, **options: Any) -> Run:
    return Run("l2b", data or digits_data(40)[0], config, device="cpu", **options)


def result_of(run: Run, **options: Any) -> Any:
    num = run.data.num_samples
    return run.result(
        pred_probs=np.full((num, 10), 0.1, dtype=np.float32),
        trust_score=np.zeros(num, dtype=np.float32),
        signals={},
        embeddings=np.zeros((num, 2), dtype=np.float32),
        notes={"why": "here"},
        **options,
    )


def test_run__nothing_to_learn_from_is_an_error() -> None:
    images, _ = digits(8)
    with pytest.raises(EngineInputError, match="all given labels are missing"):
        run_of(TrainingData(images, np.full(8, -1), 10))


def test_run__labels_and_labeled_rows() -> None:
    data, _ = digits_data(40, num_unlabeled=5)
    run = run_of(data)
    np.testing.assert_array_equal(run.labels.numpy(), data.given_labels)
    assert run.labeled.tolist() == list(range(5, 40))
    run.labels.zero_()
    assert data.given_labels.any()


@pytest.mark.parametrize(("side", "wanted"), [(None, 112), (96, 96), (200, 128)])
def test_run__images_are_reduced_on_a_cpu(side: int | None, wanted: int) -> None:
    images, labels = digits(8, side=128)
    evaluation = EvaluationSet(images, labels)
    data = TrainingData(images, labels, 10, evaluation=evaluation)
    run = run_of(data, dataclasses.replace(CONFIG, side=side))
    assert run.rows.shape == (1, wanted, wanted)
    assert run.inputs(torch.tensor([0, 1])).shape == (2, 1, wanted, wanted)
    assert run.evaluation is not None
    assert run.evaluation[0].shape == (1, wanted, wanted)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with random weights of a small network of timm."""
    path = tmp_path_factory.mktemp("weights") / "weights.safetensors"
    safetensors.torch.save_file(timm.create_model("resnet10t").state_dict(), path)
    return str(path)


@pytest.mark.parametrize(("side", "network_side"), [(8, 96), (128, 32)])
def test_run__a_pretrained_network_takes_the_images_as_they_are(
    weights: str, side: int, network_side: int
) -> None:
    """It brings them to its own side; rows scored at once suit the larger of the two."""
    images, labels = digits(8, side=side)
    config = dataclasses.replace(CONFIG, network="timm:resnet10t", weights=weights, image_side=network_side)
    data = TrainingData(images, labels, 10, evaluation=EvaluationSet(images, labels))
    run = run_of(data, config)
    assert run.rows.shape == (1, side, side)
    assert run.mean_std is None
    largest = max(side, network_side)
    assert run.scoring_batch == scoring_batch(run.device, (largest, largest))
    network = run.build_network("network", 0)
    assert isinstance(network, PretrainedNetwork)
    assert network.trunk.config.side == network_side


def test_run__features_are_standardised_whatever_the_network_of_images(weights: str) -> None:
    config = dataclasses.replace(CONFIG, network="timm:resnet10t", weights=weights)
    assert run_of(on_features(digits_data(40)[0]), config).mean_std is not None


def test_run__labels_held_out_are_a_copy() -> None:
    data, _ = digits_data(40, with_evaluation=True)
    run = run_of(data)
    assert run.evaluation is not None
    run.evaluation[1].fill_(-5)
    assert data.evaluation is not None
    assert (data.evaluation.labels >= 0).all()


def test_features__in_the_precision_of_the_config() -> None:
    data, _ = digits_data(40)
    run = run_of(data, dataclasses.replace(CONFIG, precision="bfloat16"))
    network = run.build_network("network", 0)
    found = run.features(network, views=3)
    assert found.shape[:2] == (40, 3)
    np.testing.assert_array_equal(
        found, feature_views(network, run.rows, run.mean_std, views=3, precision="bfloat16")
    )
    if computes_in_bfloat16(run.device):
        plain = feature_views(network, run.rows, run.mean_std, views=3, precision="float32")
        assert not np.array_equal(found, plain)


def test_side_on__large_images_stay_on_cuda() -> None:
    assert CONFIG.side_on(torch.device("cuda")) is None
    assert dataclasses.replace(CONFIG, side=96).side_on(torch.device("cuda")) == 96


@pytest.mark.parametrize("form", ["images", "features"])
def test_inputs__are_standardised_rows(form: str) -> None:
    data, _ = digits_data(40)
    run = run_of(data if form == "images" else on_features(data))
    index = torch.tensor([3, 1])
    assert run.mean_std is not None
    expected = standardize(run.rows.batch(index), *run.mean_std)
    torch.testing.assert_close(run.inputs(index, "none", torch.Generator()), expected)
    kind = run.rows.resolve_augment("auto")
    moved = [run.inputs(index, kind, torch.Generator().manual_seed(seed)) for seed in range(8)]
    assert any(not torch.equal(moved[0], other) for other in moved[1:])


def test_inputs__images_as_they_are_but_features_never() -> None:
    data, _ = digits_data(40)
    index = torch.arange(40)
    plain = run_of(data, standardized=False).inputs(index, "none", torch.Generator())
    assert float(plain.min()) == 0.0
    assert float(plain.max()) == 1.0
    scaled = run_of(on_features(data), standardized=False).inputs(index, "none", torch.Generator())
    assert abs(float(scaled.mean())) < 0.1


def test_build_network__from_the_named_stream() -> None:
    def weights(run: Run, *stream: int | str) -> torch.Tensor:
        return nn.utils.parameters_to_vector(run.build_network(*stream).parameters())

    run = run_of()
    assert torch.equal(weights(run, "network", 0), weights(run_of(), "network", 0))
    assert not torch.equal(weights(run, "network", 0), weights(run, "network", 1))
    assert not torch.equal(weights(run, "network", 0), weights(run_of(seed=1), "network", 0))


def test_network_name__auto_is_an_mlp_on_features() -> None:
    config = dataclasses.replace(CONFIG, network="auto")
    data, _ = digits_data(40)
    assert run_of(data, config).network_name() == "conv3"
    assert run_of(on_features(data), config).network_name() == "mlp"


@pytest.mark.parametrize("form", ["images", "features"])
def test_score__rows_of_the_index_and_heldout_accuracy(form: str) -> None:
    data, _ = digits_data(40, with_evaluation=True)
    run = run_of(data if form == "images" else on_features(data))
    network = run.build_network("network")
    everything, some = run.score(network, views=2), run.score(network, views=2, index=torch.tensor([7, 2]))
    np.testing.assert_allclose(some.log_probs, everything.log_probs[[7, 2]], rtol=1e-5)
    assert run.evaluation is not None
    other = run.build_network("other")
    each = [heldout_accuracy(one, *run.evaluation, run.mean_std) for one in (network, other)]
    assert run.heldout_accuracy(network, other) == {"heldout_accuracy": pytest.approx(np.mean(each))}
    assert run_of().heldout_accuracy(network) == {}


def test_epoch__is_saved_before_anybody_hears_of_it() -> None:
    checkpoint, heard = MemoryCheckpoint(), []

    def listen(record: EpochRecord) -> None:
        heard.append((record.epoch, checkpoint.num_saves))
        if record.epoch == 1:
            raise TrainingCancelled("enough.")

    run = run_of(checkpoint=checkpoint, on_epoch=listen)
    assert run.resume() is None
    run.epoch(0, {"loss": 1.0}, {}, SIGNAL, state=lambda: {"done": 1})
    with pytest.raises(TrainingCancelled):
        run.epoch(1, {"loss": 1.0}, {}, SIGNAL, state=lambda: {"done": 2})
    assert heard == [(0, 1), (1, 2)]
    again = run_of(checkpoint=checkpoint)
    state = again.resume()
    assert state is not None
    assert state["done"] == 2
    assert [record.epoch for record in again.recorder.history] == [0, 1]
    assert [record.progress for record in again.recorder.history] == pytest.approx([1 / 3, 2 / 3])


def test_epoch__asks_for_no_state_without_a_checkpoint() -> None:
    run = run_of()
    run.resume()
    run.epoch(0, {}, {}, SIGNAL, state=lambda: pytest.fail("nobody keeps it"))
    assert not run.keeps_checkpoints


@pytest.mark.parametrize("other", ["config", "seed", "form"])
def test_resume__another_runs_state_is_refused(other: str) -> None:
    checkpoint = MemoryCheckpoint()
    run = run_of(checkpoint=checkpoint)
    run.resume()
    run.epoch(0, {}, {}, SIGNAL, state=dict)
    data, _ = digits_data(40)
    changed = {
        "config": lambda: run_of(data, dataclasses.replace(CONFIG, epochs=4), checkpoint=checkpoint),
        "seed": lambda: run_of(data, seed=1, checkpoint=checkpoint),
        "form": lambda: run_of(on_features(data), checkpoint=checkpoint),
    }[other]()
    with pytest.raises(CheckpointError, match="was written by a run with another"):
        changed.resume()
    assert run_of(data, checkpoint=checkpoint).resume() is not None


def test_resume__progress_counts_the_epochs_of_all_stages() -> None:
    run = run_of()
    run.resume(12)
    run.epoch(0, {}, {}, SIGNAL, stage="search", state=dict)
    (record,) = run.recorder.history
    assert (record.stage, record.num_epochs, record.progress) == ("search", 3, pytest.approx(1 / 12))


def test_result__carries_history_and_provenance() -> None:
    run = run_of(seed=5)
    run.resume()
    run.epoch(0, {"train_loss": 2.0}, {"train_accuracy": 0.5}, SIGNAL, state=dict)
    seen = np.zeros((40, 2, 3), dtype=np.float16)
    result = result_of(run, is_out_of_sample=True, features=seen)
    assert result.is_out_of_sample
    assert result.features is seen
    assert result.signal_history["loss"].shape == (1, 40)
    assert [record.losses for record in result.history] == [{"train_loss": 2.0}]
    provenance = result.provenance
    assert (provenance.engine, provenance.seed, provenance.device) == ("l2b", 5, "cpu")
    assert LoopConfig(**provenance.config) == CONFIG
    assert provenance.notes == {"why": "here"}
    assert provenance.seconds > 0
