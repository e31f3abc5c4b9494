"""What an audit looks through where nobody chose: real photos, digits of 8 pixels, and what somebody set."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from auditor.audits import usual_features
from auditor.backbones import features
from auditor.bridges import engine_bridge
from auditor.catalog import reading
from auditor.cli.commands import cli
from auditor.importing import imports
from tests.helpers import write_digits

LITE0 = "timm:tf_efficientnet_lite0"
BOTH = f"{LITE0},timm:tf_efficientnet_lite2"


@pytest.fixture(autouse=True)
def nobody_chose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(features.CHOSEN, raising=False)
    for variable in ("TORCH_HOME", "HF_HOME"):  # nothing that somebody fetched
        monkeypatch.setenv(variable, str(tmp_path / "caches"))


@pytest.fixture
def photos(home: Path, shared_data: Path, tmp_path: Path) -> str:
    """300 photos of clothes in ten classes."""
    found = sorted((shared_data / "clothing").rglob("*.jpg"))[:: 341 // 300][:300]
    assert len(found) == 300
    for place in found:
        (tmp_path / "photos" / place.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, tmp_path / "photos" / place.parent.name / place.name)
    imports.import_dataset(tmp_path / "photos", name="photos", image_size=112)
    return "photos"


@pytest.mark.shared_data
def test_audit__photos_are_seen_through_what_comes_with_the_installation(photos: str) -> None:
    arguments = ["audit", photos, "--engines", "cross_entropy", "--map", "pca", "--seed", "1"]
    ran = CliRunner().invoke(cli, arguments)
    assert ran.exit_code == 0, ran.output
    assert f"Features of {BOTH.replace(',', ' at 224 px and ')} at 224 px, 1 view" in ran.stderr
    seen = reading.audited(photos)[1].options.features
    assert seen is not None
    assert (seen["name"], seen["views"]) == (BOTH, 1)


@pytest.mark.shared_data
def test_choose__one_network_for_many_images_and_for_finetuning(
    photos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usual_features, "told", lambda *_: (1.0, 0.0))
    both, _ = usual_features.choose_features(photos, None)
    alone, sentence = usual_features.choose_features(photos, None, one=True)
    assert (both and both.name, alone and alone.name) == (BOTH, LITE0)
    assert sentence.startswith(f"Features of {LITE0} at 224 px, 1 view an image; they come with")
    monkeypatch.setattr(usual_features, "BOTH_UP_TO", 299)
    many, _ = usual_features.choose_features(photos, None)
    assert many == (alone if engine_bridge.is_on_cpu() else both)


@pytest.mark.parametrize(("asked", "seen"), [(None, 160), (96, 96)])
def test_choose__many_small_pictures_are_seen_at_a_smaller_side(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int | None, seen: int
) -> None:
    imports.import_dataset(write_digits(tmp_path / "source").table, name="digits", image_size=16)
    monkeypatch.setattr(usual_features, "told", lambda *_: (1.0, 0.0))
    few, _ = usual_features.choose_features("digits", None)
    monkeypatch.setattr(usual_features, "BOTH_UP_TO", 1)
    monkeypatch.setattr(usual_features.engine_bridge, "is_on_cpu", lambda: True)
    many, sentence = usual_features.choose_features("digits", None, side=asked)
    larger = imports.import_dataset(write_digits(tmp_path / "larger").table, name="larger", image_size=33)
    large, _ = usual_features.choose_features(larger.name, None)
    assert few is not None
    assert many is not None
    assert large is not None
    assert ([one.side for one in few.each], many.side, large.side) == ([224, 224], seen, 224)
    assert f"{LITE0} at {seen} px" in sentence


def test_choose__digits_of_8_pixels_say_more_by_themselves(home: Path, tmp_path: Path) -> None:
    imports.import_dataset(write_digits(tmp_path / "source").table, name="digits", image_size=16)
    source, why = usual_features.choose_features("digits", None)
    assert source is None
    assert f"pixels tell more about the given labels than the features of {LITE0}" in why


def test_choose__what_was_set_or_named_is_not_measured(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(features.CHOSEN, "none")
    assert usual_features.choose_features("no such dataset", None) == (None, "")
    named, why = usual_features.choose_features("no such dataset", LITE0)
    assert named == features.choose(LITE0)
    assert why == f"Features of {LITE0} at 224 px, 1 view an image."
    monkeypatch.setenv(features.CHOSEN, "timm:tf_efficientnet_lite2")
    set_by_name, _ = usual_features.choose_features("no such dataset", None)
    assert set_by_name is not None
    assert set_by_name.name == "timm:tf_efficientnet_lite2"


def test_likelihood__of_what_tells_and_of_what_does_not() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 300)
    telling = np.eye(4)[labels] + 0.2 * rng.normal(size=(300, 4))
    noise = rng.normal(size=(300, 4))
    assert usual_features.likelihood(telling, labels) > 0.6
    assert usual_features.likelihood(noise, labels) == pytest.approx(0.25, abs=0.03)
    numbers = labels + 0.1 * rng.normal(size=300)
    assert usual_features.likelihood(telling, numbers) > 2 * usual_features.likelihood(noise, numbers)
    once = np.where(np.arange(300) == 7, 4, labels)  # a class that no other fold has
    assert usual_features.likelihood(telling, once) > 0.6
