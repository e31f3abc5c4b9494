"""Every case of the table is read as it is meant, refused or asked about; none is misread in silence."""

from __future__ import annotations

import random
import re
import tempfile
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.cli.commands import cli
from auditor.pictures.sources import layout
from auditor.pictures.sources.layout import is_split
from tests.auditor.importing.world.cases import (
    ARCHIVES,
    PICTURE,
    Case,
    Content,
    cases,
    in_archive,
    wrapped,
)
from tests.auditor.importing.world.outcomes import outcome

ALL = cases()
READABLE = [case for case in ALL if case.wanted]
FOLDERS = [case for case in READABLE if not case.opened and case.options.get("task") is None]
BY_NAME = {case.name: case for case in ALL}
HOW = ["bom", "crlf", "semicolons", "capitals"]
PREFIXES = ["IMG_", "DSC ", "x-y.", unicodedata.normalize("NFD", "bild ä")]


def test_cases__are_many_and_have_names_of_their_own() -> None:
    assert len(ALL) >= 200
    assert len(BY_NAME) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_open_here__reads_what_is_published_as_it_is_meant(tmp_path: Path, case: Case) -> None:
    found = outcome(case, tmp_path)
    assert found.meant == case.wanted, found.said
    assert (case.asks or case.says).lower() in found.said.lower()
    assert bool(case.asks) != bool(case.wanted)


def renamed(case: Case, prefix: str) -> Case:
    """All pictures under other names, wherever they are named."""

    def new(text: str) -> str:
        return PICTURE.sub(lambda found: f"{prefix}{found[1]}", text)

    def inside(content: Content) -> Content:
        if isinstance(content, dict):
            return {new(path): inside(each) for path, each in content.items()}
        return new(content) if isinstance(content, str) else content

    return replace(case, files={new(path): inside(each) for path, each in case.files.items()})


def encoded_anew(case: Case, how: str) -> Case:
    """Its tables in another encoding, or its pictures' suffixes in capitals on the disk alone."""
    if how == "capitals":
        files = {
            re.sub(r"\.\w+$", lambda found: found[0].upper(), path) if isinstance(each, int) else path: each
            for path, each in case.files.items()
        }
        return replace(case, files=files)
    tables = {path: each for path, each in case.files.items() if path.endswith((".csv", ".tsv"))}
    written = {
        "bom": lambda text: "\ufeff" + text,
        "crlf": lambda text: text.replace("\n", "\r\n"),
        "semicolons": lambda text: text if '"' in text or ";" in text else text.replace(",", ";"),
    }[how]
    return replace(case, files={**case.files, **{path: written(str(each)) for path, each in tables.items()}})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_open_here__packed_wrapped_renamed_shuffled_gives_the_same_or_asks(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(ALL))
    if data.draw(st.booleans()):
        case = renamed(case, data.draw(st.sampled_from(PREFIXES)))
    how = data.draw(st.sampled_from(["", *HOW]))
    case = encoded_anew(case, how) if how else case
    order = data.draw(st.permutations(list(case.files)))
    case = replace(case, files={path: case.files[path] for path in order})
    case = wrapped(
        case, *data.draw(st.lists(st.sampled_from(["data", "archive", "My set", "images"]), max_size=3))
    )
    if not case.opened and case.options.get("task") is None and data.draw(st.booleans()):
        case = in_archive(case, f"set{data.draw(st.sampled_from(ARCHIVES))}")
    with tempfile.TemporaryDirectory() as place:
        found = outcome(case, Path(place))
    if found.meant:
        assert found.meant == case.wanted, f"{case.name}: {found.said}"


@pytest.mark.parametrize("case", ALL, ids=str)
def test_open_here__reads_each_row_the_same_or_asks_wherever_it_lies(tmp_path: Path, case: Case) -> None:
    prefix, how = PREFIXES[len(case.name) % len(PREFIXES)], HOW[len(case.name) % len(HOW)]
    other = wrapped(encoded_anew(renamed(case, prefix), how), "data", "My set")
    found = outcome(other, tmp_path)
    assert not found.meant or found.meant == case.wanted, found.said


@pytest.mark.parametrize("seed", range(3))
def test_recognisers__have_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    shuffled = list(layout.RECOGNISERS.items())
    random.Random(seed).shuffle(shuffled)
    monkeypatch.setattr(layout, "RECOGNISERS", dict(shuffled))
    for number, case in enumerate(one for one in ALL if one.family.startswith(("Folders", "Kaggle"))):
        found = outcome(case, tmp_path / str(number))
        assert found.meant == case.wanted, case.name
        assert case.asks.lower() in found.said.lower()


@pytest.mark.parametrize("case", FOLDERS, ids=str)
def test_open_here__reads_a_zip_as_the_folder_in_it(tmp_path: Path, case: Case) -> None:
    found = outcome(in_archive(case, "set.zip"), tmp_path)
    assert found.meant == case.wanted, found.said


def test_dry_run__shows_the_reading_and_imports_nothing(home: Path, tmp_path: Path) -> None:
    source = wrapped(BY_NAME["a test set without classes"], "raw").write(tmp_path / "set")
    said = CliRunner().invoke(cli, ["import", str(source), "--name", "a", "--dry-run"])
    assert said.exit_code == 0, said.output
    lines = ["test, unlabeled: 1", "train, 2 classes: cat 1, dog 1", "wrapper raw/ left out"]
    assert "\n  ".join([*lines, "Sure: test, train are names of splits"]) in said.output
    assert "Nothing was imported" in said.output
    assert not any((home / "datasets").glob("*"))


@pytest.mark.parametrize(
    "name", ["train", "Train", "val2017", "seg_test", "test_set", "Training Data", "dev", "TEST", "trainA"]
)
def test_is_split__knows_common_spellings(name: str) -> None:
    assert is_split(name)


@pytest.mark.parametrize("name", ["trainer", "cat", "contest", "2017", "detest_a", "valley", "train_masks"])
def test_is_split__knows_what_is_none(name: str) -> None:
    assert not is_split(name)
