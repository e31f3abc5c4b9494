"""Every engine keeps every promise of the contract: checks over engines and forms of input, on real digits.

An engine's runs are tiny and shared between the checks that can share them (``Runs``); what a check needs
is trained when it is first asked for.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import tempfile
from collections.abc import Callable
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import timm
import torch
from numpy.typing import NDArray

from benchmarks.metrics import auroc
from engines.contract import (
    MAX_SNAPSHOTS,
    EngineInputError,
    EngineResult,
    EngineSpec,
    EpochRecord,
    TrainingCancelled,
    TrainingData,
)
from engines.networks.heads import HEADS
from engines.networks.pretrained import pretrained_network
from engines.registry import ENGINES
from engines.shared.config import LoopConfig
from engines.shared.device import seeded_init
from engines.shared.out_of_fold import FoldedConfig
from tests.engines.helpers import MemoryCheckpoint, digits, digits_data, on_features, rank_correlation

SUM_ATOL = 1e-5
"""float32 rows of ten probabilities."""

TINY = {"epochs": 3, "batch_size": 64, "views": 2, "network": "mlp"}
"""What every tiny run changes about ``quick``."""

TINY_BY_ENGINE: dict[str, dict[str, Any]] = {}
"""What an engine's tiny runs change besides, so that all of its stages are reached in three epochs."""

LEARNED_AUROC = 0.85
"""Least AUROC of trust on ``NUM_LEARNED`` digits with 20 % symmetric errors; chance is 0.5."""
NUM_LEARNED = 300

DEVICES: list[Any] = ["cpu"]
if torch.cuda.is_available():
    DEVICES.append(pytest.param("cuda", marks=pytest.mark.gpu))
"""Every check runs on every kind of device that is here."""

CUDA_RANK_CORRELATION = 0.98
"""Least Spearman correlation of trust between two runs that are bitwise the same on the CPU: on CUDA, sums of
many numbers come in any order, so equal is equal up to that."""
CUDA_ACCURACY = 0.05
"""The same for the training accuracy of an epoch on 65 samples."""

TRAINED = [name for name, spec in ENGINES.items() if issubclass(spec.config_type, LoopConfig)]
"""Engines that train a network; a witness without one (neighbours) has tests of its own."""

AVERAGED = "averaged"
"""Two trainings on features; all other runs are of one, whatever the default."""

FINETUNED = "timm:test_resnet"
"""The smallest residual network of timm: made for tests, 370,000 weights."""
FINETUNED_SIDE = 16

SHOWN_TO_ALL: dict[str, dict[str, Any]] = {"umn": {"rotations": 1}}
"""What makes an engine train one network on every label in ordinary batches."""


PAPER_SEARCH: dict[str, dict[str, Any]] = {
    "coteaching": {"search_iterations": 1, "search_samples": 1, "search_epochs": 2, "rank_epochs": 1},
}
"""What makes an engine's search short whatever the preset."""


UNSEARCHED: dict[str, dict[str, Any]] = {"coteaching": {"noise_rate": 0.2}}
"""What makes an engine choose nothing by a few samples: in another order it might choose otherwise."""


class Killed(BaseException):
    """Stands for a killed process: nothing in an engine may catch it."""


