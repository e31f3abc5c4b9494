"""One run of an engine: what surrounds a method's own loop, written once.

Set-up (device, rows, labels, evaluation set), going on from a checkpoint, the record of each epoch, passes over all
rows, and the result with its provenance. A method's ``train`` begins with ``Run(...)`` and ``run.resume()``, calls
``run.epoch(...)`` after each epoch, and ends with ``run.result(...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from engines.contract import Checkpoint, EngineResult, MaskData, NumberData, OnEpoch, Provenance, TrainingData
from engines.networks import build_for_shape, input_config, is_pretrained, resolve_for_shape, weights_hash
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.config import LoopConfig
from engines.shared.device import describe_device, peak_memory_bytes, resolve_device, seeded_init, versions
from engines.shared.loader import scoring_batch, standardize
from engines.shared.recording import Recorder
from engines.shared.rows import Rows, open_rows
from engines.shared.scoring import Scores, feature_views, heldout_accuracy, score_pass


class Run:
    """The data, device, checkpoint and record of one call of ``train``.

    Args:
        engine: the engine's name in the registry.
        data: what to train on.
        config: the engine's config.
        seed: of every random stream of the run.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:<n>"``.
        on_epoch: hears of each epoch; may raise ``TrainingCancelled``.
        checkpoint: where the state is kept, or None.
        standardized: False feeds images in [0, 1], as does a pretrained network, which standardises them as its
            weights want it. Features are always standardised: their scale means nothing.

    Raises:
        EngineInputError: no labels or one class, an unknown device, an augmentation that does not fit the rows, or
            weights that cannot be read.
    """

    def __init__(
        self,
        engine: str,
        data: TrainingData | MaskData | NumberData,
        config: LoopConfig,
        *,
        seed: int = 0,
        device: str = "auto",
        on_epoch: OnEpoch | None = None,
        checkpoint: Checkpoint | None = None,
        standardized: bool = True,
    ) -> None:
        data.require_labels()
        self.engine, self.seed = engine, seed
        # Engines for masks and numbers read their own data; what is shared here has the same names in all.
        self.data = cast(TrainingData, data)
        self.device = resolve_device(device)
        self.on_features = not isinstance(data, MaskData) and data.features is not None
        is_finetuned = not self.on_features and is_pretrained(config.network, config.weights)
        # A pretrained network brings images to the size that its weights want.
        side = None if is_finetuned else config.side_on(self.device)
        self.rows: Rows = open_rows(data.inputs, self.device, resident=config.resident, side=side)
        """What the engine trains on."""
        standardizes = self.on_features or (standardized and not is_finetuned)
        self.mean_std = self.rows.mean_std() if standardizes else None
        self.scoring_batch = self.rows.scoring_batch
        """Rows scored at once."""
        if is_finetuned:
            side = input_config(config.network, config.image_side).side
            self.scoring_batch = min(self.scoring_batch, scoring_batch(self.device, (side, side)))
        self._weights_hash = None if config.weights is None else weights_hash(config.weights)
        self.labels = torch.from_numpy(data.given_labels.copy())
        """(N,) int64 given labels or (N,) float64 numbers on the device; (N, H, W) uint8 masks on the CPU."""
        if not isinstance(data, MaskData):
            self.labels = self.labels.to(self.device)
        self.labeled = self.rows_where(data.labeled)
        """Rows that have a given label, int64, rising, on the device."""
        self.evaluation: tuple[Rows, Tensor] | None = None
        if isinstance(data, TrainingData) and data.evaluation is not None:
            heldout = open_rows(data.evaluation.inputs, self.device, resident=config.resident, side=side)
            self.evaluation = (heldout, torch.from_numpy(data.evaluation.labels.copy()).to(self.device))
        self._config, self._on_epoch, self._checkpoint = config, on_epoch, checkpoint
        self._fingerprint: str | None = None
        self.recorder = Recorder(on_epoch, data.num_samples, config.epochs)

    @property
    def keeps_checkpoints(self) -> bool:
        """Return whether a saved state goes anywhere."""
        return self._checkpoint is not None

    # --- Networks -----------------------------------------------------------------------------------------

    def network_name(self) -> str:
        """The network of the config; ``"auto"`` is what suits these rows and this device."""
        return resolve_for_shape(self._config.network, self.rows.shape, device=self.device)

    def build_network(self, *stream: int | str, width: int | None = None) -> nn.Module:
        """A fresh network of the config on the device, initialised from the named stream."""
        with seeded_init(self.seed, *stream):
            network = build_for_shape(
                self.network_name(),
                self.rows.shape,
                self.data.num_classes,
                weights=self._config.weights,
                width=width,
                image_side=self._config.image_side,
            )
        return network.to(self.device)

    def rows_where(self, chosen: NDArray[np.bool_]) -> Tensor:
        """The rows where ``chosen`` (N,) holds, int64, rising, where all indices of a run live: on the device."""
        return torch.from_numpy(np.flatnonzero(chosen)).to(self.device)

    def inputs(self, index: Tensor, augment: str = "none", moves: torch.Generator | None = None) -> Tensor:
        """Rows at ``index`` (B,) as the networks see them, moved at random by ``moves``: (B, *shape)."""
        rows = self.rows.batch(index) if moves is None else self.rows.moved(index, augment, moves)
        return rows if self.mean_std is None else standardize(rows, *self.mean_std)

    def score(self, network: nn.Module, *, views: int = 1, index: Tensor | None = None) -> Scores:
        """A deterministic pass of ``network`` over all rows, or those at ``index``."""
        return score_pass(
            network,
            self.rows,
            self.mean_std,
            views=views,
            batch_size=self.scoring_batch,
            precision=self._config.precision,
            index=index,
        )

    def features(self, network: nn.Module, *, views: int) -> NDArray[np.float16]:
        """Return what ``network`` sees in ``views`` views of every row, as other engines train on it: (N, V, D)."""
        return feature_views(network, self.rows, self.mean_std, views=views, precision=self._config.precision)

    def heldout_accuracy(self, *networks: nn.Module) -> dict[str, float]:
        """``{"heldout_accuracy": mean over the networks}``; empty without an evaluation set."""
        if self.evaluation is None:
            return {}
        precision = self._config.precision
        found = [
            heldout_accuracy(
                network, *self.evaluation, self.mean_std, batch_size=self.scoring_batch, precision=precision
            )
            for network in networks
        ]
        return {"heldout_accuracy": float(np.mean(found))}

    # --- Epochs and checkpoints ---------------------------------------------------------------------------

    def resume(self, total_epochs: int | None = None) -> dict[str, Any] | None:
        """Begin the record of ``total_epochs`` (the config's); returns the state that a killed run left, or None.

        Raises:
            CheckpointError: the state belongs to another engine, config, seed, dataset or network.
        """
        total = self._config.epochs if total_epochs is None else total_epochs
        self.recorder = Recorder(self._on_epoch, self.data.num_samples, total)
        self._fingerprint = run_fingerprint(self.engine, self._config, self.seed, self.data, self.device)
        state = load_state(self._checkpoint, self._fingerprint)
        if state is not None:
            self.recorder.load_state_dict(state["recorder"])
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Keep ``state`` and the record; after ``resume``."""
        assert self._fingerprint is not None
        save_state(self._checkpoint, self._fingerprint, {**state, "recorder": self.recorder.state_dict()})

    def epoch(
        self,
        epoch: int,
        losses: Mapping[str, float],
        metrics: Mapping[str, float],
        signals: Mapping[str, ArrayLike],
        *,
        stage: str = "train",
        num_epochs: int | None = None,
        state: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Record one epoch (0-based in its stage), save ``state()``, then tell ``on_epoch``, who may cancel.

        ``num_epochs``: of the stage, where it is another number than the config's ``epochs``.
        """
        self.recorder.epoch(
            stage,
            epoch,
            num_epochs or self._config.epochs,
            losses,
            metrics,
            signals,
            save=(lambda: self.save(state())) if self.keeps_checkpoints else None,
        )

    # --- The result ---------------------------------------------------------------------------------------

    def result(
        self,
        *,
        pred_probs: NDArray[np.float32],
        trust_score: NDArray[np.float32],
        signals: Mapping[str, NDArray[np.float32]],
        embeddings: NDArray[np.float32],
        notes: Mapping[str, Any],
        is_out_of_sample: bool = False,
        features: NDArray[np.float16] | None = None,
    ) -> EngineResult:
        """Return what the method found, with the run's history and provenance."""
        return EngineResult(
            pred_probs=pred_probs,
            trust_score=trust_score,
            signals=signals,
            signal_history=self.recorder.signal_history,
            embeddings=embeddings,
            history=self.recorder.history,
            provenance=self.provenance(notes),
            is_out_of_sample=is_out_of_sample,
            features=features,
        )

    def provenance(self, notes: Mapping[str, Any]) -> Provenance:
        """Return what makes the run repeatable; ``notes`` with the hash of the weights that it began with."""
        if self._weights_hash is not None:
            notes = {**notes, "weights_sha256": self._weights_hash}
        return Provenance(
            engine=self.engine,
            config=self._config.as_dict(),
            seed=self.seed,
            device=describe_device(self.device),
            versions=versions(),
            seconds=self.recorder.seconds,
            peak_memory_bytes=peak_memory_bytes(self.device),
            notes=notes,
        )
