"""Sets of classes from each kind of source to the cleaned one, and the commands on the way."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import auditor
from auditor.catalog import datasets, reading
from auditor.catalog.db import ask
from auditor.cli.commands import cli
from auditor.ground.errors import AuditFailedError, ExportRefusedError, ImportRefusedError, ReviewError
from auditor.ground.names import Names
from auditor.ground.vocabulary import MULTILABEL
from auditor.importing.imports import import_dataset, preview_source
from auditor.labels.sets import exporting
from auditor.labels.sets.kind import KIND
from auditor.labels.sets.results import found, set_in, text_of
from auditor.review import decision_files, decisions
from tests import tagged
from tests.tagged import CLASSES, EXTRA, FORMS, JOINED, MISSING

pytestmark = pytest.mark.usefixtures("home")
SETS = [["bar", "disc"], [], ["ring"], ["disc"], ["bar", "disc", "ring"], ["bar"]]


def command(*arguments: str) -> str:
    found = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def sets_of(name: str) -> dict[str, list[str] | None]:
    """The given sets by the name of the file."""
    dataset = reading.dataset(name)
    return {
        Path(one.filepath).name: None if one.labels is None else [dataset.class_names[i] for i in one.labels]
        for one in reading.samples(dataset.id)
    }


def decide(name: str, file: str, decision: str, labels: list[str] | None = None) -> None:
    dataset = reading.dataset(name)
    sample = next(one.sample_id for one in reading.samples(dataset.id) if one.filepath.endswith(file))
    named = None if labels is None else [dataset.class_names.index(one) for one in labels]
    decisions.decide(dataset.id, sample, decision, labels=named, reviewer="anna", audit_id=1)


@pytest.mark.parametrize("form", FORMS)
def test_import__reads_sets_in_every_form_and_writes_them_again_in_it(tmp_path: Path, form: str) -> None:
    source = tagged.write_source(tmp_path / "source", form, SETS)
    assert preview_source(source, task=MULTILABEL).counts == {
        "": form in JOINED,
        "bar": 3,
        "disc": 3,
        "ring": 2,
    }
    report = import_dataset(source, name="a", task=MULTILABEL, workers=1)
    assert report.num_classes == 3
    expected: dict[str, list[str] | None] = {f"{i}.png": names for i, names in enumerate(SETS)}
    if form in JOINED:
        expected["1.png"] = None  # an empty cell is no label
    if form == "folder":
        del expected["1.png"]
    assert sets_of("a") == expected
    decide("a", "0.png", "relabel", ["ring", "bar"])
    decide("a", "2.png", "exclude")
    decide("a", "3.png", "keep")
    decide("a", "5.png", "relabel", [])
    out = tmp_path / source.name if form != "folder" else tmp_path / "cleaned"
    summary = KIND.export("a", out, as_source=True)
    assert (summary.num_relabel, summary.num_exclude) == (2, 1)
    root = source.parent if form not in ("folder", "parquet") else None
    import_dataset(out, name="b", task=MULTILABEL, workers=1, root=root)
    # A table with a row a label gets an empty list; else who has no way to say it says no label.
    expected |= {"0.png": ["bar", "ring"], "5.png": None if form in JOINED and form != "rows" else []}
    del expected["2.png"]
    if form == "folder":
        del expected["5.png"]
        assert "1 picture without a class are in no folder" in summary.sentence.replace("pictures", "picture")
    assert sets_of("b") == expected


def test_import__tells_lists_of_one_and_none_from_no_label(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path, "|", [["bar"], ["disc", "ring"], ["bar"], ["disc"]])
    source.write_text(source.read_text().replace('2.png,"bar"', "2.png,[]").replace('3.png,"disc"', "3.png,"))
    report = import_dataset(source, name="a", task=MULTILABEL, workers=1)
    assert sets_of("a") == {"0.png": ["bar"], "1.png": ["disc", "ring"], "2.png": [], "3.png": None}
    assert report.num_unlabeled == 1
    assert report.notes[1:] == ["1 of 3 labeled pictures have several labels.", "Names are parted at '|'."]


def test_source__with_a_row_a_label_keeps_its_rows(tmp_path: Path) -> None:
    """Rows of labels that go are gone, new ones stand behind the picture's others, with its other cells."""
    sets = [["bar", "disc"], ["ring"], ["bar", "ring"], ["disc"]]
    source = tagged.write_source(tmp_path, "rows", sets)
    source.write_text(source.read_text().replace("2.png,ring,n", '2.png,"ring",second'))
    import_dataset(source, name="a", task=MULTILABEL, workers=1)
    decide("a", "0.png", "relabel", ["ring", "disc"])
    decide("a", "1.png", "relabel", [])
    decide("a", "3.png", "exclude")
    KIND.export("a", tmp_path / "out.csv", as_source=True)
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "path,label,note",
        "0.png,disc,n",
        "0.png,ring,n",
        "1.png,[],n",
        "2.png,bar,n",
        '2.png,"ring",second',
    ]


