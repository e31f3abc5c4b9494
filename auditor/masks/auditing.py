"""An audit of masks: planned, run in a process of its own, and settled into trust, doubt and suggestions.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (masks and trusted as they were when it was planned), each
engine's arrays of pixels, and ``masks/`` with what they say together (``results.Verdicts``). All are at the
cache's size.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import arrays, tasks, worker
from auditor.bridges import engine_bridge
from auditor.catalog import audits, datasets, folders
from auditor.catalog import scores as scoring
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, NewAudit, NewEngineRun, now
from auditor.ground.errors import AuditFailedError, cannot_write
from auditor.ground.files import load_arrays, written_whole
from auditor.ground.progress import Progress
from auditor.ground.settings import settings
from auditor.ground.vocabulary import SEGMENTATION
from auditor.masks import pixels
from auditor.masks.deciding import masks_to_train_on
from auditor.masks.results import TOGETHER, given_masks
from auditor.pictures import cache
from auditor.pictures.masks import IGNORED

if TYPE_CHECKING:
    from auditor.bridges.engine_bridge import EpochRecord

AGAIN = "put it back from a backup, or audit again"


def plan_audit(
    dataset_name: str,
    engines: Sequence[str] | None = None,
    *,
    preset: str = "quick",
    device: str = "auto",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Register an audit of masks and freeze its inputs; nothing runs yet. Returns the audit's id.

    Raises:
        NotFoundError: no such dataset.
        AuditFailedError: its labels are no masks; an unknown engine, preset, device or field; a full disk.
    """
    if not 0 <= seed < 2**31:
        raise AuditFailedError(f"The seed is {seed}; use a whole number from 0 to {2**31 - 1}.")
    names = list(engines or engine_bridge.mask_engines())
    resolved = engine_bridge.resolve_device(device)
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
    if dataset.task != SEGMENTATION:
        raise AuditFailedError(f"The labels of {dataset_name} are no masks.")
    configs = engine_bridge.configs(names, preset, options or {}, on_masks=True)
    masks, trusted = masks_to_train_on(dataset, given_masks(dataset))
    audit = NewAudit(
        dataset_id=dataset.id,
        preset=preset,
        device=resolved,
        seed=seed,
        engines=names,
        options={"estimate": {}, "alone": True},
    )
    runs = [NewEngineRun(engine=name, config=configs[name]) for name in names]
    with session() as open_session:
        audit_id = audits.create(open_session, audit, runs)
        folder = settings().audit_folder(audit_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folders.write_manifest(folder, audit.uuid, title=f"audit {audit_id} of {dataset.name}")
            with written_whole(folder / "inputs.npz") as beside, beside.open("wb") as file:
                np.savez_compressed(file, masks=masks, trusted=trusted)
            for name in names:
                with written_whole(folder / f"{name}.json") as beside:
                    beside.write_text(json.dumps(engine_bridge.about(name), ensure_ascii=False))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise AuditFailedError(cannot_write(folder, error)) from error
        open_session.commit()
    return audit_id


def steps(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """What an audit of masks does, for ``worker.work``: train the engines, then settle."""
    for done, name in enumerate(audit.engines):
        _run_engine(audit, dataset, name, partial(_tell, tell, audit, done))
    settle(audit, dataset)


def _tell(tell: jobs.Reporter, audit: Audit, done: int, part: float) -> None:
    tell(Progress(f"training {audit.engines[done]}", done + part, len(audit.engines), None))


def _run_engine(audit: Audit, dataset: Dataset, name: str, tell: Any) -> None:
    with session() as open_session:
        row = audits.run(open_session, audit.id, name)
    if row.status == "finished":
        return
    tell(row.progress)
    jobs.patiently(lambda: worker.begin(audit.id, name))
    folder = folders.of_audit(audit.id)
    checkpoint = engine_bridge.FileCheckpoint(folder / f"{name}.checkpoint")
    watch = worker.EpochWatch(audit.id, name, row.seconds)

    def heard(record: EpochRecord) -> None:
        watch(record)
        tell(record.progress)

    masks, trusted = load_arrays(folder / "inputs.npz", "masks", "trusted", remedy=AGAIN)
    found = engine_bridge.train_masks(
        name,
        cache.image_cache(dataset),
        masks,
        len(dataset.class_names),
        config=row.config,
        judged=given_masks(dataset),
        trusted=trusted,
        seed=audit.seed,
        device=audit.device,
        on_epoch=heard,
        checkpoint=checkpoint,
    )
    values: dict[str, NDArray[Any]] = {
        "predicted": found.predicted,
        "predicted_prob": found.predicted_prob,
        "given_prob": found.given_prob,
        "embeddings": found.embeddings,
    }
    tasks.store(arrays.engine_folder(audit.id, name), values)
    provenance = engine_bridge.plain(found.provenance) | {"is_out_of_sample": found.is_out_of_sample}
    jobs.patiently(lambda: watch.finish(provenance))
    checkpoint.remove()


def settle(audit: Audit, dataset: Dataset) -> None:
    """Combine what the engines say about every pixel; store verdicts, scores and the audit's summary."""
    given = given_masks(dataset)
    said = [
        {key: arrays.array(audit.id, name, key) for key in ("predicted", "predicted_prob", "given_prob")}
        for name in audit.engines
    ]
    suggested, doubt = np.empty_like(given), np.empty_like(given)
    num, num_classes = len(given), len(dataset.class_names)
    class_trust = np.empty((num, num_classes), np.float32)
    trust = np.empty(num, np.float64)
    largest = np.full(num, -1)
    for row in range(num):
        mask = np.asarray(given[row])
        predicted, predicted_prob, given_prob = pixels.together(
            mask, [{key: np.asarray(values[row]) for key, values in one.items()} for one in said]
        )
        of_pixels = pixels.pixel_trust(given_prob, predicted_prob)
        suggested[row] = pixels.suggested_mask(mask, predicted, predicted_prob, given_prob)
        doubt[row] = np.rint(255 * (1 - of_pixels)).astype(np.uint8)
        class_trust[row] = pixels.class_trust(of_pixels, mask, num_classes)
        trust[row] = pixels.image_trust(of_pixels, mask)
        found = pixels.regions(mask, suggested[row], of_pixels)
        largest[row] = found[0].suggested if found else -1
    values: dict[str, NDArray[Any]] = {
        "suggested": suggested,
        "doubt": doubt,
        "class_trust": class_trust,
    }
    tasks.store(arrays.engine_folder(audit.id, TOGETHER), values)
    columns = _columns(given, suggested, class_trust, trust, largest)
    summary = {
        "settled_at": now().isoformat(),
        "task": SEGMENTATION,
        "witnesses": list(audit.engines),
        "num_label_issues": int(columns["is_label_issue"].sum()),
        "changed_pixels": float((suggested != given).sum() / max(1, int((given != IGNORED).sum()))),
    }
    jobs.patiently(lambda: _store(audit.id, columns, summary))


def _store(audit_id: int, columns: dict[str, NDArray[Any]], summary: dict[str, Any]) -> None:
    with session() as open_session:
        scoring.store(open_session, audit_id, columns)
        audits.change(open_session, audit_id, summary=summary)


def _columns(
    given: NDArray[np.uint8],
    suggested: NDArray[np.uint8],
    class_trust: NDArray[np.float32],
    trust: NDArray[np.float64],
    largest: NDArray[np.int64],
) -> dict[str, NDArray[Any]]:
    """The rows of scores: of a mask the given label is its class of least trust, the suggested one that of its
    largest region, and the suggested probability the share of its pixels that would change.
    """
    weakest = np.argmin(np.where(np.isnan(class_trust), 2.0, class_trust), axis=1)
    order = np.argsort(np.where(np.isnan(trust), 2.0, trust), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    judged = np.maximum(1, (given != IGNORED).sum(axis=(1, 2)))
    return {
        "rank": rank,
        "given_label": weakest,
        "trust_score": trust,
        "error_probability": np.full(len(trust), np.nan),
        "is_label_issue": largest >= 0,
        "suggested_label": np.where(largest >= 0, largest, weakest),
        "suggested_probability": (suggested != given).sum(axis=(1, 2)) / judged,
        "agreement": np.zeros(len(trust), np.int64),
        "disagreement": np.zeros(len(trust)),
    }
