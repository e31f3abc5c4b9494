"""Training on numbers: every step against its formulas, going on after a kill, and what is judged and refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.contract import EngineInputError, EpochRecord, NumberData, NumberResult, TrainingCancelled
from engines.registry import ENGINES
from engines.regression import config as settings
from engines.regression import loop
from engines.shared.device import make_generator
from tests.benchmarks.papers.test_choicenet_regression_steps import LiteralRegression
from tests.engines.helpers import Kept
from tests.engines.literal_choicenet import Weights, correlation_kl, drawn, head, softmax
from tests.engines.literal_double import (
    Optimizer,
    Steps,
    assert_same,
    in_double,
    learning_rate,
    linear,
    named_start,
    relu,
)

ENGINES_ON_NUMBERS = [name for name, spec in ENGINES.items() if "numbers" in spec.other_configs]
SEED = 5
FORMS = {"rho_ref": 1.0, "log_weight_variance": 0.0}


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "LEAST_STEPS", 1)


def table(num: int = 14) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    features = random.normal(size=(num, 2)).astype(np.float32)
    numbers = 50 + 10 * features[:, 0].astype(np.float64)
    numbers[3] = 4_000.0
    return features, numbers


def train(engine: str, data: NumberData, **fields: Any) -> NumberResult:
    more = {key: fields.pop(key) for key in ("on_epoch", "checkpoint") if key in fields}
    config = replace(ENGINES[engine].config_type_on("numbers").preset("quick").for_features(), **fields)
    return ENGINES[engine].train_numbers(data, config, seed=SEED, device="cpu", **more)


class Literal:
    """One engine by name of parameter, and its steps."""

    def __init__(self, engine: str, config: Any, x: np.ndarray, y: np.ndarray, w: Weights) -> None:
        self.engine, self.config, self.w = engine, config, dict(w)
        mean = x.astype(np.float64).mean(axis=0)
        deviation = np.sqrt(np.square(x.astype(np.float64) - mean).mean())  # one for all values
        scaled = (x.astype(np.float64) - mean.astype(np.float32)) / np.float32(deviation)
        self.x = torch.from_numpy(scaled)
        middle = np.sort(y)[len(y) // 2 - 1 : len(y) // 2 + 1].mean()
        apart = np.sort(np.abs(y - middle))
        spread = 1.4826 * apart[len(y) // 2 - 1 : len(y) // 2 + 1].mean()
        self.y = torch.from_numpy(np.clip((y - middle) / spread, -6, 6)[:, None])
        self.optimizer = Optimizer(
            config.optimizer, decay=config.weight_decay, betas=(0.9, 0.999), eps=1e-8, momentum=0.9
        )

    def epoch(self, number: int) -> list[dict[str, Tensor]]:
        """The parameters after every step of the epoch."""
        order = torch.randperm(len(self.x), generator=make_generator(SEED, "order", 0, number))
        noise, after = make_generator(SEED, "noise", 0, number), []
        self.loss = 0.0
        for rows in order.split(self.config.batch_size):
            w = {name: value.clone().requires_grad_() for name, value in self.w.items()}
            costs = self.costs(w, self.x[rows], self.y[rows], noise)
            self.loss += float(costs.detach()) * len(rows) / len(self.x)
            found = torch.autograd.grad(costs, list(w.values()), allow_unused=True)
            gradients = {
                name: None if one is None else one.clamp(-1, 1) for name, one in zip(w, found, strict=True)
            }
            c = self.config
            rate = learning_rate(c.schedule, c.learning_rate, number, c.epochs)
            self.optimizer.step(self.w, gradients, rate)
            after.append(dict(self.w))
        return after

    def costs(self, w: Weights, x: Tensor, y: Tensor, noise: torch.Generator) -> Tensor:
        c, h = self.config, relu(linear(w, "trunk.0", x))
        total = torch.zeros(())
        if self.engine == "cross_entropy":
            pi = softmax(linear(w, "head.pi_head", h))
            means, raw = linear(w, "head.mean_head", h), linear(w, "head.deviation_head", h)
            for i in range(len(x)):
                deviations = 1 / (1 + (-raw[i, :, None]).exp())
                total = total - LiteralRegression.log_density(y[i], pi[i], means[i, :, None], deviations**2)
            return total / len(x)
        forms = type("Forms", (), {**FORMS, "inverse_precision": c.inverse_precision})
        said = head(w, "head.", h, forms, training=True)
        means = drawn(said, "sqrt", "shared", noise, outputs=False)
        for i, one in enumerate(said):
            total = total + c.lambda_fit * ((y[i] - means[i][0]) ** 2).sum()
            total = total - LiteralRegression.log_density(y[i], one.pi, means[i], one.variance)
            total = total + c.lambda_kl * correlation_kl(one.rho, one.pi, c.kl_form)
        return total / len(x)


@pytest.mark.parametrize(
    ("engine", "changed"),
    [
        ("cross_entropy", {}),
        ("cross_entropy", {"schedule": "cosine"}),
        ("cross_entropy", {"optimizer": "adam", "schedule": "linear_tail"}),
        ("choicenet", {}),
        ("choicenet", {"optimizer": "adam", "schedule": "cosine", "epochs": 3}),
        ("choicenet", {"lambda_fit": 0.6, "lambda_kl": 0.4, "kl_form": "paper"}),
        ("choicenet", {"inverse_precision": 0.4}),
    ],
)
def test_train_numbers__steps_are_those_of_the_formulas(engine: str, changed: dict[str, Any]) -> None:
    x, y = table()
    fields: dict[str, Any] = {
        "folds": 1, "epochs": 2, "batch_size": 8, "num_components": 3, "optimizer": "sgd", "weight_decay": 0.1,
        "learning_rate": 0.02, "schedule": "constant",
    }  # fmt: skip
    config = replace(
        ENGINES[engine].config_type_on("numbers").preset("quick").for_features(), **(fields | changed)
    )
    with in_double():
        steps, kept = Steps(), Kept()
        data = NumberData(None, y, features=x[:, None, :])
        with steps.watched():
            result = ENGINES[engine].train_numbers(data, config, seed=SEED, device="cpu", checkpoint=kept)
        assert kept.state is not None
        literal = Literal(engine, config, x, y, named_start(kept.state["network"], steps.start[0]))
        assert literal.w["head.pi_head.weight"].shape[0] == 3
        if engine == "choicenet":
            assert 0.07 < float(literal.w["head.pi_head.weight"].std()) < 0.13
        wanted = []
        for number in range(config.epochs):
            wanted += literal.epoch(number)
            (loss,) = result.history[number].losses.values()
            assert loss == pytest.approx(literal.loss, rel=1e-4)
        assert len(wanted) == len(steps.after[0]) == 2 * config.epochs
        for number, (found, after) in enumerate(zip(steps.after[0], wanted, strict=True)):
            assert_same(dict(zip(after, found, strict=True)), after, f"step {number}")


@pytest.mark.parametrize("engine", ENGINES_ON_NUMBERS)
def test_train_numbers__says_numbers_in_the_unit_of_the_given_ones(engine: str) -> None:
    x, y = table(20)
    plain, other = (
        train(engine, NumberData(None, numbers, features=x[:, None, :]), epochs=2, folds=2)
        for numbers in (y, 8 * y + 512)
    )
    np.testing.assert_allclose(other.predicted, 8 * plain.predicted + 512, rtol=1e-6)
    np.testing.assert_allclose(other.deviation, 8 * plain.deviation, rtol=1e-6)
    for name, values in plain.signals.items():
        np.testing.assert_allclose(other.signals[name], values, rtol=1e-4, atol=1e-6, err_msg=name)


def test_number_config__says_every_wrong_setting() -> None:
    config = ENGINES["choicenet"].config_type_on("numbers")
    with pytest.raises(ValueError, match=r"lambda_kl.*; inverse_precision is 0, it must be above 0"):
        config(lambda_kl=-1.0, inverse_precision=0)


@pytest.mark.parametrize("engine", ENGINES_ON_NUMBERS)
def test_train_numbers__a_killed_run_goes_on_and_ends_as_one_that_was_not(engine: str) -> None:
    x, y = table(30)
    y[7] = np.nan
    data, kept = NumberData(None, y, features=x[:, None, :]), Kept()
    fields = {"epochs": 2, "batch_size": 8, "folds": 3}

    def stop(record: EpochRecord) -> None:
        if (record.stage, record.epoch) == ("fold 2", 0):
            raise TrainingCancelled

    whole = train(engine, data, **fields)
    with pytest.raises(TrainingCancelled):
        train(engine, data, on_epoch=stop, checkpoint=kept, **fields)
    resumed = train(engine, data, checkpoint=kept, **fields)
    assert (whole.predicted == resumed.predicted).all()
    assert whole.is_out_of_sample
    assert np.isfinite(whole.predicted).all()
    assert (whole.deviation > 0).all()
    for values in whole.signals.values():
        assert np.flatnonzero(np.isnan(values)).tolist() == [7]


def test_train_numbers__a_number_does_not_decide_what_is_predicted_for_it() -> None:
    x, y = table(30)
    fields = {"epochs": 2, "batch_size": 8, "folds": 3}
    before = train("cross_entropy", NumberData(None, y, features=x[:, None, :]), **fields)
    moved = y.copy()
    moved[3] = 9_000.0  # beyond the farthest that is trained on, before and after
    after = train("cross_entropy", NumberData(None, moved, features=x[:, None, :]), **fields)
    assert before.predicted[3] == pytest.approx(after.predicted[3])
    judged = y.copy()
    judged[5] += 500.0
    data = NumberData(None, y, features=x[:, None, :], judged=judged)
    found = train("cross_entropy", data, **fields)
    assert (found.predicted == before.predicted).all()
    assert found.signals["tail"][5] < before.signals["tail"][5]


def test_together__each_sample_keeps_its_own_mean_over_the_views() -> None:
    def said(*points: float) -> loop.Said:
        one = torch.tensor(points)[:, None]
        mixture = torch.zeros_like(one), one[..., None], torch.ones_like(one[..., None])
        return loop.Said(one[:, 0], *mixture, rho=one / 100)

    both = loop.together([said(1.0, 10.0), said(3.0, 30.0)])
    torch.testing.assert_close(both.point, torch.tensor([2.0, 20.0]))
    torch.testing.assert_close(both.means[..., 0], torch.tensor([[1.0, 3.0], [10.0, 30.0]]))
    torch.testing.assert_close(both.log_pi.exp(), torch.full((2, 2), 0.5))
    torch.testing.assert_close(both.rho, torch.tensor([[0.01, 0.03], [0.1, 0.3]]))


def test_tail__is_that_of_the_mixture() -> None:
    from engines.regression.densities import mixture_deviation, mixture_tail

    pi, means, deviations, given = [0.3, 0.7], [1.0, -2.0], [0.5, 1.5], -1.0
    log_pi = torch.tensor([pi]).log()
    mixture = log_pi, torch.tensor(means)[None, :, None], torch.tensor(deviations)[None, :, None].square()
    below = sum(
        p * (1 + math.erf((given - m) / d / math.sqrt(2))) / 2
        for p, m, d in zip(pi, means, deviations, strict=True)
    )
    tail = mixture_tail(torch.tensor([[given]]), *mixture)
    assert float(tail) == pytest.approx(2 * min(below, 1 - below), abs=1e-6)
    mean = 0.3 * 1.0 - 0.7 * 2.0
    second = 0.3 * (0.25 + 1.0) + 0.7 * (2.25 + 4.0)
    assert float(mixture_deviation(*mixture)) == pytest.approx(math.sqrt(second - mean**2), abs=1e-6)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (np.full(14, np.nan), "0 samples have a number; an audit of numbers needs at least 10"),
        (np.full(14, 3.0), "every number is 3; telling right from wrong needs two different ones"),
        (np.r_[np.arange(13.0), np.inf], r"numbers\[13\] is inf; use NaN for a sample without a number"),
        (np.arange(13.0), r"numbers must be \(14,\) float64, got \(13,\) float64"),
    ],
)
def test_train_numbers__refuses_numbers_with_nothing_to_learn(numbers: np.ndarray, said: str) -> None:
    x, _ = table()
    with pytest.raises(EngineInputError, match=said):
        train("choicenet", NumberData(None, numbers, features=x[:, None, :]), epochs=1)
