"""Whole imports: what is registered, what is refused, and that both happen completely."""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.catalog import datasets, db, reviews
from auditor.catalog.records import Dataset, Sample
from auditor.ground.errors import ImportRefusedError
from auditor.ground.settings import settings
from auditor.importing import imports
from auditor.importing.building import Builder, read_rows
from auditor.importing.imports import BadRowsError, ImportReport, Progress, import_dataset, preview_source
from auditor.importing.pool import CHUNK
from auditor.importing.staging import RowFile
from auditor.outputs import export
from auditor.outputs.report import conflict_sentence
from auditor.pictures import cache
from auditor.pictures.sources import SourceOptions, open_source
from auditor.review import decisions
from tests.auditor.sample_pictures import (
    SIDE,
    digits,
    encoded,
    photo,
    write_csv,
    write_folder,
    write_images,
    write_parquet,
    zip_folder,
)

pytestmark = pytest.mark.usefixtures("home")


def is_on_disk(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


DAMAGED = {"empty.png": b"", "text.png": b"hello", "cut.png": encoded(photo(1))[:200]}


def stored(name: str) -> tuple[Dataset, list[Sample]]:
    with db.session() as session:
        dataset = datasets.get(session, name)
        return dataset, list(datasets.iterate_samples(session, dataset.id))


def left_behind() -> list[str]:
    folder = settings().datasets
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("kind", ["folder", "csv", "parquet", "zip"])
def test_import_dataset__every_source_gives_the_same_pixels_and_labels(tmp_path: Path, kind: str) -> None:
    count = 40
    if kind == "csv":
        source = write_csv(tmp_path / "l.csv", ("path", "label"), write_images(tmp_path, count))
    elif kind == "parquet":
        source = write_parquet(tmp_path / "p.parquet", count)
    else:
        source = write_folder(tmp_path / "set", count)
        source = zip_folder(source, tmp_path / "set.zip") if kind == "zip" else source
    report = import_dataset(source, name="digits")
    dataset, samples = stored("digits")
    pixels, labels = digits(count)
    found = cache.image_cache(dataset)
    assert (report.num_samples, report.num_classes, report.skipped) == (count, 10, [])
    assert found.shape == (count, 1, SIDE, SIDE)
    assert [sample.sample_id for sample in samples] == list(range(count))
    order = [int(Path(sample.filepath).stem) for sample in samples]
    assert sorted(order) == list(range(count))
    assert np.array_equal(found[:, 0], pixels[order])
    assert [dataset.class_names[sample.given_label] for sample in samples] == [labels[i] for i in order]
    for sample in samples[:3]:
        assert cache.original_bytes(dataset, sample) == encoded(pixels[int(Path(sample.filepath).stem)])
    assert left_behind() == [str(dataset.id)]


def test_import_dataset__source_is_not_touched(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "set", 20)
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()
    }
    import_dataset(root, name="digits")
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()}
    assert before == after


def test_import_dataset__grey_and_colour_together_become_colour(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "set", 10)
    (root / "1" / "colour.png").write_bytes(encoded(photo(1, 30, 50)))
    report = import_dataset(root, name="mixed")
    dataset, samples = stored("mixed")
    assert (report.channels, report.image_size) == (3, SIDE)
    colour = next(sample for sample in samples if sample.filepath == "1/colour.png")
    assert (colour.original_height, colour.original_width) == (30, 50)
    pixels = cache.image_cache(dataset)
    assert np.ptp(pixels[colour.sample_id].astype(int), axis=0).max() > 30
    others = [sample.sample_id for sample in samples if sample is not colour]
    assert np.ptp(pixels[others], axis=1).max() == 0


@pytest.mark.parametrize(("side", "expected"), [(None, 60), (24, 24)])
def test_import_dataset__size(tmp_path: Path, side: int | None, expected: int) -> None:
    for number, longest in enumerate((40, 60, 600)):
        (tmp_path / "set" / str(number % 2)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / str(number % 2) / f"{number}.png").write_bytes(
            encoded(photo(number, longest, 30))
        )
    assert import_dataset(tmp_path / "set", name="a", image_size=side).image_size == expected


