"""Co-teaching's own runs against literal ones: selection, exchange, both updates, the search."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engines.contract import TrainingData
from engines.coteaching import SPEC, trials
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.schedules import S2E_SPACE
from engines.networks.small import build_network
from engines.shared.device import derive_seed, make_generator, seeded_init
from tests.engines.coteaching.literal_pair import LiteralPair, LiteralTally
from tests.engines.coteaching.test_reference_rules import draw
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
    "epochs": 3,
    "batch_size": 12,
    "learning_rate": 0.1,
    "optimizer": "sgd",
    "weight_decay": 0.02,
    "augment": "none",
    "views": 2,
    "noise_rate": 0.4,
    "ramp_epochs": 2.0,
    "warmup_epochs": 0,
    "rank_epochs": 2,
}

CASES: dict[str, dict[str, Any]] = {
    "coteaching": {},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
    "linear_tail": {"schedule": "linear_tail", "epochs": 4},
    "constant": {"schedule": "constant"},
    "warm-up": {"warmup_epochs": 2, "ramp_epochs": 0.5},
    "as published": {"as_published": True},
    "moved images": {"augment": "shift"},
    "moved, as published": {"augment": "shift", "as_published": True},
    "batch norm": {"network": "conv3", "epochs": 2, "learning_rate": 0.03},
}


def curve_of(config: CoteachingConfig) -> list[float]:
    """Eq. (4); R = 1 in the warm-up."""
    tau, ramp = config.noise_rate, config.ramp_epochs
    assert tau is not None
    assert ramp is not None
    return [1.0 if t < config.warmup_epochs else 1 - tau * min(t / ramp, 1.0) for t in range(config.epochs)]


def final_run(
    data: TrainingData, config: CoteachingConfig, curve: list[float]
) -> tuple[LiteralPair, LiteralTally, list[list[nn.Module]]]:
    """The training after the search; with the networks after every epoch."""
    rows = [i for i, y in enumerate(data.given_labels) if y >= 0]
    # Trials of a search may be kept beside the final networks, which come last.
    begun = first_weights(SPEC, data, config, seed=SEED)[-config.epochs][-2:]
    networks = [double_network(config, data, one) for one in begun]
    pair = LiteralPair(data, config, networks, rows=rows, curve=curve, stream=("train", 0), seed=SEED)
    tally, after = LiteralTally(len(data.given_labels)), []
    for epoch in range(config.epochs):
        trained = not (config.as_published and epoch == 0)
        if trained:
            pair.run_epoch(epoch)
        tally.count(pair, epoch, config.rank_epochs, trained=trained)
        scratch = []
        for network in networks:
            copied = double_network(config, data, {})
            copied.load_state_dict({n: v.clone() for n, v in network.state_dict().items()})
            scratch.append(copied)
        after.append(scratch)
    return pair, tally, after


@pytest.mark.parametrize("case", sorted(CASES))
def test_train__is_the_literal_run(case: str) -> None:
    data, _ = digits_data(50, num_unlabeled=4, num_trusted=12)
    config = CoteachingConfig(**{**BASE, **CASES[case]})
    result, states = watch(SPEC, data, config, seed=SEED)
    curve = curve_of(config)
    pair, tally, after = final_run(data, config, curve)

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
    first = 1 if config.as_published else 0
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
    "noise_rate": None,
    "search_rule": "random",
    "search_iterations": 2,
    "search_samples": 2,
    "search_epochs": 3,
    "epochs": 4,
    "warmup_epochs": 1,
    "anchors": (0.1, 0.5),
    "objective_epochs": 2,
}

SEARCHES: dict[str, dict[str, Any]] = {
    "held-out labels": {},
    "trusted": {},
    "adam": {"optimizer": "adam", "learning_rate": 0.01},
    "fewer rows": {"search_rows": 30},
    "no warm-up": {"warmup_epochs": 0, "anchors": (), "search_samples": 3},
    "most accurate": {"tie_margin": 0.0},
    "long warm-up": {"warmup_epochs": 2, "objective_epochs": 3},
}


def split_of(data: TrainingData, config: CoteachingConfig) -> tuple[list[int], list[int]]:
    """Rows that trials train on, and rows that measure them."""
    labeled = [i for i, y in enumerate(data.given_labels) if y >= 0]
    order = torch.randperm(len(labeled), generator=make_generator(SEED, "search", "split")).tolist()
    shuffled = [labeled[j] for j in order]
    trusted = [i for i in labeled if data.trusted_mask[i]]
    if len(trusted) >= trials.MIN_TRUSTED:
        train = [i for i in shuffled if i not in trusted]
        return sorted(train[: config.search_rows]), trusted
    count = round(0.1 * len(labeled))
    if config.search_rows is not None:
        count = max(count, len(labeled) - config.search_rows)
    return sorted(shuffled[count:][: config.search_rows]), sorted(shuffled[:count])


def trial_accuracy(
    data: TrainingData, config: CoteachingConfig, curve: list[float], *, split: tuple[list[int], list[int]]
) -> float:
    """Train under ``curve`` from the beginning; mean accuracy of the last epochs on the validation rows."""
    networks = []
    for g in range(2):
        with seeded_init(SEED, "search", 0, "network", g):
            begun = build_network(config.network, channels=1, image_size=(8, 8), num_classes=10)
        networks.append(double_network(config, data, begun.state_dict()))
    pair = LiteralPair(data, config, networks, rows=split[0], curve=curve, stream=("search", 0), seed=SEED)
    measured = []
    for epoch in range(len(curve)):
        pair.run_epoch(epoch)
        measured.append(pair.accuracy(split[1]))
    return mean(measured[max(len(curve) - config.objective_epochs, config.warmup_epochs) :])


def s2e_curve(x: list[float], times: list[float], horizon: float) -> list[float]:
    """sum_i w_i h_i(t; a_i), in [.01, 1]: two decays with two growths each."""
    curve = []
    for t in times:
        rate = 0.0
        for i in range(4):
            a1, a2, a3, a4 = x[4 + 4 * i : 8 + 4 * i]
            decay = math.exp(-a2 * t**a1) if i < 2 else (1 + a2 * t) ** -a1
            growth = (t / horizon) ** a4 if i in (0, 2) else math.log(1 + t**a4) / math.log(1 + horizon**a4)
            rate += x[i] * (decay + a3 * growth)
        curve.append(min(max(rate, 0.01), 1.0))
    return curve


def anchor_curve(tau: float, times: list[float], ramp: float) -> list[float]:
    return [1 - tau * min(t / ramp, 1.0) for t in times]


def warmed(curve: list[float], config: CoteachingConfig) -> list[float]:
    return [1.0 if e < config.warmup_epochs else r for e, r in enumerate(curve)]


@pytest.mark.parametrize("case", sorted(SEARCHES))
def test_search__trials_and_choice_are_the_literal_ones(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if case == "trusted":
        monkeypatch.setattr(trials, "MIN_TRUSTED", 10)
    data, _ = digits_data(150, num_unlabeled=4, num_trusted=15)
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
        drawn += draw(np.ones(36), config.search_samples, S2E_SPACE, seed, m)
    proxies = [anchor_curve(tau, short, config.ramp_epochs) for tau in config.anchors]
    proxies += [s2e_curve(x, short, config.epochs) for x in drawn]
    accuracies = [trial_accuracy(data, config, warmed(curve, config), split=split) for curve in proxies]
    assert found["anchor_accuracies"] == pytest.approx(accuracies[: len(config.anchors)])
    assert found["trial_accuracies"] == pytest.approx(accuracies[len(config.anchors) :])
    assert len(set(accuracies)) > 1

    # Among those as accurate as the best, up to half a standard error, the one that drops most.
    curves = [anchor_curve(tau, full, config.ramp_epochs) for tau in config.anchors]
    curves = [warmed(c, config) for c in curves + [s2e_curve(x, full, config.epochs) for x in drawn]]
    best = max(accuracies)
    error = math.sqrt(best * (1 - best) / len(split[1]))
    equal = [
        i
        for i, a in enumerate(accuracies)
        if a >= best - config.tie_margin * error - 1e-12 and min(curves[i]) >= 0.25
    ]
    by_drop = config.tie_margin and equal
    chosen = min(equal, key=lambda i: mean(curves[i])) if by_drop else accuracies.index(best)
    assert result.provenance.notes["keep_rates"] == pytest.approx(curves[chosen], abs=2e-6)
    assert found["chosen_accuracy"] == pytest.approx(accuracies[chosen])

    # And the networks that judge were trained under it.
    _, tally, _ = final_run(data, replace(config, noise_rate=0.1), curves[chosen])
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
