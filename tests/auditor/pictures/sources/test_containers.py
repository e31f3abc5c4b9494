"""Sources that hold images and labels together: read, and written once more in their own form.

Written and read again by the libraries whose forms they are (``datasets``, ``webdataset``).
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset
from auditor.ground.errors import ExportRefusedError, ImportRefusedError, VerificationError
from auditor.importing.imports import import_dataset, preview_source
from auditor.outputs import export
from auditor.pictures import cache
from auditor.pictures.sources import SourceOptions, open_here
from auditor.review import decisions, draw_files
from tests.auditor.sample_pictures import write_folder

CLASSES = ["cat", "dog"]
NUMBERS = [0, 1, 0, 1, 0, 1]
CLEANED = ["dog", "dog", "cat", "cat", "dog"]
"""After ``decided``: the first becomes a dog, the fourth goes."""


def picture(number: int) -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def hugging_face(numbers: range) -> Any:
    """A Dataset with an image, a ClassLabel and a column that nobody knows."""
    library = pytest.importorskip("datasets")
    features = library.Features(
        image=library.Image(), label=library.ClassLabel(names=CLASSES), note=library.Value("string")
    )
    rows = {
        "image": [{"bytes": picture(n), "path": f"{n}.png"} for n in numbers],
        "label": [NUMBERS[n] for n in numbers],
        "note": [f"n{n}" for n in numbers],
    }
    return library.Dataset.from_dict(rows, features=features)


def write_saved(folder: Path) -> Path:
    hugging_face(range(6)).save_to_disk(folder / "saved")
    return folder / "saved"


def write_saved_splits(folder: Path) -> Path:
    library = pytest.importorskip("datasets")
    parts = {"train": hugging_face(range(4)), "test": hugging_face(range(4, 6))}
    library.DatasetDict(parts).save_to_disk(folder / "splits")
    return folder / "splits"


def write_hub(folder: Path) -> Path:
    (folder / "hub" / "data").mkdir(parents=True)
    hugging_face(range(4)).to_parquet(folder / "hub" / "data" / "train-00000-of-00001.parquet")
    hugging_face(range(4, 6)).to_parquet(folder / "hub" / "data" / "validation-00000-of-00001.parquet")
    return folder / "hub"


def write_shard(path: Path, numbers: range) -> Path:
    webdataset = pytest.importorskip("webdataset")
    with webdataset.TarWriter(str(path)) as writer:
        for n in numbers:
            sample = {"__key__": f"{n:04d}", "png": picture(n), "cls": NUMBERS[n], "json": {"note": f"n{n}"}}
            writer.write(sample)
    return path


def write_tar(folder: Path) -> Path:
    return write_shard(folder / "set.tar", range(6))


def write_tar_gz(folder: Path) -> Path:
    return write_shard(folder / "set.tar.gz", range(6))


def write_shards(folder: Path) -> Path:
    (folder / "shards").mkdir()
    write_shard(folder / "shards" / "train-000.tar", range(4))
    write_shard(folder / "shards" / "train-001.tar", range(4, 6))
    return folder / "shards"


WRITERS = [write_saved, write_saved_splits, write_hub, write_tar, write_tar_gz, write_shards]


def imported(name: str) -> Dataset:
    with session() as open_session:
        return datasets.get(open_session, name)


def decided(name: str) -> Dataset:
    dataset = imported(name)
    decisions.decide(dataset.id, 0, "relabel", label=dataset.class_names.index("dog"), reviewer="ada")
    decisions.decide(dataset.id, 3, "exclude", reviewer="ada")
    return dataset


@pytest.fixture
def names(tmp_path: Path) -> Path:
    (tmp_path / "names.txt").write_text("\n".join(CLASSES))
    return tmp_path / "names.txt"


def names_for(write: Callable[[Path], Path], names: Path) -> Path | None:
    return names if write in (write_tar, write_tar_gz, write_shards) else None


@pytest.mark.parametrize("write", WRITERS)
def test_container__comes_in_and_goes_out_in_its_form(
    home: Path, tmp_path: Path, names: Path, write: Callable[[Path], Path]
) -> None:
    source, named = write(tmp_path), names_for(write, names)
    report = import_dataset(source, name="set", class_names=named)
    dataset = decided("set")
    assert (report.num_samples, dataset.class_names) == (6, CLASSES)
    with session() as open_session:
        for sample in datasets.iterate_samples(open_session, dataset.id):
            assert cache.original_bytes(dataset, sample) == picture(sample.sample_id)

    out = (
        tmp_path
        / f"cleaned{'.tar.gz' if write is write_tar_gz else source.suffix if source.is_file() else ''}"
    )
    summary = export.export_table("set", out, as_source=True)
    assert (summary.num_relabel, summary.num_exclude) == (1, 1)
    found = preview_source(out, class_names=named)
    assert [row.label for row in found.first_rows] == CLEANED
    before = [row.split for row in preview_source(source, class_names=named).first_rows]
    assert [row.split for row in found.first_rows] == before[:3] + before[4:]
    read = READERS[write](out)
    assert [(label, note) for label, note in read] == [(1, "n0"), (1, "n1"), (0, "n2"), (0, "n4"), (1, "n5")]


def read_saved(folder: Path) -> list[tuple[int, str]]:
    found = pytest.importorskip("datasets").load_from_disk(folder)
    parts = [found] if not isinstance(found, dict) else list(found.values())
    assert all(part.features["label"].names == CLASSES for part in parts)
    assert parts[0][0]["image"].size == (12, 12)
    return [(row["label"], row["note"]) for part in parts for row in part]


def read_hub(folder: Path) -> list[tuple[int, str]]:
    library = pytest.importorskip("datasets")
    parts = [library.Dataset.from_parquet(str(file)) for file in sorted(folder.rglob("*.parquet"))]
    assert all(part.features["label"].names == CLASSES for part in parts)
    assert [file.name[:5] for file in sorted(folder.rglob("*.parquet"))] == ["train", "valid"]
    return [(row["label"], row["note"]) for part in parts for row in part]


def read_shards(place: Path) -> list[tuple[int, str]]:
    webdataset = pytest.importorskip("webdataset")
    shards = sorted(map(str, place.glob("*.tar"))) if place.is_dir() else [str(place)]
    found = webdataset.WebDataset(shards, shardshuffle=False)
    return [(int(sample["cls"]), json.loads(sample["json"])["note"]) for sample in found]


READERS: dict[Callable[[Path], Path], Callable[[Path], list[tuple[int, str]]]] = {
    write_saved: read_saved,
    write_saved_splits: read_saved,
    write_hub: read_hub,
    write_tar: read_shards,
    write_tar_gz: read_shards,
    write_shards: read_shards,
}


def test_tar__with_class_folders_is_read_as_a_folder(home: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "photos.tar.gz", "w:gz") as archive:
        for n, number in enumerate(NUMBERS):
            header = tarfile.TarInfo(f"photos/{CLASSES[number]}/{n}.png")
            header.size = len(picture(n))
            archive.addfile(header, io.BytesIO(picture(n)))
    import_dataset(tmp_path / "photos.tar.gz", name="set")
    assert imported("set").class_names == CLASSES
    assert [row.filepath for row in preview_source(tmp_path / "photos.tar.gz").first_rows][:2] == [
        "cat/0.png",
        "dog/1.png",
    ]


def test_zip__of_macos_has_names_in_utf_8_and_does_not_say_so(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "photos.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for number, folder in enumerate(["cafXX", "tea"]):
            archive.writestr(f"{folder}/{number}.png", picture(number))
    file.write_bytes(file.read_bytes().replace(b"cafXX", "caf\u00e9".encode()))
    import_dataset(file, name="set")
    assert imported("set").class_names == ["caf\u00e9", "tea"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_tar__a_link_in_it_is_refused(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "photos.tar", "w") as archive:
        header = tarfile.TarInfo("cat/0.png")
        header.size = len(picture(0))
        archive.addfile(header, io.BytesIO(picture(0)))
        link = tarfile.TarInfo("dog/1.png")
        link.type, link.linkname = kind, "/etc/passwd"
        archive.addfile(link)
    problems = preview_source(tmp_path / "photos.tar").problems
    assert [str(problem) for problem in problems] == ["dog/1.png: is a link or no file; pack the file itself"]


def test_tar__a_shard_names_the_files_that_leave_it(home: Path, tmp_path: Path, names: Path) -> None:
    source = write_tar(tmp_path)
    with tarfile.open(source, "a") as archive:
        for name in ("../x.png", "/etc/x.cls"):
            archive.addfile(tarfile.TarInfo(name))
    problems = [str(problem) for problem in preview_source(source).problems]
    why = "leaves the archive (an absolute path or '..'); pack the folder again"
    assert problems == [f"set.tar: ../x.png: {why}", f"set.tar: /etc/x.cls: {why}"]
    import_dataset(source, name="set", class_names=names, skip_bad=True)
    decided("set")
    export.export_table("set", tmp_path / "cleaned.tar")
    assert len(read_shards(tmp_path / "cleaned.tar")) == 5


@pytest.mark.parametrize("kept", [1536, 1536 + 200, None])
def test_tar__cut_between_two_files_is_no_shorter_archive(tmp_path: Path, kept: int | None) -> None:
    source = tmp_path / "set.tar"
    with tarfile.open(source, "w") as archive:
        for n in range(3):
            header = tarfile.TarInfo(f"cat/{n}.png")
            header.size = 600
            archive.addfile(header, io.BytesIO(bytes(600)))
    data = source.read_bytes()
    damaged = data[:kept] if kept else data[:1536] + b"\xff" + data[1537:]
    source.write_bytes(damaged)
    with pytest.raises(ImportRefusedError, match="it is cut off or damaged"):
        preview_source(source)


def test_export__a_source_that_changed_is_refused(home: Path, tmp_path: Path, names: Path) -> None:
    source = write_tar(tmp_path)
    import_dataset(source, name="set", class_names=names)
    write_shard(source, range(5))
    with pytest.raises(ExportRefusedError, match="changed since it was imported: 1 of 6 samples"):
        export.export_table("set", tmp_path / "cleaned.tar")
    assert not (tmp_path / "cleaned.tar").exists()


def test_export__a_table_keeps_its_columns_as_source(home: Path, tmp_path: Path) -> None:
    for n in range(6):
        (tmp_path / f"{n}.png").write_bytes(picture(n))
    lines = [f"{n}.png,{CLASSES[number]},n{n}" for n, number in enumerate(NUMBERS)]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label,note", *lines]) + "\n")
    import_dataset(tmp_path / "labels.csv", name="set")
    decided("set")
    export.export_table("set", tmp_path / "cleaned.csv", as_source=True)
    wanted = ["path,label,note", "0.png,dog,n0", lines[1], lines[2], lines[4], lines[5]]
    assert (tmp_path / "cleaned.csv").read_text().splitlines() == wanted


def test_export__never_takes_the_place_of_its_source(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(0))
    (tmp_path / "b.png").write_bytes(picture(1))
    source = tmp_path / "labels.csv"
    source.write_text("path,label\na.png,cat\nb.png,dog\n")
    before = source.read_bytes()
    (tmp_path / "by_link.csv").symlink_to(source)
    (tmp_path / "linked").symlink_to(tmp_path)
    os.link(source, tmp_path / "hard.csv")
    import_dataset(tmp_path / "by_link.csv", name="set")
    for out in (source, tmp_path / "by_link.csv", tmp_path / "linked" / "labels.csv", tmp_path / "hard.csv"):
        for as_source in (True, False):
            with pytest.raises(ExportRefusedError, match="belongs to what set was imported from"):
                export.export_table("set", out, force=True, as_source=as_source)
        with pytest.raises(VerificationError, match="belongs to what set was imported from"):
            draw_files.draw_csv("set", 1, out, force=True)
    assert source.read_bytes() == before
    folder = write_folder(tmp_path / "folder", 2)
    (folder / "notes.csv").write_text("path,note\n")
    import_dataset(folder, name="other")
    with pytest.raises(ExportRefusedError, match="belongs to what other was imported from"):
        export.export_table("other", folder / "notes.csv", force=True)
    assert (folder / "notes.csv").read_text() == "path,note\n"
    export.export_table("other", folder / "cleaned.csv")


@pytest.mark.parametrize(
    ("write", "damage", "says"),
    [
        (write_tar, lambda path: path.write_bytes(path.read_bytes()[:700]), "cannot be read as a tar"),
        (write_saved, lambda path: cut(next(path.glob("*.arrow"))), "cannot be read as Arrow"),
        (write_saved, lambda path: next(path.glob("*.arrow")).unlink(), "is missing in"),
    ],
)
def test_container__damaged_is_one_line(
    tmp_path: Path, write: Callable[[Path], Path], damage: Callable[[Path], Any], says: str
) -> None:
    source = write(tmp_path)
    damage(source)
    with pytest.raises(ImportRefusedError, match=says) as refused:
        preview_source(source)
    assert "\n" not in str(refused.value)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def test_parquet__images_of_one_name_are_told_apart_by_their_rows(home: Path, tmp_path: Path) -> None:
    """As ``push_to_hub`` writes a folder of class folders: each class has its own ``0.png``."""
    library = pytest.importorskip("datasets")
    table = pytest.importorskip("datasets.table")
    for n, number in enumerate(NUMBERS):
        place = tmp_path / "photos" / CLASSES[number]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n // 2}.png").write_bytes(picture(n))
    paths = [str(tmp_path / "photos" / CLASSES[number] / f"{n // 2}.png") for n, number in enumerate(NUMBERS)]
    features = library.Features(image=library.Image(), label=library.ClassLabel(names=CLASSES))
    told = library.Dataset.from_dict({"image": paths, "label": NUMBERS}, features=features)
    pq.write_table(table.embed_table_storage(told.data.table), tmp_path / "set.parquet")
    import_dataset(tmp_path / "set.parquet", name="set")
    dataset = decided("set")
    with session() as open_session:
        rows = list(datasets.iterate_samples(open_session, dataset.id))
    assert [row.filepath for row in rows[:3]] == ["0.png", "set.parquet#1", "1.png"]
    assert [cache.original_bytes(dataset, row) for row in rows] == [picture(n) for n in range(6)]
    export.export_table("set", tmp_path / "cleaned.parquet", as_source=True)
    read = library.Dataset.from_parquet(str(tmp_path / "cleaned.parquet"))
    assert (read["label"][:], read.features["label"].names) == ([1, 1, 0, 0, 1], CLASSES)


def test_parquet__as_source_is_one_file_with_its_images(home: Path, tmp_path: Path) -> None:
    hugging_face(range(6)).to_parquet(tmp_path / "set.parquet")
    import_dataset(tmp_path / "set.parquet", name="set")
    decided("set")
    export.export_table("set", tmp_path / "cleaned.parquet", as_source=True)
    table = pq.read_table(tmp_path / "cleaned.parquet")
    assert table.schema.equals(pq.read_schema(tmp_path / "set.parquet"), check_metadata=True)
    assert table.column("label").to_pylist() == [1, 1, 0, 0, 1]
    assert [cell["bytes"] for cell in table.column("image").to_pylist()][3] == picture(4)


def test_parquet__files_that_number_their_classes_otherwise_are_refused(tmp_path: Path) -> None:
    folder = write_hub(tmp_path)
    file = folder / "data" / "validation-00000-of-00001.parquet"
    table = pq.read_table(file)
    about = table.schema.metadata[b"huggingface"].replace(b'["cat", "dog"]', b'["dog", "cat"]')
    assert about != table.schema.metadata[b"huggingface"]
    pq.write_table(table.replace_schema_metadata({b"huggingface": about}), file)
    with pytest.raises(ImportRefusedError, match="declares other classes in 'label'"):
        open_here(str(folder), SourceOptions())
