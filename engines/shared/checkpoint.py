"""A run's state between epochs: as bytes, and recognised as belonging to this run."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any, Protocol

import torch

from engines.contract import Checkpoint, EngineInputError, MaskData, NumberData, SetData, TrainingData
from engines.networks import resolve_for_shape

FINGERPRINT = "fingerprint"


class CheckpointError(EngineInputError):
    """A saved state cannot be continued by this run."""


class Settings(Protocol):
    """What a fingerprint asks of a config."""

    @property
    def network(self) -> str:
        """The network's name."""

    def as_dict(self) -> dict[str, Any]:
        """Every field as plain values."""


def serialize_state(state: dict[str, Any]) -> bytes:
    """``state`` (dicts, lists, tensors, numbers, strings) as bytes."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def deserialize_state(data: bytes) -> dict[str, Any]:
    """The state in ``data``, tensors on the CPU. Runs no code from the bytes (``weights_only``).

    Raises:
        CheckpointError: the bytes are no state that ``serialize_state`` wrote.
    """
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises a dozen unrelated types on damaged bytes
        raise CheckpointError(
            f"the checkpoint cannot be read ({type(error).__name__}, {len(data)} bytes); "
            "delete it to start the run over."
        ) from error
    if not isinstance(state, dict):
        raise CheckpointError(
            f"the checkpoint holds a {type(state).__name__}, not a state; delete it to start the run over."
        )
    return state


def run_fingerprint(
    engine: str,
    config: Settings,
    seed: int,
    data: TrainingData | MaskData | NumberData | SetData,
    device: torch.device,
) -> str:
    """Digest of what a checkpoint must agree on to be continued: engine, config, seed, labels, sizes and network.

    The network counts as what ``auto`` means on this device: a GPU's run cannot go on in a CPU's network. Labels
    are hashed whole; of images and features only shape and 16 evenly spaced samples, because a memory map may be
    larger than memory.
    """
    digest = hashlib.blake2b(digest_size=16)
    inputs = data.inputs
    shape = inputs.shape[2:] if inputs.ndim == 3 else inputs.shape[1:]
    network = resolve_for_shape(config.network, shape, device=device)
    digest.update(json.dumps([engine, config.as_dict(), network, seed], sort_keys=True).encode())
    digest.update(repr((inputs.shape, data.num_classes)).encode())
    digest.update(data.given_labels.tobytes())
    digest.update(data.trusted_mask.tobytes())
    if isinstance(data, TrainingData) and data.trusted_weight is not None:
        digest.update(data.trusted_weight.tobytes())
    for row in range(0, data.num_samples, max(1, data.num_samples // 16)):
        digest.update(inputs[row].tobytes())
    return digest.hexdigest()


def load_state(checkpoint: Checkpoint | None, fingerprint: str) -> dict[str, Any] | None:
    """The saved state of this very run, or None at a first start.

    Raises:
        CheckpointError: the state belongs to another engine, config, seed, dataset or network.
    """
    state = checkpoint.load() if checkpoint is not None else None
    if state is not None and state.get(FINGERPRINT) != fingerprint:
        raise CheckpointError(
            "the checkpoint was written by a run with another engine, config, seed, dataset or network (a GPU may "
            "train another one than a CPU): go on where it began, or delete it to start over."
        )
    return state


def save_state(checkpoint: Checkpoint | None, fingerprint: str, state: dict[str, Any]) -> None:
    """Save ``state`` under this run's fingerprint; does nothing without a checkpoint."""
    if checkpoint is not None:
        checkpoint.save({FINGERPRINT: fingerprint, **state})
