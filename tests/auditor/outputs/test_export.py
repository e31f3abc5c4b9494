"""What comes out: every row in order, the user's columns untouched, formulas quoted, files whole or absent."""

from __future__ import annotations

import csv
import os
import tempfile
import tracemalloc
import zipfile
from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from auditor import columns
from auditor.catalog import reviews
from auditor.catalog.db import session
from auditor.ground.errors import ExportRefusedError, NotFoundError
from auditor.ground.tables import quoted, read_table, unquoted
from auditor.importing import imports
from auditor.outputs import export
from auditor.results import settle, statements
from auditor.review import decision_files, decisions
from tests.auditor.sample_pictures import write_folder
from tests.helpers import Digits, verify_truthfully, write_digits


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_export__one_row_a_sample_in_order_with_all_columns(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    summary = export.export_table("digits", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert [row["filepath"] for row in rows] == [f"images/{i:04d}.png" for i in range(300)]
    assert [row["given_label"] for row in rows] == [str(label) for label in digits.given_labels]
    assert {row["action"] for row in rows} == {"keep"}
    assert list(rows[0]) == ["label", "batch", *columns.names()]
    assert (summary.num_rows, summary.num_keep) == (300, 300)


def test_export__users_columns_come_back_and_formulas_are_quoted(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    export.export_table("digits", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert [row["batch"] for row in rows[:4]] == ["'=lot0", "'=lot1", "'=lot2", "'=lot0"]


def test_export__blind_verdicts_are_decisions_too(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    draw = verify_truthfully(digits, 40)
    summary = export.export_table("digits", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    for sample_id in draw.sample_ids:
        assert rows[sample_id]["cleaned_label"] == str(digits.true_labels[sample_id])
        assert rows[sample_id]["reviewer"] == "ada"
    assert summary.num_by_people == summary.num_relabel == digits.is_wrong[draw.sample_ids].sum() > 0


def test_export__policy_reviewed_changes_only_what_people_decided(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    decisions.decide(1, 0, "relabel", label=4, reviewer="ada")
    decisions.decide(1, 1, "exclude", reviewer="ada")
    decisions.decide(1, 2, "multiple", labels=[1, 2], reviewer="ada")
    decisions.decide(1, 3, "unsure", reviewer="ada")
    summary = export.export_table("digits", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert [row["action"] for row in rows[:4]] == ["relabel", "exclude", "exclude", "keep"]
    assert [row["cleaned_label"] for row in rows[:3]] == ["4", "", ""]
    assert rows[2]["review_labels"] == "1|2"
    assert (summary.num_relabel, summary.num_exclude, summary.num_by_people) == (1, 2, 3)


def test_export__policy_auto_takes_what_is_promised_and_people_come_first(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 150)
    settle.settle(audit_id)
    automatic = export.export_table("digits", tmp_path / "auto.csv", policy="auto", max_fdr=0.5)
    assert automatic.num_automatic > 0
    changed = [int(row["sample_id"]) for row in read(tmp_path / "auto.csv") if row["action"] == "relabel"]
    decisions.decide(1, changed[0], "keep", reviewer="ada")
    export.export_table("digits", tmp_path / "again.csv", policy="auto", max_fdr=0.5)
    assert read(tmp_path / "again.csv")[changed[0]]["action"] == "keep"


def test_export__a_promise_stands_while_people_review_part_of_its_list(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 150)
    settle.settle(audit_id)

    def listed() -> tuple[list[int], list[int], int]:
        standing = statements.load(audit_id)
        flags = np.flatnonzero(statements.promises(standing, levels=(0.5,))[0.5].flags).tolist()
        changes = np.flatnonzero(statements.promise_changes(standing, 0.5).flags).tolist()
        return flags, changes, statements.suspects(standing.audit, top=300, max_fdr=0.5).total

    flags, changes, total = listed()
    assert (len(flags), total) == (total, len(flags))
    for i in changes[: len(changes) // 2]:
        label = int(digits.true_labels[i])
        decisions.decide(1, i, "relabel" if digits.is_wrong[i] else "keep", label=label, reviewer="ada")
    assert listed() == (flags, changes, total)
    summary = export.export_table("digits", tmp_path / "auto.csv", policy="auto", max_fdr=0.5)
    assert summary.num_automatic == len(changes) - len(changes) // 2 > 0
    alone, all_pairs = (
        {(given, cleaned): number for given, cleaned, number in pairs}
        for pairs in (summary.automatic_pairs, summary.pairs)
    )
    assert sum(alone.values()) == summary.num_automatic < sum(all_pairs.values())
    assert all(number <= all_pairs[pair] for pair, number in alone.items())
    said = f"about {len(changes)} changes as a whole, of which people decided on {len(changes) // 2}"
    assert said in summary.sentence


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "auto"}, "needs a bound on the false-discovery rate"),
        (
            {"policy": "auto", "max_fdr": 0.1},
            "Nothing can be promised yet.*Nothing was written",
        ),
        ({"policy": "all"}, "There is no policy 'all'"),
    ],
)
def test_export__refuses(audited: tuple[Digits, int], tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(ExportRefusedError, match=message):
        export.export_table("digits", tmp_path / "out.csv", **options)
    assert list(tmp_path.glob("*.csv")) == []


def test_export__never_over_an_existing_file(audited: tuple[Digits, int], tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(ExportRefusedError, match="exists; choose another name, or overwrite it"):
        export.export_table("digits", out)
    assert out.read_text() == "mine"
    export.export_table("digits", out, force=True)
    assert len(read(out)) == 300


def test_export__an_error_half_way_leaves_the_old_file(
    audited: tuple[Digits, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine")
    monkeypatch.setattr(export, "quoted", lambda text: text if text != "images/0100.png" else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export.export_table("digits", out, force=True)
    assert out.read_text() == "mine"
    assert os.listdir(tmp_path).count("out.csv") == 1
    assert not list(tmp_path.glob(".*writing"))


def test_export__scores_are_taken_batch_by_batch(
    audited: tuple[Digits, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export.export_table("digits", tmp_path / "whole.csv")
    monkeypatch.setattr(export, "BATCH_ROWS", 7)
    export.export_table("digits", tmp_path / "batches.csv")
    assert (tmp_path / "batches.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_scored__holds_one_batch_at_a_time_in_memory() -> None:
    count = 10 * export.BATCH_ROWS
    numbers = np.linspace(0, 1, count)
    table = pd.DataFrame(
        dict.fromkeys(["trust_score", "suggested_probability", "error_probability"], numbers)
        | dict.fromkeys(["rank", "suggested_label"], np.arange(count) + 1000)
        | {"is_label_issue": numbers > 0.5}
    )
    tracemalloc.start()
    last = deque(export._scored(table), maxlen=1)[0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last["suggested_label"] == count + 999
    assert peak < 400 * export.BATCH_ROWS + 2**20, f"{peak / 2**20:.1f} MB"


def test_export__parquet_has_types(audited: tuple[Digits, int], tmp_path: Path) -> None:
    export.export_table("digits", tmp_path / "out.parquet")
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert table.trust_score.dtype == "float32"
    assert table.batch[0] == "=lot0"  # nothing runs formulas in Parquet, so nothing is quoted
    assert len(table) == 300


def test_export_tree__a_folder_a_class_without_the_excluded(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    decisions.decide(1, 0, "exclude", reviewer="ada")
    export.export_tree("digits", tmp_path / "tree")
    files = list((tmp_path / "tree").rglob("*.png"))
    assert len(files) == 299
    assert {path.parent.name for path in files} == {str(label) for label in range(10)}
    some = next(path for path in files if path.name == "0005.png")
    assert some.parent.name == str(digits.given_labels[5])
    export.export_zip("digits", tmp_path / "tree.zip")
    with zipfile.ZipFile(tmp_path / "tree.zip") as packed:
        names = [name for name in packed.namelist() if name.endswith(".png")]
        assert sorted(names) == sorted(str(path.relative_to(tmp_path / "tree")) for path in files)
        assert packed.read(f"{some.parent.name}/0005.png") == some.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if "packing" in path.name] == []


def write_clashing(folder: Path) -> Path:
    """A folder set in which both names that an export would give sample 2 below ``x`` are taken."""
    for number, name in enumerate(["x/a-2.png", "x/a.png", "y/a.png", "y/b.png"]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 60 * number).save(folder / name)
    return folder


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.png"))}


def test_export_tree__a_name_that_is_taken_twice_never_changes_the_original(
    home: Path, tmp_path: Path
) -> None:
    source = write_clashing(tmp_path / "source")
    before = bytes_below(source)
    imports.import_dataset(source, name="clash", workers=1)
    decisions.decide(1, 2, "relabel", label=0, reviewer="ada")
    export.export_tree("clash", tmp_path / "tree")
    assert bytes_below(source) == before
    moved = before["y/a.png"]
    kept = {name: data for name, data in before.items() if name != "y/a.png"}
    assert bytes_below(tmp_path / "tree") == kept | {"x/a-2-2.png": moved}


def test_export_tree__on_another_disk_is_made_of_copies(home: Path, tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system at /dev/shm")
    source = write_clashing(tmp_path / "source")
    imports.import_dataset(source, name="clash", workers=1)
    with tempfile.TemporaryDirectory(dir=other) as folder:
        export.export_tree("clash", Path(folder) / "tree")
        assert bytes_below(Path(folder) / "tree") == bytes_below(source)
        copies = [path.stat() for path in (Path(folder) / "tree").rglob("*.png")]
    assert {copy.st_nlink for copy in copies} == {1}
    assert sorted(copy.st_mtime for copy in copies) == sorted(
        path.stat().st_mtime for path in source.rglob("*.png")
    )


def test_import_of_an_export__reproduces_the_reviews(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    decisions.decide(1, 0, "relabel", label=4, reviewer="ada")
    decisions.decide(1, 1, "exclude", reviewer="bob")
    decisions.decide(1, 2, "multiple", labels=[1, 2], reviewer="ada")
    decisions.decide_many(1, [(3, "relabel", int((digits.given_labels[3] + 1) % 10))], reviewer="bob")
    out = digits.table.parent / "cleaned.csv"
    export.export_table("digits", out, force=True)
    report = imports.import_dataset(out, name="again", image_size=16, workers=1)
    with session() as open_session:
        before, after = reviews.decisions(open_session, 1), reviews.decisions(open_session, report.dataset_id)
    assert after.keys() == before.keys()
    for sample_id, row in before.items():
        other = after[sample_id]
        assert (row.decision, row.label, row.labels) == (other.decision, other.label, other.labels)
        assert (row.reviewer, row.created_at) == (other.reviewer, other.created_at)
    export.export_table("again", tmp_path / "second.csv")
    kept = ("filepath", "given_label", "cleaned_label", "action", "review_decision", "reviewer", "batch")
    kept += ("review_kind",)
    first, second = read(out), read(tmp_path / "second.csv")
    assert [row["review_kind"] for row in second[:5]] == ["suspect", "suspect", "suspect", "suspect", ""]
    assert [[row[name] for name in kept] for row in first] == [[row[name] for name in kept] for row in second]


def test_apply_file__takes_an_export_back(audited: tuple[Digits, int], tmp_path: Path) -> None:
    decisions.decide(1, 0, "relabel", label=4, reviewer="ada")
    export.export_table("digits", tmp_path / "out.csv")
    decisions.undo_last(1, "ada")
    assert decision_files.apply_file("digits", tmp_path / "out.csv")["relabel"] == 1


@pytest.mark.parametrize("text", ["=cmd()", "+1 (a)", "-x", "@a", "'=a", "''=a", "'a", "plain", "-1.5", ""])
def test_quoted__is_undone_exactly(text: str) -> None:
    assert unquoted(quoted(text)) == text


def test_quoted__numbers_stay_numbers() -> None:
    assert quoted("-1.5") == "-1.5"
    assert quoted("=1+1") == "'=1+1"
    for sign in "\uff1d\uff0b\uff0d\uff20":  # full-width ones
        assert quoted(f"{sign}1+1") == f"'{sign}1+1"
        assert unquoted(f"'{sign}1+1") == f"{sign}1+1"


HEADER = ["filepath", "label", "action", "reviewer", "sample_id", "source_action", "cross_entropy_trust"]


def write_colliding(folder: Path, suffix: str) -> tuple[Path, list[list[str]]]:
    """A table of 20 digits whose own columns are named like ours; with its rows."""
    write_digits(folder, num=20, num_wrong=2)
    rows = [[f"images/{i:04d}.png", str(i % 3), f"=do{i}", "eve", f"A-{i}", "x", "high"] for i in range(20)]
    path = folder / f"mine{suffix}"
    frame = pd.DataFrame(rows, columns=HEADER)
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",", index=False)
    return path, rows


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_export__users_columns_named_like_ours_are_kept_beside_them(
    home: Path, tmp_path: Path, suffix: str
) -> None:
    source, rows = write_colliding(tmp_path / "set", suffix)
    kept = ["label", "source_source_action", "source_reviewer", "source_sample_id", "source_action"]
    kept += ["source_cross_entropy_trust"]
    name, read_from = "first", source
    for again in ("second", "third"):
        # The third comes from an export of an export: the names stay as they are.
        report = imports.import_dataset(read_from, name=name, image_size=8, workers=1)
        decisions.decide(report.dataset_id, 3, "exclude", reviewer="ada")
        out = source.parent / f"{again}{suffix}"
        export.export_table(name, out)
        table = read_table(out)
        cells = table.map(unquoted) if suffix != ".parquet" else table
        assert list(table.columns) == [*kept, *columns.names()]
        assert cells[kept].to_numpy().tolist() == [row[1:] for row in rows]
        assert cells.action.tolist() == ["keep"] * 3 + ["exclude"] + ["keep"] * 16
        assert (cells.reviewer[3], cells.sample_id[3]) == ("ada", "3")
        name, read_from = again, out


def test_import__says_which_columns_it_took(home: Path, tmp_path: Path) -> None:
    write_digits(tmp_path / "set", num=20, num_wrong=2)
    cells = ["a,b,c", "d,e,f"]
    lines = ["filepath,label,given_label,Class"] + [f"images/{i:04d}.png,{cells[i % 2]}" for i in range(20)]
    (tmp_path / "set" / "both.csv").write_text("\n".join(lines) + "\n")
    report = imports.import_dataset(tmp_path / "set" / "both.csv", name="both", image_size=8, workers=1)
    assert report.notes[0] == (
        "Images from the column 'filepath', labels from the column 'given_label'. "
        "Not used: label, Class; name another column of labels to use it."
    )
    path = tmp_path / "set" / "out.csv"
    export.export_table("both", path)
    assert read(path)[0]["label"] == "a"
    report = imports.import_dataset(
        tmp_path / "set" / "both.csv", name="other", label_column="label", image_size=8, workers=1
    )
    export.export_table("other", path, force=True)
    assert [read(path)[0][name] for name in ("label", "source_given_label", "given_label")] == ["a", "b", "a"]


@pytest.mark.parametrize("links", [False, True])
def test_export_tree__copies_nothing_from_outside_the_root(home: Path, tmp_path: Path, links: bool) -> None:
    root = write_folder(tmp_path / "set", 10)
    imports.import_dataset(root, name="few", image_size=8)
    victim = min(root.rglob("*.png"))
    other = tmp_path / "private.png"
    victim.rename(other)  # the same picture: that it is another cannot be why
    victim.symlink_to(other)
    with pytest.raises(NotFoundError, match="is a link to a place outside"):
        export.export_tree("few", tmp_path / "out", links=links)
    assert not (tmp_path / "out").exists()
