"""What ``--scale`` changes."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

import pytest

from benchmarks.papers import index, l2b_ablation, masks, s2e_spaces, scale
from benchmarks.papers.curves import curves_of
from engines.registry import ENGINES
from engines.shared.device import resolve_device
from tests.engines.helpers import digits_data

MODULES = sorted({command.split()[0] for item in index.ITEMS for command in item.commands})
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


def test_parse_scaled__a_smoke_run_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SMOKE", tmp_path)
    earlier = tmp_path / "table.json"
    earlier.touch()
    assert scale.parse_scaled(_parser(), RESULTS, ["--scale", "smoke"]).out == earlier
    assert not earlier.exists()


def test_parse_scaled__says_which_device_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert scale.parse_scaled(_parser(), RESULTS, []).device == "cpu"
    assert scale.parse_scaled(_parser(), RESULTS, ["--scale", "gpu"]).device == str(resolve_device("auto"))
    with pytest.raises(SystemExit):
        scale.parse_scaled(_parser(), RESULTS, ["--device", "cuda:99"])
    assert "device 'cuda:99' is not there" in capsys.readouterr().err


@pytest.mark.parametrize("name", MODULES)
def test_scales__only_change_options_that_the_module_has(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"benchmarks.papers.{name}")
    assert tuple(module.SCALES) == scale.SCALES
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit):
        module.main()
    options = capsys.readouterr().out
    for change in {change for changes in module.SCALES.values() for change in changes}:
        assert f"--{change}" in options


def test_l2b_ablation__goes_on_where_it_was_stopped_and_refuses_another_budget(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUDITOR_SHARED_DATA", str(shared_data))
    out = tmp_path / "ablation.json"

    def run(*more: str, rows: int = 60) -> list[dict[str, object]]:
        line = ["l2b_ablation", "--scale", "smoke", "--rows", str(rows), "--out", str(out), "--runs"]
        monkeypatch.setattr("sys.argv", [*line, "cross-entropy", *more])
        l2b_ablation.main()
        return list(json.loads(out.read_text())["runs"])

    first = run()
    both = run("l2rw")
    assert [one["run"] for one in first] == ["cross-entropy"] * 2
    assert [one["run"] for one in both] == ["cross-entropy"] * 2 + ["l2rw"] * 2
    assert both[:2] == first
    with pytest.raises(SystemExit):
        run(rows=61)
    assert "holds another budget" in capsys.readouterr().err
    assert json.loads(out.read_text())["runs"] == both


def test_s2e_spaces__problems_stand_side_by_side_each_with_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = json.loads(s2e_spaces.RESULTS.read_text())
    cell = {"test_best_over_epochs": 41.0, "test_last_epochs": 40.0}
    documents["cifar10"] = {
        "budget": documents["mnist"]["budget"] | {"network": "cnn_small", "epochs": 3},
        "cells": {"pair 45 % | paper | random | 0": cell},
    }
    mnist, cifar = s2e_spaces.page(documents).split("## CIFAR-10")
    assert s2e_spaces.page({"mnist": documents["mnist"]}) == mnist.rstrip() + "\n"
    assert "| pair 45 % | - / 44.87 | - / 45.19 | - / 42.61 | - / 44.26 | 41.0 / 47.58 (-6.6) |" in cifar
    assert "Rules" not in cifar

    out = tmp_path / "s2e.json"
    out.write_text(json.dumps(documents))
    for line in (["--subset", "100"], ["--problem", "cifar10"]):
        monkeypatch.setattr("sys.argv", ["s2e_spaces", *line, "--out", str(out)])
        with pytest.raises(SystemExit):
            s2e_spaces.main()
        assert "holds another budget" in capsys.readouterr().err


def test_masks__a_smoke_run_keeps_out_of_the_kept_results_and_goes_on(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUDITOR_SHARED_DATA", str(shared_data))
    monkeypatch.setattr(scale, "SMOKE", tmp_path)
    before = masks.RESULTS.read_bytes(), masks.RESULTS.with_suffix(".md").read_bytes()
    out = tmp_path / "masks.json"

    def run(*more: str) -> list[dict[str, object]]:
        line = ["masks", "--scale", "smoke", "--sets", "membranes", "--runs", masks.SCRATCH]
        monkeypatch.setattr("sys.argv", [*line, *more])
        masks.main()
        return list(json.loads(out.read_text())["rows"])

    first = run("--side", "32", "--epochs", '{"membranes": 1}')
    assert [(one["rate"], one["kinds"]) for one in first] == [(0.5, "turned eroded dilated swapped")]
    again = ("--side", "32", "--epochs", '{"membranes": 1}', "--out", str(out))
    assert run(*again) == first
    both = run(*again, "--kinds", "turned")
    assert both[:1] == first
    assert both[1]["kinds"] == "turned"
    with pytest.raises(SystemExit):
        run("--out", str(out))
    assert "holds another budget" in capsys.readouterr().err
    assert "| membranes | 50%, turned only |" in out.with_suffix(".md").read_text()
    assert (masks.RESULTS.read_bytes(), masks.RESULTS.with_suffix(".md").read_bytes()) == before


def test_parse_scaled__refuses_another_scale(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        scale.parse_scaled(_parser(), RESULTS, ["--scale", "tpu"])
    assert "invalid choice: 'tpu'" in capsys.readouterr().err


def test_curves_of__reads_label_precision_off_the_selection() -> None:
    data, wrong = digits_data(120, noise_rate=0.4, with_evaluation=True)
    spec = ENGINES["coteaching"]
    config = spec.config_type(network="mlp", epochs=3, noise_rate=0.4, ramp_epochs=1.0, views=1)
    found = curves_of(spec.train(data, config, device="cpu"), "coteaching", ~wrong)
    assert found["keep_rate"] == [1.0, 0.6, 0.6]
    assert found["label_precision"][0] == pytest.approx(0.6)  # everything is kept
    assert len(found["heldout_accuracy"]) == 3
