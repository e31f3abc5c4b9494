"""Folders, zips and Parquet: what is found there, and what is refused."""

from __future__ import annotations

import builtins
import errno
import io
import os
import threading
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.ground import apart, files
from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import preview_source
from auditor.pictures.sources import (
    Problem,
    Source,
    SourceOptions,
    SourceRow,
    addresses,
    open_here,
    open_source,
    ordered_class_names,
    reading,
    remarks,
    trees,
)
from auditor.pictures.sources.reading import UnreadableError, read_bytes
from tests.auditor.pictures.sources import test_containers as packed
from tests.auditor.sample_pictures import digits, encoded, photo, write_folder, write_parquet, zip_folder

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def opened(path: Path | str, scratch: Path | None = None, **options: str) -> Source:
    return open_source(path, SourceOptions(**options), scratch)


def split_rows(source: Source) -> tuple[list[SourceRow], list[Problem]]:
    found = list(source.rows())
    return [r for r in found if isinstance(r, SourceRow)], [p for p in found if isinstance(p, Problem)]


def bytes_of(source: Source) -> list[bytes]:
    rows, _ = split_rows(source)
    payloads = source.payloads(row.location for row in rows)
    return [p if isinstance(p, bytes) else read_bytes(source.info.root, p) for p in payloads]


def test_folder__class_is_the_first_folder(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "set", 20)
    (root / "3" / "deeper").mkdir()
    (root / "3" / "deeper" / "x.PNG").write_bytes(encoded(photo(0)))
    (root / "3" / "notes.txt").write_text("hello")
    (root / "3" / ".hidden.png").write_bytes(b"")
    source = opened(root)
    rows, problems = split_rows(source)
    assert not problems
    assert len(rows) == 21
    assert {row.label for row in rows} == set("0123456789")
    assert next(row for row in rows if row.filepath.endswith("x.PNG")).label == "3"
    assert [row.filepath for row in rows] == sorted(
        (row.filepath for row in rows), key=lambda p: p.split("/")
    )
    assert source.ignored == ["3/notes.txt"]


def test_folder__splits_above_the_classes(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", 10)
    write_folder(tmp_path / "test", 5)
    rows, problems = split_rows(opened(tmp_path))
    assert not problems
    assert {row.split for row in rows} == {"train", "test"}
    assert {row.label for row in rows} == set("0123456789")


def test_folder__what_lies_wrong_is_named(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "set", 5)
    (root / "stray.png").write_bytes(encoded(photo(0)))
    (root / " ").mkdir()
    (root / " " / "blank.png").write_bytes(encoded(photo(0)))
    (tmp_path / "secret.png").write_bytes(encoded(photo(0)))
    (root / "1" / "out.png").symlink_to(tmp_path / "secret.png")
    (root / "loop").symlink_to(root / "1")
    _, problems = split_rows(opened(root))
    assert {p.file: p.text.split(";")[0] for p in problems} == {
        " /blank.png": "is in a folder whose name is blank",
        "1/out.png": f"is a link to {tmp_path}/secret.png, outside {root}",
        "loop": "is a link to a folder that is read already",
        "stray.png": "is next to the class folders",
    }


def _linked(tmp_path: Path) -> tuple[Path, Path]:
    """A folder with links to a store beside it as class folders, and a snapshot of the hub with links to blobs."""
    store, hub = write_folder(tmp_path / "data" / "store", 10), tmp_path / "models--us--it"
    linked, snapshot = tmp_path / "data" / "set", hub / "snapshots" / "abc"
    linked.mkdir()
    (hub / "blobs").mkdir(parents=True)
    for each in sorted(store.iterdir()):
        (linked / each.name).symlink_to(f"../store/{each.name}")
        (snapshot / each.name).mkdir(parents=True)
        for picture in each.iterdir():
            picture_of_hub = hub / "blobs" / f"{each.name}{picture.name}"
            picture_of_hub.write_bytes(picture.read_bytes())
            (snapshot / each.name / picture.name).symlink_to(f"../../../blobs/{picture_of_hub.name}")
    return linked, snapshot


def test_folder__links_are_followed_below_the_root_and_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    linked, snapshot = _linked(tmp_path)
    for source in (opened(linked, root=str(linked.parent)), opened(snapshot)):
        rows, problems = split_rows(source)
        assert not problems
        assert len(rows) == 10
        assert all(row.label == row.filepath.split("/")[0] for row in rows), "paths begin at the folder"
        assert "links are followed below" in source.info.because
        for row in rows:
            kept = tmp_path / "data" / "store" / row.filepath
            assert read_bytes(source.info.root, row.location) == kept.read_bytes()


def test_folder__a_link_out_of_the_root_is_named_with_the_root_that_holds_both(tmp_path: Path) -> None:
    linked, snapshot = _linked(tmp_path)
    with pytest.raises(
        ImportRefusedError, match=r"0 is a link to .*/store/0, outside .*set the root to .*/data,"
    ) as at:
        opened(linked)
    assert at.value.field == "root"
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "set").mkdir()
    (tmp_path / "snapshots" / "set" / "0").symlink_to(tmp_path / "data" / "store" / "0")
    with pytest.raises(
        ImportRefusedError, match="outside"
    ):  # more lies there than the hub's library puts there
        opened(tmp_path / "snapshots" / "set")
    with pytest.raises(ImportRefusedError, match="does not lie below the root"):
        opened(linked, root=str(linked / "0"))
    (snapshot / "0" / "out.png").symlink_to(tmp_path / "data" / "store" / "0")
    assert [problem.file for problem in split_rows(opened(snapshot))[1]] == ["0/out.png"]


