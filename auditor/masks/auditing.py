"""An audit of masks: planned, run in a process of its own, and settled into trust, doubt and suggestions.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (masks, labels and trusted as they were when it was planned),
each engine's arrays of pixels, and ``masks/`` with what they say together (``results.Verdicts``). All are at the
cache's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import arrays, kinds, tasks
from auditor.audits.settle import noise_rate_json
from auditor.catalog.records import Audit, AuditSummary, Dataset, now
from auditor.ground.vocabulary import SEGMENTATION
from auditor.ground.wording import plural
from auditor.masks import pixels
from auditor.masks.deciding import masks_to_train_on
from auditor.masks.results import TOGETHER, given_masks, masks_file
from auditor.pictures.masks import IGNORED
from auditor.statistics import NoiseRate, guess_error_probability


def plan_audit(dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
    """Register an audit of masks; see ``kinds.plan_audit``."""
    return kinds.plan_audit(MASKS, dataset_name, engines, **choices)


def steps(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """What an audit of masks does, for ``worker.work``."""
    kinds.steps(MASKS, audit, dataset, tell)


def _inputs(dataset: Dataset) -> dict[str, NDArray[Any]]:
    masks, labels, trusted = masks_to_train_on(dataset, given_masks(dataset))
    return {"masks": masks, "labels": labels, "trusted": trusted}


def _given(dataset: Dataset, place: Path) -> Path:
    del place
    given_masks(dataset)  # says in words where they are gone or damaged
    return masks_file(dataset)


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
    rate = _guess(largest >= 0)
    columns["error_probability"] = guess_error_probability(1 - (columns["rank"] + 0.5) / num, rate.point)
    summary = AuditSummary(
        settled_at=now().isoformat(),
        task=SEGMENTATION,
        witnesses=list(audit.engines),
        noise_rate=noise_rate_json(rate),
        error_probability_is_guess=True,
        num_label_issues=int(columns["is_label_issue"].sum()),
        changed_pixels=float((suggested != given).sum() / max(1, int((given != IGNORED).sum()))),
    )
    kinds.store(audit.id, columns, summary)


def _guess(is_doubtful: NDArray[np.bool_]) -> NoiseRate:
    """How many masks may be wrong before anybody looked: none, up to twice as many as have a doubtful region."""
    share = float(is_doubtful.mean())
    sentence = (
        f"{int(is_doubtful.sum()):,} of {plural(len(is_doubtful), 'mask', 'have')} a doubtful region. How "
        f"many are wrong is "
        "not known: judge a random sample to know."
    )
    return NoiseRate(0.0, share, min(1.0, 2 * share), "guess", sentence)


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
    judged = np.maximum(1, (given != IGNORED).sum(axis=(1, 2)))
    return {
        "rank": arrays.ranks(trust),
        "given_label": weakest,
        "trust_score": trust,
        "error_probability": np.full(len(trust), np.nan),
        "is_label_issue": largest >= 0,
        "suggested_label": np.where(largest >= 0, largest, weakest),
        "suggested_probability": (suggested != given).sum(axis=(1, 2)) / judged,
        "agreement": np.zeros(len(trust), np.int64),
        "disagreement": np.zeros(len(trust)),
    }


MASKS = kinds.Kind(SEGMENTATION, _inputs, _given, settle)
