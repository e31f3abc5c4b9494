"""What the command line prints: progress on standard error, results on standard output."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from auditor import kind as kinds
from auditor.audits import TRUNK, AuditOverview, audit_overview, cancel_audit, planned_seconds, wait_for_audit
from auditor.backbones.weights import Weights
from auditor.catalog import audits, datasets, reading
from auditor.catalog.db import ask, damaged_value
from auditor.catalog.records import Audit, Dataset
from auditor.cli.options import echo
from auditor.experiments import BeforeAfter
from auditor.ground.errors import AuditFailedError, AuditorError, CatalogBusyError
from auditor.ground.progress import OnProgress, Progress
from auditor.ground.vocabulary import CLASSIFICATION, LABELS, REGRESSION
from auditor.ground.wording import duration, kind_of_labels, percent, plural
from auditor.outputs import conflict_sentence
from auditor.pictures.sources import printable
from auditor.results import arrays, own_models, progress, settle, statements
from auditor.review import blind, decisions, drawing
from auditor.statistics import Promise

MOST_PROBLEMS = 20
"""Rows that are listed one by one; the rest is counted."""


def print_json(value: Any) -> None:
    """Print as JSON; NaN, which JSON does not know, becomes null."""
    known = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
    echo(json.dumps(known, indent=2, ensure_ascii=False))


def done(text: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a command did: its line, or its facts for a program."""
    if as_json:
        print_json(facts)
    else:
        echo(text)


@contextmanager
def step_progress() -> Iterator[OnProgress]:
    """A bar with the time left, shown from the first report of progress: an immediate refusal stays one line."""
    bar = _bar()
    task = bar.add_task("", total=None, left="")

    def show(at: Progress) -> None:
        bar.start()
        bar.update(task, description=at.stage, completed=at.done, total=at.total, left=_left(at.seconds_left))

    try:
        yield show
    except BaseException:
        bar.live.transient = True
        bar.live.stop()  # nothing but the reason is left on the screen
        raise
    if bar.live.is_started:
        bar.stop()


def import_report(report: Any, *, as_json: bool) -> None:
    """Print what an import found."""
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    unlabeled = f", {report.num_unlabeled:,} unlabeled" if report.num_unlabeled else ""
    images, classes = plural(report.num_samples, "image"), f"in {plural(report.num_classes, 'class')}"
    if report.task == REGRESSION:
        classes = "with a number each"
    echo(f"{report.name}: {images} {classes}{unlabeled}, {report.seconds:.1f} s.")
    for note in report.notes:
        echo(note)
    if report.skipped:
        echo("Skipped:", err=True)
        problems(report.skipped, report.num_skipped)
    if report.num_conflicts:
        echo(conflict_sentence(ask(datasets.conflicts, report.dataset_id)))
    echo(f"Next: auditor audit {shlex.quote(report.name)}")


def preview(found: Any, *, as_json: bool) -> None:
    """Print what an import would find."""
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    echo(f"{plural(found.num_rows, 'image')} in {plural(len(found.class_names), 'class')}:")
    for line in found.tree():
        echo(f"  {line}")
    for note in found.notes:
        echo(note)
    if found.question is not None:
        echo(found.question)
    if found.problems:
        problems(found.problems, found.num_problems)
    echo("Nothing was imported.")


def problems(found: Sequence[Any], count: int) -> None:
    """Print what cannot be imported: one line a cause, with the first row that has it."""
    causes = Counter(problem.cause for problem in found)
    first = {problem.cause: problem for problem in reversed(found)}
    for cause, number in list(causes.items())[:MOST_PROBLEMS]:
        echo(f"  {first[cause]}{f' ({number - 1:,} more like it)' if number > 1 else ''}", err=True)
    more = count - sum(list(causes.values())[:MOST_PROBLEMS])
    if more > 0:
        echo(f"  ... and {more:,} more", err=True)


