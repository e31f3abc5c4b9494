"""Where figures are kept: what was measured on a card never stands among what was measured on a CPU."""

from __future__ import annotations

from pathlib import Path


def result_file(path: Path, device: str) -> Path:
    """``path`` for the CPU, ``NAME_cuda.json`` beside it for a card."""
    return path.with_stem(f"{path.stem}_cuda") if device.startswith("cuda") else path
