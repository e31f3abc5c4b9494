"""Without an optional package the product works, and what needs it says which extra brings it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.backbones import weights
from auditor.pictures.sources import SourceOptions, open_source
from engines.neighbours import search
from engines.networks import pretrained


def tfds(folder: Path) -> Any:
    (folder / "features.json").write_text("{}")
    (folder / "tiny-train.tfrecord-00000-of-00001").write_bytes(b"")
    return open_source(folder, SourceOptions())


def many_neighbours(_: Path) -> Any:
    return search.nearest(np.zeros((search.EXACT_UP_TO + 1, 2), np.float32), 1)


NEEDS: dict[str, tuple[tuple[str, ...], str, Callable[[Path], Any]]] = {
    "timm": (("timm",), "backbones", lambda _: pretrained._pretrained_cfg("timm:resnet18.a1_in1k")),
    "huggingface_hub": (("huggingface_hub",), "backbones", lambda _: weights.offer("timm:resnet18.a1_in1k")),
    "usearch": (("usearch", "usearch.index"), "scale", many_neighbours),
    "tfrecord": (("tfrecord",), "tfds", tfds),
    "s3fs": (("s3fs",), "remote", lambda _: open_source("s3://bucket/set.parquet", SourceOptions())),
    "upath": (("upath",), "remote", lambda _: open_source("http://127.0.0.1/set.parquet", SourceOptions())),
}


@pytest.mark.parametrize("package", NEEDS)
def test_extra__missing_is_one_line_that_names_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules, extra, call = NEEDS[package]
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Exception, match=rf"label-auditor\[{extra}\]") as refused:
        call(tmp_path)
    assert "\n" not in str(refused.value)
