"""The tail of a predicted mixture, and the family's page."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from benchmarks.papers import l2b_family
from benchmarks.papers.choicenet_regression import RegressionNetwork, mixture_tail
from benchmarks.papers.choicenet_regression_config import RegressionConfig
from engines.contract import EngineInputError


def _network(variant: str) -> RegressionNetwork:
    torch.manual_seed(0)
    return RegressionNetwork(2, 1, RegressionConfig(variant=variant, hidden=(8,))).eval()


@pytest.mark.parametrize("variant", ["choicenet", "mdn"])
def test_mixture_tail__is_two_sided_and_smallest_far_out(variant: str) -> None:
    network = _network(variant)
    inputs = np.zeros((5, 2), dtype=np.float32)
    targets = np.array([[-50.0], [-1.0], [0.2], [1.0], [50.0]], dtype=np.float32)
    found = mixture_tail(network, inputs, targets)
    assert found[[0, 4]] == pytest.approx([0, 0], abs=1e-6)
    assert ((found >= 0) & (found <= 1)).all()
    with torch.no_grad():
        said = network.head(network.base(torch.zeros(1, 2)))
    if variant == "mdn":
        pi, means, variances = said[0].exp(), said[1], said[2]
    else:
        pi, means, variances = said.log_pi.exp(), said.means(), said.total_variances()
    below = sum(
        float(p) * norm.cdf(targets[:, 0], float(m), float(v) ** 0.5)
        for p, m, v in zip(pi[0], means[0, :, 0], variances[0, :, 0], strict=True)
    )
    assert found == pytest.approx(2 * np.minimum(below, 1 - below), abs=1e-5)


def test_mixture_tail__needs_a_mixture() -> None:
    with pytest.raises(EngineInputError, match="'choicenet' or 'mdn'"):
        mixture_tail(_network("l2"), np.zeros((1, 2), np.float32), np.zeros((1, 1), np.float32))


def test_means__ranks_by_each_methods_own_score_and_leaves_out_settings_without_a_base() -> None:
    def cell(method: str, **aurocs: float) -> dict[str, object]:
        scores = {name: {"auroc": value, "ap": 0.5} for name, value in aurocs.items()}
        return {"method": method, "scores": scores, "prediction_accuracy": 0.9, "seconds": 2.0}

    other_first = {"FiftyOne mistakenness": 0.1, "cross_entropy": 0.7}
    found = l2b_family.means(
        {
            "set|10|2|0|plain": cell("plain", **other_first),
            "set|10|2|0|divide_mix": cell("divide_mix", DivideMix=0.8),
            "set|10|2|1|divide_mix": cell("divide_mix", DivideMix=0.9),
            "other|10|2|0|plain": cell("plain", **other_first),
        }
    )
    assert list(found) == ["set|10|2"]
    assert found["set|10|2"]["plain"]["auroc"] == 0.7
    assert found["set|10|2"]["divide_mix"]["auroc"] == pytest.approx(0.85)
    assert found["set|10|2"]["divide_mix"]["n"] == 2
