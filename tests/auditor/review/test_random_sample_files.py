"""The file of a verified sample: written, filled in by people and spreadsheets, taken back whole or not at all."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session

from auditor.catalog import reviews
from auditor.catalog.db import session
from auditor.catalog.records import Draw, Review
from auditor.ground.errors import AuditorError, VerificationError
from auditor.importing import imports
from auditor.pictures import cache
from auditor.review import blind, draw_files, drawing, verifying
from tests.helpers import Digits, verify_truthfully, write_digits


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def decisions_of(draw: Draw) -> dict[int, str]:
    """What people answered in a draw by sample_id; ``label`` where they named a class."""
    answers = {"keep": "label", "relabel": "label"}
    with session() as open_session:
        rows = reviews.verdicts(open_session, draw.dataset_id)
    return {
        sample: answers.get(row.decision, row.decision)
        for (of_draw, sample), row in rows.items()
        if of_draw == draw.id
    }


def test_csv__round_trip(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 30, seed=3)
    path = tmp_path / "sample.csv"
    draw_files.write_csv(draw.id, path)
    rows = read_rows(path)
    assert {"suggested_label", "trust_score"}.isdisjoint(rows[0])  # the judge stays blind
    for row in rows[:20]:
        row["verdict_label"] = str(digits.true_labels[int(row["sample_id"])])
    rows[20]["verdict_label"] = "exclude"
    write_rows(path, rows)
    assert draw_files.apply_csv("digits", path, reviewer="ada") == {"judged": 21, "not judged": 9}
    draw_files.apply_csv("digits", path, reviewer="ada")
    found = verifying.rows(1)
    assert found.size == 21
    assert found.is_wrong(digits.given_labels).sum() == digits.is_wrong[draw.sample_ids[:20]].sum() + 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,{inside},{filepath},{given},seven", "row 2: 'seven': none of the classes"),
        ("1,{outside},x,0,7", "was not drawn in draw 1"),
        ("one,{inside},x,0,7", "must be the numbers"),
    ],
)
def test_apply_csv__refuses_the_whole_file(
    audited: tuple[Digits, int], tmp_path: Path, row: str, message: str
) -> None:
    draw = drawing.draw("digits", 5, seed=3)
    outside = next(i for i in range(300) if i not in draw.sample_ids)
    path = tmp_path / "sample.csv"
    head = "draw_id,sample_id,filepath,given_label,verdict_label\n"
    inside = draw.sample_ids[0]
    own = {"filepath": f"images/{inside:04d}.png", "given": audited[0].given_labels[inside]}
    path.write_text(head + row.format(inside=inside, outside=outside, **own) + "\n")
    with pytest.raises(AuditorError, match=message):
        draw_files.apply_csv("digits", path, reviewer="ada")
    assert verifying.rows(1).size == 0


def test_apply_csv__names_every_cell_that_is_no_verdict_and_what_was_meant(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = drawing.draw("digits", 4)
    path = tmp_path / "sample.csv"
    rows = [
        f"{draw.id},{i},{said}" for i, said in zip(draw.sample_ids, ["3", "Exclude", "77", ""], strict=True)
    ]
    path.write_text("draw_id,sample_id,verdict_label\n" + "\n".join(rows) + "\n")
    with pytest.raises(AuditorError, match=r"row 3: 'Exclude'; row 4: '77' \(did you mean '7'\?\): none of"):
        draw_files.apply_csv("digits", path, reviewer="ada")
    assert verifying.rows(1).size == 0


def test_apply_csv__takes_what_a_spreadsheet_saves(audited: tuple[Digits, int], tmp_path: Path) -> None:
    draw = drawing.draw("digits", 3)
    path = tmp_path / "sample.csv"
    rows = [f"{draw.id};{i};3" for i in draw.sample_ids]
    text = "draw_id;sample_id;verdict_label\r\n" + "\r\n".join(rows) + "\r\n;;\r\n;;\r\n"
    path.write_bytes(text.encode("utf-8-sig"))
    assert draw_files.apply_csv("digits", path, reviewer="ada") == {"judged": 3, "not judged": 0}


@pytest.mark.parametrize("second", ["3", "4"])
def test_apply_csv__refuses_a_sample_that_is_judged_twice(
    audited: tuple[Digits, int], tmp_path: Path, second: str
) -> None:
    draw = drawing.draw("digits", 5, seed=3)
    path = tmp_path / "sample.csv"
    draw_files.write_csv(draw.id, path)
    rows = read_rows(path)
    rows[1]["verdict_label"] = "3"
    write_rows(path, [*rows, rows[1] | {"verdict_label": second}])
    message = rf"sample.csv, rows 3 and 7: both judge sample {draw.sample_ids[1]} of draw 1; delete one"
    with pytest.raises(VerificationError, match=message):
        draw_files.apply_csv("digits", path, reviewer="ada")
    assert decisions_of(draw) == {}


def test_apply_csv__a_row_that_is_there_again_unjudged_does_no_harm(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = drawing.draw("digits", 5, seed=3)
    path = tmp_path / "sample.csv"
    draw_files.write_csv(draw.id, path)
    rows = read_rows(path)
    write_rows(path, [*rows, rows[1] | {"verdict_label": "3"}])
    assert draw_files.apply_csv("digits", path, reviewer="ada") == {"judged": 1, "not judged": 4}


def filled(draw: Draw, path: Path, said: str) -> Path:
    rows = [f"{draw.id},{sample},{said}" for sample in draw.sample_ids]
    path.write_text("draw_id,sample_id,verdict_label\n" + "\n".join(rows) + "\n")
    return path


def test_apply_csv__a_file_applied_again_overrules_no_later_verdict_of_others(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = drawing.draw("digits", 8)
    path = filled(draw, tmp_path / "bob.csv", "3")
    draw_files.apply_csv("digits", path, reviewer="bob")
    for sample_id in draw.sample_ids[:5]:
        blind.record(draw.id, sample_id, "exclude", reviewer="ann")
    blind.record(draw.id, draw.sample_ids[5], "unsure", reviewer="eve")
    counts = draw_files.apply_csv("digits", path, reviewer="bob")
    left = {"left to ann, who judged later": 5, "left to eve, who judged later": 1}
    assert counts == {"judged": 2, "not judged": 0} | left
    assert list(decisions_of(draw).values()) == ["exclude"] * 5 + ["unsure", "label", "label"]
    # What Bob has not said before is a new verdict, and so is one of somebody who has said nothing yet.
    other = filled(draw, tmp_path / "other.csv", "4")
    all_judged = {"judged": 8, "not judged": 0}
    assert draw_files.apply_csv("digits", other, reviewer="bob") == all_judged | {blind.OTHERS: 5}
    assert draw_files.apply_csv("digits", path, reviewer="joe") == all_judged | {blind.OTHERS: 8}
    assert set(decisions_of(draw).values()) == {"label"}


def test_apply_csv__reads_the_log_once_for_the_file(
    audited: tuple[Digits, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = drawing.draw("digits", 20)
    path = filled(draw, tmp_path / "sample.csv", "3")
    read: list[tuple[int, ...]] = []
    log = reviews.log

    def counted(one: Session, dataset: int, *of: int, **more: Any) -> list[Review]:
        read.append(of)
        return log(one, dataset, *of, **more)

    monkeypatch.setattr(reviews, "log", counted)
    draw_files.apply_csv("digits", path, reviewer="ada")
    draw_files.apply_csv("digits", path, reviewer="ada")
    assert len([one for one in read if not one]) == 2  # others are of one sample
    with session() as open_session:
        assert len(log(open_session, draw.dataset_id)) == 20  # said again is not written again


@pytest.mark.parametrize("column", ["filepath", "given_label"])
def test_apply_csv__refuses_a_column_that_was_sorted_alone(
    audited: tuple[Digits, int], tmp_path: Path, column: str
) -> None:
    draw = drawing.draw("digits", 20, seed=3)
    path = tmp_path / "sample.csv"
    draw_files.write_csv(draw.id, path)
    rows = read_rows(path)
    for row, cell in zip(rows, sorted(row[column] for row in rows), strict=True):
        row |= {column: cell, "verdict_label": "3"}
    write_rows(path, rows)
    message = rf"row \d+: {column} '.+' is not that of sample \d+, which is '.+'\. .+ --draw-id 1 --out FILE"
    with pytest.raises(VerificationError, match=message):
        draw_files.apply_csv("digits", path, reviewer="ada")
    assert decisions_of(draw) == {}
    for row in rows:
        del row[column]
    write_rows(path, rows)  # a file without the column says nothing about it
    assert draw_files.apply_csv("digits", path, reviewer="ada")["judged"] == 20


def test_apply_csv__takes_a_file_from_before_the_images_moved(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 5, seed=3)
    path = tmp_path / "sample.csv"
    draw_files.write_csv(draw.id, path)
    write_rows(path, [row | {"verdict_label": "3"} for row in read_rows(path)])
    shutil.copytree(digits.table.parent, tmp_path / "elsewhere")
    cache.move_root("digits", tmp_path / "elsewhere")
    assert draw_files.apply_csv("digits", path, reviewer="ada")["judged"] == 5


@pytest.mark.parametrize("quoting", [lambda name: f"'={name}", lambda name: f"={name}"])
def test_csv__formulas_are_disarmed_and_come_back_with_or_without_the_quote(
    home: Path, tmp_path: Path, quoting: Callable[[str], str]
) -> None:
    digits = write_digits(tmp_path / "source", num=30, num_wrong=3)
    (tmp_path / "source" / "images").rename(tmp_path / "source" / "=images")
    rows = read_rows(digits.table)
    write_rows(
        digits.table, [{"filepath": f"={row['filepath']}", "label": f"={row['label']}"} for row in rows]
    )
    imports.import_dataset(digits.table, name="formulas", image_size=16, workers=1)
    draw = drawing.draw("formulas", 30)
    path = tmp_path / "sample.csv"
    draw_files.write_csv(draw.id, path)
    rows = read_rows(path)
    assert {row["filepath"][:9] for row in rows} == {"'=images/"}
    assert {row["given_label"][:2] for row in rows} == {"'="}
    for row in rows:
        sample_id = int(row["sample_id"])
        row["filepath"] = quoting(f"images/{sample_id:04d}.png")
        row["given_label"] = quoting(str(digits.given_labels[sample_id]))
        row["verdict_label"] = quoting(str(digits.true_labels[sample_id]))
    write_rows(path, rows)
    assert draw_files.apply_csv("formulas", path, reviewer="ada") == {"judged": 30, "not judged": 0}
    found = verifying.rows(1)
    assert found.true_labels.tolist() == digits.true_labels[found.sample_ids].tolist()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("note.txt/sample.csv", r"sample.csv cannot be written \(.+note.txt\); choose another place"),
        ("there.csv", "there.csv exists; choose another name, or overwrite it"),
        ("sample.xlsx", "the file's kind is unknown; use .csv or .tsv"),
    ],
)
def test_draw_csv__what_cannot_be_written_is_not_drawn(
    audited: tuple[Digits, int], tmp_path: Path, place: str, message: str
) -> None:
    (tmp_path / "note.txt").write_text("a file is no folder")
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(VerificationError, match=message):
        draw_files.draw_csv("digits", 20, tmp_path / place)
    assert blind.pending(1) == []
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_draw_csv__makes_the_folder(audited: tuple[Digits, int], tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "sample.tsv"
    draw = draw_files.draw_csv("digits", 20, path)
    assert [path.name] == [one.name for one in path.parent.iterdir()]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [int(line.split("\t")[1]) for line in lines[1:]] == draw.sample_ids
    assert draw_files.apply_csv("digits", path, reviewer="ada") == {"judged": 0, "not judged": 20}


def test_write_again__the_same_samples_without_their_verdicts(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = verify_truthfully(audited[0], 5)
    again, judged = draw_files.write_again("digits", draw.id, tmp_path / "sample.csv")
    rows = read_rows(tmp_path / "sample.csv")
    assert (again.sample_ids, judged) == (draw.sample_ids, 5)
    assert [int(row["sample_id"]) for row in rows] == draw.sample_ids
    assert {row["verdict_label"] for row in rows} == {""}
    draw_files.apply_csv("digits", tmp_path / "sample.csv", reviewer="ada")
    assert len(decisions_of(draw)) == 5  # an empty cell takes nothing back


def test_write_again__names_the_draws_of_this_dataset(audited: tuple[Digits, int], tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="digits has no draw 1; it has none yet, --draw N --out"):
        draw_files.write_again("digits", 1, tmp_path / "sample.csv")
    drawing.draw("digits", 5)
    drawing.draw("digits", 7)
    with pytest.raises(
        VerificationError, match=r"no draw 3; its draws: 1 \(5 samples, .+\), 2 \(7 samples, .+\)\."
    ):
        draw_files.write_again("digits", 3, tmp_path / "sample.csv")
    assert not (tmp_path / "sample.csv").exists()
