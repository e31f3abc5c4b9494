"""Labels that are masks, one an image: an audit of them, the list of suspects, and what is said of them.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (masks, labels and trusted as they were when it was planned),
each engine's arrays of pixels, and ``masks/`` with what they say together (``results.Verdicts``). All are at the
cache's size.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.backbones import features, weights
from auditor.bridges import engine_bridge
from auditor.catalog.records import Audit, Dataset, NewReview, Sample
from auditor.ground.errors import ReviewError
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL, SEGMENTATION, UNSURE
from auditor.ground.wording import plural
from auditor.kind import Part, Said, Suspects
from auditor.labels.masks import exporting
from auditor.labels.masks.deciding import classes_of, masks_to_train_on, regions_of
from auditor.labels.masks.judging import judge
from auditor.labels.masks.results import given_masks, mask_verdicts, masks_file, masks_of_engines
from auditor.labels.others import Others
from auditor.pictures.masks import IGNORED
from auditor.pictures.sources import split_turn
from auditor.results import arrays, statements
from auditor.review import blind
from auditor.statistics import NoiseRate

VERDICTS = {"right": KEEP, "wrong": RELABEL, EXCLUDE: EXCLUDE, UNSURE: UNSURE}
"""A verdict as a file says it, and the decision that it amounts to. Nobody sees a suggestion, so a wrong mask is
only known to be wrong: its decision takes no region."""
LEAST_SIDE = 96
"""Pixels of the longest side from which on a network for photographs sees more than one from scratch."""
LEAVE_OUT, BY_PEOPLE, NEW_FOLDER = (
    "leave it out",
    "only what people decided changes a mask",
    "name a new folder",
)
OF_CLASSES = (
    *("budget", "map_method", "backbone", "weights", "backbone_size", "views", "finetune", "features"),
    *("own_features", "features_column", "pred_probs", "forget_pred_probs", "alone"),
)


class Masks(Others):
    """One class a pixel."""

    task = SEGMENTATION
    unused: ClassVar = {
        "audit": dict.fromkeys(OF_CLASSES, LEAVE_OUT),
        "export": {"policy": BY_PEOPLE, "max_fdr": BY_PEOPLE, "links": NEW_FOLDER, "force": NEW_FOLDER},
    }

    guesses_rate = False
    verdicts = tuple(VERDICTS.values())
    no_verdict = "neither right nor wrong"

    def checked(self, new: NewReview, dataset: Dataset, sample: Sample) -> NewReview:
        """Check that regions are taken, and that there are the classes that were named for them."""
        new = super().checked(new, dataset, sample)
        if new.decision == RELABEL and (not new.labels or new.audit_id is None):
            what = f"relabel of sample {new.sample_id}"
            raise ReviewError(f"{what} needs regions that an audit doubts; take them on the page Masks.")
        for number, label in classes_of(new.labels or []).items():
            if label is not None and not 0 <= label < len(dataset.class_names):
                raise ReviewError(f"Region {number} of sample {new.sample_id}: there is no class {label}.")
        return new

    def given_text(self, dataset: Dataset, sample: Sample) -> str:
        """Return the mask's own file."""
        del dataset
        return split_turn(sample.mask or "")[0]

    def verdict_names(self, dataset: Dataset) -> Sequence[str]:
        """Return ``right``, ``wrong``, ``exclude`` and ``unsure``."""
        del dataset
        return list(VERDICTS)

    def verdict(self, text: str, dataset: Dataset) -> Said | None:
        """Read one of these."""
        del dataset
        return Said(VERDICTS[text]) if text in VERDICTS else None

    def inputs(self, dataset: Dataset) -> dict[str, NDArray[Any]]:
        """Return masks with the regions that people took."""
        masks, labels, trusted = masks_to_train_on(dataset, given_masks(dataset))
        return {"masks": masks, "labels": labels, "trusted": trusted}

    def pretrained(
        self, dataset: Dataset, engines: Sequence[str], options: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, engine_bridge.Pretrained]:
        """Return the network of the installation, where the pictures are large enough for what it sees."""
        is_none = os.environ.get(features.CHOSEN) == features.NO_BACKBONE
        if is_none or max(dataset.height, dataset.width) < LEAST_SIDE:
            return {}
        found = next((one for one in weights.here() if one.place == weights.INSTALLATION), None)
        if found is None:
            return {}
        one = engine_bridge.Pretrained(found.name, str(found.path), None)
        return {name: one for name in engines if "network" not in options.get(name, {})}

    def given(self, dataset: Dataset, place: Path) -> Path:
        """Return the masks of the cache."""
        del place
        given_masks(dataset)  # says in words where they are gone or damaged
        return masks_file(dataset)

    def settle(self, audit: Audit, dataset: Dataset) -> None:
        """Combine what the engines say about every pixel; store verdicts, scores and the audit's summary."""
        given = np.asarray(given_masks(dataset))
        found = judge(given, masks_of_engines(audit), len(dataset.class_names))
        is_doubtful = found.largest >= 0
        rate = _guess(is_doubtful)
        # Of a mask the given label is its class of least trust, the suggested one that of its largest region, and
        # the suggested probability the share of its pixels that would change.
        weakest = np.argmin(np.where(np.isnan(found.class_trust), 2.0, found.class_trust), axis=1)
        judged, changes = given != IGNORED, found.suggested != given
        columns = {
            "rank": arrays.ranks(found.order),
            "given_label": weakest,
            "trust_score": 1 - found.wrong,
            "error_probability": np.nan_to_num(found.wrong),
            "is_label_issue": is_doubtful,
            "suggested_label": np.where(is_doubtful, found.largest, weakest),
            "suggested_probability": changes.sum(axis=(1, 2)) / np.maximum(1, judged.sum(axis=(1, 2))),
        }
        together = {name: getattr(found, name) for name in ("suggested", "doubt", "class_trust")}
        changed = float(changes.sum() / max(1, int(judged.sum())))
        self.store(audit, together, columns, rate, changed_pixels=changed)

    def suspects(
        self,
        dataset: Dataset,
        audit: Audit,
        *,
        top: int,
        max_fdr: float | None = None,
        split: str | None = None,
    ) -> Suspects:
        """Return the masks of least trust, or those that a promise at ``max_fdr`` covers."""
        found = statements.suspects(audit, top=top, max_fdr=max_fdr, split=split)
        return found if max_fdr is not None else replace(found, statement=self.statement(dataset, audit))

    def table(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
        """Return a page with the class of least trust and what would change."""
        class_trust = mask_verdicts(audit.id).class_trust
        names = dict(enumerate(dataset.class_names))
        return pd.DataFrame(
            {
                "sample_id": page.sample_id,
                "filepath": page.filepath,
                "trust_score": page.trust_score,
                "is_label_issue": page.is_label_issue,
                "weakest_class": page.given_label.map(names),
                "weakest_trust": [
                    float(class_trust[row, label])
                    for row, label in zip(page.sample_id, page.given_label, strict=True)
                ],
                "largest_change_to": page.suggested_label.where(page.is_label_issue.astype(bool)).map(names),
                "changed_share": page.suggested_probability,
                "decision": page.decision,
                "regions_taken": page.decided_labels,
                "reviewer": page.reviewer,
            }
        )

    def line(self, row: Mapping[str, Any]) -> str:
        """Return the mask, what is doubtful and what was decided."""
        change = "no region is suspect"
        if row["largest_change_to"] is not None:
            change = (
                f"{100 * row['changed_share']:.1f} % suspect, most of it rather {row['largest_change_to']}"
            )
        decided = f"  [{row['decision']}]" if row["decision"] else ""
        weakest = f"least sure of {row['weakest_class']}"
        return f"{row['sample_id']:>7}  {row['trust_score']:.3f}  {row['filepath']}: {change}; {weakest}{decided}"

    def shown(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return the class of least trust, and the one of the largest change."""
        change = row["largest_change_to"]
        return f"least sure of {row['weakest_class']}", f"rather {change}" if change else ""

    def most_doubted(self, dataset: Dataset, audit: Audit, row: Mapping[str, Any]) -> Part | None:
        """Return the region that the bench shows first; None without any."""
        found = regions_of(dataset, audit.id, int(row["sample_id"]))
        if not found:
            return None
        first = max(found, key=lambda one: one.doubt)
        return Part(first.pixels, dataset.class_names[first.given], dataset.class_names[first.suggested])

    def summary(self, dataset: Dataset, audit: Audit) -> list[str]:
        """Return how many are doubtful, and the list of them."""
        following = f"Next: auditor suspects {shlex.quote(dataset.name)}, or auditor app"
        return [self.statement(dataset, audit), following]

    def status(self, dataset: Dataset, audit: Audit) -> list[str]:
        """Return how many are doubtful."""
        return [self.statement(dataset, audit)]

    def export(
        self, name: str, out: Path, *, audit_id: int | None = None, progress: Any = None, **unused: Any
    ) -> exporting.Exported:
        """Write every mask that stays, and a table, into a new folder or zip."""
        del unused
        return exporting.export(name, out, audit_id=audit_id, progress=progress)

    def download(self, name: str, out: Path, **choices: Any) -> exporting.Exported:
        """Write the zip; one of an attempt that was killed between its last two steps is replaced."""
        out.unlink(missing_ok=True)
        return self.export(name, out, **choices)

    @staticmethod
    def statement(dataset: Dataset, audit: Audit) -> str:
        """Return what the audit and the people say about all masks, and what is not known."""
        doubted = audit.summary.num_label_issues or 0
        share = audit.summary.changed_pixels or 0.0
        known = "How many are wrong is known once a random sample is checked."
        if blind.num_judged(dataset.id):
            known = statements.noise_rate_now(audit).sentence
        have = plural(dataset.num_samples, "mask", "have")
        said = f"{doubted:,} of {have} a suspect region ({100 * share:.1f} % of all pixels)."
        return f"{said} {known}"

    @staticmethod
    def class_table(dataset: Dataset, audit: Audit) -> pd.DataFrame:
        """Return by class how many masks have it, its mean trust, and in how many it is trusted least."""
        trust = np.asarray(mask_verdicts(audit.id).class_trust)
        occurs = ~np.isnan(trust)
        weakest = np.argmin(np.where(occurs, trust, 2.0), axis=1)
        sums, counts = np.where(occurs, trust, 0.0).sum(axis=0), occurs.sum(axis=0)
        return pd.DataFrame(
            {
                "class": dataset.class_names,
                "masks": counts,
                "mean_trust": np.where(counts > 0, sums / np.maximum(counts, 1), np.nan),
                "weakest_in": np.bincount(weakest, minlength=trust.shape[1]),
            }
        )


def _guess(is_doubtful: NDArray[np.bool_]) -> NoiseRate:
    """Return how many masks may be wrong before anybody looked: up to twice as many as have a doubtful region."""
    share = float(is_doubtful.mean())
    have = plural(len(is_doubtful), "mask", "have")
    sentence = (
        f"{int(is_doubtful.sum()):,} of {have} a suspect region. How many are wrong is not known: check a random "
        "sample to know."
    )
    return NoiseRate(0.0, share, min(1.0, 2 * share), "guess", sentence)


KIND = Masks()