@pytest.mark.parametrize("damage", DAMAGED)
def test_import_dataset__damaged_image_refuses_everything(tmp_path: Path, damage: str) -> None:
    root = write_folder(tmp_path / "set", 20)
    (root / "1" / damage).write_bytes(DAMAGED[damage])
    with pytest.raises(
        BadRowsError, match=rf"^1/{damage}: .*\. Correct them, or leave those rows out\.\s"
    ) as got:
        import_dataset(root, name="digits")
    assert got.value.count == 1
    with db.session() as session:
        assert not datasets.exists(session, "digits")
    assert left_behind() == []


def test_import_dataset__skip_bad_leaves_out_and_reports(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 30)
    for name, data in DAMAGED.items():
        (tmp_path / "images" / name).write_bytes(data)
    bad = [(f"images/{name}", "1") for name in DAMAGED]
    mixed = [*rows[:3], bad[0], *rows[3:10], bad[1], bad[2], ("images/none.png", "2"), *rows[10:]]
    source = write_csv(tmp_path / "l.csv", ("path", "label"), mixed)
    report = import_dataset(source, name="digits", skip_bad=True)
    dataset, samples = stored("digits")
    assert {problem.row for problem in report.skipped} == {5, 13, 14, 15}
    assert report.num_skipped == 4
    assert [sample.filepath for sample in samples] == [path for path, _ in rows]
    assert np.array_equal(cache.image_cache(dataset)[:, 0], digits(30)[0])
    assert dataset.import_report["num_skipped"] == 4
    import_dataset(write_csv(tmp_path / "good.csv", ("path", "label"), rows), name="good")
    hashes = [(one.content_hash, one.perceptual_hash) for one in stored("good")[1]]
    assert [(one.content_hash, one.perceptual_hash) for one in samples] == hashes


def test_check__the_row_file_is_read_once_however_many_chunks_have_bad_rows(tmp_path: Path) -> None:
    lines = 0

    class CountedRows(RowFile):
        def __iter__(self) -> Iterator[list[Any]]:
            nonlocal lines
            for line in super().__iter__():
                lines += 1
                yield line

    count, bad = 5 * CHUNK, range(CHUNK - 1, 5 * CHUNK, CHUNK)
    rows = write_images(tmp_path, count)
    for number in bad:
        (tmp_path / rows[number][0]).write_bytes(b"hello")
    table = write_csv(tmp_path / "l.csv", ("path", "label"), rows)
    opened = open_source(table, SourceOptions(), tmp_path)
    parsed = read_rows(opened, tmp_path / "rows.jsonl", None)
    counted = CountedRows(tmp_path / "counted.jsonl")
    for line in parsed.rows:
        counted.append(line)
    counted.close()
    builder = Builder(opened, replace(parsed, rows=counted), tmp_path, None, 1, None)
    kept, headers = builder.check()
    assert list(np.flatnonzero(~kept)) == list(bad)
    assert [problem.row for problem in parsed.problems.listed] == [number + 2 for number in bad]
    assert lines == 2 * count  # once for the pictures, once for the names of the bad ones
    built = builder.decode(kept, headers, 8)
    assert len(built.content_hash) == len(built.perceptual_hash) == count - len(bad)
    known = [parsed.labels, parsed.true_labels, parsed.trusted, headers]
    for array in (*known, built.content_hash, built.perceptual_hash):
        assert is_on_disk(array)  # of ten million rows they would take a gigabyte


def test_import_dataset__only_bad_images_are_refused_even_with_skip_bad(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / "set" / folder).mkdir(parents=True)
        (tmp_path / "set" / folder / "x.png").write_bytes(b"")
    with pytest.raises(BadRowsError, match="No image is left to import"):
        import_dataset(tmp_path / "set", name="a", skip_bad=True)


@pytest.mark.parametrize(
    ("name", "size", "text"),
    [
        ("", None, "the name '' cannot be used"),
        ("a/b", None, "the name 'a/b' cannot be used"),
        ("a\nb", None, "the name 'a b' cannot be used"),
        ("x" * 101, None, "cannot be used; use 1 to 100 characters"),
        ("ok", 4, "image size is 4; choose 8 to 1024"),
    ],
)
def test_import_dataset__request_that_makes_no_sense(
    tmp_path: Path, name: str, size: int | None, text: str
) -> None:
    with pytest.raises(ImportRefusedError, match=text):
        import_dataset(tmp_path, name=name, image_size=size)


