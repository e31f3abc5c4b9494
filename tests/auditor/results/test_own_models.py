"""A user's own model as a witness: taken under a name that can be one, kept whole, shown and forgotten."""

from __future__ import annotations

import csv
import resource
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from auditor.catalog import reading
from auditor.ground.errors import ImportRefusedError, NotFoundError
from auditor.importing import imports
from auditor.outputs import report
from auditor.results import arrays, own_models, settle
from tests.auditor.sample_pictures import write_csv, write_images
from tests.helpers import Digits, write_digits

CLASSES = [str(k) for k in range(10)]


def sure_of(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, 10) probabilities: 0.91 for the label, 0.01 for the others."""
    return np.where(np.arange(10) == labels[:, None], 0.91, 0.01)


def write_table(path: Path, probs: NDArray[np.float64], rows: Sequence[int] | None = None) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sample_id", *CLASSES])
        for i in range(len(probs)) if rows is None else rows:
            writer.writerow([i, *probs[i]])
    return path


def test_add__is_heard_shown_and_forgotten(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, audit_id = audited
    wrong = int(np.flatnonzero(digits.is_wrong)[3])
    rows = sorted({wrong, *range(100)})
    path = write_table(tmp_path / "mine.csv", sure_of(digits.true_labels), rows=rows)
    before = arrays.evidence(audit_id, wrong)
    added = own_models.add("digits", path)
    assert added == own_models.Added("mine", len(rows), 300)
    assert len(arrays.evidence(audit_id, wrong).verdicts) == 1  # this audit has not heard it yet
    settled = settle.settle(audit_id)
    found = arrays.evidence(audit_id, wrong)
    assert [verdict.title for verdict in found.verdicts] == [before.verdicts[0].title, "mine"]
    assert found.verdicts[1].predicted_label == digits.true_labels[wrong]
    assert np.isnan(found.verdicts[1].trust)
    assert "Both engines see" in found.headline
    assert settled.fits.names == ("mine",)  # the network learned from the labels that it judges
    pool = settled.fits.pools[settled.fits.parts[wrong]]
    posterior = sure_of(digits.true_labels)[wrong] ** pool.weights[0] * np.exp(pool.bias)
    posterior = posterior * pool.transition[:, digits.given_labels[wrong]]
    top = dict(found.top_classes)
    expected = posterior[digits.true_labels[wrong]] / posterior.sum()
    assert top[int(digits.true_labels[wrong])] == pytest.approx(expected, abs=1e-5)
    others = {label: share for label, share in top.items() if label != digits.given_labels[wrong]}
    assert max(others, key=others.__getitem__) == found.suggested_label
    own_models.forget("digits", "mine")
    assert own_models.names(1) == []
    assert [verdict.engine for verdict in arrays.evidence(audit_id, wrong).verdicts] == ["cross_entropy"]
    assert settle.settle(audit_id).witness_names == ("cross_entropy",)


def test_evidence__without_the_pools_of_the_last_settling_it_is_the_plain_mean(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, audit_id = audited
    own_models.add("digits", write_table(tmp_path / "mine.csv", sure_of(digits.true_labels)))
    arrays.keep_pools(audit_id, settle.settle(audit_id).fits, "2020-01-01T00:00:00+00:00")
    mean = (arrays.pred_probs(audit_id, "cross_entropy")[7] + sure_of(digits.true_labels)[7]) / 2
    found = arrays.evidence(audit_id, 7)
    np.testing.assert_allclose(dict(found.top_classes)[int(mean.argmax())], mean.max(), atol=1e-5)


def test_evidence__a_model_without_an_opinion_says_nothing(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, audit_id = audited
    own_models.add("digits", write_table(tmp_path / "mine.csv", sure_of(digits.true_labels), rows=[0, 1]))
    settle.settle(audit_id)
    found = arrays.evidence(audit_id, 5)
    assert [verdict.engine for verdict in found.verdicts] == ["cross_entropy"]
    assert np.isfinite([odds for _, odds in found.top_classes]).all()


def test_report__counts_the_own_model_among_the_witnesses(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, audit_id = audited
    assert "Both engines see" not in report.report("digits")
    own_models.add("digits", write_table(tmp_path / "mine.csv", sure_of(digits.true_labels)))
    settle.settle(audit_id)
    assert "Both engines see" in report.report("digits")


@pytest.mark.parametrize("name", ["cross_entropy", "UMN", "coteaching"])
def test_add__refuses_an_engine_s_name(audited: tuple[Digits, int], tmp_path: Path, name: str) -> None:
    digits, audit_id = audited
    path = write_table(tmp_path / f"{name}.csv", sure_of(digits.true_labels))
    with pytest.raises(
        ImportRefusedError, match=f"'{name}' is an engine's name.*for example to my_{name}.csv"
    ):
        own_models.add("digits", path)
    assert own_models.names(1) == []
    settle.settle(audit_id)


@pytest.mark.parametrize("name", ["../other", "a/b", "..", "-x", "a\nb", "a\0b", "n" * 201, "ü" * 101])
def test_add__refuses_a_name_that_no_file_can_have(
    audited: tuple[Digits, int], tmp_path: Path, name: str
) -> None:
    digits, _ = audited
    path = write_table(tmp_path / "mine.csv", sure_of(digits.true_labels))
    with pytest.raises(ImportRefusedError, match="cannot be a model's name; rename the file: only letters"):
        own_models.add("digits", path, name=name)
    assert own_models.names(1) == []


def test_add__a_full_disk_leaves_the_earlier_predictions(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    own_models.add("digits", write_table(tmp_path / "mine.csv", sure_of(digits.true_labels)))
    before = own_models.load(1)["mine"].copy()
    path = write_table(tmp_path / "mine.csv", sure_of(digits.given_labels))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before.nbytes // 2, hard))  # a write stops in the middle
    try:
        with pytest.raises(ImportRefusedError, match=r"mine\.npy cannot be written .*; nothing was changed"):
            own_models.add("digits", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    np.testing.assert_array_equal(own_models.load(1)["mine"], before)
    assert [one.name for one in (tmp_path / "home/datasets/1/own_predictions").iterdir()] == ["mine.npy"]


def test_forget__names_what_exists(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    with pytest.raises(NotFoundError, match=r"no predictions of 'mine'; it has none\."):
        own_models.forget("digits", "mine")
    own_models.add("digits", write_table(tmp_path / "theirs.v2.csv", sure_of(digits.true_labels)))
    with pytest.raises(NotFoundError, match=r"no predictions of '\.\./mine'; it has those of theirs\.v2\."):
        own_models.forget("digits", "../mine")


@pytest.fixture
def table(home: Path, tmp_path: Path) -> Path:
    """Forty digits whose CSV has columns ``p/0`` to ``p/9`` with a model's probabilities, empty in row 7."""
    digits = write_digits(tmp_path / "source", num=40, num_wrong=4)
    probs = sure_of(digits.true_labels).astype(str)
    probs[7] = ""
    with digits.table.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    with digits.table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [[*header, *(f"p/{name}" for name in CLASSES)]]
            + [[*row, *cells] for row, cells in zip(rows, probs, strict=True)]
        )
    return digits.table


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def imported(path: Path) -> None:
    imports.import_dataset(path, name="digits", image_size=8, workers=1)


