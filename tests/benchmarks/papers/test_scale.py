"""What ``--scale`` changes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.papers import scale
from benchmarks.papers.curves import curves_of
from engines.registry import ENGINES
from tests.engines.helpers import digits_data

RESULTS = {"smoke": {"rows": 10}, "cpu": {}, "gpu": {"rows": 60_000}}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("results/table.json"))
    return parser


@pytest.mark.parametrize(
    ("line", "rows", "out"),
    [
        ([], 500, Path("results/table.json")),
        (["--scale", "smoke"], 10, scale.SMOKE / "table.json"),
        (["--scale", "gpu"], 60_000, Path("results/table_cuda.json")),
        (["--scale=gpu", "--rows", "7", "--out", "x.json"], 7, Path("x.json")),
    ],
)
def test_parse_scaled__gives_defaults_and_keeps_what_is_given(line: list[str], rows: int, out: Path) -> None:
    found = scale.parse_scaled(_parser(), RESULTS, line)
    assert (found.rows, found.out) == (rows, out)


def test_parse_scaled__refuses_another_scale(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        scale.parse_scaled(_parser(), RESULTS, ["--scale", "tpu"])
    assert "invalid choice: 'tpu'" in capsys.readouterr().err


def test_curves_of__reads_label_precision_off_the_selection() -> None:
    data, wrong = digits_data(120, noise_rate=0.4, with_evaluation=True)
    spec = ENGINES["coteaching"]
    config = spec.config_type(
        network="mlp", epochs=3, keep_schedule="coteaching", noise_rate=0.4, ramp_epochs=1.0, views=1
    )
    found = curves_of(spec.train(data, config, device="cpu"), "coteaching", ~wrong)
    assert found["keep_rate"] == [1.0, 0.6, 0.6]
    assert found["label_precision"][0] == pytest.approx(0.6)  # everything is kept
    assert len(found["heldout_accuracy"]) == 3