def test_import_dataset__name_in_use(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "set", 10)
    import_dataset(root, name="digits")
    with pytest.raises(
        ImportRefusedError, match="a dataset named 'digits' exists already; choose another name"
    ):
        import_dataset(root, name="digits")
    assert left_behind() == ["1"]


def test_import_dataset__name_taken_while_importing_leaves_the_first_whole(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "set", 10)

    def overtake(progress: Progress) -> None:
        if progress.stage == "registering":
            import_dataset(root, name="digits")

    with pytest.raises(ImportRefusedError, match="a dataset named 'digits' exists already"):
        import_dataset(root, name="digits", progress=overtake)
    dataset, samples = stored("digits")
    assert len(samples) == len(cache.image_cache(dataset)) == 10
    assert left_behind() == ["1"]


def test_import_dataset__no_labels_or_no_rows(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 3)
    source = write_csv(tmp_path / "l.csv", ("path", "label"), [(path, "") for path, _ in rows])
    with pytest.raises(
        ImportRefusedError, match=r"l\.csv has no label at all \(its column 'label' is empty\)"
    ):
        import_dataset(source, name="a")
    write_csv(source, ("path", "label"), [])
    with pytest.raises(ImportRefusedError, match=r"l\.csv lists no image"):
        import_dataset(source, name="a")


def test_import_dataset__a_label_that_is_a_whole_text_is_refused(tmp_path: Path) -> None:
    paths = [path for path, _ in write_images(tmp_path, 4)]
    for letters, is_refused in ((900_000, True), (1_001, True), (1_000, False)):
        names = ["a", "b" * letters, "a", "b" * letters]
        source = write_csv(tmp_path / "l.csv", ("path", "label"), list(zip(paths, names, strict=True)))
        if is_refused:
            says = (
                rf"l\.csv has a label of {letters:,} letters \(b.{{10,50}}\), and a class has at most 1,000"
            )
            with pytest.raises(ImportRefusedError, match=says):
                import_dataset(source, name="a", skip_bad=True)
        else:
            assert import_dataset(source, name="a").num_samples == 4


def test_import_dataset__label_column_that_is_no_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MANY_CLASSES", 2)
    rows = write_images(tmp_path, 3)
    source = write_csv(tmp_path / "l.csv", ("path", "label"), [(path, path) for path, _ in rows])
    with pytest.raises(
        ImportRefusedError, match="has 3 different labels in 3 rows; name the column of labels"
    ):
        import_dataset(source, name="a")


def test_import_dataset__unlabeled_trusted_true_labels_and_columns(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 10)
    header = ("path", "label", "truth", "trusted", "split", "=note")
    table = [
        (
            path,
            "" if n == 0 else "=cmd()" if n == 1 else label,
            label,
            "yes" if n == 2 else "",
            "train",
            f"n{n}",
        )
        for n, (path, label) in enumerate(rows)
    ]
    source = write_csv(tmp_path / "l.csv", header, table)
    report = import_dataset(source, name="a", true_label_column="truth")
    dataset, samples = stored("a")
    assert (report.num_unlabeled, report.num_trusted) == (1, 1)
    assert samples[0].given_label == -1
    assert dataset.class_names[samples[1].given_label] == "=cmd()"
    assert samples[2].trusted
    assert samples[3].split == "train"
    assert dataset.user_columns == list(header)
    assert [list((sample.extra or {}).values()) for sample in samples] == [list(row) for row in table]
    truth = cache.true_labels(dataset)
    assert truth is not None
    assert [dataset.class_names[label] for label in truth] == [label for _, label in rows]


def test_import_dataset__progress_counts_up_to_the_total(tmp_path: Path) -> None:
    seen: list[Progress] = []
    import_dataset(write_folder(tmp_path / "set", 30), name="a", progress=seen.append)
    assert [p.stage for p in seen if p.stage == "decoding"]
    assert list(dict.fromkeys(p.stage for p in seen)) == [
        "reading",
        "checking",
        "decoding",
        "comparing",
        "registering",
    ]
    assert max(p.done for p in seen if p.stage == "decoding") == 30


