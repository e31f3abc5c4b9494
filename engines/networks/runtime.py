"""Networks that only look: on a CPU OpenVINO computes them, about three times as fast as torch does.

A network is converted once (a few seconds) and kept as a file under a hash of all that decides what it computes.
Images are computed one by one, each by one thread: what a network says about an image never depends on the images
beside it or on how many threads there are, to the last bit. Without OpenVINO torch computes as before.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engines.networks.pretrained import Backbone

TELEMETRY = "openvino_telemetry"
CONVERTER = "openvino.tools.ovc"
FILE = "network.xml"
AGREES = 1e-3
"""How far outputs may lie from torch's, as a share of the largest."""


class Converted(nn.Module):
    """A compiled network: (B, 3, side, side) float32 on the CPU in, (B, D) float32 out. Threads may share it."""

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self._compiled = compiled
        self._own = threading.local()

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self._own, "request"):
            self._own.request = self._compiled.create_infer_request()
        rows = x.float().contiguous().numpy()
        found = [self._own.request.infer({0: rows[at : at + 1]})[0] for at in range(len(rows))]
        return torch.from_numpy(np.concatenate(found))


def for_looking(network: Backbone, *, threads: int = 1, kept: Path | None = None) -> Backbone:
    """``network`` as OpenVINO computes it, in float32; ``network`` itself where OpenVINO is missing or cannot.

    Args:
        network: in evaluation mode, on the CPU.
        threads: that will look at the same time.
        kept: folder of converted networks; None converts without keeping.
    """
    runtime = openvino()
    if runtime is None:
        return network
    side = network.config.side
    image = torch.linspace(-1, 1, 3 * side * side).reshape(1, 3, side, side)
    with torch.inference_mode():
        wanted = network(image).float()
    place = None if kept is None else kept / _digest(network, runtime)
    properties = {
        "INFERENCE_PRECISION_HINT": "f32",  # it would choose bfloat16 by itself where the CPU has it
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": threads,
        "ENABLE_CPU_PINNING": False,  # two processes would wait for the same core
    }
    core = runtime.Core()
    for read in (place, None) if place is not None and place.exists() else (None,):
        try:
            model = core.read_model(read / FILE) if read else _convert(runtime, network, image)
            found = Converted(core.compile_model(model, "CPU", properties))
            if torch.allclose(found(image), wanted, rtol=0, atol=AGREES * float(wanted.abs().max())):
                if place is not None and not read:
                    _keep(runtime, model, place)
                return Backbone(network.name, found, network.feature_size, network.config)
        except Exception:  # damaged files, operators that it does not know: its errors are of many types
            continue
    return network


def openvino() -> Any:
    """OpenVINO without its telemetry, which would report each import and conversion; None without it.

    What reports is a package of its own, and OpenVINO goes without it where it cannot be imported.
    """
    if CONVERTER not in sys.modules:
        sys.modules[TELEMETRY] = None  # type: ignore[assignment]  # Python's own way to refuse an import
    try:
        import openvino
        from openvino.tools.ovc import telemetry_utils
    except Exception:  # not installed, or its libraries do not load here
        return None
    reports = telemetry_utils.tm.__name__.startswith(TELEMETRY)  # somebody else imported it before
    return None if reports else openvino


def _convert(runtime: Any, network: Backbone, image: Tensor) -> Any:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about torch's tracing, which OpenVINO uses
        return runtime.convert_model(network.network, example_input=image, input=[tuple(image.shape)])


def _digest(network: Backbone, runtime: Any) -> str:
    """Of the weights, the side and the versions that convert."""
    versions = (runtime.get_version(), torch.__version__, network.name, network.config.side)
    digest = hashlib.sha256(repr(versions).encode())
    for key, value in network.state_dict().items():
        digest.update(key.encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


def _keep(runtime: Any, model: Any, place: Path) -> None:
    """Write the network whole, or not at all; another process may do the same."""
    place.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".", dir=place.parent))
    try:
        runtime.save_model(model, staged / FILE, compress_to_fp16=False)
        shutil.rmtree(place, ignore_errors=True)  # what could not be read
        os.rename(staged, place)
    except (OSError, RuntimeError):  # no room, or somebody else was first: it is converted again next time
        shutil.rmtree(staged, ignore_errors=True)
