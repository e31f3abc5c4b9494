"""The report of a dataset: everything collected from the catalog and handed to ``report_page``."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from auditor import kind as kinds
from auditor.catalog import audits, datasets, folders, reading, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Review, Sample
from auditor.ground.errors import ExportRefusedError
from auditor.ground.files import written_whole
from auditor.ground.numbers import number_text
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.vocabulary import CLASSIFICATION, DECISIONS, MULTIPLE, SEGMENTATION
from auditor.ground.wording import engines_against, kind_of_labels, odds_of_wrong, plural
from auditor.outputs import annotated
from auditor.outputs.report_page import (
    MAX_CORRECTIONS,
    Conflict,
    Correction,
    EngineLine,
    ReportInput,
    Suspect,
    report_html,
)
from auditor.pictures import cache as images
from auditor.pictures.decoding import placed
from auditor.results import arrays, comparison, queues, statements
from auditor.review import drawing
from auditor.review.decisions import outcomes
from auditor.statistics import ErrorsLeft, NoiseRate, noise, shared_sentence

NUM_SUSPECTS = 60
READING = "reading the suspects' pictures"


@folders.checked_once()
def report(dataset_name: str, *, audit_id: int | None = None, progress: OnProgress | None = None) -> str:
    """The report of the newest finished audit, or of ``audit_id``, as one HTML page without any outside address.

    ``progress`` hears of what is computed, and of every suspect whose picture is read.

    Raises:
        NotFoundError: no audit of this dataset has finished, or not that one.
    """
    dataset, audit = reading.audited(dataset_name, audit_id)
    Ticker(progress, "computing statements", None)
    standing = statements.load(audit.id)
    found = (_of_classes if dataset.task == CLASSIFICATION else _of_others)(standing, progress)
    Ticker(progress, "drawing the page", None)
    return report_html(found)


def _of_classes(standing: statements.Standing, progress: OnProgress | None) -> ReportInput:
    dataset, audit = standing.dataset, standing.audit
    said = statements.statements(standing)
    return ReportInput(
        **_of_all(standing, said.noise_rate, said.errors_left, progress),
        moves=said.moves,
        class_reports=said.classes,
        splits=said.splits,
        correlations=_correlations(audit),
        conflicts=_conflicts(said.conflicts, dataset.class_names),
        error_probability_is_guess=audit.summary.error_probability_is_guess,
        annotators=annotated.answers_of_dataset(dataset.name, audit.id) if dataset.annotators else None,
        notes=_notes(audit, said),
    )


def _of_others(standing: statements.Standing, progress: OnProgress | None) -> ReportInput:
    """Of masks, numbers and sets: what is known of all, and the worst, without anything about pairs of classes."""
    rate = statements.noise_rate(standing)
    known = standing.findings()
    left = noise.errors_left(
        rate,
        int(standing.in_question.sum()),
        num_found_wrong=len(known.wrong),
        num_found_right=len(known.right),
    )
    said = drawing.tolerance_sentence(standing.dataset.id)
    conflicts = ask(datasets.conflicts, standing.dataset.id)
    notes = [*([said] if said else []), *([conflict_sentence(conflicts)] if len(conflicts) else [])]
    return ReportInput(
        **_of_all(standing, rate, left, progress),
        notes=[*notes, *_warnings(standing.audit)],
    )


def _of_all(
    standing: statements.Standing, rate: NoiseRate, left: ErrorsLeft, progress: OnProgress | None
) -> dict[str, Any]:
    """Return what the page says about labels of every kind."""
    dataset, known = standing.dataset, standing.findings()
    decided = outcomes(dataset.id)
    return {
        "dataset_name": dataset.name,
        "created_at": datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "class_names": dataset.class_names,
        "labels": kind_of_labels(dataset.task, len(dataset.classes)),
        "num_samples": dataset.num_samples,
        "num_labeled": int((standing.given_labels >= 0).sum()),
        "num_verified": standing.verified.size,
        "noise_rate": rate,
        "promises": list(statements.promises(standing).values()),
        "errors_left": left,
        "num_checked": len(known.decided),
        "num_waiting": queues.sizes(standing.audit, {"undecided": True, "issues": True})[0] or 0,
        "done": Counter(DECISIONS[decided[one].decision].words for one in known.wrong),
        "more_rows": statements.what_more_buys(standing, drawing.next_size(dataset.id)).sentence,
        "comparison": comparison.kept(dataset.id),
        "engines": _engine_lines(standing.audit),
        "corrections": _corrections(standing),
        "is_of_parts": dataset.task == SEGMENTATION,
        "suspects": _suspects(standing, progress),
    }


def _suspects(standing: statements.Standing, progress: OnProgress | None) -> list[Suspect]:
    dataset, audit = standing.dataset, standing.audit
    kind, decided, cache = kinds.of(dataset), outcomes(dataset.id), images.image_cache(dataset)
    # Where no label is a suspect, the least trusted ones.
    those = scores.SuspectFilter(only_issues=bool(audit.summary.num_label_issues))
    page = ask(scores.page, audit, those, limit=NUM_SUSPECTS)
    samples = reading.samples_by_id(dataset.id, [int(one) for one in page.sample_id])
    ticker, found = Ticker(progress, READING, len(page)), []
    rows = zip(kind.rows(dataset, audit, page), page.error_probability, strict=True)
    for done, (row, error_probability) in enumerate(rows):
        ticker.at(done)
        if math.isnan(error_probability):  # it has no label
            continue
        i, part = row["sample_id"], kind.most_doubted(dataset, audit, row)
        given, suggested = kind.shown(row) if part is None else (part.given, part.suggested)
        found.append(
            Suspect(
                sample_id=i,
                filepath=row["filepath"],
                given=given,
                suggested=suggested,
                trust_score=row["trust_score"],
                odds=_odds(audit, error_probability, row.get("agreement")),
                reason=row.get("reason", ""),
                decision=_decision(decided.get(i), dataset.class_names),
                image=_without_edges(_outlined(np.asarray(cache[i]), part), samples[i]),
            )
        )
    return found


def _odds(audit: Audit, error_probability: float, against: int | None) -> str:
    """Return how likely a label is wrong where verified rows say it, else how many engines disagree, if known."""
    if not audit.summary.error_probability_is_guess:
        return odds_of_wrong(error_probability)
    return "" if against is None else engines_against(against, len(audit.summary.witnesses))


def _corrections(standing: statements.Standing) -> list[Correction]:
    """Return what people found wrong, the most suspicious first; at most ``MAX_CORRECTIONS``."""
    dataset, audit = standing.dataset, standing.audit
    kind, decided, cache = kinds.of(dataset), outcomes(dataset.id), images.image_cache(dataset)
    wrong = np.array(sorted(standing.findings().wrong), dtype=np.int64)
    if not len(wrong):
        return []
    order = np.argsort(np.nan_to_num(standing.trust_score[wrong]), kind="stable")[:MAX_CORRECTIONS]
    page = ask(scores.page_of, audit, wrong[order].tolist())
    samples = reading.samples_by_id(dataset.id, [int(one) for one in page.sample_id])
    found = []
    for row in kind.rows(dataset, audit, page):
        i = row["sample_id"]
        said = _decision(decided[i], dataset.class_names)
        found.append(
            Correction(
                sample_id=i,
                filepath=row["filepath"],
                given=kind.shown(row)[0],
                right=said.partition(" → ")[2] or DECISIONS[decided[i].decision].words,
                image=_without_edges(np.asarray(cache[i]), samples[i]),
            )
        )
    return found


def _outlined(square: NDArray[np.uint8], part: kinds.Part | None) -> NDArray[np.uint8]:
    """(C, H, W) a picture with a white line around the part, and a black one around that."""
    if part is None:
        return square
    drawn = np.array(np.broadcast_to(square, (3, *square.shape[1:])))
    near = binary_dilation(part.pixels)
    drawn[:, binary_dilation(near) & ~near] = 0
    drawn[:, near & ~part.pixels] = 255
    return drawn


def _without_edges(square: NDArray[np.uint8], sample: Sample) -> NDArray[np.uint8]:
    """(C, H, W) what the picture itself covers of the cache's square."""
    if not (sample.original_height and sample.original_width):
        return square
    left, top, width, height = placed(sample.original_width, sample.original_height, square.shape[1])
    return square[:, top : top + height, left : left + width]