def test_folder__links_turn_in_no_circle_and_nothing_is_read_twice(tmp_path: Path) -> None:
    linked, _ = _linked(tmp_path)
    (linked / "again").symlink_to("../store/0")
    (linked / "up").symlink_to("..")
    (linked.parent / "store" / "1" / "back").symlink_to("../../store/2")
    rows, problems = split_rows(opened(linked, root=str(linked.parent), layout="classes"))
    assert len(rows) == 10
    assert sorted(problem.file for problem in problems) == ["2", "again", "up"]


def test_folder__a_repository_of_the_hub_is_its_one_revision(tmp_path: Path) -> None:
    snapshot = write_folder(tmp_path / "snapshots" / "aa", 10)
    (tmp_path / "blobs").mkdir()
    for file in sorted(snapshot.rglob("*.png")):
        file.rename(tmp_path / "blobs" / f"{file.parent.name}{file.stem}")
        file.symlink_to(tmp_path / "blobs" / f"{file.parent.name}{file.stem}")
    rows, problems = split_rows(opened(tmp_path))
    assert not problems
    assert {row.filepath: row.label for row in rows} == {
        f"{file.parent.name}/{file.name}": file.parent.name for file in snapshot.rglob("*.png")
    }
    (tmp_path / "snapshots" / "bb").mkdir()
    with pytest.raises(ImportRefusedError, match=r"holds 2 revisions \(aa, bb\); name one"):
        opened(tmp_path)


def test_parquet__several_columns_of_labels_are_asked_about(tmp_path: Path) -> None:
    table = pq.read_table(write_parquet(tmp_path / "one.parquet", 6))
    pq.write_table(table.append_column("category", pa.array(["a", "b"] * 3)), tmp_path / "two.parquet")
    with pytest.raises(ImportRefusedError, match=r"may be the labels \(label, category\)") as refused:
        opened(tmp_path / "two.parquet")
    assert refused.value.field == "label_column"
    rows, _ = split_rows(opened(tmp_path / "two.parquet", label_column="category"))
    assert [row.label for row in rows] == ["a", "b"] * 3


def test_preview__splits_that_differ_in_case_are_one(tmp_path: Path) -> None:
    for split in ("Train", "test", "train"):
        write_folder(tmp_path / "set" / split, 10)
    found = preview_source(tmp_path / "set")
    assert {split: sum(counts.values()) for split, counts in found.splits.items()} == {
        "Train": 20,
        "test": 10,
    }
    assert "Splits that look alike are one: 'train' is 'Train'." in found.notes


class RawName(zipfile.ZipInfo):
    """A member whose name is written as older programs do: in some letters, which nothing says."""

    encoding = "cp437"

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        return self.filename.encode(self.encoding), 0


