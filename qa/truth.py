"""Simulated owners: ``python -m qa.truth --seeds 200`` (``--features FOLDER`` as ``benchmarks.ranking`` has it).

Six datasets whose true labels are known are audited once. An owner gets a copy of one and does what people do, in
mixed order: reviews, settles cards, takes back, draws, judges, lets the verdicts count, audits again. Everybody's
verdicts are right. After every step every surface is read: the command line, the Python API, the app's readers and
routes, the report, the table that is exported, and the fields for FiftyOne. They must say the same, and what they
say must be true: nothing decided is lost or overruled, promises stand, intervals lie inside what is known, never
widen with looks of the same kind, and cover the truth as often as they say.

What came of each owner is kept in ``build/truth.jsonl`` and counted in ``benchmarks/results/truth.json``.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from auditor import api
from auditor.catalog import db
from auditor.fiftyone_bridge import fields
from auditor.ground.errors import ExportRefusedError, VerificationError
from auditor.ground.vocabulary import DISPUTED, EXCLUDE, KEEP, LABEL, RELABEL
from auditor.outputs import export, report
from auditor.results import progress, settle, statements
from auditor.review import blind, decisions, drawing
from benchmarks.backbones import commit
from benchmarks.import_speed import device

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "truth.json"
LOG = ROOT / "build" / "truth.jsonl"
ENGINES = ["noise_model", "neighbours"]
STEPS = 9
PEOPLE = ("ann", "bob")
RATES = (0.05, 0.2)


@dataclass(frozen=True, eq=False)
class World:
    """Features, given and true labels of a dataset."""

    features: NDArray[np.float32]
    given: NDArray[np.int64]
    truth: NDArray[np.int64]

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """(N,) bool."""
        return self.given != self.truth


def worlds(folder: Path | None) -> dict[str, Callable[[], World]]:
    """By name, how to make each; photos with the features of a network where ``folder`` has them."""
    return {
        "digits": lambda: _digits(450, 0.1),
        "photos": lambda: _photos(folder),
        "clean": lambda: _clusters(180, 3, 0.0, spread=0.1),
        "twelve": lambda: _clusters(12, 3, 0.1, spread=0.1),
        "noisy": lambda: _digits(450, 0.4),
        "many classes": lambda: _clusters(1_500, 300, 0.1, spread=0.35),
    }


def _digits(num: int, rate: float) -> World:
    pixels, truth = load_digits(return_X_y=True)
    return _planted(pixels[:num].astype(np.float32), truth[:num].astype(np.int64), rate)


def _photos(folder: Path | None) -> World:
    """Of a network; else of digits that are hard to see, which behave like them."""
    if folder is not None:
        with np.load(folder / "photos 341, draw 0.npz") as kept:
            return World(kept["features"], kept["confused"], kept["truth"])
    pixels, truth = load_digits(return_X_y=True)
    blurred = pixels[600:941] + np.random.default_rng(1).normal(0, 8, (341, 64))
    return _planted(blurred.astype(np.float32), truth[600:941].astype(np.int64), 0.114)


def _clusters(num: int, num_classes: int, rate: float, *, spread: float) -> World:
    random = np.random.default_rng(2)
    truth = np.arange(num) % num_classes
    centres = random.normal(size=(num_classes, 24))
    seen = centres[truth] + spread * random.normal(size=(num, 24))
    return _planted(seen.astype(np.float32), truth, rate)


def _planted(features: NDArray[np.float32], truth: NDArray[np.int64], rate: float) -> World:
    random, given = np.random.default_rng(3), truth.copy()
    num_classes = int(truth.max()) + 1
    at = random.permutation(len(truth))[: round(rate * len(truth))]
    given[at] = (truth[at] + random.integers(1, num_classes, len(at))) % num_classes
    return World(features, given, truth)


def build(name: str, world: World, folder: Path) -> Path:
    """A home with the dataset "it", audited; the pictures lie beside it."""
    images, home = folder / "images", folder / "home"
    images.mkdir(parents=True)
    random = np.random.default_rng(4)
    rows = []
    for i, label in enumerate(world.given):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(images / f"{i}.png")
        rows.append([f"images/{i}.png", f"c{label:03d}"])
    with (folder / "it.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["filepath", "label"], *rows])
    at_home(home)
    classes = "\n".join(f"c{k:03d}" for k in range(int(world.truth.max()) + 1))
    (folder / "classes.txt").write_text(classes + "\n")
    api.import_dataset(
        folder / "it.csv", name="it", image_size=8, workers=1, class_names=folder / "classes.txt"
    )
    api.open_dataset("it").audit(ENGINES, features=world.features, map_method="pca", progress=False)
    db.close_all()
    return home


def at_home(home: Path) -> None:
    """Everything that follows happens in this home."""
    db.close_all()
    os.environ["AUDITOR_HOME"] = str(home)


class ContradictionError(AssertionError):
    """Two surfaces differ, or one says what is not true."""


def same(what: str, *values: Any) -> None:
    """All values are equal."""
    if any(one != values[0] for one in values[1:]):
        raise ContradictionError(f"{what}: {' | '.join(map(str, values))}"[:600])


def holds(what: str, truth: object) -> None:
    """It is so."""
    if not truth:
        raise ContradictionError(what)


@dataclass
class Ledger:
    """What the owner's people did, kept apart from the product: by sample, what an export must say of it."""

    looks: dict[int, tuple[str, tuple[str, int]]] = field(default_factory=dict)
    """(who, (action, class)) of the latest look at a suspect."""
    blind: dict[int, tuple[str, tuple[str, int]]] = field(default_factory=dict)
    stack: list[tuple[str, dict[int, Any]]] = field(default_factory=list)
    """(who, looks before) of every action on the bench, to be taken back."""

    def cleaned(self, given: NDArray[np.int64]) -> dict[int, int]:
        """By sample that somebody decided, its cleaned class; -1 = excluded."""
        found: dict[int, int] = {}
        for sample in {*self.looks, *self.blind}:
            action, label = (self.looks.get(sample) or self.blind[sample])[1]
            found[sample] = {KEEP: int(given[sample]), EXCLUDE: -1}.get(action, label)
        return found