def write_report(
    dataset_name: str,
    out: Path,
    *,
    audit_id: int | None = None,
    force: bool = False,
    progress: OnProgress | None = None,
) -> None:
    """Write the report; the file is whole or absent.

    Raises:
        ExportRefusedError: the file is not called ``.html``, or exists and ``force`` is not set.
        NotFoundError: no audit of this dataset has finished, or not that one.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise ExportRefusedError(f"{out}: a report is an HTML page; call it {out.stem or 'report'}.html.")
    if out.exists() and not force:
        raise ExportRefusedError(f"{out} exists; choose another name, or overwrite it.", field="force")
    text = report(dataset_name, audit_id=audit_id, progress=progress)
    with written_whole(out) as beside:
        beside.write_text(text, encoding="utf-8")


def _conflicts(table: pd.DataFrame, names: list[str]) -> list[Conflict]:
    return [
        Conflict(
            group=int(row["duplicate_group"]),
            sample_id=int(row["sample_id"]),
            filepath=str(row["filepath"]),
            given=names[int(row["given_label"])],
            is_certain=bool(row["is_certain"]),
        )
        for row in table.to_dict("records")
    ]


def _decision(outcome: Review | None, names: list[str]) -> str:
    """Return what a person decided, with the classes or the number that it names; empty while open."""
    if outcome is None:
        return ""
    several = outcome.labels or [] if outcome.decision == MULTIPLE else []
    said = [names[label] for label in ([outcome.label] if outcome.label is not None else several)]
    said += [] if outcome.number is None else [number_text(outcome.number)]
    return " → ".join(filter(None, (outcome.decision, ", ".join(said))))


def _engine_lines(audit: Audit) -> list[EngineLine]:
    runs = ask(audits.runs, audit.id)
    lines = []
    for run in runs:
        about = arrays.describe(audit.id, run.engine)
        epochs = f"{plural(run.config['epochs'], 'epoch')}, " if "epochs" in run.config else ""
        facts = f"preset {audit.preset}, {epochs}seed {audit.seed}, {audit.device}, {run.seconds:.0f} s"
        lines.append(EngineLine(title=about["title"], paper=about["paper"], facts=facts))
    return lines


def _correlations(audit: Audit) -> list[tuple[str, list[float | None]]]:
    """Return the rank correlation of every engine, by title, with every one."""
    names, found = audit.summary.witnesses, audit.summary.rank_correlations or []
    titles = {name: arrays.describe(audit.id, name)["title"] for name in arrays.engines_of(audit.id)}
    return [(titles.get(name, name), row) for name, row in zip(names, found, strict=True)]


def _titled(audit: Audit, sentence: str) -> str:
    """A stored sentence with the engines' titles in place of their names."""
    for name in arrays.engines_of(audit.id):
        sentence = re.sub(rf"\b{re.escape(name)}\b", arrays.describe(audit.id, name)["title"], sentence)
    return sentence