class Runs:
    """The runs of one engine that checks share."""

    def __init__(self, spec: EngineSpec, device: str, form: str) -> None:
        self.spec, self.device, self.form = spec, device, form
        self.is_on_features = form in ("features", AVERAGED)
        changes = PAPER_SEARCH.get(spec.name, {}) if form == "finetuned" else {}
        self.config = dataclasses.replace(
            spec.config_type.preset("quick"), **TINY, **TINY_BY_ENGINE.get(spec.name, {}), **changes
        )
        self.config = trained(self.config, 2 if form == AVERAGED else 1)
        self.data = self.in_form(digits_data(200, num_unlabeled=10, num_trusted=40)[0])
        for array in (self.data.inputs, self.data.given_labels, self.data.trusted_mask):
            array.setflags(write=False)
        self.records: list[EpochRecord] = []

    def in_form(self, data: TrainingData) -> TrainingData:
        return on_features(data) if self.is_on_features and data.images is not None else data

    def quick(self) -> Any:
        """``quick`` as it is, with the small network and batches for few samples."""
        config = self.spec.config_type.preset("quick")
        config = config.for_features() if self.form == "features" else config
        changes: dict[str, Any] = {}
        if self.form == "finetuned":
            changes = {"epochs": 8, **PAPER_SEARCH.get(self.spec.name, {})}
        if self.form == "features" and self.spec.name == "umn":
            changes = {"epochs": 15}  # its own are few, for thousands of samples
        return trained(dataclasses.replace(config, network="mlp", batch_size=64, **changes), 1)

    def train(self, data: TrainingData | None = None, **options: Any) -> EngineResult:
        config = self.in_form_config(options.pop("config", self.config))
        return self.spec.train(
            self.in_form(data or self.data),
            config,
            seed=options.pop("seed", 3),
            device=self.device,
            **options,
        )

    def in_form_config(self, config: Any) -> Any:
        """What ``train`` makes of a config."""
        if self.is_on_features and config.network not in HEADS:
            return dataclasses.replace(config, network="auto")
        if self.form == "finetuned":
            # As it was set, and not as `for_finetuning` of an engine shortens a preset.
            return LoopConfig.for_finetuning(config, FINETUNED, other_weights(), FINETUNED_SIDE)
        return config

    @cached_property
    def base(self) -> EngineResult:
        self.records.clear()
        return self.train(on_epoch=self.records.append)

    @cached_property
    def learned(self) -> tuple[EngineResult, NDArray[np.bool_]]:
        """A run of ``quick`` as it is on ``NUM_LEARNED`` digits, and which labels are wrong."""
        data, wrong = digits_data(
            NUM_LEARNED, num_trusted=60 if self.spec.name in ("l2b", "coteaching") else 0
        )
        return self.train(data, config=self.quick(), seed=0), wrong

    def assert_same(self, one: EngineResult, other: EngineResult) -> None:
        """Equality of everything but time and memory, bitwise on the CPU."""
        if self.device == "cpu":
            assert_bitwise_same(one, other)
            return
        self.assert_same_verdict(one, other)
        curves = [[(r.stage, r.epoch, r.num_epochs, r.progress) for r in run.history] for run in (one, other)]
        assert curves[0] == curves[1]

    def assert_same_verdict(self, one: EngineResult, other: EngineResult) -> None:
        """Equality of predictions and trust: bitwise on the CPU, of trust's ranks on CUDA."""
        if self.device == "cpu":
            np.testing.assert_array_equal(one.pred_probs, other.pred_probs)
            np.testing.assert_array_equal(one.trust_score, other.trust_score)
            return
        np.testing.assert_array_equal(np.isnan(one.trust_score), np.isnan(other.trust_score))
        assert rank_correlation(one, other) >= CUDA_RANK_CORRELATION


WEIGHTS = tempfile.TemporaryDirectory()


@cache
def other_weights() -> str:
    """A file with weights of ``FINETUNED`` as a hub has it: the whole classifier, trained on other digits."""
    images, labels = (torch.from_numpy(values) for values in digits(1_200, start=500))
    with seeded_init(0, "other digits"):
        network = pretrained_network(FINETUNED, None, 10, side=FINETUNED_SIDE)
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
        for rows in torch.randperm(6 * len(images)).remainder(len(images)).split(64):
            _, logits = network(images[rows].float() / 255)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, labels[rows]).backward()
            optimizer.step()
        whole = timm.create_model(FINETUNED.removeprefix("timm:"))
    whole.load_state_dict(network.trunk.network.state_dict(), strict=False)
    path = str(Path(WEIGHTS.name) / "weights.safetensors")
    safetensors.torch.save_file(whole.state_dict(), path)
    return path


def trained(config: Any, trainings: int) -> Any:
    """The config with so many trainings, where its engine averages several."""
    if isinstance(config, FoldedConfig):
        return dataclasses.replace(config, folds=trainings)
    return config


@cache
def runs_of(engine: str, device: str, form: str) -> Runs:
    return Runs(ENGINES[engine], device, form)


