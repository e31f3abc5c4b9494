"""UMN as a whole: rotations, batches, signals, sizes, and that it learns."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.metrics import auroc
from engines.contract import EngineError, EngineInputError, EngineResult, TrainingData
from engines.shared.run import Run
from engines.shared.selection import deal_by_class
from engines.umn import model as umn_model
from engines.umn.config import UMNConfig
from engines.umn.model import Bench, Member, decoded_target, generative_terms
from engines.umn.networks import (
    FeatureDecoder,
    ImageDecoder,
    StackedVAE,
    _conv,
    _Decoder13,
    build_feature_vae,
    build_stacked_vae,
    build_trunk,
)
from engines.umn.signals import EpsilonTracker
from engines.umn.training import train
from tests.engines.helpers import PeakMemory, digits, digits_data, on_features

CPU = torch.device("cpu")


def tiny(**changes: Any) -> UMNConfig:
    settings: dict[str, Any] = {
        "network": "umn_mlp",
        "epochs": 2,
        "batch_size": 32,
        "views": 1,
        "precision": "float32",
    }
    return dataclasses.replace(UMNConfig.preset("quick"), **{**settings, **changes})


def run(data: TrainingData, **changes: Any) -> EngineResult:
    return train(data, tiny(**changes), seed=0, device="cpu")


def bench_of(data: TrainingData, config: UMNConfig) -> Bench:
    return Bench(Run("umn", data, config, device="cpu", standardized=config.standardized), config)


def member_of(data: TrainingData, **changes: Any) -> Member:
    config = tiny(**changes)
    rotations = config.rotations_for(on_features=False)
    hidden_in = deal_by_class(data.given_labels, rotations, seed=0, name="rotations")
    return Member(bench_of(data, config), 0, (hidden_in == 0) & (rotations > 1))


# --- Rotations --------------------------------------------------------------------------------------------


def test_deal_by_class__every_label_is_hidden_once_in_equal_shares() -> None:
    given = np.array([0] * 6 + [1] * 3 + [-1] * 4, dtype=np.int64)
    rotation = deal_by_class(given, 3, seed=1, name="rotations")
    assert (rotation[given == -1] == -1).all()
    assert np.bincount(rotation[given == 0]).tolist() == [2, 2, 2]
    assert np.bincount(rotation[given == 1]).tolist() == [1, 1, 1]


def test_rotations__more_on_features_unless_told_otherwise() -> None:
    config = UMNConfig()
    assert config.rotations_for(on_features=True) == 5
    assert config.rotations_for(on_features=False) == 2
    assert dataclasses.replace(config, rotations=3).rotations_for(on_features=True) == 3
    assert UMNConfig.preset("paper").rotations_for(on_features=True) == 1
    features = np.random.default_rng(0).normal(size=(40, 2, 6)).astype(np.float32)
    given = np.full(40, -1)
    given[:3] = (0, 1, 1)  # fewer labels than rotations
    short = dataclasses.replace(UMNConfig.preset("quick").for_features(), epochs=1)
    hidden = []
    for labels in (given, np.arange(40) % 2):
        result = train(TrainingData(None, labels, 2, features=features), short, device="cpu")
        hidden.append(result.is_out_of_sample)
    assert hidden == [True, True]


def test_deal_by_class__more_rotations_than_labels_is_a_clear_error() -> None:
    with pytest.raises(EngineInputError, match="rotations is 5 but only 2 samples are labeled"):
        deal_by_class(np.array([0, 1, -1, -1, -1, -1]), 5, seed=0, name="rotations")


def test_train__a_hidden_label_cannot_reach_the_model_that_judges_it() -> None:
    data, _ = digits_data(80)
    hidden = deal_by_class(data.given_labels, 2, seed=0, name="rotations") == 0
    row = int(np.flatnonzero(hidden)[0])
    changed = data.given_labels.copy()
    partner = int(np.flatnonzero(hidden & (changed != changed[row]))[0])
    changed[[row, partner]] = changed[[partner, row]]
    member_a, member_b = member_of(data), member_of(TrainingData(data.images, changed, 10))
    # Swapping may deal other rows to other rotations; the question here is the hidden labels alone.
    member_b.labeled_rows, member_b.unlabeled_rows = member_a.labeled_rows, member_a.unlabeled_rows
    for member in (member_a, member_b):
        member.train_epoch(0)
    for one, two in zip(member_a.model.parameters(), member_b.model.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)


def test_train__says_whether_it_judged_out_of_sample() -> None:
    data, _ = digits_data(60)
    assert run(data).is_out_of_sample
    assert not run(data, rotations=1).is_out_of_sample


def test_train__names_classes_that_the_judge_never_saw() -> None:
    images, labels = digits(60)
    labels[np.flatnonzero(labels == 3)[1:]] = 4
    result = run(TrainingData(images, labels, 10))
    assert result.provenance.notes["classes_unseen_where_judged"] == [3]


# --- Batches ----------------------------------------------------------------------------------------------


def test_batches__published_five_labeled_and_ninety_five_unlabeled() -> None:
    data, _ = digits_data(600, num_unlabeled=500)
    member = member_of(data, rotations=1, labeled_share=0.05, batch_size=100)
    batches = list(member.batches(torch.Generator().manual_seed(0)))
    assert [count for _, count in batches] == [5] * math.ceil(500 / 95)
    unlabeled = torch.cat([rows[count:] for rows, count in batches])
    assert sorted(unlabeled.tolist()) == list(range(500))
    assert all((rows[:count] >= 500).all() for rows, count in batches)


def test_batches__hidden_labels_are_never_in_the_labeled_part() -> None:
    data, _ = digits_data(100)
    member = member_of(data)
    hidden = set(np.flatnonzero(member.is_hidden).tolist())
    for rows, count in member.batches(torch.Generator().manual_seed(0)):
        assert not hidden & set(rows[:count].tolist())
        assert set(rows[count:].tolist()) <= hidden


def test_batches__without_unlabeled_samples_one_pass_over_the_labeled() -> None:
    data, _ = digits_data(70)
    batches = list(member_of(data, rotations=1).batches(torch.Generator().manual_seed(0)))
    assert sorted(torch.cat([rows for rows, _ in batches]).tolist()) == list(range(70))
    assert all(len(rows) == count for rows, count in batches)


@pytest.mark.parametrize(("num", "batch"), [(50, 32), (127, 32), (400, 100), (1024, 256), (1500, 256)])
def test_batches__an_epoch_on_few_samples_has_at_least_so_many_steps(num: int, batch: int) -> None:
    member = member_of(digits_data(num)[0], rotations=1, batch_size=256, least_steps=4)
    sizes = [len(rows) for rows, _ in member.batches(torch.Generator().manual_seed(0))]
    assert set(sizes[:-1]) == {batch}
    assert len(sizes) == member.steps_per_epoch
    assert member_of(digits_data(num)[0], rotations=1, batch_size=256).num_labeled == 256


@pytest.mark.parametrize(("num", "steps"), [(64, 1), (65, 1), (66, 2), (129, 2)])
def test_train_epoch__a_remainder_of_one_is_no_step_of_its_own(num: int, steps: int) -> None:
    member = member_of(digits_data(num)[0], rotations=1, batch_size=64)
    member.weight = torch.ones_like  # type: ignore[method-assign]
    losses, _ = member.train_epoch(0)
    assert (member.steps_per_epoch, member.total_steps, member.step) == (steps, 2 * steps, steps)
    assert losses["weight"] == pytest.approx(1.0)  # the mean of ones, whatever the batches


# --- The training step ------------------------------------------------------------------------------------


def test_train_step__guider_gets_no_gradient_and_follows() -> None:
    member = member_of(digits_data(60)[0])
    before = [parameter.clone() for parameter in member.guider.module.parameters()]
    member.train_epoch(0)
    after = list(member.guider.module.parameters())
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in after)
    assert any(not torch.equal(one, two) for one, two in zip(before, after, strict=True))


@pytest.mark.parametrize("label_loss", ["linear", "log"])
def test_train_step__starts_at_the_highest_weight(label_loss: str) -> None:
    member = member_of(digits_data(60)[0], label_loss=label_loss, batch_size=512, augment="none")
    losses, _ = member.train_epoch(0)  # one step: guider and learner are still equal
    assert losses["epsilon"] == 0.0
    assert losses["weight"] == pytest.approx(math.log(9 * 0.99 / 0.01), rel=1e-5)
    assert losses["loss"] == pytest.approx(losses["generative"] - losses["label_term"], rel=1e-5)


def test_train__input_noise_runs() -> None:
    result = run(digits_data(60)[0], input_noise=0.15, gamma=0.99)
    assert np.isfinite(result.history[-1].losses["loss"])


@pytest.mark.parametrize("y_chunk", [3, 10])
def test_train__chunks_of_classes_change_only_rounding(y_chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = digits_data(60)
    whole = run(data, epochs=1)
    monkeypatch.setattr(umn_model, "Y_CHUNK", y_chunk)
    parts = run(data, epochs=1)
    np.testing.assert_allclose(whole.pred_probs, parts.pred_probs, atol=1e-4)


def test_y_chunk__bounds_the_memory_of_a_step() -> None:
    """Classes beyond the chunk cost their draws of z_b, their weights and a few (B, K) arrays, and no rows."""
    peaks, parameters = [], []
    for num_classes in (100, 400):
        vae = build_stacked_vae(
            "umn_mlp",
            channels=1,
            image_size=(8, 8),
            num_classes=num_classes,
            latent_a=50,
            latent_b=50,
            width=128,
        )
        with PeakMemory() as memory:
            terms, _ = generative_terms(
                vae.recognizer,
                vae.generator,
                vae.recognizer.encode(torch.rand(16, 1, 8, 8)),
                torch.rand(16, 1, 8, 8),
                torch.Generator().manual_seed(0),
                reconstruction="bernoulli",
                y_chunk=10,
            )
            terms["class_sum"].sum().backward()
        peaks.append(memory.peak)
        parameters.append(4 * sum(parameter.numel() for parameter in vae.parameters()))
    draws = 16 * 300 * 4 * (50 + 16)
    assert peaks[1] - peaks[0] < draws + 2 * (parameters[1] - parameters[0])
    assert peaks[0] < 16 * 10 * 13_000 + 16 * 100 * 4 * (50 + 16) + 3 * parameters[0]


def test_load_state_dict__continues_as_if_never_interrupted() -> None:
    data, _ = digits_data(60)
    going_on, resumed = member_of(data), member_of(data)
    going_on.train_epoch(0)
    resumed.load_state_dict(copy.deepcopy(going_on.state_dict()))
    for member in (going_on, resumed):
        member.train_epoch(1)
    assert resumed.step == going_on.step
    for one, two in ((going_on.model, resumed.model), (going_on.guider.module, resumed.guider.module)):
        for name, values in one.state_dict().items():
            torch.testing.assert_close(two.state_dict()[name], values, rtol=0, atol=0, msg=name)


# --- Sizes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(8, 8), (28, 28), (33, 17), (5, 40)])
def test_image_decoder__reaches_every_size(size: tuple[int, int]) -> None:
    assert ImageDecoder(4, 3, size)(torch.zeros(2, 4)).shape == (2, 3, *size)


@pytest.mark.parametrize(
    ("size", "maps"),
    [
        ((8, 8), [(8, 8)]),
        ((33, 17), [(5, 3), (9, 5), (17, 9), (33, 17)]),
        ((5, 40), [(1, 5), (2, 10), (3, 20), (5, 40)]),
    ],
)
def test_image_decoder__doubles_from_at_most_eight_pixels(
    size: tuple[int, int], maps: list[tuple[int, int]]
) -> None:
    decoder = ImageDecoder(4, 3, size)
    assert [decoder.start, *decoder.sizes] == [(32, *maps[0]), *maps[1:]]
    # 32 channels up to the first doubling, then half as many each time, never below 16.
    assert [block[0].out_channels for block in decoder.blocks] == [32, 16, 16][: len(maps) - 1]


@pytest.mark.parametrize(
    ("size", "start", "half"),
    [
        ((32, 32), (6, 6), (16, 16)),
        ((40, 20), (8, 3), (20, 10)),
        ((8, 12), (1, 1), (4, 6)),
        ((1, 3), (1, 1), (1, 1)),
    ],
)
def test_decoder_13__maps_follow_the_image(
    size: tuple[int, int], start: tuple[int, int], half: tuple[int, int]
) -> None:
    decoder = _Decoder13(5, 3, size, width=8)
    assert decoder.start == (2, *start)
    assert decoder.sizes == (half, size)
    assert decoder.first.out_features == 2 * start[0] * start[1]
    assert decoder(torch.zeros(2, 5)).shape == (2, 3, *size)


def test_conv__starts_uniform_with_the_gain_of_its_leaky_relu() -> None:
    torch.manual_seed(0)
    weight = _conv(32, 64)[0].weight.detach()
    # He: variance 2 / (1 + slope²) / fan-in, of a uniform law a third of its squared bound.
    bound = math.sqrt(3 * 2 / (1 + 0.1**2) / (32 * 9))
    assert float(weight.abs().max()) == pytest.approx(bound, rel=5e-4)


@pytest.mark.parametrize("name", ["umn_mlp", "umn13", "conv3"])
def test_build_stacked_vae__decoder_matches_the_image(name: str) -> None:
    vae = build_stacked_vae(
        name, channels=3, image_size=(18, 21), num_classes=5, latent_a=6, latent_b=4, width=8
    )
    images = torch.rand(2, 3, 18, 21)
    encoding = vae.recognizer.encode(images)
    assert vae.generator.decoder(encoding.mean).shape == images.shape
    assert vae.recognizer(images)[1].shape == (2, 5)
    assert (encoding.log_variance.abs() <= 8).all()


def reads_the_latent(vae: StackedVAE, rows: torch.Tensor) -> bool:
    """Whether another z_a gives other logits."""
    recognizer = vae.recognizer.eval()
    encoding = recognizer.encode(rows)
    one, two = (recognizer.classify(encoding, encoding.mean + shift) for shift in (0.0, 1.0))
    return not torch.equal(one, two)


def test_build_feature_vae__head_classifies() -> None:
    assert not reads_the_latent(
        build_feature_vae("mlp", 6, 3, latent_a=4, latent_b=2, hidden=5), torch.randn(2, 6)
    )


@pytest.mark.parametrize(("name", "reads"), [("umn_mlp", True), ("umn13", False), ("conv3", False)])
def test_build_stacked_vae__classifier_of_the_flat_net_reads_the_latent(name: str, reads: bool) -> None:
    vae = build_stacked_vae(
        name, channels=3, image_size=(16, 16), num_classes=5, latent_a=6, latent_b=4, width=8
    )
    assert reads_the_latent(vae, torch.rand(2, 3, 16, 16)) is reads


def test_build_trunk__sees_images_as_large_as_it_is_told() -> None:
    trunk, _ = build_trunk("timm:resnet10t", channels=3, image_size=(32, 32), num_classes=3, side=64)
    assert trunk.backbone.trunk.config.side == 64


def test_decoded_target__averages_large_images() -> None:
    images = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert decoded_target(images, (2, 2)).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert decoded_target(images, (4, 4)) is images


@pytest.mark.parametrize(
    ("side", "channels", "network"), [(16, 1, "umn13"), (16, 3, "conv3"), (224, 3, "torchvision:resnet18")]
)
def test_train__image_sizes_and_networks(side: int, channels: int, network: str) -> None:
    images, labels = digits(8, side=side)
    data = TrainingData(images.repeat(channels, axis=1), labels % 3, 3)
    result = run(data, network=network, epochs=1, batch_size=8, rotations=1)
    np.testing.assert_allclose(result.pred_probs.sum(1), 1.0, atol=1e-5)
    assert np.isfinite(result.embeddings).all()


def test_train__a_thousand_classes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(umn_model, "Y_CHUNK", 100)
    images, labels = digits(40)
    data = TrainingData(images, labels * 100 + 7, 1000)
    result = run(data, rotations=1, epochs=1)
    assert result.pred_probs.shape == (40, 1000)


# --- Signals ----------------------------------------------------------------------------------------------


def test_epsilon_tracker__aggregates_by_hand() -> None:
    tracker = EpsilonTracker(2)
    for value in (0.4, 0.2, 0.0):
        tracker.update(np.array([value, np.nan], dtype=np.float32))
    assert tracker.aggregate("final")[0] == pytest.approx(0.0)
    ema = (0.1 * 0.81 * 0.4 + 0.1 * 0.9 * 0.2) / (1 - 0.9**3)
    assert tracker.aggregate("ema")[0] == pytest.approx(ema, rel=1e-5)
    assert all(np.isnan(tracker.aggregate(how)[1]) for how in ("final", "ema"))


def test_epsilon_tracker__goes_on_from_its_state() -> None:
    whole, resumed = EpsilonTracker(2), EpsilonTracker(2)
    for value in (0.4, 0.2):
        whole.update(np.array([value, 1.0], dtype=np.float32))
    resumed.load_state_dict(copy.deepcopy(whole.state_dict()))
    for how in ("final", "ema"):
        np.testing.assert_array_equal(resumed.aggregate(how), whole.aggregate(how))
    for tracker in (whole, resumed):
        tracker.update(np.array([0.0, 0.5], dtype=np.float32))
    np.testing.assert_array_equal(resumed.aggregate("ema"), whole.aggregate("ema"))


def test_train__signals_are_of_the_judging_model_and_history_is_by_epoch() -> None:
    data, _ = digits_data(60, num_unlabeled=10)
    result = run(data, epsilon_aggregate="final")
    history = result.signal_history["epsilon"]
    assert history.shape == (2, 60)
    np.testing.assert_allclose(history[-1], result.signals["epsilon"], rtol=1e-3, atol=1e-6)
    for values in result.signals.values():
        np.testing.assert_array_equal(np.isnan(values), ~data.labeled)


def test_bench__published_networks_bring_their_augmentation_noise_and_latent() -> None:
    images, labels = digits(30, side=16)
    colour = TrainingData(images.repeat(3, axis=1), labels, 10)
    grey = TrainingData(images, labels, 10)
    found = [bench_of(data, UMNConfig.preset("paper")) for data in (grey, colour)]
    assert [(b.network_name, b.augment, b.input_noise, b.latent_a, b.reconstruction) for b in found] == [
        ("umn_mlp", "none", 0.0, 50, "bernoulli"),
        ("umn13", "shift", 0.15, 256, "gaussian"),
    ]


# --- Features ---------------------------------------------------------------------------------------------


def test_bench__on_features_reconstructs_standardised_values_with_a_learned_variance() -> None:
    data = on_features(digits_data(60)[0])
    assert data.features is not None
    features = data.features.copy()
    features[:, :, 0] = 1.0  # nothing is left to explain of a feature that never varies
    data = TrainingData(None, data.given_labels, data.num_classes, features=features)
    config = UMNConfig.preset("quick").for_features()
    bench = bench_of(data, config)
    assert (bench.network_name, bench.augment, bench.elbo_scale) == ("mlp", "view", 1 / 64)
    model = bench.build(0)
    decoder = model.generator.decoder
    assert isinstance(decoder, FeatureDecoder)
    rows = torch.arange(60)
    raw = bench.run.rows.batch(rows)
    (expected,) = bench.run.rows.views(rows, 1, bench.run.mean_std)
    noise = torch.Generator()
    torch.testing.assert_close(bench.target(raw), expected)
    torch.testing.assert_close(bench.network_input(raw, noise), expected)
    member = Member(bench, 0, np.zeros(60, dtype=bool))
    generator = member.model.generator
    assert isinstance(generator.decoder, FeatureDecoder)
    for epoch in range(3):
        member.train_epoch(epoch)
    found = generator.decoder.log_variance.detach()
    assert float(found[0]) < 0
    assert float(found[0]) < float(found[1:].mean())


def test_generative_terms__features_are_judged_by_the_decoders_own_variance() -> None:
    bench = bench_of(on_features(digits_data(30)[0]), UMNConfig.preset("quick").for_features())
    model = bench.build(0).eval()
    decoder = model.generator.decoder
    assert isinstance(decoder, FeatureDecoder)
    (inputs,) = bench.run.rows.views(torch.arange(8), 1, bench.run.mean_std)
    found = []
    with torch.no_grad():
        for log_variance in (0.0, 1.0):
            decoder.log_variance.fill_(log_variance)
            terms, _ = generative_terms(
                model.recognizer, model.generator, model.recognizer.encode(inputs), inputs,
                torch.Generator().manual_seed(0),
                reconstruction=bench.reconstruction, y_chunk=32,
            )  # fmt: skip
            found.append(terms["reconstruction"])
    constant = 64 * math.log(2 * math.pi)
    squares = -2 * found[0] - constant
    torch.testing.assert_close(found[1], -0.5 * (constant + 64 + squares / math.e), rtol=1e-4, atol=1e-3)


def test_for_features__smaller_networks_larger_batches_and_what_was_chosen_stays() -> None:
    found = UMNConfig(network="umn13", epochs=12, batch_size=600, latent_a=7, augment="shift").for_features()
    assert (found.network, found.augment, found.epochs, found.batch_size) == ("auto", "auto", 12, 600)
    assert found.label_loss == "auto"
    assert (found.latent_a, found.latent_b, found.upper_hidden) == (7, 8, 64)


@pytest.mark.parametrize(("num_classes", "expected"), [(20, "linear"), (21, "log")])
def test_bench__auto_label_loss_is_linear_for_few_classes(num_classes: int, expected: str) -> None:
    data = on_features(digits_data(60)[0])
    data = TrainingData(None, data.given_labels, num_classes, features=data.features)
    assert bench_of(data, UMNConfig.preset("quick").for_features()).label_loss == expected
    assert bench_of(data, UMNConfig(network="mlp", label_loss="log")).label_loss == "log"


# --- Settings and learning --------------------------------------------------------------------------------


def test_config__lists_every_problem_at_once() -> None:
    with pytest.raises(
        EngineInputError, match=r"rotations is 0.*label_loss is 'square'.*labeled_share is 1.*gamma is 1\.5"
    ):
        UMNConfig(rotations=0, label_loss="square", gamma=1.5, labeled_share=1.0)


def test_preset__paper_holds_what_is_published() -> None:
    paper = UMNConfig.preset("paper")
    assert (paper.epochs, paper.learning_rate) == (350, 1e-3)
    assert (paper.label_loss, paper.elbo_scale, paper.labeled_share) == ("linear", "sum", 0.05)
    assert (paper.rotations, paper.batch_size) == (1, 100)


@pytest.mark.parametrize("noise", ["sym_excl_exact", "pair"])
def test_train__finds_planted_errors(noise: str) -> None:
    data, wrong = digits_data(500, noise=noise, noise_rate=0.2)
    result = run(data, epochs=10, batch_size=64)
    assert auroc(wrong, 1 - result.trust_score) > 0.93


@pytest.mark.parametrize("epochs", [1, 2])
def test_train__that_diverges_says_so(epochs: int) -> None:
    data, _ = digits_data(60)
    config = UMNConfig(network="umn_mlp", epochs=epochs, batch_size=60, learning_rate=1e30, rotations=1)
    with pytest.raises(EngineError, match="lower learning_rate"):
        train(data, config, device="cpu")


def test_train_epoch__says_that_it_diverged_before_anything_is_scored() -> None:
    data, _ = digits_data(60)
    with pytest.raises(EngineError, match="lower learning_rate"):
        member_of(data, learning_rate=1e30, batch_size=20).train_epoch(0)


def test_build_stacked_vae__a_trunk_of_torchvision_takes_the_weights_that_are_named() -> None:
    with pytest.raises(EngineInputError, match="there is no weights file nowhere.pt"):
        build_stacked_vae(
            "torchvision:resnet18", channels=3, image_size=(32, 32), num_classes=3, latent_a=4, latent_b=4,
            weights="nowhere.pt",
        )  # fmt: skip


def test_audited_epochs__every_tenth_of_the_published_ones() -> None:
    paper = UMNConfig.preset("paper")
    assert sorted(paper.audited_epochs) == list(range(9, 350, 10))
    assert sorted(dataclasses.replace(paper, epochs=3).audited_epochs) == [0, 1, 2]
