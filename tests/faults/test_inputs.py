"""Plain bad input through the command line: one line with a remedy, no traceback, no hang."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from app.session import words
from auditor.api import open_dataset
from auditor.api.memory import from_arrays, from_dataframe
from auditor.audits import plan
from auditor.catalog import audits, backups, datasets, db
from auditor.cli.commands import cli
from auditor.ground.errors import AuditorError
from auditor.ground.files import written_whole
from auditor.ground.settings import settings
from auditor.ground.tables import quoted, read_table, unquoted
from auditor.ground.wording import visible
from auditor.importing.imports import import_dataset, preview_source
from auditor.pictures import cache
from auditor.pictures.sources import UnreadableError, ordered_class_names, read_bytes
from tests.auditor.catalogs import add_dataset
from tests.auditor.pictures.sources import test_containers
from tests.auditor.sample_pictures import write_folder
from tests.forker import COMMAND, Forker
from tests.shapes import draw_shapes, write_pairs

Auditor = Callable[..., tuple[int, str, str]]


@pytest.fixture
def auditor(forker: Forker) -> Auditor:
    """The command line in a process of its own: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        done = forker.call(COMMAND, ["auditor", *arguments])
        return done.returncode, done.stdout, done.stderr

    return call


def is_whole_or_one_line(work: Callable[[], object]) -> bool:
    try:
        work()
    except AuditorError as error:
        return len(str(error).splitlines()) == 1
    return True


def refusal(source: Path | str) -> str:
    with pytest.raises(AuditorError) as caught:
        import_dataset(source, name="x", workers=1)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify", "few", "--draw", "3", "--out", "x.csv", "--seed", "-1"], "-1 is not in the range"),
        (["audit", "few", "--seed", str(2**31)], "is not in the range"),
        (["audit", "few", "--engines", "umn,umn"], "umn is named twice"),
        (["suspects", "few", "--audit", "9" * 30], "is not in the range"),
        (["compare", "few", "--seeds", "9" * 30], "is not in the range"),
    ],
)
def test_cli__numbers_out_of_range_are_wrong_usage(
    home: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    add_dataset()
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments, prog_name="auditor")
    assert ended.value.code == 2
    assert said in capfd.readouterr().err


def test_ordered_class_names__takes_what_only_looks_like_numbers_as_text() -> None:
    assert ordered_class_names(["10", "9", "-1"]) == ["-1", "9", "10"]
    assert ordered_class_names(["1", "--1"]) == ["--1", "1"]
    assert ordered_class_names(["9" * 5_000, "1"]) == ["1", "9" * 5_000]


@pytest.mark.parametrize("source", ["", " ", "~nouser_at_all/x", "x" * 5_000, "a\0b"])
def test_import__a_source_that_is_no_path_is_refused(home: Path, source: str) -> None:
    assert refusal(source)


def test_import__loops_of_links_and_pipes_are_refused_and_do_not_hang(
    home: Path, tmp_path: Path, auditor: Auditor
) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    assert refusal(tmp_path / "loop.csv")
    assert "is no regular file" in refusal(tmp_path / "pipe.csv")
    add_dataset()
    for command in (
        ["review", "few", "--apply"],
        ["verify", "few", "--apply"],
        ["audit", "few", "--pred-probs"],
    ):
        code, _, err = auditor(*command, str(tmp_path / "pipe.csv"))
        assert code == 1, err
        assert err.startswith("auditor: ")


def test_import__holes_of_gigabytes_are_refused_unread(home: Path, tmp_path: Path) -> None:
    add_dataset()
    for name, size in (("t.csv", 2**30), ("a.jsonl", 2**30), ("a.json", 2**33), ("rows.csv", 2**33)):
        with (tmp_path / name).open("wb") as file:
            if name == "rows.csv":
                file.write(b"filepath,label\n")
            file.truncate(size)
        assert refusal(tmp_path / name)
    with pytest.raises(AuditorError, match=r"row 1 of .*t\.csv has over 33,554,432 letters"):
        read_table(tmp_path / "t.csv")
    with pytest.raises(AuditorError, match=r"rows\.csv is larger than 4 GB"):
        read_table(tmp_path / "rows.csv")


def test_backup__never_takes_the_place_of_what_it_is_of(home: Path, tmp_path: Path) -> None:
    add_dataset()
    for place in (home / "catalog.db", home / "datasets" / "x.tar"):
        with pytest.raises(AuditorError, match="lies in AUDITOR_HOME"):
            backups.backup(place, force=True)
    assert backups.backup(tmp_path / "x.tar").num_datasets == 1