def assert_bitwise_same(one: EngineResult, other: EngineResult) -> None:
    """Equality of everything but time and memory."""
    for name in ("pred_probs", "trust_score", "embeddings"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert set(one.signals) == set(other.signals)
    for name, values in one.signals.items():
        np.testing.assert_array_equal(values, other.signals[name], err_msg=name)
    assert set(one.signal_history) == set(other.signal_history)
    for name, values in one.signal_history.items():
        np.testing.assert_array_equal(values, other.signal_history[name], err_msg=f"history of {name}")
    curve = [(r.stage, r.epoch, r.num_epochs, r.progress, r.losses, r.metrics) for r in one.history]
    assert curve == [(r.stage, r.epoch, r.num_epochs, r.progress, r.losses, r.metrics) for r in other.history]


def assert_sound(result: EngineResult, data: TrainingData) -> None:
    """What every result has, however odd the data."""
    num, classes = data.num_samples, data.num_classes
    assert result.pred_probs.shape == (num, classes)
    assert np.isfinite(result.pred_probs).all()
    np.testing.assert_allclose(result.pred_probs.sum(axis=1), 1.0, atol=SUM_ATOL)
    assert result.trust_score.shape == (num,)
    np.testing.assert_array_equal(np.isnan(result.trust_score), ~data.labeled)
    known = result.trust_score[data.labeled]
    assert ((known >= 0) & (known <= 1)).all()
    assert len(result.embeddings) == num
    assert np.isfinite(result.embeddings).all()


# --- Checks -----------------------------------------------------------------------------------------------


def check_shapes_dtypes_and_ranges(runs: Runs) -> None:
    result = runs.base
    assert_sound(result, runs.data)
    assert result.pred_probs.dtype == result.trust_score.dtype == result.embeddings.dtype == np.float32
    assert (result.pred_probs >= 0).all()
    assert result.embeddings.ndim == 2


def check_signals_match_the_spec(runs: Runs) -> None:
    result = runs.base
    assert set(result.signals) == set(runs.spec.signals)
    for name, values in result.signals.items():
        assert values.shape == (runs.data.num_samples,), name
        assert values.dtype == np.float32, name
        assert np.isfinite(values).any(), name
        assert runs.spec.signals[name].high_means in ("suspect", "clean", "neither")


def check_signal_history_is_bounded(runs: Runs) -> None:
    history = runs.base.signal_history
    assert history
    assert set(history) <= set(runs.spec.signals)
    for name, values in history.items():
        assert values.dtype == np.float16, name
        assert values.ndim == 2
        assert 1 <= values.shape[0] <= MAX_SNAPSHOTS
        assert values.shape[1] == runs.data.num_samples


def check_epochs_are_numbered_and_progress_reaches_one(runs: Runs) -> None:
    history = runs.base.history
    assert [(r.stage, r.epoch) for r in runs.records] == [(r.stage, r.epoch) for r in history]
    following: dict[str, int] = {}
    for record in history:
        assert record.epoch == following.get(record.stage, 0)
        assert record.epoch < record.num_epochs
        following[record.stage] = record.epoch + 1
        assert record.seconds >= 0
        assert all(np.isfinite(value) for value in record.losses.values()), record
    progress = [record.progress for record in history]
    assert all(0 < earlier <= later for earlier, later in pairwise(progress))
    assert progress[-1] == pytest.approx(1.0)


def check_provenance_rebuilds_the_config(runs: Runs) -> None:
    provenance = runs.base.provenance
    stored = json.loads(json.dumps(dict(provenance.config)))
    assert runs.spec.config_type(**stored) == runs.in_form_config(runs.config)
    assert ("weights_sha256" in provenance.notes) == (runs.form == "finetuned")
    json.dumps(dict(provenance.notes))
    assert (provenance.engine, provenance.seed) == (runs.spec.name, 3)
    assert provenance.versions["torch"]
    assert provenance.seconds > 0


def check_inputs_are_unchanged(runs: Runs) -> None:
    fresh = runs.in_form(digits_data(200, num_unlabeled=10, num_trusted=40)[0])
    runs.base.pred_probs.sum()
    np.testing.assert_array_equal(runs.data.inputs, fresh.inputs)
    np.testing.assert_array_equal(runs.data.given_labels, fresh.given_labels)
    np.testing.assert_array_equal(runs.data.trusted_mask, fresh.trusted_mask)


def check_another_seed_another_result(runs: Runs) -> None:
    assert not np.array_equal(runs.base.pred_probs, runs.train(seed=4).pred_probs)


def check_evaluation_images_change_nothing(runs: Runs) -> None:
    data, _ = digits_data(200, num_unlabeled=10, num_trusted=40, with_evaluation=True)
    result = runs.train(data)
    runs.assert_same_verdict(result, runs.base)
    assert any("heldout_accuracy" in record.metrics for record in result.history)


def check_streamed_images_give_the_same_result(runs: Runs) -> None:
    streamed = dataclasses.replace(runs.config, resident="no")
    runs.assert_same_verdict(runs.train(config=streamed), runs.base)


def check_cancellation_passes_through(runs: Runs) -> None:
    def cancel(record: EpochRecord) -> None:
        raise TrainingCancelled(f"stopped after epoch {record.epoch}.")

    with pytest.raises(TrainingCancelled, match="stopped after epoch 0"):
        runs.train(on_epoch=cancel)


def check_killed_and_resumed_is_bitwise_the_same(runs: Runs) -> None:
    """With the same seed and a checkpoint; so one without either of both has this result too."""
    num_epochs = len(runs.base.history)
    ends = {0, num_epochs - 1} if runs.form == "images" else set()  # the loop is that of the other forms
    for victim in sorted({num_epochs // 2} | ends):
        checkpoint, heard = MemoryCheckpoint(), []

        def kill(record: EpochRecord, victim: int = victim, heard: list[str] = heard) -> None:
            heard.append(record.stage)
            if len(heard) == victim + 1:
                raise Killed

        with pytest.raises(Killed):
            runs.train(on_epoch=kill, checkpoint=checkpoint)
        resumed: list[EpochRecord] = []
        runs.assert_same(runs.train(on_epoch=resumed.append, checkpoint=checkpoint), runs.base)
        assert len(resumed) == num_epochs - victim - 1, f"epochs trained again after a kill at {victim}"


def check_killed_while_saving_resumes_from_the_save_before(runs: Runs) -> None:
    class DyingCheckpoint(MemoryCheckpoint):
        def save(self, state: dict[str, Any]) -> None:
            if self.num_saves == 1:
                raise Killed
            super().save(state)

    dying = DyingCheckpoint()
    with pytest.raises(Killed):
        runs.train(checkpoint=dying)
    saved = MemoryCheckpoint()
    saved.data = dying.data
    runs.assert_same(runs.train(checkpoint=saved), runs.base)


def check_outputs_follow_the_input_order(runs: Runs) -> None:
    data, _ = digits_data(NUM_LEARNED, num_trusted=60 if runs.spec.name in ("l2b", "coteaching") else 0)
    unsearched = UNSEARCHED.get(runs.spec.name)
    config = dataclasses.replace(runs.quick(), **unsearched or {})
    learned = runs.train(data, config=config, seed=0) if unsearched else runs.learned[0]
    order = np.random.default_rng(5).permutation(NUM_LEARNED)
    shuffled = TrainingData(data.inputs[order], data.given_labels[order], 10, data.trusted_mask[order])
    result = runs.train(shuffled, config=config, seed=0)
    agree = result.pred_probs.argmax(axis=1) == learned.pred_probs.argmax(axis=1)[order]
    # Rows of others agree in one of ten labels and not at all in trust; another machine rounds otherwise.
    assert agree.mean() > 0.6
    assert np.corrcoef(result.trust_score, learned.trust_score[order])[0, 1] > 0.6


def check_planted_errors_are_found(runs: Runs) -> None:
    learned, wrong = runs.learned
    assert auroc(wrong, 1 - learned.trust_score) > LEARNED_AUROC


def check_all_unlabeled_is_a_clear_error(runs: Runs) -> None:
    images, _ = digits(30)
    with pytest.raises(EngineInputError, match="all given labels are missing"):
        runs.train(TrainingData(images, np.full(30, -1), 10))


def check_a_single_class_is_a_clear_error(runs: Runs) -> None:
    images, _ = digits(30)
    with pytest.raises(EngineInputError, match="only class 4 occurs"):
        runs.train(TrainingData(images, np.full(30, 4), 10))


def check_remainder_of_one(runs: Runs) -> None:
    data, _ = digits_data(65)
    shown = SHOWN_TO_ALL.get(runs.spec.name, {})
    merged, whole = (_short(runs, data, network="conv3", batch_size=size, **shown) for size in (64, 65))
    assert_sound(merged, data)
    # Both are one batch of 65 an epoch, so both must say the same of it.
    tolerance = 1e-6 if runs.device == "cpu" else CUDA_ACCURACY
    for one, other in zip(merged.history, whole.history, strict=True):
        accuracy = one.metrics["train_accuracy"], other.metrics["train_accuracy"]
        assert accuracy[0] == pytest.approx(accuracy[1], abs=tolerance), (one.stage, one.epoch)


def check_fewer_samples_than_a_batch(runs: Runs) -> None:
    data, _ = digits_data(20)
    assert_sound(_short(runs, data), data)


def check_constant_images(runs: Runs) -> None:
    data, _ = digits_data(80)
    data = TrainingData(np.full_like(data.inputs, 7), data.given_labels, 10)
    assert_sound(_short(runs, data, network="conv3"), data)


def check_a_class_with_three_samples(runs: Runs) -> None:
    images, labels = digits(200)
    labels[np.flatnonzero(labels == 9)[3:]] = 0
    data = TrainingData(images, labels, 10)
    assert_sound(_short(runs, data), data)


def check_two_classes_in_colour(runs: Runs) -> None:
    images, labels = digits(120)
    data = TrainingData(images.repeat(3, axis=1), labels % 2, 2)
    assert_sound(_short(runs, data, network="conv3"), data)


def check_more_classes_than_a_byte_counts(runs: Runs) -> None:
    data, _ = digits_data(60)
    data = TrainingData(data.inputs, data.given_labels * 30 + 3, 300)
    shown = SHOWN_TO_ALL.get(runs.spec.name, {})
    config = dataclasses.replace(runs.config, epochs=4, batch_size=8, **shown)
    result = runs.train(data, config=config)
    assert_sound(result, data)
    share = result.pred_probs.mean(axis=0)
    occurs = np.isin(np.arange(300), data.given_labels)
    assert share[occurs].min() > share[~occurs].max(), "a class that occurs is likelier than any other"


def check_two_samples(runs: Runs) -> None:
    """Too few to split: a result, or a clear error, but nothing else."""
    data = TrainingData(digits(2)[0], np.array([0, 1]), 2)
    try:
        result = _short(runs, data)
    except EngineInputError:
        return
    assert_sound(result, data)


def _short(runs: Runs, data: TrainingData, **changes: Any) -> EngineResult:
    return runs.train(data, config=dataclasses.replace(runs.config, epochs=2, **changes))


CHECKS: list[Callable[[Runs], None]] = [
    value for name, value in list(globals().items()) if name.startswith("check_")
]


OF_ROWS_AND_SAVES = {
    check_another_seed_another_result,
    check_streamed_images_give_the_same_result,
    check_cancellation_passes_through,
    check_killed_while_saving_resumes_from_the_save_before,
    check_outputs_follow_the_input_order,
    check_a_class_with_three_samples,
}
"""Whose subject is rows, labels and saves, which all forms share: on images alone."""
ELSEWHERE: dict[str, set[Callable[[Runs], None]]] = {
    "images": set(),
    "features": OF_ROWS_AND_SAVES | {check_two_classes_in_colour},
    "finetuned": OF_ROWS_AND_SAVES
    | {
        check_evaluation_images_change_nothing,
        check_fewer_samples_than_a_batch,
        check_constant_images,
        check_more_classes_than_a_byte_counts,
        check_two_samples,
    },
}
"""By form, the checks that others make for it."""

FULLY_FINETUNED = ("cross_entropy", "l2b")
"""A plain engine and a robust one: of the others, what one run of a network of timm shows is checked."""
OF_ONE_RUN = {
    check_shapes_dtypes_and_ranges,
    check_signals_match_the_spec,
    check_signal_history_is_bounded,
    check_epochs_are_numbered_and_progress_reaches_one,
    check_provenance_rebuilds_the_config,
    check_inputs_are_unchanged,
    check_planted_errors_are_found,
}
"""What asks for the shared run of a form or for that of ``quick``, and trains nothing else."""


def is_asked(engine: str, form: str, check: Callable[[Runs], None]) -> bool:
    """Whether the check is made of that engine in that form."""
    if check in ELSEWHERE[form]:
        return False
    return form != "finetuned" or engine in FULLY_FINETUNED or check in OF_ONE_RUN


def cases(*forms: str) -> list[Any]:
    """Return what is asked of each engine in these forms: on images, features, and fine-tuned.

    Where a check makes images, ``Runs`` takes features of them, or trains a network of timm on them that begins
    with the weights of a file.
    """
    return [
        pytest.param(engine, form, check, id=f"{engine}-{form}-{check.__name__.removeprefix('check_')}")
        for engine in TRAINED
        for form in forms
        for check in CHECKS
        if is_asked(engine, form, check)
    ]


@pytest.mark.parametrize(("engine", "form", "check"), cases("features"))
@pytest.mark.parametrize("device", DEVICES)
def test_engine__on_features(device: str, engine: str, form: str, check: Callable[[Runs], None]) -> None:
    check(runs_of(engine, device, form))


@pytest.mark.parametrize(("engine", "form", "check"), cases("images"))
@pytest.mark.parametrize("device", DEVICES)
def test_engine__on_images(device: str, engine: str, form: str, check: Callable[[Runs], None]) -> None:
    check(runs_of(engine, device, form))


OF_SEVERAL = (
    check_shapes_dtypes_and_ranges,
    check_signals_match_the_spec,
    check_signal_history_is_bounded,
    check_epochs_are_numbered_and_progress_reaches_one,
    check_provenance_rebuilds_the_config,
    check_cancellation_passes_through,
    check_killed_and_resumed_is_bitwise_the_same,
    check_killed_while_saving_resumes_from_the_save_before,
)
"""What several trainings could break that one keeps."""


@pytest.mark.parametrize("check", OF_SEVERAL)
@pytest.mark.parametrize(
    "engine", [name for name in TRAINED if issubclass(ENGINES[name].config_type, FoldedConfig)]
)
@pytest.mark.parametrize("device", DEVICES)
def test_engine__of_several_trainings(device: str, engine: str, check: Callable[[Runs], None]) -> None:
    check(runs_of(engine, device, AVERAGED))


@pytest.mark.parametrize("engine", TRAINED)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": "conv3"}, "takes images and these are features"),
        ({"augment": "shift"}, "moves the pixels"),
    ],
    ids=["network", "augment"],
)
def test_train__settings_for_images_are_refused_on_features(
    engine: str, change: dict[str, str], message: str
) -> None:
    spec = ENGINES[engine]
    config = dataclasses.replace(spec.config_type.preset("quick"), **change)
    with pytest.raises(EngineInputError, match=message):
        spec.train(on_features(digits_data(60)[0]), config, device="cpu")


@pytest.mark.parametrize("engine", TRAINED)
def test_train__linear_head_from_a_memory_map_is_the_same_as_from_memory(engine: str, tmp_path: Path) -> None:
    spec, data = ENGINES[engine], on_features(digits_data(80, num_trusted=30)[0])
    config = spec.config_type.preset("quick").for_features()
    config = trained(dataclasses.replace(config, network="linear", epochs=2, batch_size=32), 1)
    np.save(tmp_path / "features.npy", data.inputs)
    mapped = dataclasses.replace(data, features=np.load(tmp_path / "features.npy", mmap_mode="r"))
    assert_bitwise_same(spec.train(data, config, device="cpu"), spec.train(mapped, config, device="cpu"))


@pytest.mark.parametrize("engine", TRAINED)
@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_for_features__every_preset_trains_on_features(engine: str, preset: str) -> None:
    config = ENGINES[engine].config_type.preset(preset).for_features()
    assert config.network == "auto"
    assert config.augment in ("auto", "none")
    tiny = trained(dataclasses.replace(config, epochs=2, **PAPER_SEARCH.get(engine, {})), 1)
    data = on_features(digits_data(60, num_trusted=30)[0])
    assert_sound(ENGINES[engine].train(data, tiny, device="cpu"), data)


@pytest.mark.parametrize("engine", TRAINED)
@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_preset__builds_and_round_trips(engine: str, preset: str) -> None:
    config_type = ENGINES[engine].config_type
    config = config_type.preset(preset)
    assert config_type(**json.loads(json.dumps(config.as_dict()))) == config


@pytest.mark.parametrize("engine", TRAINED)
def test_preset__unknown_name(engine: str) -> None:
    with pytest.raises(EngineInputError, match="there is no preset 'fast'; choose one of quick"):
        ENGINES[engine].config_type.preset("fast")


@pytest.mark.parametrize("engine", TRAINED)
def test_train__unnamed_options_are_seed_zero_and_any_device(engine: str) -> None:
    options = inspect.signature(ENGINES[engine].train).parameters
    assert (options["seed"].default, options["device"].default) == (0, "auto")
    assert options["on_epoch"].default is options["checkpoint"].default is None


def test_registry__rows_carry_their_own_name() -> None:
    assert {name: spec.name for name, spec in ENGINES.items()} == {name: name for name in ENGINES}
