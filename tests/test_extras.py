"""Without an optional package the product works, and what needs it says which extra brings it."""

from __future__ import annotations

import importlib
import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.registry import _registry as LOADED
from packaging.requirements import Requirement

from auditor.backbones import weights
from auditor.bridges import fiftyone_door
from auditor.catalog.db import session
from auditor.ground import spreadsheets
from auditor.pictures import coco, decoding
from auditor.pictures.sources import SourceOptions, open_source
from auditor.work import ray_executor
from benchmarks.papers import s2e_rivals
from engines.networks import pretrained
from engines.segmentation.network import UNet
from tests.auditor.work.test_executors import Heard


def a_shape(folder: Path) -> Any:
    image = {"id": 1, "file_name": "a.png", "width": 4, "height": 4}
    shape = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[0, 0, 3, 0, 3, 3]]}
    content = {"images": [image], "annotations": [shape], "categories": [{"id": 1, "name": "dog"}]}
    (folder / "coco.json").write_text(json.dumps(content))
    return coco.mask_of(coco.read(folder / "coco.json", folder), 1)


def in_postgresql() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUDITOR_DATABASE_URL", "postgresql+psycopg://ann@127.0.0.1:1/labels")
        with session() as open_session:
            return open_session.connection()


def a_photo() -> Any:
    with pytest.MonkeyPatch.context() as patch:  # what pillow-heif brings is found out when it is loaded
        patch.setattr(decoding, "HEIF", ())
        patch.setattr(decoding, "FORMATS", tuple(name for name in decoding.FORMATS if name != "HEIF"))
        return decoding.open_image(b"\0\0\0\x18ftypheic" + bytes(200))


NEEDS: dict[str, tuple[tuple[str, ...], str, Callable[[Path], Any]]] = {
    "timm": (("timm",), "backbones", lambda _: pretrained._pretrained_cfg("timm:resnet18.a1_in1k")),
    "huggingface_hub": (("huggingface_hub",), "backbones", lambda _: weights.offer("timm:resnet18.a1_in1k")),
    "ray": (("ray",), "cluster", lambda _: ray_executor.RayExecutor().run([], Heard())),
    "s3fs": (("s3fs",), "remote", lambda _: open_source("s3://bucket/set.parquet", SourceOptions())),
    "fiftyone": (("fiftyone",), "fiftyone", lambda _: fiftyone_door.connect()),
    "psycopg": (("psycopg",), "team", lambda _: in_postgresql()),
    "segmentation_models_pytorch": (
        ("segmentation_models_pytorch",),
        "masks",
        lambda _: UNet("resnet18", 3, 2),
    ),
    "pycocotools": (("pycocotools",), "masks", a_shape),
    "optuna": (("optuna",), "search", lambda _: importlib.reload(s2e_rivals)),
    "pydicom": (("pydicom",), "dicom", lambda _: decoding.open_image(bytes(128) + b"DICM" + bytes(200))),
    "pillow_heif": (("pillow_heif",), "heic", lambda _: a_photo()),
    "openpyxl": (("openpyxl",), "excel", lambda place: spreadsheets._as_csv(place / "labels.xlsx")),
    "upath": (("upath",), "remote", lambda _: open_source("http://127.0.0.1/set.parquet", SourceOptions())),
}


@pytest.mark.parametrize("package", NEEDS)
def test_extra__missing_is_one_line_that_names_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules, extra, call = NEEDS[package]
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    for scheme in ("s3", "http"):  # fsspec keeps the classes that an earlier test of this process loaded
        monkeypatch.delitem(LOADED, scheme, raising=False)
    with pytest.raises((Exception, SystemExit), match=rf"label-auditor\[{extra}\]") as refused:
        call(tmp_path)
    assert "\n" not in str(refused.value)


def test_extra__each_of_a_user_is_tried_here() -> None:
    of_others = {"scale"}  # brings no package of its own
    assert {extra for _, extra, _ in NEEDS.values()} | of_others == set(
        Requirement(extras()["all"][0]).extras
    )


ROOT = Path(__file__).resolve().parent.parent


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def test_scale__brings_a_cluster_a_catalog_for_a_team_and_object_stores() -> None:
    (same,) = [need for need in map(Requirement, extras()["scale"]) if need.name == "label-auditor"]
    assert same.extras == {"cluster", "team", "remote"}


def test_lock__pins_every_requirement_within_its_range() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins: dict[str, list[str]] = {}
    for line in lines:
        found = re.match(r"([a-z0-9._-]+)==([^ ;]+)", line)
        if found:
            pins.setdefault(found[1], []).append(found[2])
    needs = [Requirement(text) for extra in extras().values() for text in extra]
    bad = [
        str(need)
        for need in needs
        if need.name != "label-auditor"
        and not any(need.specifier.contains(pin, prereleases=True) for pin in pins.get(need.name, []))
    ]
    assert bad == []
    assert not any("/" in line for line in lines)  # no place of one machine


def test_all__brings_every_extra_of_a_user() -> None:
    brought = Requirement(extras()["all"][0]).extras
    assert brought == set(extras()) - {"", "all", "dev", "docs", "bench"}
