"""Co-teaching's own runs against literal ones: selection, exchange, both updates, every variant, the search."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engines.contract import TrainingData
from engines.coteaching import SPEC
from engines.coteaching.config import CoteachingConfig
from engines.networks.small import build_network
from engines.shared.device import derive_seed, make_generator, seeded_init
from tests.engines.coteaching.literal_pair import LiteralPair, LiteralTally
from tests.engines.helpers import digits_data
from tests.engines.literal import (
    ROUNDING,
    assert_same_weights,
    double_network,
    first_weights,
    log_softmax,
    margin_of,
    mean_log_probs,
    networks_in,
    percentile,
    standardized,
    trust_of,
    views_of,
    watch,
)

SEED = 4
NAN = float("nan")
BASE: dict[str, Any] = {
    "network": "mlp",
    "width": 24,
    "epochs": 3,
    "batch_size": 12,
    "learning_rate": 0.1,
    "optimizer": "sgd",
    "weight_decay": 0.02,
    "augment": "none",
    "views": 2,
    "keep_schedule": "coteaching",
    "noise_rate": 0.4,
    "ramp_epochs": 2.0,
    "warmup_epochs": 0,
    "rank_epochs": 2,
}

CASES: dict[str, dict[str, Any]] = {
    "coteaching": {},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
    "late beta": {"optimizer": "adam", "learning_rate": 0.01, "late_beta1": 0.1, "tail_start": 0.5, "epochs": 4},
    "linear_tail": {"schedule": "linear_tail", "tail_start": 0.5, "epochs": 4},
    "constant": {"schedule": "constant", "ramp_exponent": 2.0},
    "warm-up": {"warmup_epochs": 2, "ramp_epochs": 0.5},
    "legacy ramp": {"legacy_ramp": True, "ramp_exponent": 2.0, "ramp_epochs": 3.0},
    "divided twice": {"legacy_loss_scale": True, "learning_rate": 1.0},
    "as published": {"drop_last": True, "max_batches": 2, "untrained_epoch_zero": True, "standardize": False},
    "drop last": {"drop_last": True},
    "moved images": {"augment": "shift"},
    "moved, not standardized": {"augment": "shift", "standardize": False},
    "batch norm": {"network": "conv3", "width": 6, "epochs": 2, "learning_rate": 0.03},
    "plus": {"variant": "coteaching_plus", "plus_start_epoch": 1},
    "plus, gate": {
        "variant": "coteaching_plus", "batch_size": 2, "plus_gate_steps": 60, "epochs": 6, "noise_rate": 0.6,
    },
    "plus, as coded": {"variant": "coteaching_plus", "legacy_plus": True, "plus_start_epoch": 1},
    "plus, adam": {"variant": "coteaching_plus", "optimizer": "adam", "learning_rate": 0.02, "batch_size": 3},
    "decoupling": {"variant": "decoupling"},
    "decoupling, small batches": {"variant": "decoupling", "batch_size": 2, "epochs": 5},
    "mentornet": {"variant": "mentornet"},
    "standard": {"variant": "standard"},
    "f_correction": {"variant": "f_correction", "learning_rate": 0.3},
    "reweight": {"variant": "reweight"},
    "reweight, batch norm": {"variant": "reweight", "network": "conv3", "width": 6, "epochs": 2},
    "reweight, no meta batch": {"variant": "reweight", "batch_size": 46},
}  # fmt: skip

HAPPENS = {
    "plus, gate": {"none differs, early", "none differs, late"},
    "decoupling, small batches": {"a network without samples"},
}
"""What a case is there for."""


def curve_of(config: CoteachingConfig) -> list[float]:
    """Eq. (4), or as coded; R = 1 in the warm-up and where the variant has no keep rate."""
    if config.variant in ("decoupling", "standard", "f_correction", "reweight"):
        return [1.0] * config.epochs
    tau, ramp, c = config.noise_rate, config.ramp_epochs, config.ramp_exponent
    assert tau is not None
    assert ramp is not None
    curve = []
    for t in range(config.epochs):
        forget = tau * min((t / ramp) ** c, 1.0)
        if config.legacy_ramp:
            forget = tau**c * t / (int(ramp) - 1) if t < int(ramp) else tau
        curve.append(1.0 if t < config.warmup_epochs else 1 - forget)
    return curve


def transition_of(pair: LiteralPair) -> torch.Tensor:
    """Row i of T: the prediction for the sample that is surest of class i."""
    network = pair.networks[0].eval()
    with torch.no_grad():
        probs = log_softmax(network(pair.images[pair.rows])[1]).exp()
    return torch.stack([probs[int(probs[:, k].argmax())] for k in range(probs.shape[1])])


def final_run(
    data: TrainingData, config: CoteachingConfig, curve: list[float]
) -> tuple[LiteralPair, LiteralTally, list[list[nn.Module]]]:
    """The training after the search; with the networks after every epoch."""
    begun = first_weights(SPEC, data, config, seed=SEED)
    begun = begun[-(2 if config.variant == "f_correction" else 1) * config.epochs :]
    rows = [i for i, y in enumerate(data.given_labels) if y >= 0]
    transition, after = None, []
    for stage in range(2 if config.variant == "f_correction" else 1):
        group = len(begun[stage * config.epochs])
        # Trials of a search may be kept beside the final networks, which come last.
        weights = begun[stage * config.epochs][-(2 if group > 1 else 1) :]
        networks = [double_network(config, data, one) for one in weights]
        pair = LiteralPair(
            data, config, networks, rows=rows, curve=curve, stream=("train", stage), seed=SEED,
            transition=transition,
        )  # fmt: skip
        tally = LiteralTally(len(data.given_labels))
        for epoch in range(config.epochs):
            trained = not (config.untrained_epoch_zero and epoch == 0)
            if trained:
                pair.run_epoch(epoch)
            tally.count(pair, epoch, config.rank_epochs, trained=trained)
            scratch = []
            for network in networks:
                copied = double_network(config, data, {})
                copied.load_state_dict({n: v.clone() for n, v in network.state_dict().items()})
                scratch.append(copied)
            after.append(scratch)
        if stage == 0 and config.variant == "f_correction":
            transition = transition_of(pair)
    return pair, tally, after


@pytest.mark.parametrize("case", sorted(CASES))
def test_train__is_the_literal_run(case: str) -> None:
    data, _ = digits_data(50, num_unlabeled=4, num_trusted=12)
    config = CoteachingConfig(**{**BASE, **CASES[case]})
    result, states = watch(SPEC, data, config, seed=SEED)
    curve = curve_of(config)
    pair, tally, after = final_run(data, config, curve)
    assert HAPPENS.get(case, set()) <= pair.happened

    tolerance = 2 * ROUNDING if config.network == "mlp" else 20 * ROUNDING
    assert len(states) == len(after)
    for state, networks in zip(states, after, strict=True):
        found = networks_in(state)
        assert len(found) == len(networks)
        for weights, network in zip(found, networks, strict=True):
            assert_same_weights(weights, network, tolerance)

    # Predictions and trust.
    with torch.no_grad():
        views = [
            [log_softmax(network.eval()(view)[1]) for view in views_of(pair.images, config.views)]
            for network in pair.networks
        ]
    says = [torch.stack(one).mean(dim=0) for one in views]
    probs = torch.stack([log_softmax(one).exp() for one in says]).mean(dim=0)
    np.testing.assert_allclose(result.pred_probs, probs, atol=10 * tolerance)
    labels = pair.labels
    margin = mean_over([[margin_of(one[i], y) for i, y in enumerate(labels)] for one in says])
    area = mean_over([[mean(one) for one in each] for each in pair.margins])
    middle = float(np.median([a for a in area if not math.isnan(a)]))
    area = [middle if math.isnan(a) and y >= 0 else a for a, y in zip(area, labels, strict=True)]
    np.testing.assert_allclose(result.trust_score, trust_of(margin, area), atol=1e-6)
    features = torch.cat([network(pair.images)[0] for network in pair.networks], dim=1).detach()
    np.testing.assert_allclose(result.embeddings, features, atol=50 * tolerance)

    # Signals and curves.
    for name, values in tally.signals().items():
        np.testing.assert_allclose(result.signals[name], values, atol=1e-5, err_msg=name)
    last = result.history[-config.epochs :]
    first = 1 if config.untrained_epoch_zero else 0
    for epoch in range(config.epochs):
        assert last[epoch].metrics["keep_rate"] == pytest.approx(curve[epoch])
    for e, log in enumerate(pair.history):
        record = last[first + e]
        assert record.losses["train_loss"] == pytest.approx(mean(log["losses"]), abs=1e-3)
        assert record.losses["kept_loss"] == pytest.approx(log["kept"] / max(log["weights"], 1e-12), abs=1e-3)
        assert record.metrics["train_accuracy"] == pytest.approx(mean(log["hits"]))
        each = [log["loss"].get(i, NAN) for i in range(len(labels))]
        history = result.signal_history
        place = len(history["loss_rank"]) - config.epochs + first + e
        np.testing.assert_allclose(history["loss_rank"][place], percentile(each), atol=1e-3)
        picked = [log["selected"].get(i, NAN) for i in range(len(labels))]
        np.testing.assert_allclose(history["selected"][place], picked, atol=1e-3)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else NAN


def mean_over(each: list[list[float]]) -> list[float]:
    return [sum(values) / len(values) for values in zip(*each, strict=True)]


def test_train__the_pair_begins_with_two_different_networks() -> None:
    data, _ = digits_data(50)
    one, other = first_weights(SPEC, data, CoteachingConfig(**BASE), seed=SEED)[0]
    assert not torch.equal(one["head.weight"], other["head.weight"])


# --- the search: trials, their accuracy, and the schedule that is taken -----------------------------------

SEARCH: dict[str, Any] = {
    "keep_schedule": "searched",
    "noise_rate": None,
    "space": "co",
    "search_rule": "random",
    "search_iterations": 2,
    "search_samples": 2,
    "search_epochs": 3,
    "epochs": 4,
    "warmup_epochs": 1,
    "anchors": (0.1, 0.5),
    "objective_epochs": 2,
    "min_trusted": 1000,
    "heldout_share": 0.3,
}

SEARCHES: dict[str, dict[str, Any]] = {
    "held-out labels": {},
    "trusted": {"min_trusted": 10},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
    "repeats": {"search_repeats": 2, "search_samples": 1},
    "fewer rows": {"search_rows": 30},
    "no warm-up": {"warmup_epochs": 0, "anchors": (), "search_samples": 3},
    "most accurate": {"tie_margin": 0.0},
    "validation loss": {"objective": "loss"},
    "mentornet": {"variant": "mentornet"},
    "long warm-up": {"warmup_epochs": 2, "objective_epochs": 3},
}


def split_of(data: TrainingData, config: CoteachingConfig) -> tuple[list[int], list[int]]:
    """Rows that trials train on, and rows that measure them."""
    labeled = [i for i, y in enumerate(data.given_labels) if y >= 0]
    order = torch.randperm(len(labeled), generator=make_generator(SEED, "search", "split")).tolist()
    shuffled = [labeled[j] for j in order]
    trusted = [i for i in labeled if data.trusted_mask[i]]
    if len(trusted) >= config.min_trusted:
        train = [i for i in shuffled if i not in trusted]
        return sorted(train[: config.search_rows]), trusted
    count = round(config.heldout_share * len(labeled))
    if config.search_rows is not None:
        count = max(count, len(labeled) - config.search_rows)
    return sorted(shuffled[count:][: config.search_rows]), sorted(shuffled[:count])


def trial_accuracy(
    data: TrainingData, config: CoteachingConfig, curve: list[float], *, split: tuple[list[int], list[int]]
) -> float:
    """Train under ``curve`` from the beginning; mean accuracy of the last epochs and of the repeats."""
    values = []
    for repeat in range(config.search_repeats):
        measured = accuracies_of(data, config, curve, split=split, repeat=repeat)
        values.append(mean(measured[max(len(curve) - config.objective_epochs, config.warmup_epochs) :]))
    return mean(values)


def begun_pair(
    data: TrainingData, config: CoteachingConfig, curve: list[float], rows: list[int], repeat: int = 0
) -> LiteralPair:
    """The networks that all trials of a repeat begin with."""
    networks = []
    for g in range(1 if config.variant == "mentornet" else 2):
        with seeded_init(SEED, "search", repeat, "network", g):
            begun = build_network(
                config.network, channels=1, image_size=(8, 8), num_classes=10, width=config.width
            )
        networks.append(double_network(config, data, begun.state_dict()))
    stream = ("search", repeat)
    return LiteralPair(data, config, networks, rows=rows, curve=curve, stream=stream, seed=SEED)


def accuracies_of(
    data: TrainingData,
    config: CoteachingConfig,
    curve: list[float],
    *,
    split: tuple[list[int], list[int]],
    repeat: int = 0,
) -> list[float]:
    """Accuracy on the validation rows after each epoch."""
    pair = begun_pair(data, config, curve, split[0], repeat)
    measured = []
    for epoch in range(len(curve)):
        pair.run_epoch(epoch)
        if config.objective == "accuracy":
            measured.append(pair.accuracy(split[1]))
        else:
            measured.append(-mean([mean(pair.evaluation_losses(g, split[1])) for g in range(2)]))
    return measured


def co_curve(x: list[float], times: list[float], horizon: float) -> list[float]:
    """1 - x1 min((t / (x2 T))^(2 x3), 1), at least 0.01."""
    tau, ramp, c = x[0], x[1] * horizon, 2 * x[2]
    return [max(0.01, 1 - tau * min((t / ramp) ** c, 1.0)) for t in times]


def anchor_curve(tau: float, times: list[float], ramp: float) -> list[float]:
    return [1 - tau * min(t / ramp, 1.0) for t in times]


def warmed(curve: list[float], config: CoteachingConfig) -> list[float]:
    return [1.0 if e < config.warmup_epochs else r for e, r in enumerate(curve)]


@pytest.mark.parametrize("case", sorted(SEARCHES))
def test_search__trials_and_choice_are_the_literal_ones(case: str) -> None:
    data, _ = digits_data(60, num_unlabeled=4, num_trusted=15)
    config = CoteachingConfig(**{**BASE, **SEARCH, **SEARCHES[case]})
    result, _ = watch(SPEC, data, config, seed=SEED)
    found = result.provenance.notes["search"]
    split = split_of(data, config)
    assert (found["num_search_rows"], found["num_validation"]) == (len(split[0]), len(split[1]))

    short = [e * config.epochs / config.search_epochs for e in range(config.search_epochs)]
    full = [float(e) for e in range(config.epochs)]
    assert config.ramp_epochs is not None
    seed = derive_seed(SEED, "search", "draws")
    drawn: list[list[float]] = []
    for m in range(config.search_iterations):
        draws = np.random.default_rng([seed, m]).beta(np.ones(3), np.ones(3), size=(config.search_samples, 3))
        drawn += draws.tolist()
    proxies = [anchor_curve(tau, short, config.ramp_epochs) for tau in config.anchors]
    proxies += [co_curve(x, short, config.epochs) for x in drawn]
    accuracies = [trial_accuracy(data, config, warmed(curve, config), split=split) for curve in proxies]
    sign, name = (1, "accuracies") if config.objective == "accuracy" else (-1, "losses")
    shown = [sign * value for value in accuracies]
    assert found[f"anchor_{name}"] == pytest.approx(shown[: len(config.anchors)])
    assert found[f"trial_{name}"] == pytest.approx(shown[len(config.anchors) :])
    assert len(set(accuracies)) > 1

    # Among those as accurate as the best, up to half a standard error, the one that drops most.
    curves = [anchor_curve(tau, full, config.ramp_epochs) for tau in config.anchors]
    curves = [warmed(c, config) for c in curves + [co_curve(x, full, config.epochs) for x in drawn]]
    best = max(accuracies)
    error = math.sqrt(best * (1 - best) / len(split[1])) if config.objective == "accuracy" else 0.0
    equal = [
        i
        for i, a in enumerate(accuracies)
        if a >= best - config.tie_margin * error - 1e-12 and min(curves[i]) >= 0.25
    ]
    by_drop = error and config.tie_margin and equal
    chosen = min(equal, key=lambda i: mean(curves[i])) if by_drop else accuracies.index(best)
    assert result.provenance.notes["keep_rates"] == pytest.approx(curves[chosen], abs=2e-6)
    assert found[f"chosen_{config.objective}"] == pytest.approx(shown[chosen])

    # And the networks that judge were trained under it.
    _, tally, _ = final_run(data, replace(config, keep_schedule="coteaching", noise_rate=0.1), curves[chosen])
    for name, values in tally.signals().items():
        np.testing.assert_allclose(result.signals[name], values, atol=1e-5, err_msg=name)


def test_train__heldout_accuracy_is_the_mean_of_both_networks() -> None:
    data, _ = digits_data(50, with_evaluation=True)
    config = CoteachingConfig(**BASE)
    result, states = watch(SPEC, data, config, seed=SEED)
    evaluation = data.evaluation
    assert evaluation is not None
    images = standardized(data, torch.from_numpy(evaluation.images.astype(np.float64) / 255.0))
    for record, state in zip(result.history, states, strict=True):
        hits = [
            float(
                np.mean(
                    mean_log_probs(double_network(config, data, one), images, 1).argmax(dim=1).numpy()
                    == evaluation.labels
                )
            )
            for one in networks_in(state)
        ]
        assert record.metrics["heldout_accuracy"] == pytest.approx(sum(hits) / 2)
