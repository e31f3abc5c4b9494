"""Splits: how wrong the labels of each are, what they share, and that they stay apart on the way out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from auditor.audits import worker
from auditor.audits.plan import plan_audit
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.experiments import before_after
from auditor.fiftyone_bridge import fields as fiftyone_fields
from auditor.ground.errors import ExportRefusedError, NotFoundError
from auditor.importing import imports
from auditor.outputs import export, report
from auditor.results import statements
from auditor.review import blind, decisions, drawing
from auditor.statistics.rates import splits as module
from auditor.statistics.rates.splits import shared_pictures, shared_sentence, split_reports
from auditor.statistics.rates.verified import UNSURE, Verified
from tests.auditor.conftest import Run
from tests.auditor.statistics.worlds import make_world
from tests.helpers import QUICK_OPTIONS, Digits, write_digits

NUM, NUM_TEST = 200, 60


def as_objects(names: list[str | None]) -> np.ndarray:
    return np.array(names, dtype=object)


@pytest.mark.parametrize("rows_at_once", [2, 100])
def test_split_reports__count_each_part(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    splits = as_objects(["train", "train", "train", "train", "test", "test", None])
    given = np.array([0, 1, -1, 1, 0, 1, 1])
    doubtful = np.array([True, False, True, False, True, True, True])
    probability = np.array([0.5, 0.25, np.nan, np.nan, 1.0, 0.5, 0.9])
    verified = Verified(np.array([0, 1, 4, 6]), np.array([0, 0, UNSURE, 0]))
    copies = pd.DataFrame(
        {
            "sample_id": [0, 4, 5, 1, 3, 6],
            "duplicate_group": [1, 1, 1, 2, 2, 2],
            "content_hash": ["a", "a", "b", "c", "c", "c"],
        }
    )
    shared = shared_pictures(splits, copies)
    assert shared.sample_id.tolist() == [0, 4, 5]
    train, test = split_reports(
        splits, given, probability, doubtful, found_wrong={0, 5, 6}, shared=shared, verified=verified
    )
    assert (train.name, train.num_labeled, train.num_doubtful, train.num_found) == ("train", 3, 1, 1)
    assert (test.name, test.num_labeled, test.num_doubtful, test.num_found) == ("test", 2, 2, 1)
    assert train.expected_wrong == pytest.approx(0.75)
    assert test.expected_wrong == pytest.approx(1.5)
    assert train.interval is not None
    assert test.interval is not None
    assert (train.interval.num_hits, train.interval.num_rows) == (1, 2)
    assert (test.interval.low, test.interval.high, test.interval.num_rows) == (0.0, 1.0, 1)
    # The second group's copies all stand in train, or in no split: nothing is shared there.
    assert [(one.num_copied, one.num_alike) for one in (train, test)] == [(1, 0), (1, 1)]
    assert shared_sentence([train, test]).startswith("2 samples show a picture")
    assert "1 more" in shared_sentence([train, test])


def test_split_reports__nothing_where_nothing_is_divided() -> None:
    given, nothing = np.zeros(3, dtype=int), np.zeros(3)
    for names in ([None, None, None], ["train", "train", "train"]):
        assert split_reports(as_objects(names), given, nothing, nothing > 0) == []
    assert len(split_reports(as_objects(["test", None, None]), given, nothing, nothing > 0)) == 1


def test_split_reports__intervals_cover_in_each_part() -> None:
    world = make_world(num_samples=1_500, rate=0.06)
    in_test = np.arange(1_500) >= 1_000
    worse = np.random.default_rng(0).choice(np.flatnonzero(in_test), 150, replace=False)
    world.given_labels[worse] = (world.true_labels[worse] + 1) % world.num_classes
    splits = as_objects(["test" if one else "train" for one in in_test])
    truth = {name: world.is_wrong[splits == name].mean() for name in ("train", "test")}
    assert truth["test"] > 4 * truth["train"]
    covered = []
    for seed in range(200):
        verified = world.verify(150, seed)
        found = split_reports(splits, world.given_labels, np.zeros(1_500), world.is_wrong, verified=verified)
        covered += [
            one.interval is not None and one.interval.low <= truth[one.name] <= one.interval.high
            for one in found
        ]
    assert len(covered) == 400
    assert np.mean(covered) >= 0.95


@pytest.fixture
def parted(tmp_path: Path, home: Path) -> tuple[Digits, int]:
    """Digits in train/ and test/, one picture of train copied to test, audited: (digits, audit_id)."""
    digits = write_digits(tmp_path / "source", num=NUM, num_wrong=20)
    for i in range(NUM):
        split = "test" if i >= NUM - NUM_TEST else "train"
        folder = tmp_path / "parted" / split / str(digits.given_labels[i])
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "source" / "images" / f"{i:04d}.png", folder)
    label = digits.given_labels[0]
    shutil.copy(tmp_path / f"parted/train/{label}/0000.png", tmp_path / f"parted/test/{label}/copy.png")
    imports.import_dataset(tmp_path / "parted", name="digits", image_size=16, workers=1)
    audit_id = plan_audit("digits", ["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    worker.run_audit(audit_id)
    return digits, audit_id


def test_splits__of_a_folder_from_import_to_export(
    parted: tuple[Digits, int], run: Run, tmp_path: Path
) -> None:
    _, audit_id = parted
    with session() as open_session:
        assert datasets.split_counts(open_session, 1) == {"train": NUM - NUM_TEST, "test": NUM_TEST + 1}
        audit = audits.get(open_session, audit_id)
    said = statements.statements(statements.load(audit_id))
    assert [(one.name, one.num_labeled, one.num_copied) for one in said.splits] == [
        ("train", NUM - NUM_TEST, 1),
        ("test", NUM_TEST + 1, 1),
    ]
    assert {Path(one).name for one in said.shared.filepath} == {"0000.png", "copy.png"}
    assert said.shared.is_copied.all()
    assert "also in another split" in report.report("digits")
    assert "2 samples show a picture that is also in another split" in report.report("digits")

    fields = fiftyone_fields.load("digits")
    assert fields.kinds["split"] == "str"
    assert fields.values["split"].count("test") == NUM_TEST + 1

    code, out, _ = run("suspects", "digits", "--split", "test", "--json")
    listed = json.loads(out)
    assert code == 0
    assert listed["total"] == NUM_TEST + 1
    assert all("test/" in one["filepath"] for one in listed["suspects"])
    ranks = statements.suspects(audit, top=NUM + 1).page.set_index("sample_id")["rank"]
    assert [ranks[one["sample_id"]] for one in listed["suspects"]] == sorted(
        ranks[one["sample_id"]] for one in listed["suspects"]
    )
    code, _, err = run("suspects", "digits", "--split", "dev")
    assert code == 1
    assert "no split 'dev'; its splits are train, test" in err
    with pytest.raises(NotFoundError, match="no split"):
        statements.suspects(audit, top=1, max_fdr=0.1, split="dev")

    decisions.decide(1, 0, "relabel", label=4, reviewer="ada")
    export.export_tree("digits", tmp_path / "tree")
    files = [path.relative_to(tmp_path / "tree").parts for path in (tmp_path / "tree").rglob("*.png")]
    assert sorted(parts[0] for parts in files) == ["test"] * (NUM_TEST + 1) + ["train"] * (NUM - NUM_TEST)
    again = imports.import_dataset(tmp_path / "tree", name="again", image_size=16, workers=1)
    with session() as open_session:
        assert datasets.split_counts(open_session, again.dataset_id) == {
            "train": NUM - NUM_TEST,
            "test": NUM_TEST + 1,
        }
        before, after = (datasets.class_counts(open_session, one) for one in (1, again.dataset_id))
    assert after[4] == before[4] + 1


@pytest.mark.usefixtures("parted")
def test_before_after__trains_on_no_copy_of_what_it_is_judged_on() -> None:
    with session() as open_session:
        by_path = datasets.sample_ids_by_path(open_session, 1)
    original, copied = (
        next(i for path, i in by_path.items() if path.endswith(name)) for name in ("0000.png", "copy.png")
    )
    other = next(i for path, i in by_path.items() if path.endswith("0005.png"))
    held = np.array([other, copied])
    assert set(before_after.apart_from_training(1, held)) == {original, copied, other}


def test_splits__a_promise_is_about_all_flags(parted: tuple[Digits, int]) -> None:
    digits, audit_id = parted
    draw = drawing.draw("digits", 100)
    with session() as open_session:
        rows = {row.sample_id: row for row in datasets.iterate_samples(open_session, 1)}
        audit = audits.get(open_session, audit_id)
    for sample_id in draw.sample_ids:
        name = Path(rows[sample_id].filepath).stem
        true = digits.true_labels[0 if name == "copy" else int(name)]
        blind.record(draw.id, sample_id, "label", label=int(true), reviewer="ada")
    everything = statements.suspects(audit, top=NUM, max_fdr=0.5)
    parts = {name: statements.suspects(audit, top=NUM, max_fdr=0.5, split=name) for name in ("train", "test")}
    assert everything.total
    assert sum(one.total for one in parts.values()) == everything.total
    for name, one in parts.items():
        assert one.total == len(one.page)
        assert f"{one.total:,} of them are in {name}; nothing is promised about these alone" in one.statement


@pytest.mark.usefixtures("home")
def test_export_tree__refuses_what_would_mix_splits_and_classes(tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "source", num=40, num_wrong=4)
    table = pd.read_csv(digits.table)
    table["split"] = np.where(np.arange(len(table)) % 2, "train", "")
    table.to_csv(digits.table, index=False)
    imports.import_dataset(digits.table, name="digits", image_size=16, workers=1)
    with pytest.raises(ExportRefusedError, match=f"{len(table) // 2} samples are in no split"):
        export.export_tree("digits", tmp_path / "tree")
    table["split"] = "fold/1"
    table.to_csv(digits.table, index=False)
    imports.import_dataset(digits.table, name="folds", image_size=16, workers=1)
    with pytest.raises(ExportRefusedError, match="Split 'fold/1' cannot be the name of a folder"):
        export.export_tree("folds", tmp_path / "tree")
    assert not list(tmp_path.glob("*tree*"))