@pytest.mark.parametrize(
    ("encoding", "name", "is_read"),
    [
        ("utf-8", "犬", True),
        ("cp437", "Käse", True),
        ("shift_jis", "犬", False),
        ("shift_jis", "ネコ", False),
        ("gbk", "狗", False),
        ("cp1252", "Käse", False),
    ],
)
def test_zip__names_in_unknown_letters_are_said_or_refused(
    tmp_path: Path, encoding: str, name: str, is_read: bool
) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
        for folder in ("plain", name):
            member = RawName(f"{folder}/0.png")
            member.encoding = encoding
            packed.writestr(member, encoded(photo(0)))
    if not is_read:
        with pytest.raises(ImportRefusedError, match="does not say in which letters"):
            opened(tmp_path / "set.zip")
        return
    source = opened(tmp_path / "set.zip")
    assert {row.label for row in split_rows(source)[0]} == {"plain", name}
    assert bool(remarks(source)) is (encoding == "cp437")


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, refused: Path) -> None:
    """``os.scandir`` or ``io.open`` as one without rights meets it at ``refused`` (the tests may run as root)."""
    module = os if name == "scandir" else io
    real = getattr(module, name)

    def call(path: object = ".", *args: object, **named: object) -> object:
        if str(path) == str(refused):
            raise PermissionError(errno.EACCES, "Permission denied", str(refused))
        return real(path, *args, **named)

    monkeypatch.setattr(module, name, call)
    if module is io:
        monkeypatch.setattr(builtins, name, call)


def test_folder__one_that_nobody_may_list_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_folder(tmp_path / "set", 20)
    (root / "kept").mkdir()
    refuse(monkeypatch, "scandir", root / "kept")
    rows, problems = split_rows(open_here(str(root), SourceOptions()))
    assert len(rows) == 20
    assert [str(problem) for problem in problems] == [
        "kept: cannot be listed (Permission denied); make the folder readable or remove it"
    ]


def test_open_source__a_table_without_rights_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "a.csv"
    table.write_text("path,label\n")
    refuse(monkeypatch, "open", table)
    with pytest.raises(ImportRefusedError, match=r"a\.csv cannot be read \(Permission denied\); make it"):
        open_here(str(table), SourceOptions())


def test_folder__without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match="no sub-folder with images; put each class in a folder"):
        opened(tmp_path)
    (tmp_path / "labels.csv").write_text("path,label\n")
    with pytest.raises(ImportRefusedError, match=r"to import its table, name .*labels\.csv"):
        opened(tmp_path)


@pytest.mark.parametrize("named", ["nowhere", "/dev/null", "fiftyone.py"])
def test_open_source__unknown_kind_is_refused(tmp_path: Path, named: str) -> None:
    (tmp_path / "fiftyone.py").write_text("")
    reasons = r"(does not exist|cannot be imported|is no regular file); name a folder"
    with pytest.raises(ImportRefusedError, match=reasons):
        opened(tmp_path / named)


def test_ordered_class_names__numbers_count_as_numbers() -> None:
    assert ordered_class_names(["10", "9", "1"]) == ["1", "9", "10"]
    assert ordered_class_names(["b", "10", "a"]) == ["10", "a", "b"]


@pytest.mark.parametrize("wrap", ["", "wrapped/"])
def test_zip__of_a_folder(tmp_path: Path, wrap: str) -> None:
    root = write_folder(tmp_path / "set", 12)
    source = opened(zip_folder(root, tmp_path / "set.zip", wrap))
    rows, problems = split_rows(source)
    assert not problems
    plain, _ = split_rows(opened(root))
    assert [(row.filepath, row.label) for row in rows] == [(row.filepath, row.label) for row in plain]
    assert bytes_of(source) == [(root / row.filepath).read_bytes() for row in plain]


