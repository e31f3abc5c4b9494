"""The product as a library: ``import auditor; auditor.open("photos").suspects()``."""

from __future__ import annotations

import getpass
import html
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlmodel import Session

from auditor import importing
from auditor import kind as kinds
from auditor.api.watching import watching
from auditor.audits import audit_overview, choose_features, newest_unfinished_audit, parse_budget, run_audit
from auditor.backbones import features as feature_files
from auditor.backbones import own_features as tables_of_features
from auditor.catalog import audits, datasets, jobs, reading, records, removal
from auditor.catalog import scores as scoring
from auditor.catalog.db import ask, session
from auditor.experiments import BeforeAfter, train_before_and_after
from auditor.ground.errors import (
    AuditFailedError,
    ExportRefusedError,
    ImportRefusedError,
    JobRefusedError,
    NotFoundError,
    ReviewError,
)
from auditor.ground.names import Names
from auditor.ground.progress import OnProgress, Progress
from auditor.ground.wording import did_you_mean, plural
from auditor.jobs import KINDS
from auditor.outputs import write_report
from auditor.pictures import cache
from auditor.results import arrays, class_changes, new_classes, own_models, ranking
from auditor.results import statements as saying
from auditor.review import blind, decision_files, decisions, drawing
from auditor.statistics import NoiseRate

if TYPE_CHECKING:
    from auditor.fiftyone_bridge import Pulled

Preset = Literal["quick", "standard", "paper"]
Policy = Literal["reviewed", "auto"]
EVERY_S = 1.0
"""Least time between two questions for the time left."""
FIFTYONE = "fiftyone:"
"""How a source of features begins that lies in FiftyOne."""