def test_import_dataset__duplicates_and_conflicts(tmp_path: Path) -> None:
    root = tmp_path / "set"
    for number in range(8):
        (root / "a").mkdir(parents=True, exist_ok=True)
        (root / "a" / f"{number}.png").write_bytes(encoded(photo(number, 80, 80)))
    (root / "b").mkdir()
    (root / "b" / "copy.bmp").write_bytes(encoded(photo(3, 80, 80), "BMP"))
    (root / "b" / "jpeg.jpg").write_bytes(encoded(photo(5, 80, 80), "JPEG", quality=70))
    (root / "a" / "same.png").write_bytes(encoded(photo(6, 80, 80)))
    report = import_dataset(root, name="a")
    dataset, samples = stored("a")
    by_path = {sample.filepath: sample for sample in samples}
    assert by_path["b/copy.bmp"].duplicate_kind == by_path["a/3.png"].duplicate_kind == "exact"
    assert by_path["b/jpeg.jpg"].duplicate_kind == by_path["a/5.png"].duplicate_kind == "near"
    assert by_path["b/copy.bmp"].duplicate_group == by_path["a/3.png"].duplicate_group
    assert report.duplicates == {
        "groups": 3,
        "exact_samples": 4,
        "near_samples": 2,
        "conflicting_groups": 2,
        "conflicting_samples": 4,
        "certain_conflicts": 1,
    }
    assert report.num_conflicts == 2
    with db.session() as session:
        found = datasets.conflicts(session, dataset.id)
    assert set(found.filepath) == {"a/3.png", "a/5.png", "b/copy.bmp", "b/jpeg.jpg"}
    assert set(found[found.is_certain].filepath) == {"a/3.png", "b/copy.bmp"}
    assert "1 picture has different labels on copies that are identical in every pixel" in conflict_sentence(
        found
    )


def test_import_dataset__a_copy_with_its_own_label_makes_no_conflict_certain(tmp_path: Path) -> None:
    root = tmp_path / "set"
    (root / "a").mkdir(parents=True)
    (root / "b").mkdir()
    # Two equal pictures agree on their label; only a third one, which looks like them, has another.
    (root / "a" / "1.png").write_bytes(encoded(photo(3, 80, 80)))
    (root / "a" / "2.bmp").write_bytes(encoded(photo(3, 80, 80), "BMP"))
    (root / "b" / "3.jpg").write_bytes(encoded(photo(3, 80, 80), "JPEG", quality=70))
    for number in range(4, 8):
        (root / "b" / f"{number}.png").write_bytes(encoded(photo(number, 80, 80)))
    report = import_dataset(root, name="a")
    with db.session() as session:
        found = datasets.conflicts(session, report.dataset_id)
    assert found.duplicate_kind.tolist() == ["exact", "exact", "near"]
    assert not found.is_certain.any()
    assert report.duplicates["certain_conflicts"] == 0
    assert conflict_sentence(found) == (
        "1 group of duplicates carries different labels, but none on copies that are identical in every pixel: "
        "look at these."
    )


def test_import_dataset__our_export_brings_the_reviews_back(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 12)
    table = [(path, "=cmd()" if n == 7 else label, "'=1") for n, (path, label) in enumerate(rows)]
    source = write_csv(tmp_path / "l.csv", ("path", "label", "note"), table)
    first = import_dataset(source, name="first")
    dataset, _ = stored("first")
    names = dataset.class_names
    decisions.decide(first.dataset_id, 3, "relabel", label=names.index("8"), reviewer="@ann")
    decisions.decide(first.dataset_id, 4, "exclude", reviewer="bob")
    decisions.decide(first.dataset_id, 5, "keep", reviewer="bob")
    decisions.decide(first.dataset_id, 6, "multiple", labels=[1, 2], reviewer="bob")
    export.export_table("first", tmp_path / "cleaned.csv")
    second = import_dataset(tmp_path / "cleaned.csv", name="second")
    assert second.num_reviews == 4
    again, samples = stored("second")
    with db.session() as session:
        before = reviews.decisions(session, first.dataset_id)
        after = reviews.decisions(session, second.dataset_id)

    def told(found: dict, classes: list[str]) -> dict:
        return {
            i: (
                d.decision,
                d.label is not None and classes[d.label],
                [classes[x] for x in d.labels or []],
                d.reviewer,
            )
            for i, d in found.items()
        }

    assert told(before, names) == told(after, again.class_names)
    assert {i: d.created_at for i, d in before.items()} == {i: d.created_at for i, d in after.items()}
    assert again.class_names[samples[7].given_label] == "=cmd()"
    assert samples[0].extra == {"path": rows[0][0], "label": rows[0][1], "note": "'=1"}
    export.export_table("second", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "cleaned.csv").read_text()


