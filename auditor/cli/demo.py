"""The demo: real handwritten digits with label errors that the demo knows and the auditor does not.

1,797 scikit-learn digits are written out as PNG files with a CSV. A tenth of the labels is replaced by the second
most likely class of a quick classifier, because that is how people err. Import, audit and export then run as for
any user; a random sample is judged from the known truth instead of a person.
"""

from __future__ import annotations

import csv
import itertools
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from auditor import api
from auditor.audits import plan_audit, start_audit
from auditor.bridges import engine_bridge
from auditor.catalog import audits, datasets, reviews, scores
from auditor.catalog.db import ask
from auditor.cli import output
from auditor.ground.errors import ExportRefusedError
from auditor.ground.settings import settings
from auditor.ground.vocabulary import LEVELS
from auditor.importing import import_dataset
from auditor.outputs import export_table
from auditor.results import arrays, settle, statements
from auditor.review import blind, drawing

NAME = "digits"
PRESET = "quick"
ERROR_RATE = 0.10
NUM_VERIFIED = 200
SEED = 0
REVIEWER = "demo"
"""Who judged what the demo verified itself."""
SIDE = 16
"""The 8-pixel digits are imported at twice their size, so that every network has room."""


@dataclass(frozen=True)
class _Digits:
    source: Path
    true_labels: NDArray[np.int64]
    is_wrong: NDArray[np.bool_]


@dataclass(frozen=True)
class Figures:
    """What the demo found, for whoever keeps records."""

    dataset: str
    audit_id: int
    engines: list[str]
    num_wrong: int
    num_flags: int
    precision: float
    recall: float
    precision_at_errors: float
    noise_before: float
    noise_after: float
    seconds: dict[str, float]
    """Seconds of each step."""


def run(*, out: Path | None = None, engines: Sequence[str] | None = None, force: bool = False) -> Figures:
    """Import, audit, verify and export the digits, and say what was found and how long each step took.

    Without ``out`` the CSV lies beside the demo's images in the home.

    Raises:
        ExportRefusedError: ``out`` exists and ``force`` is not set.
        AuditFailedError: an engine could not finish.
    """
    if out is not None and out.exists() and not force:
        raise ExportRefusedError(f"{out} exists; choose another name or pass --force.")
    engine_bridge.configs(engines or [], PRESET, {})  # refuses an unknown engine before anything is imported
    watch = _Watch()
    name = _free_name()
    folder = settings().home / "demo" / name
    digits = _write_digits(folder)
    watch.lap(f"wrote {len(digits.true_labels):,} digits, {digits.is_wrong.sum()} with a wrong label")
    with output.step_progress() as progress:
        import_dataset(digits.source, name=name, image_size=SIDE, progress=progress)
    watch.lap("imported them")
    audit_id = plan_audit(name, engines, preset=PRESET, seed=SEED)
    start_audit(audit_id)
    output.follow_audit(audit_id)
    trained = arrays.engines_of(audit_id)
    watch.lap(f"audited them with {', '.join(trained)}")
    _verify(name, audit_id, digits)
    watch.lap(f"verified {NUM_VERIFIED} random samples (from the known labels, instead of a person)")
    num_flags, hits, precision_at_errors = _say_what_was_found(audit_id, digits)
    policy, max_fdr = _policy(audit_id)
    target = out or folder / "digits-cleaned.csv"
    summary = export_table(name, target, policy=policy, max_fdr=max_fdr, force=True)
    watch.lap(f"exported with --policy {policy}" + (f" --max-fdr {max_fdr}" if max_fdr else ""))
    click.echo(summary.sentence)
    after = _say_what_export_did(target, digits)
    watch.report()
    click.echo(f"The cleaned CSV: {target.resolve()}")
    num_wrong = int(digits.is_wrong.sum())
    return Figures(
        dataset=name,
        audit_id=audit_id,
        engines=trained,
        num_wrong=num_wrong,
        num_flags=num_flags,
        precision=hits / max(num_flags, 1),
        recall=hits / num_wrong,
        precision_at_errors=precision_at_errors,
        noise_before=float(digits.is_wrong.mean()),
        noise_after=after,
        seconds=dict(watch.laps),
    )


def prepare() -> None:
    """Write the digits out and import them, for a demo whose audit somebody watches in the app.

    Raises:
        ImportRefusedError: a dataset of the demo's name is there.
    """
    digits = _write_digits(settings().home / "demo" / NAME)
    import_dataset(digits.source, name=NAME, image_size=SIDE)


