"""An audit of numbers from the table to the cleaned one, and the commands on the way."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from auditor.api import open_dataset
from auditor.catalog import datasets, reading
from auditor.catalog.db import session
from auditor.cli.commands import cli
from auditor.ground.errors import AuditorError, ImportRefusedError, ReviewError, VerificationError
from auditor.ground.numbers import figure, number_text
from auditor.ground.progress import Progress
from auditor.labels.numbers import exporting
from auditor.labels.numbers.judging import LEVEL, judge
from auditor.labels.numbers.kind import KIND, nearest_examples
from auditor.results import statements
from auditor.review import decisions, draw_files, drawing
from tests.numbered import NUM, WRONG, import_ages, make_home, write_table


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def command(*arguments: str) -> str:
    found = invoke(*arguments)
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.fixture
def ages(home: Path, tmp_path: Path) -> Path:
    """Forty numbers, imported."""
    del home
    import_ages(tmp_path)
    return tmp_path


@pytest.fixture
def audited(home: Path, tmp_path: Path) -> Path:
    """Forty numbers, audited."""
    del home
    make_home(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nan", "is nan, which is no number to learn from"),
        ("-inf", "is -inf, which is no number to learn from"),
        ("1e999", "is '1e999', which is too large"),
        ("3,5", "is '3,5', which is no number; write it with a decimal point"),
        ("old", "is 'old', which is no number; correct it, or leave the cell empty"),
    ],
)
def test_import__refuses_what_is_no_number_with_file_and_row(
    home: Path, tmp_path: Path, text: str, said: str
) -> None:
    del home
    table = write_table(tmp_path, ["1", text, "3"])
    with pytest.raises(ImportRefusedError, match=f"^ages.csv, row 3: has a label that {said}"):
        invoke("import", str(table), "--name", "bad", "--task", "regression", "--label-column", "age")


def test_import__keeps_numbers_of_any_spelling_and_those_that_are_missing(home: Path, tmp_path: Path) -> None:
    del home
    table = write_table(tmp_path, ["1.50", "", "-2e3", "+7"])
    command("import", str(table), "--name", "some", "--task", "regression", "--label-column", "age")
    with session() as open_session:
        dataset = datasets.get(open_session, "some")
        numbers = datasets.given_numbers(open_session, dataset.id)
        assert datasets.given_labels(open_session, dataset.id).tolist() == [0, -1, 0, 0]
    assert np.array_equal(numbers, [1.5, np.nan, -2000.0, 7.0], equal_nan=True)


def test_audit__puts_the_wrong_numbers_first_with_an_interval_around_the_right_ones(audited: Path) -> None:
    del audited
    page = open_dataset("ages").suspects(NUM)
    assert set(page.sample_id[: len(WRONG)]) == set(WRONG)
    assert page.is_label_issue[: len(WRONG)].all()
    truth = 2.0 * page.sample_id
    inside = (page.suggested_low <= truth) & (truth <= page.suggested_high)
    # How many right numbers twenty rows teach a network differs by processor; what is not doubted does not.
    assert inside[~page.is_label_issue].mean() >= LEVEL
    assert inside.mean() > 0.5
    shown = json.loads(command("suspects", "ages", "--top", "1", "--json"))
    assert shown["suspects"][0]["given"] == page.given[0]
    assert "numbers" in command("status", "ages")


def test_review_and_export__change_what_people_decided_and_come_back(audited: Path) -> None:
    first, second, third = WRONG
    said = audited / "said.csv"
    said.write_text(
        f"sample_id,review_decision,cleaned_label\n{first},relabel,8.25\n{second},exclude,\n{third},keep,\n"
    )
    assert "1 relabel, 1 exclude, 1 keep" in command(
        "review", "ages", "--apply", str(said), "--reviewer", "ada"
    )
    assert "3 unchanged" in command("review", "ages", "--apply", str(said), "--reviewer", "ada")
    numbers, labels, trusted = KIND.inputs(reading.dataset("ages")).values()
    assert numbers[first] == 8.25
    assert (labels[second], np.isnan(numbers[second])) == (-1, True)
    assert np.flatnonzero(trusted).tolist() == [first, third]
    out = audited / "source" / "cleaned.csv"
    seen: list[Progress] = []
    done = exporting.export("ages", out, progress=seen.append)
    assert [(seen[place].stage, seen[place].done, seen[place].total) for place in (0, -1)] == [
        ("writing rows", 0, NUM),
        ("writing rows", NUM, NUM),
    ]
    assert (done.num_rows, done.num_relabel, done.num_exclude) == (NUM, 1, 1)
    rows = list(csv.DictReader(out.open()))
    assert [rows[one]["cleaned_label"] for one in WRONG] == ["8.25", "", "6"]
    assert rows[first]["given_label"] == "68"
    assert rows[0]["note"] == "n0"
    command("import", str(out), "--name", "again", "--task", "regression")
    again = audited / "again.csv"
    exporting.export("again", again)
    kept = ("given_label", "cleaned_label", "action", "review_decision", "reviewer", "reviewed_at")
    assert [[row[name] for name in kept] for row in csv.DictReader(again.open())] == [
        [row[name] for name in kept] for row in rows
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (f"{WRONG[0]},relabel,many", "row 2: cleaned_label is 'many', which is no number"),
        (
            f"{WRONG[0]},relabel,68.0",
            "row 2: relabel to 68, which is the given number; write the right number",
        ),
        (f"{WRONG[0]},multiple,", "row 2: 'multiple' is no decision on a number; use one of keep, relabel"),
    ],
)
def test_review__refuses_a_row_that_cannot_be_meant(ages: Path, row: str, said: str) -> None:
    path = ages / "said.csv"
    path.write_text(f"sample_id,review_decision,cleaned_label\n{row}\n")
    with pytest.raises(ReviewError, match=said):
        invoke("review", "ages", "--apply", str(path), "--reviewer", "ada")


def test_verify__counts_as_wrong_what_is_farther_than_the_tolerance(audited: Path) -> None:
    out = audited / "sample.csv"
    with pytest.raises(VerificationError, match="Numbers need a tolerance"):
        drawing.draw("ages", 20)
    drawn = draw_files.draw_csv("ages", 30, out, tolerance=0.5, purpose="rate")
    with pytest.raises(VerificationError, match="have the tolerance 0.5; name the same"):
        drawing.draw("ages", 5, tolerance=0.6)
    rows = list(csv.DictReader(out.open()))
    for row in rows:
        truth = 2.0 * int(row["sample_id"])
        row["verdict_label"] = f"{truth + 0.5:.1f}"  # just near enough, and away from what was given
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    shown = command("verify", "ages", "--apply", str(out), "--reviewer", "ada")
    wrong = len(set(drawn.sample_ids) & set(WRONG))
    assert f"{wrong} of 30 labels checked at random are wrong" in shown
    standing = statements.load(reading.audited("ages")[1].id)
    assert standing.verified.is_wrong(standing.given_labels).sum() == wrong
    outcomes = decisions.outcomes(standing.dataset.id)
    assert {one for one, row in outcomes.items() if row.decision == "relabel"} == set(WRONG) & set(
        drawn.sample_ids
    )
    assert outcomes[drawn.sample_ids[0]].number == 2.0 * drawn.sample_ids[0] + 0.5


def test_report__shows_the_numbers_farthest_from_what_is_predicted(home: Path, tmp_path: Path) -> None:
    del home
    make_home(tmp_path)
    invoke("report", "ages", "--out", str(tmp_path / "r.html"))
    text = (tmp_path / "r.html").read_text()
    worst = open_dataset("ages").suspects(1).iloc[0]
    between = f"{figure(worst.suggested_low)} to {figure(worst.suggested_high)}"
    assert f'<strong class="given">{number_text(worst.given)}</strong> →' in text
    assert f'<strong class="suggested">{figure(worst.suggested)} ({between})</strong>' in text
    assert text.index(f"#{worst.sample_id} ") < text.index(worst.filepath)
    assert " labeled · numbers</p>" in text


def test_commands__for_classes_refuse_numbers_in_one_line(ages: Path) -> None:
    with pytest.raises(AuditorError, match="^The labels of ages are numbers: `auditor compare` is for"):
        invoke("compare", "ages")
    with pytest.raises(AuditorError, match="Engine l2b takes no numbers; on numbers there are"):
        invoke("audit", "ages", "--engines", "l2b", "--backbone", "none")
    shown = invoke("export", "ages", "--out", str(ages / "out.csv"), "--policy", "auto")
    assert "only what people decided changes a number" in shown.output


def test_judge__scales_by_the_usual_residual_and_ignores_missing_numbers() -> None:
    given = np.array([1.0, 2.0, 3.0, 4.0, np.nan, 50.0])
    first, second = np.array([1.1, 1.9, 3.1, 3.9, 5.0, 6.0]), np.array([1.1, 1.9, 3.1, 3.9, 7.0, 48.0])
    found = judge(given, [first, second])
    assert found.predicted.tolist() == [1, 2, 3, 4, 6, 27]
    assert found.is_doubtful.tolist() == [False] * 5 + [True]
    assert found.num_against.tolist() == [0, 0, 0, 0, 0, 2]
    assert np.isnan(found.trust[4])
    usual = 1.4826 * 0.1
    assert found.trust[5] == pytest.approx(1 / (1 + (23 / usual / 3) ** 2))
    assert found.half_width == 1
    rate = found.noise_rate
    # What is predicted may be wrong in place of the number, so nothing says that any number is wrong.
    assert (rate.kind, rate.low, rate.point, rate.high) == (
        "guess",
        0,
        pytest.approx(1 / 5),
        pytest.approx(1 / 5),
    )
    assert "between 0 % and 20 % of 5 numbers may be wrong" in rate.sentence


def test_judge__interval_holds_its_share_of_what_is_not_doubted() -> None:
    away = np.append(np.arange(1, 101), 1_000)
    found = judge(np.zeros(len(away)), [away.astype(float)])
    assert found.is_doubtful.tolist() == [False] * 100 + [True]
    assert 100 * LEVEL <= found.half_width <= 100 * LEVEL + 1


@pytest.mark.parametrize(
    ("given", "away", "predicted", "half_width"),
    [
        ([31, 32, 35, 38], 0.26, [31, 32, 35, 38], 1),  # ages in years
        ([310.25, 320.5, 350.75, 380], 12.3, [323, 333, 363, 392], 13),  # finer than anybody can tell
        ([0.5, 0.25, 0.125, 0.75], 0.0123, [0.512, 0.262, 0.137, 0.762], 0.013),
    ],
)
def test_judge__suggests_as_finely_as_numbers_are_written_and_known(
    given: list[float], away: float, predicted: list[float], half_width: float
) -> None:
    found = judge(np.array(given), [np.array(given) + away])
    assert found.predicted.tolist() == predicted
    assert found.half_width == half_width


def test_alike__are_the_nearest_numbers_that_nothing_speaks_against() -> None:
    given = np.array([5.0, 4.0, np.nan, 5.5, 9.0, 5.2])
    table = pd.DataFrame({"is_label_issue": [False, False, False, True, False, False]})
    assert nearest_examples(given, table, 5.1, 3, apart_from=5) == [(0, 5.0), (1, 4.0), (4, 9.0)]
    assert given[5] == 5.2