def test_zip__of_parquet(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in" / "p.parquet", 9, names=NAMES)
    source = opened(zip_folder(tmp_path / "in", tmp_path / "p.zip"), tmp_path / "scratch")
    rows, _ = split_rows(source)
    assert source.info.kind == "zip"
    assert rows[3].label == "three"
    assert bytes_of(source) == [encoded(image) for image in digits(9)[0]]


@pytest.mark.parametrize("name", ["../evil.png", "/abs/evil.png", "a/../../evil.png", "..\\evil.png"])
def test_zip__member_that_leaves_it_is_a_problem(tmp_path: Path, name: str) -> None:
    archive = zip_folder(write_folder(tmp_path / "set", 5), tmp_path / "set.zip")
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr(name, encoded(photo(0)))
    rows, problems = split_rows(opened(archive))
    assert len(rows) == 5
    assert len(problems) == 1
    assert "leaves the zip" in problems[0].text or "not a plain relative path" in problems[0].text
    assert not (tmp_path / "evil.png").exists()


def test_zip__link_and_locked_members_are_problems(tmp_path: Path) -> None:
    archive = zip_folder(write_folder(tmp_path / "set", 5), tmp_path / "set.zip")
    link, locked = zipfile.ZipInfo("1/link.png"), zipfile.ZipInfo("1/locked.png")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr(link, "/etc/passwd")
        packed.writestr(locked, b"x")
    data = bytearray(archive.read_bytes())
    entry = data.rindex(b"PK\x01\x02")  # the last entry of the table of contents: its flags say "encrypted"
    data[entry + 8] |= 1
    archive.write_bytes(data)
    _, problems = split_rows(opened(archive))
    assert [p.text.split(";")[0] for p in problems] == ["is a link, not a file", "is protected by a password"]


def test_zip__bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "BOMB_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/x.png", bytes(4 << 20))
    with pytest.raises(ImportRefusedError, match=r"over 100 times its size: that looks like a zip bomb"):
        open_here(str(tmp_path / "b.zip"), SourceOptions())


def test_zip__damaged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ImportRefusedError, match="cannot be read as a zip"):
        opened(tmp_path / "x.zip")


def test_zip__damaged_member_is_unreadable(tmp_path: Path) -> None:
    archive = zip_folder(write_folder(tmp_path / "set", 5), tmp_path / "set.zip")
    data = bytearray(archive.read_bytes())
    data[60:90] = bytes(30)
    archive.write_bytes(data)
    with pytest.raises(UnreadableError, match="cannot be unpacked"):
        read_bytes(str(archive), "0/0000.png")


@pytest.mark.parametrize("with_images", [False, True])
def test_zip__damaged_table_is_refused(tmp_path: Path, with_images: bool) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a.csv", "path,label\n" + "one.png,cat\n" * 2_000)
        if with_images:
            packed.writestr("one.png", encoded(photo(0)))
    archive.write_bytes(archive.read_bytes().replace(b"cat\n", b"cut\n", 1))
    with pytest.raises(ImportRefusedError, match=r"^a\.csv cannot be unpacked \(Bad CRC-32.*zip it again\.$"):
        list(opened(archive).rows())


@pytest.mark.parametrize("hugging_face", [False, True])
def test_parquet__class_names_from_the_schema(tmp_path: Path, hugging_face: bool) -> None:
    path = write_parquet(
        tmp_path / "p.parquet", 30, names=NAMES, hugging_face=hugging_face, id=list(range(30))
    )
    source = opened(path)
    rows, problems = split_rows(source)
    assert not problems
    assert source.info.class_names == tuple(NAMES)
    assert [row.label for row in rows] == [NAMES[int(label)] for label in digits(30)[1]]
    assert rows[4].filepath == "train/4.png"
    assert rows[4].extra == {"label": "4", "id": "4"}
    assert bytes_of(source) == [encoded(image) for image in digits(30)[0]]


def test_parquet__some_rows_only_are_streamed_in_order(tmp_path: Path) -> None:
    source = opened(write_parquet(tmp_path / "p.parquet", 30))
    images = digits(30)[0]
    assert list(source.payloads(["#3", "#8", "#29"])) == [encoded(images[i]) for i in (3, 8, 29)]
    for row in (29, 0, 13):
        assert read_bytes(source.info.root, f"#{row}") == encoded(images[row])
    with pytest.raises(UnreadableError, match="has no row 30 any more"):
        read_bytes(source.info.root, "#30")


def test_parquet__unlabeled_unknown_and_strange_labels(tmp_path: Path) -> None:
    labels = pa.array([0, -1, None, 12, 1], pa.int64())
    images = [encoded(photo(n)) for n in range(5)]
    table = pa.table({"image": pa.array(images), "label": labels}).replace_schema_metadata(
        {"classes": "cat,dog"}
    )
    pq.write_table(table, tmp_path / "p.parquet")
    rows, problems = split_rows(opened(tmp_path / "p.parquet"))
    assert [row.label for row in rows] == ["cat", None, None, "dog"]
    assert [str(p) for p in problems] == [
        "p.parquet, row 3: label is 12, outside 0..1; correct it or set it to -1"
    ]