def test_written_whole__takes_names_that_are_no_utf8_and_replaces_no_pipe(tmp_path: Path) -> None:
    with written_whole(tmp_path / "caf\udce9.csv") as beside:
        beside.write_text("whole")
    assert (tmp_path / "caf\udce9.csv").read_text() == "whole"
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OSError, match="no regular file"), written_whole(tmp_path / "pipe.csv"):
        pass
    assert (tmp_path / "pipe.csv").is_fifo()


@pytest.mark.parametrize("network", ["nosuch", "timm:nosuch", "torchvision:nosuch"])
def test_plan__a_network_that_is_not_there_is_refused_before_anything_starts(
    home: Path, network: str
) -> None:
    add_dataset()
    options = {"cross_entropy": {"network": network}}
    with pytest.raises(AuditorError, match="nosuch"):
        plan.plan_audit("few", ["cross_entropy"], options=options, map_method="pca", device="cpu")
    with db.session() as session:
        assert audits.of_dataset(session, 1) == []


def test_import__a_name_with_a_line_break_is_refused_on_one_line(home: Path, tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "a\n=1")


def test_import__pipes_beside_the_source_hold_nobody_up(home: Path, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "set", 10)
    os.mkfifo(tmp_path / "names")
    with pytest.raises(AuditorError, match="no regular file"):
        import_dataset(source, name="x", workers=1, class_names=tmp_path / "names")
    with pytest.raises(AuditorError, match="no regular file"):
        backups.restore(tmp_path / "names")