def test_import__rows_of_a_picture_are_of_one_split(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path, "rows", [["bar", "disc"], ["ring"]])
    text = source.read_text().replace("label,note", "label,split").replace("0.png,bar,n", "0.png,bar,train")
    source.write_text(text)
    with pytest.raises(ImportRefusedError, match=r"labels.csv, row 3: 0.png has another split than in row 2"):
        import_dataset(source, name="a", task=MULTILABEL)


def test_import__a_picture_with_two_sets_is_refused(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path, "|", [["bar", "disc"], ["ring"]])
    source.write_text(source.read_text() + "0.png,ring,n\n")
    with pytest.raises(ImportRefusedError, match=r"0.png is listed before, in row 2, with another label"):
        import_dataset(source, name="a", task=MULTILABEL)


def test_import__asks_about_like_names_and_vectors_without_names(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path, "|", [["bar"], ["Bar", "ring"], ["ring"]])
    with pytest.raises(ImportRefusedError, match="Some class names look alike: 'bar' \\(1\\), 'Bar' \\(1\\)"):
        import_dataset(source, name="a", task=MULTILABEL)
    import_dataset(source, name="a", task=MULTILABEL, merge_classes=True, workers=1)
    assert reading.dataset("a").class_names == ["bar", "ring"]
    source = tagged.write_source(tmp_path, "json", [["1", "0", "1"], ["0", "0", "1"]])
    with pytest.raises(ImportRefusedError, match="vectors of ones and zeros"):
        import_dataset(source, name="b", task=MULTILABEL)


def test_import__of_one_label_names_the_task(tmp_path: Path) -> None:
    for form in ("|", "columns", "jsonl", "parquet"):
        source = tagged.write_source(tmp_path / form.strip("|"), form, SETS)
        with pytest.raises(ImportRefusedError, match="the task multilabel"):
            import_dataset(source, name="a")


def test_import__shared_pictures_of_splits_stay_apart(tmp_path: Path) -> None:
    tagged.write_pictures(tmp_path, SETS[:2])
    for split, name, file in (
        ("train", "bar", 0),
        ("train", "disc", 0),
        ("test", "bar", 0),
        ("test", "disc", 1),
    ):
        (tmp_path / "set" / split / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / split / name / f"{name}.png").write_bytes((tmp_path / f"{file}.png").read_bytes())
    import_dataset(tmp_path / "set", name="a", task=MULTILABEL, workers=1)
    said = {(one.split, tuple(one.labels or ())) for one in reading.samples(reading.dataset("a").id)}
    assert said == {("train", (0, 1)), ("test", (0,)), ("test", (1,))}