class Dataset:
    """A handle on one imported dataset; every call reads the catalog afresh."""

    def __init__(self, name: str) -> None:
        self._row = reading.dataset(name)

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self._row.name

    @property
    def table(self) -> records.Dataset:
        """The dataset's row in the catalog."""
        return self._row

    def __repr__(self) -> str:
        """One line: name, size, classes, newest audit."""
        row, audit = self._row, self._newest()
        state = "not audited" if audit is None else f"audit {audit.id}"
        return (
            f"auditor.Dataset({row.name!r}: {plural(row.num_samples, 'image')}, "
            f"{plural(len(row.class_names), 'class')}, {state})"
        )

    def _repr_html_(self) -> str:
        """A small table for notebooks; text from the user's files is escaped."""
        row, audit = self._row, self._newest()
        facts = {
            "images": f"{row.num_samples:,}",
            "classes": f"{len(row.class_names):,}: {', '.join(row.class_names[:12])}"
            + (", ..." if len(row.class_names) > 12 else ""),
            "source": row.source,
            "decided": f"{len(decisions.outcomes(row.id)):,}",
            "newest audit": "none" if audit is None else f"{audit.id}: {', '.join(audit.engines)}",
        }
        if audit is not None:
            facts["wrong labels"] = saying.noise_rate_now(audit).sentence
        cells = "".join(
            f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items()
        )
        return f"<table><caption>{html.escape(row.name)}</caption>{cells}</table>"

    def _newest(self) -> records.Audit | None:
        return ask(audits.latest_finished, self._row.id)

    def _audit(self, audit_id: int | None) -> records.Audit:
        return ask(audits.require_finished, self._row, audit_id)

    @property
    def class_names(self) -> list[str]:
        """The classes, in their order."""
        return list(self._row.class_names)

    def __len__(self) -> int:
        """Number of images."""
        return self._row.num_samples

    def audits(self) -> pd.DataFrame:
        """The audits, the newest first: audit_id, status, preset, seed, engines, created_at, finished_at."""
        rows = ask(audits.of_dataset, self._row.id)
        names = ["status", "preset", "seed", "engines", "created_at", "finished_at"]
        return pd.DataFrame(
            [{"audit_id": row.id, **{name: getattr(row, name) for name in names}} for row in rows],
            columns=["audit_id", *names],
        )

    def audit(
        self,
        engines: str | Sequence[str] | None = None,
        *,
        preset: Preset = "quick",
        device: str = "auto",
        seed: int = 0,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        map_method: Literal["umap", "pca"] = "umap",
        backbone: str | None = None,
        weights: str | Path | None = None,
        alone: bool = False,
        backbone_size: int | None = None,
        views: int | None = None,
        finetune: Literal["none", "plain", "all"] | None = None,
        features: NDArray[np.floating] | str | Path | None = None,
        features_column: str | None = None,
        budget: str | float | None = None,
        on: str | None = None,
        progress: bool | OnProgress = True,
    ) -> int:
        """Train the engines and score every label; returns the audit's id.

        ``engines``: one name or several, default all.
        ``backbone``: a pretrained network such as ``"timm:mobilenetv3_large_100"`` on whose features the engines
        train, with ``weights`` from a file; several with commas between stand side by side; default see
        ``usual_features.choose_features``, ``"none"``: from scratch. It gets
        images of ``backbone_size`` pixels (default: as its weights want them) in ``views`` views each (default: 1).
        ``finetune``: who trains the backbone too, on the images: nobody, the plain engine or every engine; default
        the plain one on a GPU, else nobody. ``features``: your own in its place, see ``own_features``.
        ``alone``: hear only these engines, not the latest runs of others in earlier audits.
        ``budget``: ``"10m"``, ``"overnight"`` or seconds; the audit does what finds most in that time, instead of
        ``preset``; default none, so that a program does the same on every machine. ``options``: engine -> the
        fields of its preset that change, such as ``{"l2b": {"epochs": 5}}``.
        ``on``: where engines train, ``"processes"``, ``"processes:2"``, ``"ray"`` or ``"ray://HOST:10001"``;
        default ``AUDITOR_EXECUTOR``, else this machine.
        ``progress``: a bar in a terminal or notebook, ``False`` for silence, or a function that is told.

        ``budget``, ``finetune`` and ``alone`` are of classes only, ``backbone`` and ``features`` of numbers too.

        Raises:
            ImportRefusedError: features that do not fit the dataset; names the row and the remedy.
            AuditFailedError: it could not be finished; ``resume`` goes on with it.
        """
        chosen = [engines] if isinstance(engines, str) else engines
        self._refuse_unused(
            "audit",
            budget=budget,
            finetune=finetune,
            alone=alone or None,
            backbone=backbone,
            weights=weights,
            features=features,
        )
        kind = kinds.of(self._row)
        source: feature_files.FeatureSource | None
        if features is not None:
            if backbone is not None:
                raise AuditFailedError("features replace a backbone; give one of the two.")
            source = own_features(self.name, features, column=features_column)
        elif "backbone" in kind.unused["audit"]:
            source = None
        else:
            source, _ = choose_features(
                self.name,
                backbone,
                None if weights is None else Path(weights),
                side=backbone_size,
                views=views or feature_files.DEFAULT_VIEWS,
                one=finetune == "all",
            )
        audit_id = kind.plan(
            self.name,
            chosen,
            preset=preset,
            device=device,
            seed=seed,
            options=options or {},
            map_method=map_method,
            features=source,
            alone=alone,
            budget=parse_budget(budget) if isinstance(budget, str) else budget,
            finetune=finetune,
            on=on,
        )
        return self._run(audit_id, progress)

    def resume(self, *, on: str | None = None, progress: bool | OnProgress = True) -> int:
        """Go on with the newest audit that did not finish, ``on`` as in ``audit``; returns its id.

        Raises:
            AuditFailedError: there is none, or it could not be finished.
        """
        return self._run(newest_unfinished_audit(self.name, on), progress)

    def _run(self, audit_id: int, progress: bool | OnProgress) -> int:
        with watching(progress) as heard:
            listener = None if heard is None else _TimeLeft(audit_id, heard)
            run_audit(audit_id, progress=listener)
        return audit_id

    def _refuse_unused(self, command: str, **given: Any) -> None:
        """Refuse arguments that mean nothing for this dataset's labels."""
        kind = kinds.of(self._row)
        for name, value in given.items():
            if value is not None and name in kind.unused[command]:
                raise AuditFailedError(f"{self.name} holds {kind.words}; leave {name} out.", field=name)

    def add_pred_probs(
        self, source: str | Path | NDArray[np.floating], *, name: str | None = None
    ) -> own_models.Added:
        """Hear your own model's probabilities as one more engine of later audits; see ``own_models.add``."""
        return own_models.add(self.name, source, name=name)

    def add_datalab(self, lab: Any, *, name: str = "datalab") -> own_models.Added:
        """Hear the label issues of cleanlab's ``Datalab``, or its ``get_issues("label")``, as one more engine.

        Rows are in the dataset's order. See ``own_models.add_label_issues`` for what is made of them.

        Raises:
            ImportRefusedError: they are not the issues of this dataset's labels.
        """
        issues = lab if isinstance(lab, pd.DataFrame) else lab.get_issues("label")
        return own_models.add_label_issues(self.name, issues, name=name)

    def forget_pred_probs(self, name: str) -> None:
        """Remove a model's probabilities; later audits do not hear it.

        Raises:
            NotFoundError: there are none of that name.
        """
        own_models.forget(self.name, name)

    def move(self, folder: str | Path) -> None:
        """Say that the images are in ``folder`` now; their content is checked, decisions stay.

        Raises:
            ImportRefusedError: other images lie there.
        """
        cache.move_root(self.name, Path(folder))
        self._row = reading.dataset(self.name)

    def remove(self) -> list[Path]:
        """Forget the dataset with its audits and decisions; the source is not touched. See the function ``remove``.

        Raises:
            AuditFailedError: an audit of it is running, or about to.
        """
        return remove(self.name)

    def suspects(
        self,
        top: int | None = None,
        *,
        max_fdr: float | None = None,
        audit_id: int | None = None,
        split: str | None = None,
    ) -> pd.DataFrame:
        """Labels by suspicion, the most suspicious first, with class names.

        Of the newest finished audit or of ``audit_id``; only of one ``split`` where it is named.
        ``max_fdr`` keeps those of which on average at most that share is falsely flagged; none where nothing can be
        promised. What can be said about them is in ``attrs["statement"]``.

        Columns: sample_id, filepath, given_label, suggested_label, trust_score, error_probability,
        suggested_probability, is_label_issue, agreement, decision, reviewer; of masks and numbers those of
        their ``Kind.table``. Both probabilities are the engines' own estimates until verified
        rows calibrate them: compare them with each other, and take none for a share.

        Raises:
            NotFoundError: no audit of this dataset has finished, or no sample is of that split.
            AuditFailedError: ``max_fdr`` is outside (0, 1).
        """
        audit = ask(audits.require_finished, self._row, audit_id)
        kind, most = kinds.of(self._row), top or self._row.num_samples
        listed = kind.suspects(self._row, audit, top=most, max_fdr=max_fdr, split=split)
        found = kind.table(self._row, audit, listed.page)
        found.attrs["statement"] = listed.statement
        return found

    def samples(self) -> pd.DataFrame:
        """One row a sample in the dataset's order: sample_id, filepath, given_label, split, own columns."""
        names = self._row.class_names
        rows = [
            {
                **(one.extra or {}),
                "sample_id": one.sample_id,
                "filepath": one.filepath,
                "given_label": names[one.given_label] if one.given_label >= 0 else None,
                "split": one.split,
            }
            for one in reading.samples(self._row.id)
        ]
        first = ["sample_id", "filepath", "given_label", "split"]
        found = pd.DataFrame(rows)
        return found[[*first, *(column for column in found.columns if column not in first)]]

    def scores(self, audit_id: int | None = None) -> pd.DataFrame:
        """Every label's scores, one row a sample in the dataset's order, with class names.

        Columns: sample_id, given_label, suggested_label, trust_score, error_probability, suggested_probability,
        is_label_issue, rank (1 = the most suspicious), agreement, disagreement. Of the probabilities see
        ``suspects``.

        Raises:
            NotFoundError: no such finished audit.
        """
        table = ask(scoring.table, self._audit(audit_id).id)
        names = dict(enumerate(self._row.class_names))
        for column in ("given_label", "suggested_label"):
            table[column] = table[column].map(names)
        kept = ["given_label", "suggested_label", "trust_score", "error_probability", "suggested_probability"]
        kept += ["is_label_issue", "rank", "agreement", "disagreement"]
        found = table[kept].reset_index(drop=True)
        found["rank"] += 1  # people count from one
        found.insert(0, "sample_id", np.arange(len(found)))
        return found

    def signals(self, audit_id: int | None = None) -> pd.DataFrame:
        """Each engine's trust and published signals: ``ENGINE_trust``, ``ENGINE_SIGNAL``; one row a sample.

        Raises:
            NotFoundError: no such finished audit.
        """
        audit = self._audit(audit_id)
        found: dict[str, Any] = {"sample_id": np.arange(self._row.num_samples)}
        for engine in arrays.engines_of(audit.id):
            found[f"{engine}_trust"] = np.asarray(arrays.trust(audit.id, engine))
            for name in arrays.signal_names(audit.id, engine):
                found[f"{engine}_{name}"] = np.asarray(arrays.signal(audit.id, engine, name))
        return pd.DataFrame(found)

    def pred_probs(self, engine: str | None = None, audit_id: int | None = None) -> pd.DataFrame:
        """(N, K) class probabilities of one engine (default: the audit's first), a column a class.

        Raises:
            NotFoundError: no such finished audit, or no such engine in it.
        """
        audit = self._audit(audit_id)
        probs = arrays.pred_probs(audit.id, self._engine(audit, engine))
        names = self._row.class_names
        return pd.DataFrame(np.asarray(arrays.of_all_classes(probs, len(names))), columns=names)

    def embeddings(self, engine: str | None = None, audit_id: int | None = None) -> NDArray[np.float32]:
        """(N, D) embeddings of one engine (default: the audit's first).

        Raises:
            NotFoundError: no such finished audit, or that engine has none.
        """
        audit = self._audit(audit_id)
        return np.asarray(arrays.embeddings(audit.id, self._engine(audit, engine)))

    def _engine(self, audit: records.Audit, engine: str | None) -> str:
        there = arrays.engines_of(audit.id)
        if engine is None and there:
            return there[0]
        if engine not in there:
            raise NotFoundError(
                f"Audit {audit.id} has no engine {engine!r}; it has {', '.join(there) or 'none'}."
            )
        return str(engine)

    def noise_rate(self, audit_id: int | None = None) -> NoiseRate:
        """Return how many labels are wrong: ``low``, ``point``, ``high``, ``kind`` and a ``sentence``."""
        return saying.noise_rate_now(self._audit(audit_id))

    def promises(self, audit_id: int | None = None) -> pd.DataFrame:
        """Return what can be promised about lists of suspects, a row a level: max_fdr, num_flagged, sentence."""
        found = saying.promises(saying.load(self._audit(audit_id).id))
        return pd.DataFrame(
            [
                {"max_fdr": level, "num_flagged": int(one.flags.sum()), "sentence": one.sentence}
                for level, one in found.items()
            ],
            columns=["max_fdr", "num_flagged", "sentence"],
        )

    def statements(self, audit_id: int | None = None) -> saying.Statements:
        """Return what the audit and the people say about the whole dataset."""
        return saying.statements(saying.load(self._audit(audit_id).id))

    def review(
        self,
        sample_id: int,
        decision: str,
        label: str | None = None,
        *,
        labels: Sequence[str] | None = None,
        reviewer: str | None = None,
    ) -> None:
        """Record one decision (``keep``, ``relabel`` with ``label``, ``exclude``, ...); classes by their names.

        Raises:
            ReviewError: unknown decision or class, or a label that is missing.
            NotFoundError: no such sample.
        """
        decisions.decide(
            self._row.id,
            _whole("sample_id", sample_id),
            decision,
            label=None if label is None else self._class(label),
            labels=None if labels is None else [self._class(one) for one in labels],
            reviewer=reviewer or getpass.getuser(),
            source="python",
        )
        ranking.of_newest(self.name)

    def apply_reviews(self, path: str | Path, *, reviewer: str | None = None) -> dict[str, int]:
        """Read decisions from a file with the columns of an export; how many of each."""
        counts = decision_files.apply_file(self.name, Path(path), reviewer=reviewer or getpass.getuser())
        ranking.of_newest(self.name)
        return counts

    def undo(self, *, reviewer: str | None = None) -> bool:
        """Take back the reviewer's latest decision; whether there was one."""
        return bool(decisions.undo_last(self._row.id, reviewer or getpass.getuser()))

    def reviews(self) -> pd.DataFrame:
        """The log of decisions, one row a decision; nothing is ever removed from it."""
        return decisions.log_frame(self._row.id)

    def draw(
        self, size: int, *, seed: int = 0, purpose: Literal["rate", "promises"] = "rate"
    ) -> pd.DataFrame:
        """Draw samples at random to be judged blindly: draw_id, sample_id, filepath, given_label.

        ``purpose``: ``rate`` draws uniformly, ``promises`` draws most from the head of the newest audit's ranking.

        Raises:
            VerificationError: fewer labeled samples are left than asked for, or no audit has ranked them.
        """
        drawn = drawing.draw(self.name, _whole("size", size), seed=_whole("seed", seed), purpose=purpose)
        rows = reading.samples_by_id(self._row.id, drawn.sample_ids)
        names = self._row.class_names
        return pd.DataFrame(
            {
                "draw_id": drawn.id,
                "sample_id": drawn.sample_ids,
                "filepath": [rows[i].filepath for i in drawn.sample_ids],
                "given_label": [names[rows[i].given_label] for i in drawn.sample_ids],
            }
        )

    def verify(
        self,
        draw_id: int,
        sample_id: int,
        label: str | None = None,
        *,
        decision: str = "label",
        reviewer: str | None = None,
    ) -> None:
        """Record one blind verdict: the class that is seen, or ``decision="exclude"`` or ``"unsure"``.

        Raises:
            VerificationError: the sample is not in the draw, or the verdict is none of these.
            ReviewError: ``label`` is no class.
        """
        blind.record(
            _whole("draw_id", draw_id),
            _whole("sample_id", sample_id),
            decision,
            label=None if label is None else self._class(label),
            reviewer=reviewer or getpass.getuser(),
        )

    def add_class(self, name: str) -> None:
        """Add a class that labels can be changed to from now on; engines learn it in the next audit.

        Raises:
            ReviewError: it cannot be a class of this dataset.
        """
        new_classes.add(self.name, name)
        self._row = reading.dataset(self.name)

    def remove_class(self, name: str) -> None:
        """Take back the class that was added last.

        Raises:
            ReviewError: another one was added after it, or a label or decision names it.
        """
        new_classes.remove(self.name, name)
        self._row = reading.dataset(self.name)

    def rename_class(self, name: str, new_name: str, *, reviewer: str | None = None) -> None:
        """Call a class otherwise from now on; exports still say the imported name in ``given_label``.

        Raises:
            ReviewError: no such class, or the new name is or was another one's.
        """
        class_changes.rename(self.name, name, new_name, reviewer=reviewer or getpass.getuser())
        self._row = reading.dataset(self.name)

    def merge_classes(self, name: str, into: str, *, reviewer: str | None = None) -> None:
        """Make one class a part of another; labels and decisions that name it mean that one.

        Raises:
            ReviewError: no such classes.
        """
        class_changes.merge(self.name, name, into, reviewer=reviewer or getpass.getuser())
        self._row = reading.dataset(self.name)

    def split_class(
        self, name: str, new_name: str, samples: Sequence[int], *, reviewer: str | None = None
    ) -> None:
        """Move samples of a class into a new one, as a decision to relabel each.

        Raises:
            ReviewError: no such class, one of the samples is of another, or the name is taken.
        """
        chosen = [_whole("sample_id", one) for one in samples]
        class_changes.split(self.name, name, new_name, chosen, reviewer=reviewer or getpass.getuser())
        self._row = reading.dataset(self.name)

    def undo_class_change(self, *, reviewer: str | None = None) -> None:
        """Take back the last renaming, merging or splitting that stands.

        Raises:
            ReviewError: there is none.
        """
        class_changes.undo(self.name, reviewer=reviewer or getpass.getuser())
        self._row = reading.dataset(self.name)

    def class_changes(self) -> list[str]:
        """The renamings, mergings and splittings that stand, in words, the oldest first."""
        return class_changes.sentences(self._row)

    def _class(self, name: str) -> int:
        number = Names(self._row.class_names).number(name)
        if number is None:
            hint = did_you_mean(str(name), self._row.class_names, "see class_names.")
            raise ReviewError(f"{self.name} has no class {name!r}; {hint}")
        return number

    def compare(
        self,
        *,
        seeds: int = 3,
        preset: Preset = "quick",
        device: str = "auto",
        options: dict[str, Any] | None = None,
        policy: Policy = "reviewed",
        max_fdr: float | None = None,
        audit_id: int | None = None,
        on: str | None = None,
        progress: bool | OnProgress = True,
    ) -> BeforeAfter:
        """Train on given and on cleaned labels and compare on verified rows, ``on`` as in ``audit``.

        See ``before_after``.

        Raises:
            AuditFailedError: too few verified rows, or nothing changes any label that is trained on.
        """
        with watching(progress) as heard:
            return train_before_and_after(
                self.name,
                seeds=tuple(range(_whole("seeds", seeds))),
                preset=preset,
                device=device,
                options=options,
                policy=policy,
                max_fdr=max_fdr,
                audit_id=audit_id,
                on=on,
                on_progress=heard,
            )

    def report(self, path: str | Path, *, audit_id: int | None = None, force: bool = False) -> None:
        """Write one self-contained HTML page for people who did not run the audit."""
        write_report(self.name, Path(path), audit_id=audit_id, force=force)

    def to_datalab(self, audit_id: int | None = None) -> pd.DataFrame:
        """Our columns under the names of cleanlab's ``Datalab.get_issues("label")``, one row a sample.

        Columns: is_label_issue, label_score (our trust), given_label, predicted_label.
        """
        found = self.scores(audit_id)
        return pd.DataFrame(
            {
                "is_label_issue": found.is_label_issue.astype(bool),
                "label_score": found.trust_score,
                "given_label": found.given_label,
                "predicted_label": found.suggested_label,
            }
        )

    def export(
        self,
        path: str | Path,
        *,
        policy: Policy = "reviewed",
        max_fdr: float | None = None,
        audit_id: int | None = None,
        force: bool = False,
        as_source: bool = False,
        links: bool = False,
        progress: bool | OnProgress = True,
    ) -> Any:
        """Write the cleaned table, a folder of classes where ``path`` has no ending, or the source once more.

        See ``outputs.export`` for ``as_source``, and ``export_tree`` for ``links``; of masks a new folder, of
        numbers a table is written. Returns what was written, with a ``sentence``.

        Raises:
            ExportRefusedError: the file exists, its kind is unknown, or ``auto`` has nothing that it can promise.
        """
        out = Path(path)
        changed = None if policy == "reviewed" else policy
        self._refuse_unused("export", policy=changed, max_fdr=max_fdr, links=links or None)
        if links and (out.suffix or as_source):
            raise ExportRefusedError("Links are of a folder of classes; leave them out.", field="links")
        with watching(progress) as heard:
            return kinds.of(self._row).export(
                self.name,
                out,
                policy=policy,
                max_fdr=max_fdr,
                audit_id=audit_id,
                force=force,
                as_source=as_source,
                links=links,
                progress=heard,
            )

    def to_fiftyone(
        self, *, to: str | None = None, audit_id: int | None = None, replace: bool = False
    ) -> Any:
        """Write this audit into the user's FiftyOne and return its dataset (a ``fiftyone.Dataset``).

        ``to``, ``audit_id`` and ``replace`` as in ``sync.push_audit``.

        Raises:
            NotFoundError: no audit of this dataset has finished.
            FiftyOneError: FiftyOne or MongoDB cannot be used.
        """
        from auditor.fiftyone_bridge import open_pushed, push_audit

        push_audit(self.name, to=to, audit_id=audit_id, replace=replace)
        return open_pushed(self.name, to)

    def from_fiftyone(self, *, reviewer: str | None = None, to: str | None = None) -> Pulled:
        """Take the decisions that were made in FiftyOne since the last push or pull; see ``sync.pull_decisions``.

        Raises:
            FiftyOneError: it was never pushed, or FiftyOne cannot be used.
        """
        from auditor.fiftyone_bridge import pull_decisions

        return pull_decisions(self.name, reviewer=reviewer or getpass.getuser(), to=to)