def test_add__the_dataset_s_own_columns(table: Path) -> None:
    imported(table)
    added = own_models.add("digits", "column:p/")
    assert added == own_models.Added("p_columns", 39, 40)
    stored = own_models.load(1)["p_columns"]
    assert np.isnan(stored[7]).all()
    np.testing.assert_allclose(np.nanmax(np.delete(stored, 7, axis=0), axis=1), 0.91, rtol=1e-5)


def test_add__columns_of_a_class_are_missing(table: Path) -> None:
    change(table, "p/3,", "q/3,")
    imported(table)
    message = (
        r"column:p/: digits was imported without a column 'p/3' \(1 of 10 classes lack theirs\); its col.*p/0"
    )
    with pytest.raises(ImportRefusedError, match=message):
        own_models.add("digits", "column:p/")
    assert own_models.names(1) == []


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("high", r"sample 0 \(images/0000\.png\) has 'high' in column 'p/0', which is not a probability"),
        ("", r"sample 0 \(images/0000\.png\) has '' in column 'p/0'.*fill in all classes of a row"),
        ("inf", r"sample 0 \(images/0000\.png\) has 'inf' in column 'p/0'"),
        ("3.5", r"column:p/: sample 0 \(images/0000\.png\) sums to 3\.59.*\(1 such rows\).*apply softmax"),
    ],
)
def test_add__columns_with_a_bad_cell_name_the_sample(table: Path, cell: str, message: str) -> None:
    change(table, ",0.91,", f",{cell},")  # the first digit is a zero
    imported(table)
    with pytest.raises(ImportRefusedError, match=message):
        own_models.add("digits", "column:p/")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("by_name", [True, False])
def test_add_label_issues__both_columns_are_read_as_the_labels_here(tmp_path: Path, by_name: bool) -> None:
    """Classes called 1, 2 and 3; Datalab that was given numbers predicts 1 and 2, which are names as well."""
    given, predicted = [0, 1, 2, 2, 1, 0], [1, 1, 2, 1, 2, 1]
    rows = [(path, str(label + 1)) for (path, _), label in zip(write_images(tmp_path, 6), given, strict=True)]
    imports.import_dataset(write_csv(tmp_path / "l.csv", ("path", "label"), rows), name="three", workers=1)
    shift = int(by_name)
    issues = pd.DataFrame(
        {
            "label_score": 0.1,
            "given_label": np.array(given) + shift,
            "predicted_label": np.array(predicted) + shift,
        }
    )
    own_models.add_label_issues("three", issues)
    heard = own_models.load(reading.dataset("three").id)["datalab"]
    is_other = np.array(given) != predicted
    assert heard[is_other].argmax(axis=1).tolist() == np.array(predicted)[is_other].tolist()