@dataclass
class Owner:
    """A home, who works in it, and what they know."""

    world: World
    random: np.random.Generator
    audit_id: int = 1
    ledger: Ledger = field(default_factory=Ledger)
    promised: dict[float, set[int]] = field(default_factory=dict)
    interval: tuple[float, float] | None = None
    told: list[tuple[bool, bool]] = field(default_factory=list)
    """Of every state with a random sample: the rate's interval and that of the errors left cover the truth."""
    kept: dict[float, list[float]] = field(default_factory=dict)
    """By level, the false share of each list that was promised."""
    done: list[str] = field(default_factory=list)

    # What people do

    def review(self) -> None:
        """Look at the first suspects that nobody decided, or at any labels."""
        who, num = self._who(), int(self.random.integers(1, 25))
        drawn = {sample for _, sample in blind.pending(1)}
        with db.session() as session:
            from auditor.catalog import audits, scores

            audit = audits.get(session, self.audit_id)
            where = scores.SuspectFilter(only_undecided=True)
            page = scores.page(session, audit, where, limit=num)
        for sample in page.sample_id.tolist():
            self._before(who)
            if sample not in drawn and self.random.random() < 0.05:
                said = (EXCLUDE, -1)
                decisions.decide(1, sample, EXCLUDE, reviewer=who, audit_id=self.audit_id)
            else:
                label = int(self.world.truth[sample])
                said = (RELABEL if self.world.is_wrong[sample] else KEEP, label)
                decisions.decide(
                    1, sample, said[0], label=label, reviewer=who, audit_id=self.audit_id
                ) if said[0] == RELABEL else decisions.decide(
                    1, sample, KEEP, reviewer=who, audit_id=self.audit_id
                )
            self.ledger.looks[sample] = (who, said)

    def settle_card(self) -> None:
        """Take the right suggestions of the first suspects that nobody decided, in one step, as a card does."""
        who = self._who()
        with db.session() as session:
            from auditor.catalog import audits, scores

            audit = audits.get(session, self.audit_id)
            where = scores.SuspectFilter(only_undecided=True)
            page = scores.page(session, audit, where, limit=int(self.random.integers(2, 12)))
        page = page[page.suggested_label == self.world.truth[page.sample_id]]  # the others are unticked
        page = page[page.suggested_label != page.given_label]
        offered = dict(zip(page.sample_id.tolist(), page.suggested_label.tolist(), strict=True))
        if offered:
            self._before(who)
            rows = [(sample, RELABEL, label) for sample, label in offered.items()]
            decisions.decide_many(1, rows, reviewer=who, audit_id=self.audit_id)
            self.ledger.looks |= {sample: (who, (RELABEL, label)) for sample, label in offered.items()}

    def take_back(self) -> None:
        """Undo the latest action of whoever acted last."""
        if not self.ledger.stack:
            return
        who, self.interval = self.ledger.stack[-1][0], None  # less is known again
        decisions.undo_last(1, who)
        _, self.ledger.looks = self.ledger.stack.pop()

    def draw(self) -> None:
        """Draw labels at random."""
        left = drawing.num_left(1)
        size = min(left, int(self.random.choice([5, 20, 60, 100])))
        purpose = "promises" if size >= 60 and self.random.random() < 0.5 else "rate"
        if size:
            with suppress(VerificationError):  # more wait than are left
                drawing.draw("it", size, seed=int(self.random.integers(10**6)), purpose=purpose)

    def judge(self) -> None:
        """Judge all or some of what was drawn, blindly."""
        waiting = blind.pending(1)
        if self.random.random() < 0.3:
            waiting = waiting[: len(waiting) // 2]
        who = self._who()
        for draw_id, sample in waiting:
            label = int(self.world.truth[sample])
            blind.record(draw_id, sample, LABEL, label=label, reviewer=who)
            said = (RELABEL if self.world.is_wrong[sample] else KEEP, label)
            self.ledger.blind[sample] = (who, said)
        if waiting:
            # What was decided before a verdict is no longer what counts: it cannot come back by itself.
            self.ledger.stack.clear()

    def settle(self) -> None:
        """Let the verdicts count."""
        settle.settle(self.audit_id)
        self.promised.clear()

    def audit_again(self) -> None:
        """The same engines, told what people decided."""
        self.audit_id = api.open_dataset("it").audit(
            ENGINES, features=self.world.features, map_method="pca", progress=False
        )
        self.promised.clear()

    def _who(self) -> str:
        return str(self.random.choice(PEOPLE))

    def _before(self, who: str) -> None:
        self.ledger.stack.append((who, dict(self.ledger.looks)))

    # What must be true of every surface

    def check(self) -> None:
        """Read everything."""
        dataset = api.open_dataset("it")
        standing = statements.load(self.audit_id)
        said = statements.statements(standing)
        cleaned = self._decided_stays(dataset)
        self._suspects(dataset, standing)
        self._rates(dataset, standing, said)
        self._promises(dataset, standing, cleaned)

    def _decided_stays(self, dataset: api.Dataset) -> dict[int, int]:
        names, given = dataset.class_names, self.world.given
        cleaned = self.ledger.cleaned(given)
        with tempfile.TemporaryDirectory() as folder:
            summary = dataset.export(Path(folder) / "it.csv", progress=False)
            with (Path(folder) / "it.csv").open(newline="") as file:
                table = list(csv.DictReader(file))
        expected = [
            "" if cleaned.get(i) == -1 else names[cleaned.get(i, int(label))] for i, label in enumerate(given)
        ]
        same("cleaned labels, ledger and table", expected, [row["cleaned_label"] for row in table])
        previewed, _ = export.preview_export("it")
        same(
            "counts of the export",
            (summary.num_keep, summary.num_relabel, summary.num_exclude),
            (previewed.num_keep, previewed.num_relabel, previewed.num_exclude),
            tuple(Counter(row["action"] for row in table)[one] for one in (KEEP, RELABEL, EXCLUDE)),
        )
        columns = fields.load("it")
        same("cleaned labels for FiftyOne", [one or None for one in expected], columns.cleaned)
        listed = dataset.suspects().set_index("sample_id").decision
        held = {int(str(i)) for i, one in listed.items() if isinstance(one, str)}
        same("decided samples", held, set(decisions.outcomes(1)), set(cleaned))
        same(
            "nothing is in dispute where all agree",
            0,
            summary.num_disputed,
            sum(one.decision == DISPUTED for one in decisions.outcomes(1).values()),
        )
        return cleaned

    def _suspects(self, dataset: api.Dataset, standing: statements.Standing) -> None:
        from app.server import bench

        told = command("suspects", "it", "--top", "100000")
        issues = dataset.scores().is_label_issue.astype(bool)
        columns = fields.load("it")
        flagged = set(np.flatnonzero(issues).tolist())
        sizes = bench.queue_size({"audit": self.audit_id, "where": {"issues": True}})
        same(
            "suspects",
            len(flagged),
            standing.audit.summary.num_label_issues,
            sum(columns.values["is_label_issue"]),
            int(dataset.suspects().is_label_issue.sum()),
            sizes["whole"],
            int(standing.is_doubtful.sum()),
        )
        if not self.world.is_wrong.any():
            same("suspects of a clean set", 0, len(flagged))
        order = [row["sample_id"] for row in told["suspects"]]
        same("order of the list", order, dataset.suspects().sample_id.tolist())

    def _rates(
        self, dataset: api.Dataset, standing: statements.Standing, said: statements.Statements
    ) -> None:
        from app.session import readers

        rate, left, wrong = said.noise_rate, said.errors_left, self.world.is_wrong
        status = readers.status(dataset.table)
        assert status.noise is not None
        assert status.left is not None
        told = command("status", "it")
        page = report.report("it")
        same("rate", rate.sentence, dataset.noise_rate().sentence, status.noise.sentence)
        same(
            "errors left",
            (left.low, left.point, left.high),
            (status.left.low, status.left.point, status.left.high),
        )
        shown = progress.progress(1, self.audit_id)
        same("found", left.found, shown.found, status.found, told["found"])
        holds(f"the report says the rate: {rate.sentence}", html.escape(rate.sentence) in page)
        seen = {*self.ledger.looks, *self.ledger.blind}
        right = {i for i in seen if (self.ledger.looks.get(i) or self.ledger.blind[i])[1][0] == KEEP}
        same("found wrong by the ledger", len(seen - right), left.found)
        num, found = len(wrong), left.found
        holds(
            f"rate in order: {rate.low} {rate.point} {rate.high}",
            0 <= rate.low <= rate.point <= rate.high <= 1,
        )
        holds(f"left in order: {left.low} {left.point} {left.high}", 0 <= left.low <= left.point <= left.high)
        if rate.kind == "interval":
            holds(
                f"rate at least what was found: {rate.low} of {num}, {found}", rate.low * num >= found - 1e-6
            )
            holds(f"rate at most what is not right: {rate.high}", rate.high * num <= num - len(right) + 1e-6)
            if self.interval is not None:
                low, high = self.interval
                holds(
                    f"no wider: {low} to {high}, then {rate.low} to {rate.high}",
                    rate.low >= low - 1e-9 and rate.high <= high + 1e-9,
                )
            self.interval = (rate.low, rate.high)
            more = statements.what_more_buys(standing, 200)
            holds(
                f"forecast {more.rate_low} to {more.rate_high} within {rate.low} to {rate.high}",
                more.rate_low >= rate.low - 1e-9 and more.rate_high <= rate.high + 1e-9,
            )
            excluded = sum(
                (self.ledger.looks.get(i) or self.ledger.blind[i])[1][0] == EXCLUDE and not wrong[i]
                for i in seen
            )
            truly = int(wrong.sum()) + excluded  # what people excluded counts as wrong
            self.told.append(
                (rate.low - 1e-9 <= truly / num <= rate.high + 1e-9, left.low <= truly - found <= left.high)
            )
        moves = {(one.given, one.right): one.found for one in said.moves if one.found}
        relabeled = Counter(
            (int(self.world.given[i]), (self.ledger.looks.get(i) or self.ledger.blind[i])[1][1])
            for i in seen
            if (self.ledger.looks.get(i) or self.ledger.blind[i])[1][0] == RELABEL
        )
        same("found by pair of classes", dict(relabeled), moves)

    def _promises(self, dataset: api.Dataset, standing: statements.Standing, cleaned: dict[int, int]) -> None:
        wrong = self.world.is_wrong
        for q in RATES:
            flags = set(np.flatnonzero(statements.promises(standing, levels=(q,))[q].flags).tolist())
            listed = command("suspects", "it", "--max-fdr", str(q), "--top", "100000")
            same("promised flags", flags, {row["sample_id"] for row in listed["suspects"]})
            same("promised flags, counted", len(flags), listed["total"])
            before = self.promised.get(q)
            if before is not None and blind.pending(1) == []:
                holds(
                    f"a promise stands: {len(before - flags)} gone of {len(before)}",
                    before <= flags | set(self.ledger.blind),
                )
            if flags and blind.pending(1) == []:
                if before is None:
                    self.kept.setdefault(q, []).append(float(np.mean([not wrong[i] for i in flags])))
                self.promised[q] = flags
            changes = set(np.flatnonzero(statements.promise_changes(standing, q).flags).tolist())
            with tempfile.TemporaryDirectory() as folder:
                try:
                    summary = dataset.export(Path(folder) / "a.csv", policy="auto", max_fdr=q, progress=False)
                except ExportRefusedError as refused:
                    same("export refuses what is not promised", set(), changes)
                    said = "may be flagged at this rate" in str(refused)
                    same(f"export and list of {q:g}: {refused}", bool(flags), said)
                    continue
                with (Path(folder) / "a.csv").open(newline="") as file:
                    table = list(csv.DictReader(file))
            automatic = {i for i in changes if i not in cleaned}
            same("automatic changes", len(automatic), summary.num_automatic)
            names = dataset.class_names
            for i, row in enumerate(table):
                if i in cleaned:
                    label = "" if cleaned[i] == -1 else names[cleaned[i]]
                    same(f"decided label of {i} under auto", label, row["cleaned_label"])
                elif i not in automatic:
                    same(f"label of {i} under auto", names[int(self.world.given[i])], row["cleaned_label"])


def command(*arguments: str) -> Any:
    """What ``auditor ... --json`` prints."""
    from auditor.__main__ import main

    out, before = io.StringIO(), sys.argv
    sys.argv = ["auditor", *arguments, "--json"]
    try:
        with redirect_stdout(out), suppress(SystemExit):
            main()
    finally:
        sys.argv = before
    return json.loads(out.getvalue())


def live(world: World, home: Path, seed: int, *, steps: int = STEPS, audits: bool = True) -> dict[str, Any]:
    """One owner's life in a copy of ``home``; what came of it. ``audits``: further ones too, which take longer."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "home"
        shutil.copytree(home, copied)
        at_home(copied)
        owner = Owner(world, np.random.default_rng([5, seed]))
        often = [
            owner.review,
            owner.review,
            owner.settle_card,
            owner.take_back,
            owner.draw,
            owner.judge,
            owner.judge,
        ]
        does = [*often, *often, owner.settle, owner.settle, *([owner.audit_again] if audits else [])]
        outcome = "ok"
        try:
            owner.check()
            for _ in range(steps):
                step = does[int(owner.random.integers(len(does)))]
                owner.done.append(step.__name__)
                step()
                owner.check()
        except ContradictionError as error:
            outcome = f"{error} (after {', '.join(owner.done) or 'nothing'})"
        except Exception:  # what no step may end in is one of the outcomes
            outcome = f"{traceback.format_exc()[-900:]} (after {', '.join(owner.done) or 'nothing'})"
        db.close_all()
    last = owner.told[-1] if owner.told else None
    return {
        "outcome": outcome,
        "steps": owner.done,
        "covered": last,
        "always": [all(one) for one in zip(*owner.told, strict=True)] if owner.told else None,
        "false": {str(q): shares for q, shares in owner.kept.items()},
    }


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts by world."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(row["world"] for row in rows):
        mine = [row for row in rows if row["world"] == name]
        told = [row["covered"] for row in mine if row["covered"] is not None]
        false = {str(q): [x for row in mine for x in row["false"].get(str(q), [])] for q in RATES}
        found[name] = {
            "owners": len(mine),
            "steps": sum(len(row["steps"]) for row in mine),
            "contradictions": sum(row["outcome"] != "ok" for row in mine),
            "intervals": len(told),
            "rate covered": sum(one[0] for one in told),
            "errors left covered": sum(one[1] for one in told),
            "false share of lists": {
                q: {"lists": len(shares), "mean": round(float(np.mean(shares)), 3) if shares else None}
                for q, shares in false.items()
            },
        }
    return found


def main() -> None:
    """Let the owners live, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, help="owners in all, dealt to the worlds")
    parser.add_argument("--world", action="append", help="only of these")
    parser.add_argument("--features", type=Path, help="folder of NAME.npz")
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    given.log.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.log.read_text().splitlines()] if given.log.exists() else []
    known = {(row["world"], row["seed"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, tuple[World, Path]] = {}
        makers = {
            name: one for name, one in worlds(given.features).items() if name in (given.world or [name])
        }
        for seed in range(given.seeds):
            name = list(makers)[seed % len(makers)]
            if (name, seed) in known:
                continue
            if name not in made:
                world = makers[name]()
                made[name] = world, build(name, world, Path(folder) / name.replace(" ", "-"))
            began = time.monotonic()
            row = {"world": name, "seed": seed} | live(*made[name], seed)
            row["seconds"] = round(time.monotonic() - began, 1)
            rows.append(row)
            with given.log.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, seed, row["seconds"], row["outcome"], flush=True)
    found = {"commit": commit(), "device": device()["cpu"], "worlds": summed(rows)}
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    if any(row["outcome"] != "ok" for row in rows):
        raise SystemExit("There are contradictions.")


if __name__ == "__main__":
    main()
