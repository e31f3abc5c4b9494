"""CSV and TSV: columns, encodings, paths; every problem names file, row and remedy."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from auditor.ground.delimited import Delimited
from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources import (
    Problem,
    Source,
    SourceOptions,
    SourceRow,
    open_here,
    open_source,
    tables,
)
from auditor.pictures.sources.rows import PathBook
from tests.auditor.ground.test_names import Counted
from tests.auditor.sample_pictures import encoded, photo, write_csv, write_images, write_parquet, zip_folder


@pytest.fixture
def images(tmp_path: Path) -> list[tuple[str, str]]:
    return write_images(tmp_path, 6)


def rows_of(source: Source) -> list[SourceRow]:
    found = list(source.rows())
    assert not [item for item in found if isinstance(item, Problem)]
    return [item for item in found if isinstance(item, SourceRow)]


def problems_of(source: Source) -> list[str]:
    return [str(item) for item in source.rows() if isinstance(item, Problem)]


def table(tmp_path: Path, *rows: tuple[str, ...], header: tuple[str, ...] = ("path", "label")) -> Source:
    return open_source(write_csv(tmp_path / "labels.csv", header, rows), SourceOptions())


def test_rows__keep_order_labels_and_the_users_columns(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    rows = [(path, label, f" note {n} ", "") for n, (path, label) in enumerate(images)]
    rows[2] = (rows[2][0], "", *rows[2][2:])
    source = table(tmp_path, *rows, header=("file", "Label", "note", "=SUM(A1)"))
    found = rows_of(source)
    assert [row.filepath for row in found] == [row[0] for row in rows]
    assert [row.label for row in found] == [row[1] or None for row in rows]
    assert [row.row for row in found] == [2, 3, 4, 5, 6, 7]
    assert found[1].extra == dict(zip(("file", "Label", "note", "=SUM(A1)"), rows[1], strict=True))
    assert source.info.user_columns == ("file", "Label", "note", "=SUM(A1)")


def test_rows__names_of_very_many_columns_are_compared_few_times(
    tmp_path: Path, images: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Table(Delimited):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            self.columns = [Counted(column) for column in self.columns]

    monkeypatch.setattr(tables, "Delimited", Table)
    compared = {}
    for number in (200, 2_000):
        more = [str(place) for place in range(number)]
        file = write_csv(
            tmp_path / "wide.csv", ("path", "label", *more), [(*image, *more) for image in images]
        )
        Counted.compared = 0
        assert len(rows_of(open_here(str(file), SourceOptions()))) == 6
        compared[number] = Counted.compared
    assert 0 < compared[2_000] < 20 * compared[200]


def test_rows__trusted_and_split(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    header = ("filepath", "class", "trusted", "split")
    rows = [
        (images[0][0], "a", "TRUE", "train"),
        (images[1][0], "b", "", ""),
        (images[2][0], "b", "0", "test"),
        (images[3][0], "b", "1.0", "test"),
        (images[4][0], "b", "0.0", "test"),
    ]
    found = rows_of(table(tmp_path, *rows, header=header))
    assert [row.trusted for row in found] == [True, False, False, True, False]
    assert [row.split for row in found] == ["train", None, "test", "test", "test"]
    bad = (images[3][0], "a", "maybe", "")
    assert problems_of(table(tmp_path, bad, header=header)) == [
        "labels.csv, row 2: trusted is 'maybe'; write true or false, or leave it empty"
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_rows__separator_is_found(tmp_path: Path, images: list[tuple[str, str]], separator: str) -> None:
    path = write_csv(tmp_path / "t.tsv", ("path", "label"), images, separator)
    assert [row.label for row in rows_of(open_source(path, SourceOptions()))] == [
        label for _, label in images
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_rows__unicode_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "bäum.png").write_bytes(encoded(photo(0)))
    (tmp_path / "t.csv").write_text("path,label\nbäum.png,Bäume\n", encoding=encoding)
    row = rows_of(open_source(tmp_path / "t.csv", SourceOptions()))[0]
    assert (row.filepath, row.label) == ("bäum.png", "Bäume")


def test_rows__wrong_encoding_names_the_row(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    lines = ["path,label", *(f"{path},{label}" for path, label in images), f"{images[0][0]},Bäume"]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(
        ImportRefusedError, match=r"t\.csv, row 8: byte 0xe4 is not UTF-8 text; save .* 'CSV UTF-8'"
    ):
        list(open_source(tmp_path / "t.csv", SourceOptions()).rows())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("../secret.png", r"leaves the root by '\.\.'; set the root"),
        ("/etc/passwd", r"is outside .*; set the root"),
        ("C:\\pictures\\a.png", "is an absolute path"),
        (
            "link.png",
            r"is a link to .*/secret\.png, outside .*/root; set the root to .*, which holds both, or copy it",
        ),
        ("linked/a.png", r"is a link to .*/outside/a\.png, outside .*/root"),
        ("images", "is a folder or a special file"),
        ("images/none.png", r"does not exist in .*; correct the path or set another root"),
        ("", "names no file; fill in the path"),
        ("https://example.org/a.png", "is a web address; download"),
        ("images/\x00.png", "names no file"),
    ],
)
@pytest.mark.usefixtures("images")
def test_rows__unusable_path_is_explained(tmp_path: Path, path: str, text: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "images").rename(root / "images")
    (tmp_path / "secret.png").write_bytes(encoded(photo(0)))
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.png").write_bytes(encoded(photo(0)))
    (root / "linked").symlink_to(tmp_path / "outside")
    source = table(root, (path, "a"))
    if "\x00" in path:
        (root / "labels.csv").write_text('path,label\n"images/\x00.png",a\n')
        source = open_source(root / "labels.csv", SourceOptions())
    (found,) = list(source.rows())
    assert isinstance(found, Problem)
    assert (found.file, found.row) == ("labels.csv", 2)
    with pytest.raises(ValueError, match=text):
        raise ValueError(found.text)


def test_rows__path_below_the_root_may_be_absolute_or_windows_like(
    tmp_path: Path, images: list[tuple[str, str]]
) -> None:
    rows = [(str(tmp_path / images[0][0]), "a"), (images[1][0].replace("/", "\\"), "b")]
    assert [row.location for row in rows_of(table(tmp_path, *rows))] == [images[0][0], images[1][0]]


def test_rows__link_within_the_root_is_followed(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    (tmp_path / "again.png").symlink_to(tmp_path / images[0][0])
    assert rows_of(table(tmp_path, ("again.png", "a")))[0].location == "again.png"


def test_rows__duplicate_path_names_the_first_row(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    source = table(tmp_path, images[0], images[1], ("./" + images[0][0], images[0][1]))
    assert problems_of(source) == [
        "labels.csv, row 4: ./images/0000.png is listed before, in row 2; remove one"
    ]


def test_rows__two_labels_for_one_image_are_both_named(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    path = images[0][0]
    rows = [(path, "digit 5"), (images[1][0], "digit 9"), (path, "digit 9"), (path, "")]
    before = "labels.csv, row {}: images/0000.png is listed before, in row 2, with another label "
    assert problems_of(table(tmp_path, *rows)) == [
        before.format(4) + "('digit 5' there, 'digit 9' here); keep the right one",
        before.format(5) + "('digit 5' there, no label here); keep the right one",
    ]


def test_rows__wrong_number_of_cells(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    assert problems_of(table(tmp_path, images[0], (images[1][0], "a", "b"))) == [
        "labels.csv, row 3: has 3 cells instead of 2; check the quotes and separators"
    ]


def test_rows__open_quote_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('path,label\n"a.png,b\n' + "x" * 1_100_000)
    with pytest.raises(ImportRefusedError, match=r"t\.csv, row 2: cannot be read \(field larger.*open quote"):
        list(open_source(tmp_path / "t.csv", SourceOptions()).rows())


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "where,label\na,b\n",
            {},
            r"no column that is clearly the path; name the right one\. Its columns are: where, label",
        ),
        ("path,kind,of\na,b,c\n", {}, "no column that is clearly the label; name the right one"),
        ("path,label\na,b\n", {"label_column": "lable"}, r"has no column 'lable'; did you mean 'label'\?"),
        (
            "path,label\na,b\n",
            {"true_label_column": "zz"},
            r"has no column 'zz'; Its columns are: path, label",
        ),
        (
            "im/00000.PNG,digit 1\nim/00001.PNG,digit 2\n",
            {},
            "its first row looks like data; add a header row such as filepath,label. Its columns are: im/00000.PNG",
        ),
        ("im/0.png,5,5\n", {}, "the column '5' twice; its first row looks like data; add a header row"),
        ("im/0.png,\n", {}, "clearly the path: its first row looks like data; add a header row"),
        ("path,path,label\n", {}, "has the column 'path' twice"),
        ("", {}, r"is empty; it needs a header"),
    ],
)
def test_open_source__missing_column_is_explained(
    tmp_path: Path, text: str, options: dict[str, str], message: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ImportRefusedError, match=message):
        open_source(tmp_path / "t.csv", SourceOptions(**options))


def test_rows__a_formula_is_a_class_name_like_any_other(
    tmp_path: Path, images: list[tuple[str, str]]
) -> None:
    source = table(tmp_path, (images[0][0], "=cmd()"), (images[1][0], "<b>x</b>"))
    assert [row.label for row in rows_of(source)] == ["=cmd()", "<b>x</b>"]


def test_rows__images_in_a_zip_beside_the_table(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "images").rename(inside / "images")
    write_csv(inside / "labels.csv", ("path", "label"), images)
    source = open_source(zip_folder(inside, tmp_path / "a.zip", wrap="set/"), SourceOptions())
    assert source.info.kind == "zip"
    found = rows_of(source)
    assert [row.location for row in found] == [f"set/{path}" for path, _ in images]
    assert [row.label for row in found] == [label for _, label in images]


def test_rows__root_may_be_a_zip_or_a_parquet_file(tmp_path: Path, images: list[tuple[str, str]]) -> None:
    packed = zip_folder(tmp_path, tmp_path.parent / f"{tmp_path.name}.zip")
    path = write_csv(tmp_path / "labels.csv", ("path", "label"), images)
    assert rows_of(open_source(path, SourceOptions(root=str(packed))))[0].location == images[0][0]
    parquet = write_parquet(tmp_path / "p.parquet", 6)
    path = write_csv(tmp_path / "labels.csv", ("path", "label"), [("train/4.png", "a"), ("p.parquet#2", "b")])
    source = open_source(path, SourceOptions(root=str(parquet)))
    assert [row.location for row in rows_of(source)] == ["#4", "#2"]
    path = write_csv(tmp_path / "labels.csv", ("path", "label"), [("p.parquet#6", "b")])
    assert "is not in p.parquet" in problems_of(open_source(path, SourceOptions(root=str(parquet))))[0]


def test_rows__export_of_ours_gives_back_text_and_decisions(
    tmp_path: Path, images: list[tuple[str, str]]
) -> None:
    header = ("note", "sample_id", "filepath", "given_label", "cleaned_label", "action", "review_decision")
    header += ("review_labels", "reviewer", "reviewed_at", "trust_score")
    when = "2026-01-31T12:00:00+00:00"
    rows = [
        ("'=1+1", "0", images[0][0], "'=cmd()", "dog", "relabel", "relabel", "", "'@ann", when, ".1"),
        ("''=x", "1", images[1][0], "dog", "dog", "keep", "", "", "", "", ".9"),
    ]
    source = table(tmp_path, *rows, header=header)
    found = rows_of(source)
    assert source.info.is_own_export
    assert source.info.user_columns == ("note",)
    assert [row.extra for row in found] == [{"note": "=1+1"}, {"note": "'=x"}]
    assert [row.label for row in found] == ["=cmd()", "dog"]
    assert found[0].review is not None
    assert (found[0].review["reviewer"], found[0].review["cleaned_label"]) == ("@ann", "dog")
    assert found[1].review is None


@pytest.mark.parametrize(
    ("decision", "cleaned", "reviewer", "when", "text"),
    [
        ("perhaps", "", "ann", "2026-01-31", "review_decision is 'perhaps'; use one of keep, relabel"),
        ("keep", "", "", "2026-01-31", "has a decision without a reviewer"),
        ("relabel", "", "ann", "2026-01-31", "is relabeled without a cleaned_label"),
        (
            "relabel",
            "a",
            "ann",
            "2026-01-31",
            "is relabeled to its given label; correct cleaned_label, or write keep",
        ),
        ("keep", "", "ann", "yesterday", "reviewed_at is 'yesterday'; write a time such as"),
        ("multiple", "", "ann", "2026-01-31", "name at least two classes in review_labels"),
        (
            "keep",
            "",
            "ann",
            "2026-01-31,guessed",
            "review_kind is 'guessed'; use one of suspect, blind",
        ),
    ],
)
def test_rows__decision_that_cannot_be_recorded_is_a_problem(
    tmp_path: Path,
    images: list[tuple[str, str]],
    decision: str,
    cleaned: str,
    reviewer: str,
    when: str,
    text: str,
) -> None:
    header = ("sample_id", "filepath", "given_label", "cleaned_label", "action", "review_decision")
    header += ("reviewer", "reviewed_at", "review_kind")
    when, _, kind = when.partition(",")
    row = ("0", images[0][0], "a", cleaned, "keep", decision, reviewer, when, kind)
    assert text in problems_of(table(tmp_path, row, header=header))[0]


def test_path_book__holds_what_came_before_on_disk() -> None:
    tracemalloc.start()
    try:
        book = PathBook()
        seen = (book.again("l.csv", "a", f"{number}.png", number, str(number)) for number in range(20_000))
        assert not any(seen)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20_000
    again = book.again("l.csv", "7.png", "7.png", 20_000, "7")
    assert str(again) == "l.csv, row 20000: 7.png is listed before, in row 7; remove one"