@pytest.mark.parametrize(
    ("cells", "trusted", "bad"),
    [
        (["yes", "x", "No", "", None, "ture"], [True, True, False, False, False], "ture"),
        ([1.0, 0.0, None, float("nan"), 0.5], [True, False, False, False], "0.5"),
        ([1, 0, None, 2], [True, False, False], "2"),
        ([True, False, None], [True, False, False], None),
    ],
)
def test_parquet__trusted_is_read_as_in_a_table(
    tmp_path: Path, cells: list[object], trusted: list[bool], bad: str | None
) -> None:
    images = [encoded(photo(n)) for n in range(len(cells))]
    table = pa.table({"image": images, "label": ["a"] * len(cells), "trusted": cells})
    pq.write_table(table, tmp_path / "p.parquet")
    rows, problems = split_rows(opened(tmp_path / "p.parquet"))
    assert [row.trusted for row in rows] == trusted
    where = f"p.parquet, row {len(cells) - 1}"
    refused = [f"{where}: trusted is {bad!r}; write true or false, or leave it empty"] if bad else []
    assert [str(problem) for problem in problems] == refused


def test_parquet__text_labels_and_paths(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(photo(0)))
    table = pa.table({"path": ["a.png", "../b.png", "a.png", "a.png"], "label": ["x", "y", "x", "y"]})
    pq.write_table(table, tmp_path / "p.parquet")
    source = opened(tmp_path / "p.parquet")
    rows, problems = split_rows(source)
    assert [(row.location, row.label) for row in rows] == [("a.png", "x")]
    assert "leaves the root" in problems[0].text
    assert problems[1].text == "a.png is listed before, in row 0; remove one"
    assert problems[2].text.endswith("row 0, with another label ('x' there, 'y' here); keep the right one")
    assert bytes_of(source) == [encoded(photo(0))]


def test_parquet__several_files_are_one_source(tmp_path: Path) -> None:
    for part in range(2):
        write_parquet(tmp_path / f"train-{part}.parquet", 8)
    source = opened(tmp_path)
    rows, problems = split_rows(source)
    assert [row.location for row in rows[:1]] == ["train-0.parquet#0"]
    assert (len(rows), problems) == (16, [])
    assert rows[8].filepath == "train-1.parquet#0", "the same inner path again"
    assert read_bytes(source.info.root, "train-1.parquet#5") == encoded(digits(8)[0][5])


@pytest.mark.parametrize(
    ("classes", "text"),
    [("cat,,dog", "class 1 has an empty name"), ("cat,cat", "two classes are named 'cat'")],
)
def test_parquet__bad_class_names_are_refused(tmp_path: Path, classes: str, text: str) -> None:
    path = write_parquet(tmp_path / "p.parquet", 3, names=classes.split(","))
    with pytest.raises(ImportRefusedError, match=text):
        opened(path)