def test_import__copies_with_other_sets_are_conflicts(tmp_path: Path) -> None:
    sets = [["bar"], ["bar", "ring"], [], [], ["ring"], ["disc"], ["bar"]]
    source = tagged.write_source(tmp_path, "|", sets)
    pictures = sorted((source if source.is_dir() else source.parent).rglob("*.png"))
    for first, copy in ((0, 1), (2, 3), (4, 6)):
        pictures[copy].write_bytes(pictures[first].read_bytes())
    report = import_dataset(source, name="a", task=MULTILABEL, workers=1)
    assert report.num_conflicts == report.duplicates["certain_conflicts"] == 2
    found = ask(datasets.conflicts, report.dataset_id)
    assert [set(part.sample_id) for _, part in found.groupby("duplicate_group")] == [{0, 1}, {4, 6}]
    assert found.is_certain.all()


def test_export__the_table_comes_back_with_its_decisions(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path, "; ", SETS)
    import_dataset(source, name="a", task=MULTILABEL, workers=1)
    decide("a", "0.png", "relabel", ["ring"])
    decide("a", "4.png", "relabel", [])
    decide("a", "2.png", "exclude")
    decide("a", "3.png", "relabel", ["disc"])  # as given: kept
    out = tmp_path / "cleaned.csv"
    command("export", "a", "--out", str(out))
    with out.open() as file:
        rows = {row["filepath"]: row for row in csv.DictReader(file)}
    assert (rows["0.png"]["given_label"], rows["0.png"]["cleaned_label"]) == ("bar|disc", "ring")
    assert (rows["4.png"]["cleaned_label"], rows["4.png"]["action"]) == ("[]", "relabel")
    assert (rows["2.png"]["cleaned_label"], rows["3.png"]["review_decision"]) == ("", "keep")
    assert (rows["1.png"]["given_label"], rows["0.png"]["note"]) == ("", "n")
    with pytest.raises(ExportRefusedError, match="exists"):
        KIND.export("a", out)
    import_dataset(out, name="b", task=MULTILABEL, workers=1)
    assert sets_of("b") == sets_of("a")
    by_name = [decisions.outcomes(reading.dataset(name).id) for name in ("a", "b")]
    said = [{i: (row.decision, row.labels) for i, row in one.items()} for one in by_name]
    assert (
        said[0]
        == said[1]
        == {0: ("relabel", [2]), 4: ("relabel", []), 2: ("exclude", None), 3: ("keep", None)}
    )
    assert decision_files.apply_file("a", out, reviewer="ben") == {"unchanged": 4}
    out.write_text(out.read_text().replace(",ring,relabel", ",ring|bar,relabel"))
    assert decision_files.apply_file("a", out, reviewer="ben") == {"unchanged": 3, "relabel": 1}
    assert decisions.outcomes(reading.dataset("a").id)[0].labels == [0, 2]


def test_review__refuses_what_is_no_set(tmp_path: Path) -> None:
    import_dataset(tagged.write_source(tmp_path, "columns", SETS), name="a", task=MULTILABEL, workers=1)
    with pytest.raises(ReviewError, match="needs the right classes"):
        decide("a", "0.png", "relabel")
    with pytest.raises(ReviewError, match=r"Class 3 of sample 0 is outside 0\.\.2"):
        decisions.decide(reading.dataset("a").id, 0, "relabel", labels=[3], reviewer="anna")
    file = tmp_path / "said.csv"
    file.write_text("sample_id,review_decision,cleaned_label\n0,relabel,bar|cube\n")
    with pytest.raises(ReviewError, match=r"'bar\|cube' is no set of the classes"):
        decision_files.apply_file("a", file, reviewer="anna")


