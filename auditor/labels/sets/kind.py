"""Labels that are sets of classes, several an image or none: an audit of them, and what is said of its suspects.

A suspect is a picture with a class that is probably missing, or one that is probably too many.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (sets, labels and trusted as they were when it was planned),
each engine's ``probs`` (N, K), and ``sets/`` with what they say together (``results.Found``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.catalog import datasets, reviews
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Draw, NewReview, Sample
from auditor.ground.errors import ReviewError, VerificationError
from auditor.ground.files import written_whole
from auditor.ground.names import Names
from auditor.ground.tables import unquoted
from auditor.ground.vocabulary import KEEP, LABEL, MULTILABEL, RELABEL, VERDICTS
from auditor.kind import Said
from auditor.labels.others import Others
from auditor.labels.sets import exporting
from auditor.labels.sets.judging import judge
from auditor.labels.sets.results import decided_set, found, given_set, set_in, text_of
from auditor.results import arrays
from auditor.review import decisions, verifying

OF_CLASSES = ("budget", "map_method", "finetune", "pred_probs", "forget_pred_probs", "alone")
BY_PEOPLE = "only what people decided changes a set"


class Sets(Others):
    """A set of classes an image."""

    task = MULTILABEL
    no_verdict = "no set of the classes, as a|b"
    unused: ClassVar = {
        "audit": dict.fromkeys(OF_CLASSES, "leave it out"),
        "export": dict.fromkeys(("policy", "max_fdr", "links"), BY_PEOPLE),
    }

    def sets(self, dataset: Dataset) -> NDArray[np.int8]:
        """Return (N, K) given sets: 1 where a class is given, 0 where not, -1 throughout without a label."""
        return ask(datasets.given_sets, dataset.id)

    def checked(self, new: NewReview, dataset: Dataset, sample: Sample) -> NewReview:
        """Check that the right set is named; it is no audit's, whichever was looked at."""
        new = super().checked(new, dataset, sample)
        if new.decision != RELABEL:
            return replace(new, labels=None, audit_id=None)
        if new.labels is None:
            raise ReviewError(f"relabel of sample {new.sample_id} needs the right classes, or none: [].")
        labels, num = sorted(set(new.labels)), len(dataset.class_names)
        wrong = [label for label in labels if not 0 <= label < num]
        if wrong:
            raise ReviewError(f"Class {wrong[0]} of sample {new.sample_id} is outside 0..{num - 1}.")
        if tuple(labels) == given_set(sample):
            return replace(new, decision=KEEP, labels=None, audit_id=None)
        return replace(new, label=None, labels=labels, audit_id=None)

    def named(
        self, cells: Mapping[Any, Any], decision: str, classes: Names, given: float, where: str
    ) -> dict[str, Any]:
        """Read ``cleaned_label`` as a|b."""
        if decision not in self.decisions:
            offered = ", ".join(self.decisions)
            raise ReviewError(f"{where}: {decision!r} is no decision on a set; use one of {offered}.")
        labels = None
        if decision == RELABEL:
            text = unquoted(str(cells.get("cleaned_label") or ""))
            labels = set_in(text, classes)
            if labels is None:
                raise ReviewError(
                    f"{where}: cleaned_label {text!r} is no set of the classes; write a|b, or [] for none of them."
                )
        return super().named(cells, decision, classes, given, where) | {
            "labels": None if labels is None else list(labels)
        }

    def given_text(self, dataset: Dataset, sample: Sample) -> str:
        """Return the set as a|b."""
        return text_of(given_set(sample), dataset.class_names)

    def verdict(self, text: str, dataset: Dataset) -> Said | None:
        """Read a set; a class that is really called "exclude" or "unsure" is a class."""
        labels = set_in(unquoted(text), Names(dataset.class_names))
        if labels is not None:
            return Said(LABEL, labels=labels)
        return Said(text) if text in VERDICTS and text != LABEL else None

    def judged(self, said: Said, dataset: Dataset, sample: Sample, draw: Draw) -> Said:
        """Keep the given set where it is the one that is seen."""
        if said.decision != LABEL:
            return super().judged(said, dataset, sample, draw)
        num = len(dataset.class_names)
        if said.labels is None or not all(0 <= label < num for label in said.labels):
            raise VerificationError("A verdict on a set needs the classes that you see.")
        seen = tuple(sorted(set(said.labels)))
        return Said(KEEP) if seen == given_set(sample) else Said(RELABEL, labels=seen)

    def inputs(self, dataset: Dataset) -> dict[str, NDArray[Any]]:
        """Return sets with those that people put in place of given ones."""
        labels, trusted = decisions.labels_to_train_on(dataset.id)
        sets, calibrating = self.sets(dataset), set(verifying.calibrating_ids(dataset.id).tolist())
        for sample_id, row in decisions.outcomes(dataset.id).items():
            decided = decided_set(row)
            if decided is not None and sample_id not in calibrating:
                sets[sample_id] = np.isin(np.arange(sets.shape[1]), decided)
                labels[sample_id], trusted[sample_id] = 0, True
        sets[labels < 0] = -1
        return {"sets": sets, "labels": labels, "trusted": trusted}

    def given(self, dataset: Dataset, place: Path) -> Path:
        """Write the given sets."""
        with written_whole(place / "given.npy") as beside, beside.open("wb") as file:
            np.save(file, self.sets(dataset))
        return place / "given.npy"

    def settle(self, audit: Audit, dataset: Dataset) -> None:
        """Combine what the engines say; store trust, suggestions, scores and the audit's summary."""
        given = self.sets(dataset)
        judged = judge(given, [arrays.array(audit.id, name, "probs") for name in audit.engines])
        doubted = (judged.trust < 0.5).sum(axis=1)
        columns = {
            "rank": arrays.ranks(judged.of_picture),
            "given_label": np.where(given[:, 0] < 0, -1, 0),
            "trust_score": judged.of_picture,
            "error_probability": 1 - judged.of_picture,
            "is_label_issue": doubted > 0,
            "suggested_label": np.full(len(given), -1),
            "agreement": doubted,
        }
        together = {
            "trust": judged.trust.astype(np.float32),
            "shown": judged.shown.astype(np.float32),
            "suggested": judged.suggested,
        }
        self.store(audit, together, columns, judged.noise_rate)

    def table(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
        """Return a page with names of classes: given, missing, extra and decided ones, and the trust in each."""
        ids = page.sample_id.to_numpy(dtype=np.int64)
        said, names = found(audit), dataset.class_names
        given = self.sets(dataset)[ids]
        trust, suggested = np.asarray(said.trust[ids]), np.asarray(said.suggested[ids])
        decided = ask(reviews.outcomes, dataset.id, ids.tolist())

        def named(flags: NDArray[np.bool_]) -> list[list[str]]:
            return [[names[label] for label in np.flatnonzero(row)] for row in flags]

        cleaned = (decided_set(decided.get(one)) for one in ids.tolist())
        return pd.DataFrame(
            {
                "sample_id": ids,
                "filepath": page.filepath,
                "rank": page["rank"] + 1,
                "trust_score": page.trust_score,
                "is_label_issue": page.is_label_issue.astype(bool),
                "given": named(given == 1),
                "missing": named((suggested == 1) & (given < 1)),
                "extra": named((suggested == 0) & (given == 1)),
                "label_trust": [dict(zip(names, row, strict=True)) for row in np.round(trust, 6).tolist()],
                "decision": page.decision,
                "cleaned": [None if one is None else [names[label] for label in one] for one in cleaned],
                "reviewer": page.reviewer,
            }
        )

    def line(self, row: Mapping[str, Any]) -> str:
        """Return the set, what is missing or too many, and what was decided."""
        decided = f"  [{row['decision']}]" if row["decision"] else ""
        given, change = self.shown(row)
        return (
            f"{row['rank']:>6}  {row['filepath']}  {given}  {change}  trust {row['trust_score']:.3f}{decided}"
        )

    def shown(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return the set, and what is missing or too many."""
        changes = [f"missing: {', '.join(row['missing'])}"] if row["missing"] else []
        changes += [f"extra: {', '.join(row['extra'])}"] if row["extra"] else []
        return ", ".join(row["given"]) or "none", "; ".join(changes)

    def export(
        self,
        name: str,
        out: Path,
        *,
        force: bool = False,
        as_source: bool = False,
        audit_id: int | None = None,
        progress: Any = None,
        **unused: Any,
    ) -> exporting.Exported:
        """Write a table, class folders that share pictures where ``out`` has no ending, or the source once more."""
        del unused
        return exporting.export(
            name, out, audit_id=audit_id, force=force, as_source=as_source, progress=progress
        )

    def download(self, name: str, out: Path, **choices: Any) -> exporting.Exported:
        """Write the table."""
        return self.export(name, out, force=True, **choices)


KIND = Sets()