def _free_name() -> str:
    """``digits``, or the next number where that name holds somebody's own data or decisions.

    An earlier demo that nobody reviewed or verified, and that nothing works on, is replaced.
    """
    for name in itertools.chain([NAME], (f"{NAME}-{number}" for number in itertools.count(2))):
        if not ask(datasets.exists, name):
            return name
        dataset = ask(datasets.get, name)
        is_ours = dataset.source == str(settings().home / "demo" / name / "digits.csv")
        judged = ask(reviews.verdicts, dataset.id).values()
        is_untouched = not ask(reviews.log, dataset.id, kinds=reviews.REVIEWED) and all(
            one.reviewer == REVIEWER for one in judged
        )
        is_busy = any(
            ask(audits.state, one) in ("queued", "running") for one in ask(audits.of_dataset, dataset.id)
        )
        if is_ours and is_untouched and not is_busy:
            api.remove(name)
            return name
    raise AssertionError("there is always a next number")


def _write_digits(folder: Path) -> _Digits:
    from sklearn.datasets import load_digits  # takes most of a second to import: only where it is used
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    shutil.rmtree(folder, ignore_errors=True)
    (folder / "images").mkdir(parents=True)
    pixels, truth = load_digits(return_X_y=True)
    truth = truth.astype(np.int64)
    quick = LogisticRegression(max_iter=200)
    probs = cross_val_predict(quick, pixels / 16.0, truth, cv=3, method="predict_proba")
    labels = _second_most_likely(truth, probs)
    with (folder / "digits.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filepath", "label"])
        for i, (row, label) in enumerate(zip(pixels, labels, strict=True)):
            path = f"images/digit-{i:04d}.png"
            grey = np.clip(row.reshape(8, 8) * 16, 0, 255).astype(np.uint8)
            Image.fromarray(grey).save(folder / path)
            writer.writerow([path, str(label)])
    return _Digits(folder / "digits.csv", truth, labels != truth)


def _second_most_likely(truth: NDArray[np.int64], probs: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return labels (N,) of which the share ``ERROR_RATE`` is another class: the likeliest but the favourite of
    ``probs`` (N, K).
    """
    rows, left = np.arange(len(truth)), np.array(probs, np.float32)
    left[rows, left.argmax(axis=1)] = left[rows, truth] = -1.0
    # A stream of its own: an engine trained with the same seed must not draw the numbers that planted.
    shuffled = np.random.default_rng([SEED, 20_415]).permutation(len(truth))
    chosen = shuffled[: round(ERROR_RATE * len(truth))]
    labels = truth.copy()
    labels[chosen] = left[chosen].argmax(axis=1)
    return labels


def _say_what_was_found(audit_id: int, digits: _Digits) -> tuple[int, int, float]:
    """Returns the flags, the right ones among them, and the precision at as many flags as errors."""
    table = ask(scores.table, audit_id)
    flagged = table.is_label_issue.to_numpy(dtype=bool)
    count = int(digits.is_wrong.sum())
    first = table["rank"].to_numpy() < count
    at_cut = int((flagged & digits.is_wrong).sum())
    precision_at_errors = int((first & digits.is_wrong).sum()) / count
    click.echo(
        f"Of {count} wrong labels the audit's cut finds {at_cut} among {flagged.sum()} flags "
        f"(precision {at_cut / max(flagged.sum(), 1):.1%}, recall {at_cut / count:.1%}); "
        f"of the first {count} suspects {precision_at_errors:.1%} are wrong."
    )
    return int(flagged.sum()), at_cut, precision_at_errors


def _verify(name: str, audit_id: int, digits: _Digits) -> None:
    draw = drawing.draw(name, NUM_VERIFIED, seed=SEED)
    for sample_id in draw.sample_ids:
        label = int(digits.true_labels[sample_id])
        blind.record(draw.id, sample_id, "label", label=label, reviewer=REVIEWER)
    settle.settle(audit_id)
    standing = statements.load(audit_id)
    click.echo(statements.noise_rate(standing).sentence)
    for promise in statements.promises(standing).values():
        click.echo(f"  {promise.sentence}")


def _policy(audit_id: int) -> tuple[str, float | None]:
    """The strictest promise that carries anything, else only what people decided."""
    standing = statements.load(audit_id)
    for q in LEVELS:
        if statements.promise_changes(standing, q).is_kept:
            return "auto", q
    return "reviewed", None


def _say_what_export_did(out: Path, digits: _Digits) -> float:
    with out.open(encoding="utf-8", newline="") as file:
        cleaned = np.array([int(row["cleaned_label"]) for row in csv.DictReader(file)])
    before, after = digits.is_wrong.mean(), (cleaned != digits.true_labels).mean()
    click.echo(f"Wrong labels before: {before:.1%}, in the cleaned CSV: {after:.1%}.")
    return float(after)


class _Watch:
    """Times the steps of the demo."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self.laps: list[tuple[str, float]] = []

    def lap(self, text: str) -> None:
        """End a step."""
        now = time.monotonic()
        self.laps.append((text, now - self._last))
        self._last = now

    def report(self) -> None:
        """Print each step with its seconds."""
        for text, seconds in self.laps:
            click.echo(f"{seconds:7.1f} s  {text}")
        click.echo(f"{self._last - self._began:7.1f} s  in all")