def test_people_who_name_different_sets_of_a_random_sample_are_in_dispute(tmp_path: Path) -> None:
    import_dataset(tagged.write_source(tmp_path, "columns", SETS), name="a", task=MULTILABEL, workers=1)
    sample, out = tmp_path / "sample.csv", str(tmp_path / "sample.csv")
    command("verify", "a", "--draw", "6", "--out", out)
    with sample.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["filepath"]: row["given_label"] for row in rows}["4.png"] == "bar|disc|ring"
    for reviewer, seen in (("anna", "bar"), ("ben", "ring|disc")):
        said = {"0.png": seen, "2.png": "ring", "3.png": "[]", "5.png": "unsure"}
        with sample.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(row | {"verdict_label": said.get(row["filepath"], "")} for row in rows)
        command("verify", "a", "--apply", out, "--reviewer", reviewer)
    counts = decisions.outcomes(reading.dataset("a").id)
    assert {i: (row.decision, row.labels) for i, row in counts.items()} == {
        0: ("disputed", None),
        2: ("keep", None),
        3: ("relabel", []),
        5: ("unsure", None),
    }


def test_audit__puts_missing_and_extra_classes_first_and_learns_from_people(tmp_path: Path) -> None:
    tagged.make_home(tmp_path)
    dataset, audit = reading.audited("shapes", None)
    rows = json.loads(command("suspects", "shapes", "--top", "4", "--json"))["suspects"]
    said = {int(row["sample_id"]): row for row in rows}
    assert {(i, name) for i, row in said.items() for name in row["missing"]} == set(MISSING)
    assert {(i, name) for i, row in said.items() for name in row["extra"]} == set(EXTRA)
    assert said[7]["label_trust"]["disc"] < 0.5 < said[7]["label_trust"]["ring"]
    assert audit.summary.num_label_issues == 4
    trust = np.asarray(found(audit).trust)
    assert ((trust < 0.5).sum(axis=1) > 0).sum() == 4
    assert auditor.open("shapes").suspects(top=4).missing.tolist() == [row["missing"] for row in rows]
    lines = command("suspects", "shapes", "--top", "4")
    assert "missing: disc" in lines
    assert "extra: ring" in lines
    decide("shapes", "/7.png" if "/" in dataset.source_kind else "7.png", "relabel", ["disc", "ring"])
    inputs = KIND.inputs(dataset)
    assert (inputs["sets"][7].tolist(), bool(inputs["trusted"][7])) == ([0, 1, 1], True)
    out = tmp_path / "cleaned.csv"
    KIND.export("shapes", out)
    with out.open() as file:
        written = {row["filepath"]: row for row in csv.DictReader(file)}
    assert written["12.png"]["is_label_issue"] == "True"
    assert "ring" not in written["12.png"]["suggested_label"]
    command("report", "shapes", "--out", str(tmp_path / "report.html"))
    assert "sets of 3 classes" in (tmp_path / "report.html").read_text()
    command("status", "shapes")


def test_plan__without_features_is_refused(tmp_path: Path) -> None:
    import_dataset(tagged.write_source(tmp_path, "columns", SETS), name="a", task=MULTILABEL, workers=1)
    with pytest.raises(AuditFailedError, match="needs features; name a backbone"):
        KIND.plan("a", device="cpu")
    with pytest.raises(AuditFailedError, match="takes no sets; on sets there are noise_model"):
        KIND.plan("a", ["cross_entropy"], device="cpu")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a", "b"], "a|b"),
        ([], "[]"),
        (["a|b", "c"], '["a|b", "c"]'),
        (["[x]"], '["[x]"]'),
        (["a, b"], "a, b"),
    ],
)
def test_text_of__is_read_back_whatever_classes_are_called(names: list[str], text: str) -> None:
    assert text_of(range(len(names)), names) == text
    assert set_in(text, Names(names)) == tuple(range(len(names)))


