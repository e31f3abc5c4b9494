"""Noise model on sets of classes: each class is a question of its own with two answers, shown or not.

The same model for each of them (``training``), on the first directions of the features, which are found once. A
class that is given everywhere or nowhere cannot be asked about: its probability is how often it is given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from engines.contract import Checkpoint, OnEpoch, Provenance, SetData, SetResult, TrainingData
from engines.noise_model.training import DIMENSIONS, NoiseModelConfig
from engines.noise_model.training import train as train_model
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.components import principal_components
from engines.shared.device import describe_device, memory_errors_explained, resolve_device, versions

if TYPE_CHECKING:
    from engines.contract import EpochRecord

__all__ = ["NoiseModelConfig", "train"]


@memory_errors_explained()
def train(
    data: SetData,
    config: NoiseModelConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> SetResult:
    """Fit a noise model of each class out of fold.

    Raises:
        EngineInputError: no class can be asked about, or fewer labeled rows than folds.
    """
    data.require_labels()
    place = resolve_device(device)
    components = principal_components(data.features, max(DIMENSIONS))
    rows = components.of(data.features)[:, None]
    fingerprint = run_fingerprint("noise_model", config, seed, data, place)
    state = load_state(checkpoint, fingerprint) or {"probs": [], "seconds": 0.0, "peak": 0}
    found: list[torch.Tensor] = state["probs"]
    history: list[EpochRecord] = []
    asked = [data.is_asked(label) for label in range(data.num_classes)]
    for label in range(len(found), data.num_classes):
        given = data.sets[:, label].astype(np.int64)
        if not asked[label]:
            known = given[data.labeled]
            share = (known.sum() + 0.5) / (len(known) + 1)
            found.append(torch.full((data.num_samples,), float(share)))
            continue

        def heard(record: EpochRecord, label: int = label) -> None:
            done = (sum(asked[:label]) + record.progress) / sum(asked)
            record = replace(record, stage=f"class {label + 1}", progress=done)
            history.append(record)
            if on_epoch is not None:
                on_epoch(record)

        one = TrainingData(None, given, 2, features=rows, trusted=data.trusted)
        result = train_model(one, config, seed=seed, device=device, on_epoch=heard)
        found.append(torch.from_numpy(result.pred_probs[:, 1].copy()))
        state["seconds"] += result.provenance.seconds
        state["peak"] = max(state["peak"], result.provenance.peak_memory_bytes)
        if checkpoint is not None:
            save_state(checkpoint, fingerprint, state)
    return SetResult(
        probs=torch.stack(found, dim=1).numpy(),
        history=tuple(history),
        provenance=Provenance(
            engine="noise_model",
            config=config.as_dict(),
            seed=seed,
            device=describe_device(place),
            versions=versions(),
            seconds=state["seconds"],
            peak_memory_bytes=state["peak"],
            notes={"classes_asked": sum(asked)},
        ),
        is_out_of_sample=True,
    )