def weights_table(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """The short list of backbones and where their weights are."""
    if as_json:
        print_json(list(rows))
        return
    for row in rows:
        where = f"{row['path']} ({row['place']})" if row["path"] else "not on this machine"
        echo(f"{row['name']}\n    {row['good_for']}; licence {row['licence']}\n    {where}")
    echo("`auditor weights get NAME` downloads one; other networks of timm or torchvision work too.")


def weights_kept(found: Weights, *, as_json: bool) -> None:
    """Print where weights lie now."""
    if as_json:
        print_json({"name": found.name, "path": str(found.path), "place": found.place})
        return
    echo(f"{found.name}: {found.path}")


def plan_summary(audit_id: int) -> None:
    """On standard error: how the engines train and how long that should take."""
    audit = reading.audit(audit_id)
    if not audit.options.estimate:
        return
    if audit.options.further and (source := arrays.features_of(audit)) is not None:
        names, one = ", ".join(audit.options.further), source.each[0]
        echo(f"Trained further on the images, at {one.side} px, by {names}: {one.name}.", err=True)
    heads = audit.options.heads
    if heads:
        echo(f"{TRUNK} trains on the images, the others on what its network sees.", err=True)
    seconds, budget = planned_seconds(audit), audit.options.budget or {}
    if budget.get("does"):
        echo(f"Within {duration(budget['seconds'])}: {budget['does']}.", err=True)
    late = " Nothing shorter is left." if budget and seconds > budget["seconds"] else ""
    echo(f"About {duration(seconds)}, by a short test of this machine.{late}", err=True)


def follow_audit(audit_id: int) -> None:
    """Show an audit's progress until it ends; Ctrl-C cancels it.

    Raises:
        AuditFailedError: it did not finish.
    """
    with _bar() as bar:
        tasks = {
            engine.engine: bar.add_task(engine.engine, total=1.0, left="")
            for engine in audit_overview(audit_id).engines
        }

        def show(seen: AuditOverview) -> None:
            if seen.preparing is not None:
                first = seen.preparing
                if first.engine not in tasks:
                    tasks[first.engine] = bar.add_task(first.stage, total=1.0, left="")
                left = _left(first.seconds_left) if first.status == "running" else ""
                bar.update(tasks[first.engine], description=first.stage, completed=first.progress, left=left)
            for engine in seen.engines:
                words = engine.status if engine.status != "running" else engine.stage
                name = f"{engine.engine:<14} {words}"
                left = _left(engine.seconds_left) if engine.status == "running" else ""
                bar.update(tasks[engine.engine], description=name, completed=engine.progress, left=left)

        number = number_of(audit_id)
        try:
            last = wait_for_audit(audit_id, show)
        except KeyboardInterrupt:
            cancel_audit(audit_id)
            echo("\nStopping after the current epoch ...", err=True)
            wait_for_audit(audit_id, show)
            command = f"auditor audit {shlex.quote(_name_of(audit_id))} --resume"
            raise AuditFailedError(f"Audit {number} was cancelled; `{command}` continues it.") from None
    if last.state != "finished":
        how = "too early (its process is gone)" if last.state == "dead" else last.state
        raise AuditFailedError(last.error or f"Audit {number} ended {how}; `--resume` continues it.")


def number_of(audit_id: int) -> int:
    """Return which audit of its dataset it is, as people call it."""
    return reading.audit_number(audit_id)


def _name_of(audit_id: int) -> str:
    dataset = reading.dataset_of_audit(audit_id)
    return dataset.name


def audit_summary(audit_id: int, *, as_json: bool) -> None:
    """Print the seconds of each engine and what the audit found."""
    audit, dataset = reading.audit_and_dataset(audit_id)
    runs = ask(audits.runs, audit_id)
    if as_json:
        engines = [{"engine": run.engine, "status": run.status, "seconds": run.seconds} for run in runs]
        print_json(
            {
                "audit_id": audit_id,
                "number": number_of(audit_id),
                "dataset": dataset.name,
                "engines": engines,
                **audit.summary.as_json(),
            }
        )
        return
    for run in runs:
        echo(f"  {run.engine:<14} {run.seconds:7.1f} s")
    for line in kinds.of(dataset).summary(dataset, audit):
        echo(line)


def runs_that_speak(name: str, *, alone: bool | None, audit_id: int | None, as_json: bool) -> None:
    """Print which runs speak in the newest finished audit or in ``audit_id``; chosen anew unless None."""
    dataset, audit = reading.audited(name, audit_id)
    if dataset.task != CLASSIFICATION:
        raise AuditFailedError(
            f"{name} has {LABELS[dataset.task]}: only the audit's own engines are heard there."
        )
    if alone is not None and alone != audit.options.alone:
        settle.hear(audit.id, alone=alone)
        audit = reading.audit(audit.id)
    found = arrays.speaking_runs(audit.id)
    if as_json:
        rows = [dataclasses.asdict(one) for one in found]
        print_json({"audit_id": audit.id, "alone": audit.options.alone, "runs": rows})
        return
    called = ask(audits.numbers, dataset.id)
    for one in found:
        weight = (audit.summary.weights or {}).get(one.name)
        counts = "" if weight is None else f", weight {percent(weight)}"
        echo(f"{one.name}: {one.engine} on {one.model}, audit {called[one.audit_id]}{counts}")
    others = [one for one in arrays.speaking_runs(audit.id, alone=False) if one.audit_id != audit.id]
    if others and audit.options.alone:
        echo(f"Not heard: {plural(len(others), 'run')} of earlier audits; --with-earlier hears them too.")


def status(name: str | None, *, as_json: bool) -> None:
    """All datasets in one line each, or one dataset in full."""
    if name:
        ask(datasets.owned, name)  # or the nearest name
    names = [name] if name else ask(datasets.names)
    found = [_status_or_damage(one) for one in names]
    if as_json:
        print_json(found[0] if name else found)
        return
    if not found:
        echo("No datasets yet; `auditor demo` shows one, `auditor import SOURCE --name NAME` adds yours.")
    for one in found:
        for line in [f"{one['name']}: {one['damage']}"] if "damage" in one else _status_lines(one):
            echo(line)


def _status_lines(one: Mapping[str, Any]) -> list[str]:
    labels = kind_of_labels(one["task"], one["num_classes"])
    lines = [f"{one['name']}: {plural(one['num_samples'], 'image')}, {labels}"]
    for audit in one["audits"]:
        lines.append(f"  audit {audit['number']} ({audit['preset']}) {audit['state']}{_how_far(audit)}")
    decided = ", ".join(f"{count:,} {decision}" for decision, count in one["decisions"].items())
    found_wrong = f"; {plural(one['found'], 'wrong label')} found" if decided else ""
    lines.append(f"  decisions: {decided or 'none yet'}{found_wrong}")
    if one["drawn"]:
        lines.append(f"  verified: {one['judged']:,} of {one['drawn']:,} drawn at random")
    if one["own_predictions"]:
        lines.append(f"  own predictions: {', '.join(one['own_predictions'])}")
    return [*lines, *(f"  {sentence}" for sentence in one["sentences"])]


def suspects(
    name: str,
    *,
    top: int,
    max_fdr: float | None,
    audit_id: int | None = None,
    split: str | None = None,
    as_json: bool,
) -> None:
    """The ranking's head, or the flags that a promise carries; of the newest finished audit or of ``audit_id``."""
    dataset, audit = reading.audited(name, audit_id)
    kind = kinds.of(dataset)
    listed = kind.suspects(dataset, audit, top=top, max_fdr=max_fdr, split=split)
    rows = kind.rows(dataset, audit, listed.page)
    if as_json:
        summary = audit.summary
        print_json(
            {
                "statement": listed.statement,
                "total": listed.total,
                "error_probability_is_guess": summary.error_probability_is_guess,
                "suggestion_is_calibrated": summary.suggestion_is_calibrated,
                "suspects": rows,
            }
        )
        return
    echo(listed.statement)
    for row in rows:
        echo(kind.line(row))
    say_more(len(rows), listed.total)


def say_more(num_listed: int, total: int) -> None:
    """Say where a list was cut."""
    if num_listed < total:
        echo(f"The first {num_listed:,} of {total:,}; --top {total} lists all.")


def _promises(found: Mapping[float, Promise]) -> list[dict[str, Any]]:
    """Promises for programs; which labels they flag is what `suspects` lists."""
    rows = [dataclasses.asdict(one) for one in found.values()]
    return [{key: value for key, value in row.items() if key != "flags"} for row in rows]


def verdicts_applied(name: str, counts: dict[str, int], *, as_json: bool) -> None:
    """Print what the verdicts say immediately: the noise rate and what can be promised."""
    if not as_json:
        echo(", ".join(f"{count} {word}" for word, count in counts.items()) + ".")
    dataset, audit = reading.newest_audited(name)
    if audit is None:
        done(f"Next: auditor audit {shlex.quote(name)}", {"verdicts": counts}, as_json=as_json)
        return
    if dataset.task == CLASSIFICATION:  # a ranking of numbers does not depend on verdicts
        settle.settle(audit.id)
    standing = statements.load(audit.id)
    rate, promises = statements.noise_rate(standing), statements.promises(standing)
    if as_json:
        found = {"noise_rate": dataclasses.asdict(rate), "promises": _promises(promises)}
        print_json({"verdicts": counts, "audit_id": audit.id, **found})
        return
    if what_is_wrong := drawing.tolerance_sentence(dataset.id):
        echo(what_is_wrong)
    echo(rate.sentence)
    for q, promise in promises.items():
        echo(f"  at {percent(q)}: {promise.sentence}")
    echo(statements.what_more_buys(standing, drawing.next_size(dataset.id)).sentence)


def before_after(result: BeforeAfter, *, as_json: bool) -> None:
    """Print what cleaning changed for a network."""
    if as_json:
        print_json({"statement": result.sentence, **dataclasses.asdict(result)})
        return
    for seed, before, after in result.by_seed:
        echo(f"  seed {seed}: accuracy {before:.3f} with given labels, {after:.3f} with cleaned labels")
    held_out = plural(result.num_held_out, "row", "were")
    echo(f"{plural(result.num_changed, 'training label', 'differ')}; {held_out} held out.")
    echo(result.sentence)
    for note in result.notes:
        echo(note)


def _status_or_damage(name: str) -> dict[str, Any]:
    """A dataset's status; where something of it is damaged, what that is: the others are shown all the same."""
    try:
        found = _dataset_status(reading.dataset(name))
        _status_lines(found)  # what cannot be written as a line is damaged too
        return found
    except CatalogBusyError:
        raise
    except AuditorError as error:
        return {"name": name, "damage": f"cannot be shown: {error}"}
    except Exception as error:
        text = damaged_value() or f"{type(error).__name__}: {error}"
        return {"name": name, "damage": f"cannot be shown: {text}"}


def _dataset_status(dataset: Dataset) -> dict[str, Any]:
    found = ask(audits.of_dataset, dataset.id)
    finished = next((audit for audit in found if audit.status == "finished"), None)
    outcomes = decisions.outcomes(dataset.id)
    known, left, sentences = progress.findings(dataset, outcomes), None, []
    if finished is not None:
        kind = kinds.of(dataset)
        left = progress.errors_left(dataset, finished, known) if kind.guesses_rate else None
        sentences = kind.status(dataset, finished)
    return {
        "name": dataset.name,
        "num_samples": dataset.num_samples,
        "num_classes": len(dataset.class_names),
        "task": dataset.task,
        "source": dataset.source,
        "decisions": decisions.decision_counts(outcomes),
        "found": len(known.wrong),
        "left": None if left is None else dataclasses.asdict(left),
        "drawn": drawing.num_drawn(dataset.id),
        "judged": blind.num_judged(dataset.id),
        "own_predictions": own_models.names(dataset.id),
        "audits": [_audit_status(audit) for audit in found],
        "sentences": sentences,
    }


def _audit_status(audit: Audit) -> dict[str, Any]:
    seen = audit_overview(audit.id)
    return {
        "id": audit.id,
        "number": number_of(audit.id),
        "state": seen.state,
        "preset": audit.preset,
        "engines": [dataclasses.asdict(engine) for engine in seen.engines],
        "seconds_left": seen.seconds_left,
        "error": seen.error,
    }


def _how_far(audit: Mapping[str, Any]) -> str:
    """Return what stopped an audit, or how far each engine under way is."""
    if audit["error"]:
        return f": {audit['error']}"
    engines = (
        [one for one in audit["engines"] if one["status"] == "running"] if audit["state"] == "running" else []
    )
    parts = [
        ", ".join(filter(None, (f"{one['engine']} {one['progress']:.0%}", _left(one["seconds_left"]))))
        for one in engines
    ]
    return ": " + "; ".join(parts) if parts else ""


def _bar() -> Bar:
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    )


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return (
        f"{seconds:.0f} s left" if seconds < 90 else f"{time.strftime('%H:%M:%S', time.gmtime(seconds))} left"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)


