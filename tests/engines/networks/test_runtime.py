"""Networks as OpenVINO computes them: what torch finds, kept, the same bits again, and nothing reported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from engines.networks.pretrained import Backbone, open_backbone
from engines.networks.runtime import FILE, Converted, for_looking

NAME = "timm:mobilenetv3_small_050"


@pytest.fixture(scope="module")
def network() -> Backbone:
    return open_backbone(NAME, None, side=32)


def images() -> Tensor:
    return torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_for_looking__sees_what_torch_sees_and_is_kept(network: Backbone, tmp_path: Path) -> None:
    first = for_looking(network, kept=tmp_path / "kept")
    assert isinstance(first.network, Converted)
    assert (first.name, first.feature_size, first.config) == (NAME, network.feature_size, network.config)
    seen = first(images())
    with torch.inference_mode():
        torch.testing.assert_close(seen, network(images()), rtol=1e-3, atol=1e-4)
    (place,) = (tmp_path / "kept").iterdir()
    before = (place / FILE).stat().st_ino
    again = for_looking(network, threads=2, kept=tmp_path / "kept")
    assert torch.equal(again(images()), seen)
    assert torch.equal(again(images()[3:4]), seen[3:4])
    assert (place / FILE).stat().st_ino == before  # read, not made again
    (place / FILE).write_text("no network", encoding="utf-8")
    assert torch.equal(for_looking(network, kept=tmp_path / "kept")(images()), seen)
    assert (place / FILE).stat().st_size > 1_000  # made again
    other = for_looking(open_backbone(NAME, None, side=64), kept=tmp_path / "kept")
    assert isinstance(other.network, Converted)
    assert len(list((tmp_path / "kept").iterdir())) == 2


class Counts(nn.Module):
    """What it says changes with every call, so no conversion can be right."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.flatten(1)[:, :8] + self.calls


def test_for_looking__torch_goes_on_where_openvino_finds_something_else(network: Backbone) -> None:
    counts = Backbone(NAME, Counts(), 8, network.config)
    assert for_looking(counts) is counts


def test_for_looking__an_openvino_that_reports_is_not_used(
    network: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    utils = pytest.importorskip("openvino.tools.ovc.telemetry_utils")
    monkeypatch.setattr(utils, "tm", ModuleType("openvino_telemetry"))
    assert for_looking(network) is network


CONVERTS = f"""
import sys
from engines.networks.pretrained import open_backbone
from engines.networks.runtime import for_looking
print(type(for_looking(open_backbone({NAME!r}, None, side=32)).network).__name__)
print([name for name, module in sys.modules.items() if name.startswith("openvino_telemetry") and module])
print(sys.modules["openvino.tools.ovc.convert_impl"].tm.__name__)
"""


def test_openvino__its_telemetry_is_never_imported(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    environment.pop("CI", None)  # it would keep quiet there
    ran = subprocess.run(
        [sys.executable, "-c", CONVERTS], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("\n")[:3] == ["Converted", "[]", "openvino.tools.ovc.telemetry_stub"]
    assert not (tmp_path / "intel").exists()  # where it writes who uses it