def test_parquet__without_images_or_damaged_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"label": [1], "number": [2]}), tmp_path / "p.parquet")
    with pytest.raises(
        ImportRefusedError, match=r"no column with images or paths.*Its columns are: label, number"
    ):
        opened(tmp_path / "p.parquet")
    (tmp_path / "q.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ImportRefusedError, match="cannot be read as Parquet"):
        opened(tmp_path / "q.parquet")


@pytest.mark.parametrize("location", ["../x.png", "/etc/passwd", "a/../../x"])
def test_read_bytes__never_leaves_the_root(tmp_path: Path, location: str) -> None:
    with pytest.raises(UnreadableError, match=r"leaves the root|absolute path"):
        read_bytes(str(tmp_path), location)


def test_open__sets_of_other_libraries_are_refused_with_the_way_through_python(tmp_path: Path) -> None:
    for name in ("features.json", "dataset_info.json"):
        (tmp_path / name).write_text("{}")
    for named, way in ((str(tmp_path), "from_arrays"), ("torchvision:MNIST", "from_torch")):
        with pytest.raises(ImportRefusedError, match=way):
            opened(named)


def test_parquet__a_named_column_is_read_again_from_the_same_column(tmp_path: Path) -> None:
    first, second = ([encoded(photo(seed + n)) for n in range(4)] for seed in (0, 100))
    table = pa.table({"image": first, "side#view:2": second, "label": [0, 1, 0, 1]})
    pq.write_table(table, tmp_path / "views.pq")
    source = opened(tmp_path / "views.pq", path_column="side#view:2")
    rows, problems = split_rows(source)
    assert not problems
    assert bytes_of(source) == second
    assert [read_bytes(source.info.root, row.location) for row in rows] == second


def test_read_bytes__after_a_fork_processes_do_not_share_a_place_in_the_zip(tmp_path: Path) -> None:
    import multiprocessing

    archive = str(zip_folder(write_folder(tmp_path / "set", 60), tmp_path / "set.zip"))
    names = sorted(name for name, _ in trees.ZipTree(Path(archive)).walk())
    expected = [read_bytes(archive, name) for name in names]  # opens the zip before the fork
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.starmap(read_bytes, [(archive, name) for name in names * 5], chunksize=10)
    assert found == expected * 5


@pytest.mark.parametrize("swapped", ["3.png", "."], ids=["file", "folder"])
def test_read_bytes__whoever_swaps_a_picture_for_a_link_gets_nothing(tmp_path: Path, swapped: str) -> None:
    for folder, text in (("private/1", b"private"), ("set/1", b"ours")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "3.png").write_bytes(text)
    victim, kept = tmp_path / "set/1" / swapped, tmp_path / "set/kept"
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            victim.rename(kept)
            victim.symlink_to(tmp_path / "private/1" / swapped)
            victim.unlink()
            kept.rename(victim)

    attacker = threading.Thread(target=swap)
    attacker.start()
    found: Counter[bytes | str] = Counter()
    # On a busy machine one of the two may stop for long, always in the same place.
    while found.total() < 10_000 or (found.total() < 1_000_000 and not {b"ours", "outside"} <= set(found)):
        try:
            found[read_bytes(str(tmp_path / "set"), "1/3.png")] += 1
        except UnreadableError as error:
            found["outside" if "is a link to a place outside" in str(error) else "gone"] += 1
    is_over.set()
    attacker.join()
    assert b"private" not in found
    assert {b"ours", "outside"} <= set(found)


def test_read_bytes__a_parquet_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    write_parquet(tmp_path / "private.parquet", 3)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.parquet").symlink_to(tmp_path / "private.parquet")
    with pytest.raises(UnreadableError, match="is a link to a place outside"):
        read_bytes(str(tmp_path / "set"), "a.parquet#0:image")


@pytest.mark.parametrize("write", [packed.write_hub, packed.write_saved, packed.write_shards])
def test_read_bytes__a_link_put_there_after_the_check_shows_nothing(
    write: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(opened(write(tmp_path)).info.root)
    row = split_rows(opened(root))[0][0]
    file = next(
        one
        for one in root.rglob("*")
        if one.is_file() and row.location.startswith(str(one.relative_to(root)))
    )
    private, swapped = tmp_path / "private", []
    own, other = packed.picture(0), packed.picture(1)[: len(packed.picture(0)) - 1] + b"!"
    private.write_bytes(file.read_bytes().replace(own, other.ljust(len(own), b"!")))

    def check_and_swap(*where: Any) -> Any:
        stream = files.open_below(*where)
        if not file.is_symlink():
            file.unlink()
            file.symlink_to(private)
            swapped.append(file)
        return stream

    monkeypatch.setattr(apart, "_is_apart", True)  # here, where we can swap
    for module in (addresses, reading):
        monkeypatch.setattr(module, "open_below", check_and_swap)
    with suppress(UnreadableError):  # of what is opened twice
        assert read_bytes(str(root), row.location) == own
    assert swapped == [file]


def test_folder__a_table_in_it_may_have_its_pictures_below_another_root(tmp_path: Path) -> None:
    pictures = write_folder(tmp_path / "pictures", 4)
    tables = tmp_path / "tables"
    tables.mkdir()
    names = sorted(str(path.relative_to(pictures)) for path in pictures.rglob("*.png"))
    rows = {"path": names, "label": ["a", "b"] * 2}
    pq.write_table(pa.table(rows), tables / "labels.parquet")
    rows_found, problems = split_rows(opened(tables, root=str(pictures), path_column="path"))
    assert not problems
    assert [row.label for row in rows_found] == rows["label"]