def test_source__that_changed_since_keeps_what_it_says(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path / "source", "json", SETS)
    import_dataset(source, name="a", task=MULTILABEL, workers=1)
    decide("a", "0.png", "relabel", ["ring"])
    decide("a", "3.png", "relabel", ["ring"])
    source.write_text(source.read_text().replace('0.png,"[""bar"", ""disc""]"', '0.png,"[""bar""]"'))
    summary = exporting.export("a", tmp_path / "out.csv", as_source=True)
    assert "1 label was changed at the source after the import" in summary.sentence
    import_dataset(tmp_path / "out.csv", name="b", task=MULTILABEL, workers=1, root=source.parent)
    assert (sets_of("b")["0.png"], sets_of("b")["3.png"]) == (["bar"], ["ring"])
    assert ask(datasets.given_sets, reading.dataset("b").id).tolist()[:2] == [[1, 0, 0], [0, 0, 0]]
    assert reading.dataset("b").class_names == CLASSES


def test_export__of_coco_keeps_the_boxes_of_classes_that_stay(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path / "source", "coco", [["bar", "disc"], ["ring"], ["bar"]])
    import_dataset(source, name="a", task=MULTILABEL, workers=1)
    decide("a", "0.png", "relabel", ["disc", "ring"])
    out = tmp_path / "cleaned.json"
    KIND.export("a", out, as_source=True)
    before, after = (json.loads(file.read_text())["annotations"] for file in (source, out))
    kept = [one for one in before if (one["image_id"], one["category_id"]) != (0, 10)]
    assert after == [*kept, {"id": 9, "image_id": 0, "category_id": 12}]


def test_export__to_label_studio_says_one_truth_whoever_answered(tmp_path: Path) -> None:
    source = tagged.write_source(tmp_path / "source", "label_studio", SETS[:3])
    tasks = json.loads(source.read_text())
    first = tasks[0]["annotations"][0]
    bar, disc = (first["result"][0] | {"id": name, "value": {"choices": [name]}} for name in ("bar", "disc"))
    note = {"type": "textarea", "from_name": "note", "to_name": "image", "value": {"text": ["n"]}}
    first["result"] = [bar, note, disc]
    tasks[2]["annotations"].append(tasks[2]["annotations"][0] | {"completed_by": 2})
    source.write_text(json.dumps(tasks))
    import_dataset(source, name="a", task=MULTILABEL, workers=1)
    assert sets_of("a") == {"0.png": ["bar", "disc"], "1.png": [], "2.png": ["ring"]}
    decide("a", "0.png", "relabel", ["disc", "ring"])
    decide("a", "2.png", "relabel", [])
    out = source.parent / "cleaned.json"
    KIND.export("a", out, as_source=True)
    cleaned = json.loads(out.read_text())
    assert cleaned[0]["annotations"][0]["result"] == [note, disc | {"value": {"choices": ["disc", "ring"]}}]
    assert cleaned[2]["annotations"][:2] == tasks[2]["annotations"]
    assert cleaned[2]["annotations"][2]["ground_truth"]
    import_dataset(out, name="b", task=MULTILABEL, workers=1)
    assert sets_of("b") == {"0.png": ["disc", "ring"], "1.png": [], "2.png": []}


def test_export__of_what_has_no_known_place_for_sets_is_refused(tmp_path: Path) -> None:
    paths = tagged.write_pictures(tmp_path, SETS[:2])
    source = tmp_path / "job.manifest"
    lines = [
        {"source-ref": path, "job": [0], "job-metadata": {"class-map": {str(i): name for i, name in found}}}
        for path, found in zip(paths, ([(0, "bar, old"), (1, "disc")], [(1, "disc")]), strict=True)
    ]
    source.write_text("\n".join(map(json.dumps, lines)))
    import_dataset(source, name="a", task=MULTILABEL, workers=1)
    assert sets_of("a") == {"0.png": ["bar, old", "disc"], "1.png": ["disc"]}
    decide("a", "0.png", "relabel", ["disc"])
    with pytest.raises(ImportRefusedError, match="cannot be written with sets of classes; export a table"):
        KIND.export("a", tmp_path / "cleaned.manifest", as_source=True)