@pytest.mark.parametrize("name", ["classes.txt", "ImageSets/Segmentation/train.txt", "labelmap.txt"])
@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"road:1,2,x::"])
def test_import__texts_beside_masks_hold_nobody_up(
    home: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    source = write_pairs(tmp_path / "set", draw_shapes(2, size=8))
    (source / "images").rename(source / "JPEGImages")
    (source / "masks").rename(source / "SegmentationClass")
    (source / name).parent.mkdir(parents=True, exist_ok=True)
    (source / name).unlink(missing_ok=True)
    if content is None:
        os.mkfifo(source / name)
    else:
        (source / name).write_bytes(content)
    names = source / name if name == "classes.txt" else None
    assert is_whole_or_one_line(
        lambda: import_dataset(source, name="x", task="segmentation", class_names=names, workers=1)
    )


@pytest.mark.parametrize("masks", [False, True])
def test_import__a_picture_that_is_a_link_to_itself_is_reported(
    home: Path, tmp_path: Path, masks: bool
) -> None:
    shapes = draw_shapes(2, size=8)
    source = write_pairs(tmp_path / "set", shapes) if masks else write_folder(tmp_path / "set", 10)
    picture = next((source / "masks" if masks else source).rglob("*.png"))
    picture.unlink()
    picture.symlink_to(picture.name)
    with pytest.raises(AuditorError, match="link to nothing|no mask"):
        import_dataset(source, name="x", workers=1, task="segmentation" if masks else None)


@pytest.mark.parametrize(
    ("write", "pattern"),
    [
        (test_containers.write_saved_splits, "state.json"),
        (test_containers.write_saved, "*.arrow"),
        (test_containers.write_saved_splits, "dataset_dict.json"),
        (test_containers.write_hub, "*.parquet"),
        (test_containers.write_shards, "*.tar"),
    ],
)
def test_preview__a_pipe_in_place_of_a_file_holds_nobody_up(
    tmp_path: Path, write: Callable[[Path], Path], pattern: str
) -> None:
    source = write(tmp_path)
    file = next(source.rglob(pattern))
    file.unlink()
    os.mkfifo(file)
    assert is_whole_or_one_line(lambda: preview_source(source))


def test_import__a_zip_member_without_a_name_is_passed_over(home: Path, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "set", 10)
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for path in source.rglob("*.png"):
            archive.write(path, str(path.relative_to(source)))
        archive.writestr(zipfile.ZipInfo(""), b"x")
    assert import_dataset(tmp_path / "set.zip", name="x", workers=1).num_samples == 10


def test_import__a_dangling_link_is_reported(home: Path, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", 10)
    inside = next(path for path in folder.iterdir() if path.is_dir())
    (inside / "gone.png").symlink_to(inside / "nowhere.png")
    assert "gone.png: is a link to nothing" in refusal(folder)


def test_import__hundreds_of_nested_folders_are_reported(home: Path, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", 10)
    inside = next(path for path in folder.iterdir() if path.is_dir())
    descriptor = os.open(inside, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=descriptor)
        descriptor, above = os.open("d", os.O_RDONLY, dir_fd=descriptor), descriptor
        os.close(above)
    os.close(descriptor)
    assert "folders deep" in refusal(folder)


def parquet(path: Path, labels: pa.Array, **more: pa.Array) -> Path:
    Image.new("L", (8, 8), 9).save(path.parent / "a.png")
    data = (path.parent / "a.png").read_bytes()
    pq.write_table(pa.table({"image": pa.array([data] * len(labels)), "label": labels, **more}), path)
    return path


def test_import__parquet_labels_that_are_no_classes_are_refused(home: Path, tmp_path: Path) -> None:
    assert "inf" in refusal(parquet(tmp_path / "p.parquet", pa.array([1.0, float("inf")])))
    assert "a label is one number or text" in refusal(parquet(tmp_path / "p.parquet", pa.array([[1], [2]])))
    names = ["image", "label", "label"]
    columns = [pa.array([b"x"]), pa.array([1]), pa.array([2])]
    pq.write_table(pa.Table.from_arrays(columns, names=names), tmp_path / "twice.parquet")
    assert "the column 'label' twice" in refusal(tmp_path / "twice.parquet")
    deep = pa.table({"image": columns[0], "label": columns[1]}).replace_schema_metadata(
        {"huggingface": "[" * 100_000, "classes": "[" * 100_000}
    )
    pq.write_table(deep, tmp_path / "deep.parquet")
    assert refusal(tmp_path / "deep.parquet")


def test_import__a_parquet_part_that_leads_out_is_refused(home: Path, tmp_path: Path) -> None:
    parquet(tmp_path / "secret.parquet", pa.array([1, 2]))
    (tmp_path / "parts").mkdir()
    parquet(tmp_path / "parts" / "0.parquet", pa.array([1, 2]))
    (tmp_path / "parts" / "a.png").unlink()
    (tmp_path / "parts" / "1.parquet").symlink_to(tmp_path / "secret.parquet")
    assert f"is a link to {tmp_path}/secret.parquet, outside" in refusal(tmp_path / "parts")


def test_import__a_folder_with_a_hash_inside_a_zip_is_read(home: Path, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", 10)
    next(path for path in folder.iterdir() if path.is_dir()).rename(folder / "#1")
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", "../set.zip", *os.listdir(folder)], cwd=folder, check=True
    )
    report = import_dataset(tmp_path / "set.zip", name="x", workers=1)
    with db.session() as session:
        dataset = datasets.get(session, "x")
        for sample in datasets.iterate_samples(session, dataset.id):
            assert cache.original_bytes(dataset, sample)
    assert report.num_samples == 10


@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        (
            "sample_id,filepath,review_decision",
            "3,4.png,exclude",
            r"'4\.png' is sample 4, and sample_id says '3'",
        ),
        ("sample_id,review_decision", "²,exclude", "sample_id '²' is not in the dataset"),
        ("sample_id,review_decision", "9" * 5_000 + ",exclude", "is not in the dataset"),
        ("sample_id,review_decision,review_decision", "1,exclude,keep", "the column 'review_decision' twice"),
        (
            "sample_id,review_decision,reviewed_at",
            "1,exclude,0001-01-01T00:00:00+14:00",
            "is no ISO 8601 time",
        ),
    ],
)
def test_review__rows_that_contradict_themselves_are_refused(
    home: Path, tmp_path: Path, header: str, row: str, said: str
) -> None:
    from auditor.review import decision_files

    add_dataset()
    (tmp_path / "r.csv").write_text(f"{header}\n{row}\n")
    with pytest.raises(AuditorError, match=said):
        decision_files.apply_file("few", tmp_path / "r.csv", reviewer="ann")


@pytest.mark.parametrize(
    "array", [np.full((40, 2), 0.5 + 0j), np.array([[0.5, 0.5]]), np.full((40, 2), "a")], ids=str
)
def test_pred_probs__that_are_no_probabilities_store_nothing(
    home: Path, tmp_path: Path, array: np.ndarray
) -> None:
    from auditor.results import own_models

    add_dataset()
    np.save(tmp_path / "p.npy", array)
    with pytest.raises(AuditorError):
        own_models.add("few", tmp_path / "p.npy")
    content = (tmp_path / "p.npy").read_bytes()
    (tmp_path / "p.npy").write_bytes(content.replace(b"'shape': (", b"'shape': (99999999999, ", 1))
    with pytest.raises(AuditorError, match="cannot be read as npy"):
        own_models.add("few", tmp_path / "p.npy")
    assert own_models.names(1) == []


def test_pred_probs__of_a_refused_command_are_not_stored(home: Path, tmp_path: Path) -> None:
    from auditor.results import own_models

    add_dataset()
    np.save(tmp_path / "mine.npy", np.full((40, 2), 0.5))
    with pytest.raises(AuditorError, match="nosuch"):
        cli.main(
            ["audit", "few", "--pred-probs", str(tmp_path / "mine.npy"), "--engines", "nosuch"],
            standalone_mode=False,
        )
    assert own_models.names(1) == []


def test_home__is_its_owner_s_alone(home: Path) -> None:
    add_dataset()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    for file in home.glob("catalog.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_visible__spells_out_what_acts_on_a_terminal() -> None:
    assert visible("a\x1b[31mb\x07\x9b\u202ec\n\té") == "a\\x1b[31mb\\x07\\x9b\\u202ec\n\té"


def test_status__names_with_escape_codes_are_text(home: Path, tmp_path: Path, auditor: Auditor) -> None:
    folder = write_folder(tmp_path / "set", 10)
    next(path for path in folder.iterdir() if path.is_dir()).rename(folder / "cat\x1b[2J")
    (folder / "\x1b[31m.txt").write_text("no image")
    code, out, err = auditor("import", str(folder), "--name", "few")
    assert code == 0, err
    assert "\x1b" not in out


@pytest.mark.parametrize("cell", ["\n=1+1", "\n", "'\n=1", "=1", "\r@x"])
def test_quoted__a_cell_that_begins_with_a_line_break_is_no_formula(cell: str) -> None:
    assert quoted(cell).startswith("'")
    assert unquoted(quoted(cell)) == cell


@pytest.mark.parametrize(
    "words", [["status", "a", "\x1b[2J"], ["\x1b[2J"], ["suspects", "a", "--top", "\x1b[2J"]]
)
def test_cli__what_was_typed_wrongly_moves_no_cursor(
    capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words, prog_name="auditor")
    err = capfd.readouterr().err
    assert ended.value.code == 2
    assert "\x1b" not in err
    assert "x1b" in err


def test_read_bytes__a_pipe_in_the_place_of_an_image_or_the_root_is_named(home: Path, tmp_path: Path) -> None:
    import_dataset(write_folder(tmp_path / "set", 10), name="few", image_size=8, workers=1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AuditorError, match="does not hold the images of 'few'"):
        cache.move_root("few", tmp_path / "pipe")
    with db.session() as session:
        dataset = datasets.get(session, "few")
        (sample,) = datasets.samples(session, dataset.id, [0])
    image = tmp_path / "set" / sample.filepath
    image.unlink()
    os.mkfifo(image)
    with pytest.raises(UnreadableError, match="is no regular file"):
        read_bytes(dataset.root, sample.location)


@pytest.mark.parametrize("name", ["caf\udce9", "x" * 50 + "\udcff"])
def test_open__text_that_nothing_can_store_is_refused(home: Path, name: str) -> None:
    with pytest.raises(AuditorError, match="takes no such text or number"):
        open_dataset(name)


def test_from_memory__what_has_no_entries_or_no_utf8_is_refused(home: Path) -> None:
    with pytest.raises(AuditorError, match="images is ndarray without entries"):
        from_arrays(np.array(1), [], name="x")
    with pytest.raises(AuditorError, match="labels is int without entries"):
        from_arrays(np.zeros((1, 8, 8), np.uint8), 1, name="x")  # type: ignore[arg-type]
    with pytest.raises(AuditorError, match="a label or a split cannot be stored as UTF-8"):
        from_arrays(np.zeros((1, 8, 8), np.uint8), ["\udce9"], name="x")
    with pytest.raises(AuditorError, match="a cell of the table cannot be stored as UTF-8"):
        from_dataframe(pd.DataFrame({"filepath": ["\udce9"], "label": ["a"]}, dtype=object), name="x")
    assert not any(settings().uploads.iterdir())


@pytest.mark.parametrize("name", [":material/home:", ":smile:", ":+1:", "a :red_circle: b"])
def test_plain__codes_of_pictures_are_text(name: str) -> None:
    shown = words.plain(name).replace("\\", "")
    assert shown.replace(words.WORD_JOINER, "") == name
    assert not words.SHORTCODE.search(shown)


def test_status_and_remove__work_beside_a_damaged_row(home: Path, auditor: Auditor) -> None:
    add_dataset("good")
    add_dataset("bad")
    with db.session() as session:
        statement = "UPDATE dataset SET class_names = '[\"cat' WHERE name = 'bad'"
        session.connection().exec_driver_sql(statement)
    code, out, err = auditor("status")
    assert code == 0, err
    assert "good: 40 images, 2 classes" in out
    assert "bad: cannot be shown: " in out
    code, _, err = auditor("suspects", "bad")
    assert code == 1
    assert "holds a damaged value" in err
    assert err.count("\n") == 1
    code, _, err = auditor("remove", "bad", "--yes")
    assert code == 0, err
    with db.session() as session:
        assert datasets.names(session) == ["good"]