def list_datasets() -> pd.DataFrame:
    """All imported datasets: name, num_samples, num_classes, source, created_at."""
    rows = ask(datasets.list_all)
    columns = ["name", "num_samples", "num_classes", "source", "created_at"]
    return pd.DataFrame(
        [
            {
                "name": row.name,
                "num_samples": row.num_samples,
                "num_classes": len(row.class_names),
                "source": row.source,
                "created_at": row.created_at,
            }
            for row in rows
        ],
        columns=columns,
    )


def _whole(name: str, value: int) -> int:
    """A whole number from Python or NumPy.

    Raises:
        ReviewError: it is none; the text names the argument.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ReviewError(f"{name} is {value!r}; give a whole number.")
    return int(value)


def own_features(
    name: str, source: NDArray[np.floating] | str | Path, *, column: str | None = None
) -> feature_files.FeatureSource:
    """Keep a user's own features of dataset ``name``, for audits instead of a backbone's.

    Args:
        name: of the dataset.
        source: an (N, D) or (N, V, D) array in the dataset's order, or an ``.npy`` of one; a ``.csv``, ``.tsv`` or
            ``.parquet`` with ``sample_id`` or paths; ``column:NAME``, columns imported with the dataset; or a field
            of FiftyOne: ``fiftyone:FIELD`` of the dataset that was imported, ``fiftyone:OTHER/FIELD`` of another.
        column: of a table: one with lists, or what the names of several columns begin with.

    Raises:
        NotFoundError: no such dataset.
        FiftyOneError: FiftyOne cannot be used.
        ImportRefusedError: what is there does not fit the dataset; names the row and the remedy.
    """
    if isinstance(source, str) and source.startswith(FIFTYONE):
        if column is not None:
            raise ImportRefusedError(f"{source} names its field already; leave the column out.")
        from auditor.fiftyone_bridge import add_own_features

        return add_own_features(name, source)
    return tables_of_features.add(name, source, column=column)


def open_dataset(name: str) -> Dataset:
    """The dataset of that name (``auditor.open``).

    Raises:
        NotFoundError: there is none.
    """
    return Dataset(name)


def import_dataset(
    source: str | Path, *, name: str, progress: bool | OnProgress = True, **options: Any
) -> Dataset:
    """Import a source and return its handle; options as in ``imports.import_dataset``."""
    with watching(progress) as heard:
        importing.import_dataset(source, name=name, progress=heard, **options)
    return Dataset(name)


class _TimeLeft:
    """Tells the time left for the whole audit too, asked of the catalog once a second."""

    def __init__(self, audit_id: int, heard: OnProgress) -> None:
        self._audit_id, self._heard = audit_id, heard
        self._asked = -math.inf
        self._left: float | None = None

    def __call__(self, at: Progress) -> None:
        now = time.monotonic()
        if now - self._asked > EVERY_S:
            self._asked, self._left = now, audit_overview(self._audit_id).seconds_left
        self._heard(replace(at, seconds_left=at.seconds_left if self._left is None else self._left))


BUSY = {
    "running": "cancel it first",
    # One that was planned and never started counts as dead after a while of silence (``audits.state``).
    "queued": "cancel it as soon as it runs, or wait a minute where nobody started it",
}
"""What to do about an audit that keeps a dataset from being removed, by its state."""


def remove(name: str) -> list[Path]:
    """Forget a dataset with its audits, decisions and files of ours; the source is not touched.

    Returns the folders that are left: they cannot be deleted, or their manifest does not say that they are its own.

    Raises:
        NotFoundError: there is none, or somebody else has just removed it.
        AuditFailedError: an audit of it is running, or about to.
        JobRefusedError: another job of it is.
    """
    removal.sweep()
    with session() as open_session:
        datasets.lock(open_session, datasets.owned(open_session, name).id)
        dataset = datasets.owned(
            open_session, name
        )  # somebody else may have removed it while this one waited
        _refuse_busy(open_session, dataset.id, name)
        removal.begin(open_session, dataset)
    return removal.finish(dataset.uuid)


def _refuse_busy(open_session: Session, dataset_id: int, name: str) -> None:
    """Refuse to remove what somebody works on; a row that is damaged keeps nobody from removing it."""
    try:
        for audit in audits.of_dataset(open_session, dataset_id):
            if (state := audits.state(open_session, audit)) in ("queued", "running"):
                raise AuditFailedError(f"Audit {audit.id} of {name} is {state}; {BUSY[state]}.")
        for job in jobs.find(open_session, dataset_id=dataset_id):
            if (state := jobs.state(job)) in jobs.AT_WORK:
                raise JobRefusedError(f"{KINDS[job.kind].title} of {name} is {state}; cancel it first.")
    except (ValueError, TypeError):
        return