def _notes(audit: Audit, said: statements.Statements) -> list[str]:
    notes = [_titled(audit, said_of_trust)] if (said_of_trust := audit.summary.trust_sentence) else []
    if not audit.summary.num_label_issues:
        notes.append(statements.no_suspects(audit))
    if borrowed := arrays.heard_in_words(audit):
        notes.append(borrowed)
    if len(said.conflicts):
        notes.append(conflict_sentence(said.conflicts))
    if shared := shared_sentence(said.splits):
        notes.append(shared)
    notes += _what_trust_changed(audit)
    return notes + _warnings(audit)


def _warnings(audit: Audit) -> list[str]:
    """Return what the engines themselves say against their results."""
    runs = ask(audits.runs, audit.id)
    return [
        f"{arrays.describe(audit.id, run.engine)['title']}: {warning}"
        for run in runs
        for warning in arrays.warnings_of(run)
    ]


def conflict_sentence(conflicts: pd.DataFrame) -> str:
    """Return how many groups of copies carry different labels, and for how many pictures one is certainly wrong."""
    groups = conflicts.duplicate_group.nunique()
    certain = conflicts[conflicts.is_certain].content_hash.nunique()
    who = "1 group of duplicates carries" if groups == 1 else f"{groups:,} groups of duplicates carry"
    if not certain:
        return f"{who} different labels, but none on copies that are identical in every pixel: look at these."
    pictures = "1 picture has" if certain == 1 else f"{certain:,} pictures have"
    return (
        f"{who} different labels. {pictures} different labels on copies that are identical in every pixel, so a "
        "label is certainly wrong. Near copies only look alike: look at these."
    )


def _what_trust_changed(audit: Audit) -> list[str]:
    """Return how many labels this audit trusted, and what has moved since one of the same engines and preset
    before it.
    """
    _, trusted = arrays.trained_labels(audit.id)
    if not trusted.any():
        return []
    earlier = [
        one
        for one in ask(audits.of_dataset, audit.dataset_id)
        if one.status == "finished"
        and one.id < audit.id
        and (one.preset, one.engines) == (audit.preset, audit.engines)
    ]
    if not earlier:
        return [f"This audit trained with {plural(int(trusted.sum()), 'label')} that people had confirmed."]
    now, before = (ask(scores.table, one) for one in (audit.id, earlier[0].id))
    decided = outcomes(audit.dataset_id)
    flagged, was = now.is_label_issue.to_numpy(bool), before.is_label_issue.to_numpy(bool)
    undecided = np.array([i not in decided for i in now.sample_id])
    added, dropped = int((flagged & ~was & undecided).sum()), int((was & ~flagged & undecided).sum())
    number = reading.audit_number(earlier[0].id)
    return [
        f"This audit trained with {plural(int(trusted.sum()), 'label')} that people had confirmed. Against audit "
        f"{number}, {plural(added, 'label')} that nobody checked rose above the suggested cut, {dropped:,} fell "
        "below it."
    ]