def annotators(found: Mapping[str, Any], out: str | None, folder: str | None, *, as_json: bool) -> None:
    """Print what several annotators' answers say; ``folder``: of the images, where ``out`` lies elsewhere."""
    if as_json:
        print_json(dict(found) | {"out": out})
        return
    of_pictures = ", with what the engines make of the pictures taken in," if found["with_pictures"] else ""
    alpha = "not known" if found["alpha"] is None else f"{found['alpha']:.2f}"
    echo(
        f"{plural(found['answers'], 'answer')} on {plural(found['pictures'], 'picture')}; agreement "
        f"(Krippendorff's alpha) {alpha}. A guess: {percent(found['expected_wrong'])} of the "
        f"consensus labels{of_pictures} are wrong."
    )
    for one in found["annotators"]:
        if one["answers"]:
            kinds = ", ".join(
                f"{each['true']} as {each['given']} {percent(each['share'])}" for each in one["confuses"]
            )
            echo(
                f"{printable(one['annotator'])}: {percent(one['quality'])} right ({percent(one['low'])} to "
                f"{percent(one['high'])}) of {plural(one['answers'], 'answer')}; {printable(kinds)}"
            )
    lowest = sorted(
        (one for one in found["classes"] if one["alpha"] is not None), key=lambda one: one["alpha"]
    )
    if lowest:
        said = ", ".join(f"{printable(one['class'])} {one['alpha']:.2f}" for one in lowest[:5])
        echo(f"Least agreement by class: {said}.")
    for one in found["dependent"]:
        names = " and ".join(printable(name) for name in one["annotators"])
        echo(
            f"{names} say the same more often than chance explains ({one['dependence']:.2f} of 1): one "
            "may copy the other."
        )
    for one in found["ask_first"]:
        whom = printable(one["ask"]) if one["ask"] else "one more annotator"
        echo(f"Ask {whom} about {printable(one['picture'])}, now {printable(one['consensus'])}.")
    if out is not None:
        root = "" if folder is None else f" --root {shlex.quote(folder)}"
        echo(
            f"Wrote {out}. Next: auditor import {shlex.quote(out)} --name NAME --label-column consensus{root}"
        )