def test_import_dataset__export_of_parquet_images_finds_them_by_root(tmp_path: Path) -> None:
    parquet = write_parquet(tmp_path / "p.parquet", 12)
    import_dataset(parquet, name="first")
    export.export_table("first", tmp_path / "cleaned.csv")
    with pytest.raises(ImportRefusedError, match=r"none of its 12 images .*the root"):
        import_dataset(tmp_path / "cleaned.csv", name="second")
    import_dataset(tmp_path / "cleaned.csv", name="second", root=parquet)
    caches = [cache.image_cache(stored(name)[0]) for name in ("first", "second")]
    assert np.array_equal(*caches)


def test_import_dataset__threads_give_the_same_as_one_worker(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "p.parquet", 1_200)
    import_dataset(source, name="one", workers=1)
    import_dataset(source, name="two", workers=2)
    (one, first), (two, second) = stored("one"), stored("two")
    assert np.array_equal(cache.image_cache(one), cache.image_cache(two))
    for left, right in zip(first, second, strict=True):
        assert dataclasses.replace(left, dataset_id=right.dataset_id) == right


def test_import_dataset__skip_bad_keeps_none_of_two_labels_of_one_image(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 30)
    source = write_csv(tmp_path / "l.csv", ("path", "label"), [*rows, (rows[3][0], "another")])
    report = import_dataset(source, name="one", skip_bad=True)
    assert (report.num_samples, report.num_skipped) == (29, 2)
    assert [problem.row for problem in report.skipped] == [32, 5]


def test_preview__says_what_an_import_would_do_and_registers_nothing(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 30)
    rows[4] = (rows[4][0], "")
    (tmp_path / rows[6][0]).write_bytes(b"")
    source = write_csv(tmp_path / "l.csv", ("path", "label"), [*rows, ("images/none.png", "1")])
    found = preview_source(source)
    assert (found.kind, found.num_rows, found.image_size) == ("table", 30, SIDE)
    assert found.class_names == list("0123456789")
    assert found.counts[""] == 1
    assert len(found.first_rows) == 20
    assert [problem.row for problem in found.problems] == [32, 8]
    assert left_behind() == []
    with db.session() as session:
        assert datasets.list_all(session) == []


def test_import_dataset__real_photographs(shared_data: Path) -> None:
    report: ImportReport = import_dataset(shared_data / "clothing", name="clothes", image_size=64)
    dataset, samples = stored("clothes")
    assert (report.num_samples, report.num_classes, report.channels) == (341, 10, 3)
    assert cache.image_cache(dataset).shape == (341, 3, 64, 64)
    assert cache.extracted_path(dataset, samples[0]).is_relative_to(shared_data)


def test_import_dataset__real_mnist_parquet(shared_data: Path) -> None:
    report = import_dataset(shared_data / "mnist-test.parquet", name="mnist")
    dataset, samples = stored("mnist")
    assert (report.num_samples, report.channels, report.image_size) == (10_000, 1, 28)
    assert report.duplicates["conflicting_groups"] == 0
    assert dataset.class_names == [str(digit) for digit in range(10)]
    sizes = np.bincount([sample.given_label for sample in samples])
    assert sizes.tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_read_rows__numbers_lie_on_disk_however_many_differ(tmp_path: Path) -> None:
    rows = [
        (path, text)
        for (path, _), text in zip(write_images(tmp_path, 4), ("2.50", "", "-1", "7"), strict=True)
    ]
    table = write_csv(tmp_path / "ages.csv", ("path", "label"), rows)
    opened = open_source(table, SourceOptions(task="regression"), tmp_path)
    parsed = read_rows(opened, tmp_path / "rows.jsonl", None)
    np.testing.assert_array_equal(parsed.labels, [2.5, np.nan, -1, 7])
    assert parsed.class_names == ["number"]
    assert is_on_disk(parsed.labels)
    import_dataset(table, name="ages", task="regression")
    samples = stored("ages")[1]
    assert [(one.given_label, one.number) for one in samples] == [(0, 2.5), (-1, None), (0, -1.0), (0, 7.0)]
