"""Rows that move at the source: the picture decides which sample a row is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import datasets as hugging_face
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.server import pictures
from auditor.catalog import datasets, db
from auditor.ground.errors import ExportRefusedError, NotFoundError
from auditor.importing.imports import import_dataset
from auditor.outputs import export
from auditor.pictures import cache
from auditor.review import decisions
from tests.auditor.sample_pictures import digits, encoded

pytestmark = pytest.mark.usefixtures("home")
NUM = 24
KIND = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def picture(number: int) -> bytes:
    """A digit; 22 and 23 are the same one."""
    return encoded(digits(NUM)[0][min(number, NUM - 2)])


def label_of(number: int) -> str:
    return "odd" if number % 2 else "even"


def write_parquet(place: Path, order: list[int]) -> Path:
    rows = [{"bytes": picture(n), "path": None} for n in order]
    columns = {"image": pa.array(rows, KIND), "label": [label_of(n) for n in order], "n": order}
    pq.write_table(pa.table(columns), place)
    return place


def write_saved(place: Path, order: list[int]) -> Path:
    features = hugging_face.Features(
        {
            "image": hugging_face.Image(),
            "label": hugging_face.ClassLabel(names=["even", "odd"]),
            "n": hugging_face.Value("int64"),
        }
    )
    rows = {
        "image": [{"bytes": picture(n), "path": None} for n in order],
        "label": [n % 2 for n in order],
        "n": order,
    }
    hugging_face.Dataset.from_dict(rows, features=features).save_to_disk(place)
    return place


MOVES: dict[str, Callable[[list[int]], list[int]]] = {
    "reversed": lambda order: order[::-1],
    "sorted by label": lambda order: sorted(order, key=label_of),
    "one in front": lambda order: [order[5], *order],
}


@pytest.mark.parametrize(
    ("write", "move"),
    [*((write_parquet, move) for move in MOVES), (write_saved, "one in front")],
    ids=[*MOVES, "saved by datasets"],
)
def test_as_source__labels_follow_their_pictures(
    tmp_path: Path, write: Callable[[Path, list[int]], Path], move: str
) -> None:
    source = write(tmp_path / "set.parquet", list(range(NUM)))
    import_dataset(source, name="set")
    decide(relabel=3, exclude=10)
    moved = write(tmp_path / "moved.parquet", MOVES[move](list(range(NUM))))
    replace(source, moved)
    out = tmp_path / ("cleaned.parquet" if write is write_parquet else "cleaned")
    export.export_table("set", out, as_source=True)
    found = rows_of(out)
    assert {n: label for n, label in found if n != 5 or label == label_of(5)} == {
        n: "even" if n == 3 else label_of(n) for n in range(NUM) if n != 10
    }


def test_folder__pictures_lie_in_their_own_class(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "set.parquet", list(range(NUM)))
    import_dataset(source, name="set")
    write_parquet(source, MOVES["one in front"](list(range(NUM))))
    export.export_tree("set", tmp_path / "out")
    same = {picture(NUM - 1)}
    for name in ("even", "odd"):
        held = {file.read_bytes() for file in (tmp_path / "out" / name).iterdir()}
        assert held - same == {picture(n) for n in range(NUM - 2) if label_of(n) == name}


def test_folder__a_sample_that_is_gone_is_refused(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "set.parquet", list(range(NUM)))
    import_dataset(source, name="set")
    write_parquet(source, list(range(1, NUM)))
    with pytest.raises(NotFoundError, match="is another picture than the one that was imported"):
        export.export_tree("set", tmp_path / "out")
    with pytest.raises(ExportRefusedError, match="1 of 24 samples cannot be found in it"):
        export.export_table("set", tmp_path / "out.parquet", as_source=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "set.parquet"]


def test_app__shows_the_imported_picture(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "set.parquet", list(range(NUM)))
    found = import_dataset(source, name="set", image_size=16)
    before = [pictures.encoded_picture(found.dataset_id, n, 8) for n in range(NUM)]
    write_parquet(source, list(range(NUM))[::-1])
    after = [pictures.encoded_picture(found.dataset_id, n, 8) for n in range(NUM)]
    with db.session() as session:
        dataset = datasets.get(session, "set")
        samples = list(datasets.iterate_samples(session, dataset.id))
    assert after == [cache.thumbnail(dataset, sample, 8) for sample in samples]
    assert before[0] != after[1]
    with pytest.raises(cache.MovedError):
        cache.original_bytes(dataset, samples[0])


def test_files__a_label_is_not_put_on_another_picture(tmp_path: Path) -> None:
    for n in range(6):
        (tmp_path / f"{n}.png").write_bytes(picture(n))
    lines = ["path,label", *(f"{n}.png,{label_of(n)}" for n in range(6))]
    (tmp_path / "set.csv").write_text("\n".join(lines))
    import_dataset(tmp_path / "set.csv", name="set")
    decide(relabel=3, exclude=4)
    (tmp_path / "3.png").write_bytes(picture(11))
    with pytest.raises(cache.MovedError, match=r"3\.png of 'set' is another picture"):
        export.export_table("set", tmp_path / "out.csv", as_source=True)


def test_files__names_that_were_exchanged_are_no_correction_made_there(tmp_path: Path) -> None:
    for n in range(6):
        (tmp_path / f"{n}.png").write_bytes(picture(n))
    lines = ["path,label", *(f"{n}.png,{label_of(n)}" for n in range(6))]
    (tmp_path / "set.csv").write_text("\n".join(lines))
    import_dataset(tmp_path / "set.csv", name="set")
    decisions.decide(1, 3, "relabel", label=0, reviewer="ada")
    (tmp_path / "3.png").write_bytes(picture(4))
    (tmp_path / "set.csv").write_text("\n".join(lines).replace("3.png,odd", "3.png,even"))
    with pytest.raises(cache.MovedError, match=r"3\.png of 'set' is another picture"):
        export.export_table("set", tmp_path / "out.csv", as_source=True)
    (tmp_path / "3.png").write_bytes(picture(3))
    export.export_table("set", tmp_path / "out.csv", as_source=True)  # corrected there, too


@pytest.mark.parametrize("label", [" Odd ", "odd"])
def test_as_source__a_label_that_was_changed_there_is_a_conflict_and_stays(
    tmp_path: Path, label: str
) -> None:
    """``label``: what 3 is called now, the same class in other letters; 2, 4 and 5 are corrected, 6 as decided."""
    now = [label_of(n) for n in range(8)]

    def write() -> None:
        lines = ["path,label", *(f"{n}.png,{name}" for n, name in enumerate(now))]
        (tmp_path / "set.csv").write_text("\n".join(lines) + "\n")

    for n in range(8):
        (tmp_path / f"{n}.png").write_bytes(picture(n))
    write()
    import_dataset(tmp_path / "set.csv", name="set")
    decide(relabel=3, exclude=4)
    decisions.decide(1, 2, "keep", reviewer="ada")
    decisions.decide(1, 6, "relabel", label=1, reviewer="ada")
    decisions.decide(1, 5, "relabel", label=0, reviewer="ada")
    now[2], now[3], now[4], now[5], now[6], now[7] = "odd", label, "third", "", "odd", "even"
    write()
    summary = export.export_table("set", tmp_path / "out.csv", as_source=True)
    now[3] = "even"
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert lines == [f"{n}.png,{name}" for n, name in enumerate(now)]
    assert (
        "3 labels were changed at the source after the import and decided otherwise here" in summary.sentence
    )
    assert (
        "2.png (even, there odd, here even); 4.png (even, there third, here exclude); 5.png"
        in summary.sentence
    )
    assert (summary.num_rows, summary.num_relabel, summary.num_exclude) == (8, 1, 0)


def decide(*, relabel: int, exclude: int) -> None:
    decisions.decide(1, relabel, "relabel", label=0, reviewer="ada")
    decisions.decide(1, exclude, "exclude", reviewer="ada")


def replace(old: Path, new: Path) -> None:
    """As a person does: the newer file or folder under the older name."""
    old.rename(old.with_suffix(".old"))
    new.rename(old)


def rows_of(place: Path) -> list[tuple[int, str]]:
    if place.is_dir():
        held = hugging_face.load_from_disk(str(place))
        return [(row["n"], ["even", "odd"][row["label"]]) for row in held.remove_columns("image")]
    table = pq.read_table(place, columns=["n", "label"]).to_pylist()
    return [(row["n"], row["label"]) for row in table]
