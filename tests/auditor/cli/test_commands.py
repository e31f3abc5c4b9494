"""The command line: exit codes, one-line remedies, machine-readable output."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import click
import pytest

from auditor.cli.commands import cli
from auditor.ground.vocabulary import LEVELS
from auditor.results import own_models
from auditor.review import decisions
from tests.auditor.conftest import Run
from tests.forker import COMMAND, Forker
from tests.helpers import Digits, write_digits


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_help__every_command_says_what_it_does(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert len(cli.commands[command].help or "") > 20
    assert "Usage: auditor" in out


def test_unknown_dataset__one_line_and_exit_code_1(audited: tuple[Digits, int], run: Run) -> None:
    code, out, err = run("suspects", "digit")
    assert (code, out) == (1, "")
    assert err == "auditor: There is no dataset 'digit'; did you mean 'digits'?\n"


def test_wrong_usage__exit_code_2(run: Run) -> None:
    assert run("suspects")[0] == 2
    assert run("verify", "digits")[0] == 2


def test_status__json(audited: tuple[Digits, int], run: Run) -> None:
    code, out, _ = run("status", "digits", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["name"], found["num_samples"]) == ("digits", 300)
    assert found["audits"][0]["state"] == "finished"


def test_status__empty_home_says_what_to_do(home: Path, run: Run) -> None:
    assert "auditor demo" in run("status")[1]


def test_suspects__json_is_ranked(audited: tuple[Digits, int], run: Run) -> None:
    digits, _ = audited
    code, out, _ = run("suspects", "digits", "--top", "20", "--json")
    rows = json.loads(out)["suspects"]
    assert code == 0
    assert [row["rank"] for row in rows] == list(range(1, 21))
    lines = run("suspects", "digits", "--top", "20")[1].splitlines()[1:41:2]
    assert [line.split()[:2] for line in lines] == [[str(row["rank"]), row["filepath"]] for row in rows]
    assert sum(digits.is_wrong[row["sample_id"]] for row in rows) >= 12
    for row in rows:  # one witness sees the suggested class, or the label's, or it is said why not
        seen, suggested = f"sees '{row['suggested_label']}'", f"'{row['suggested_label']}' is suggested by"
        assert any(words in row["reason"] for words in (seen, "as labeled", suggested))


def test_suspects__an_unchecked_list_is_called_that_and_no_arrow_accuses_what_is_no_suspect(
    audited: tuple[Digits, int], run: Run
) -> None:
    out = run("suspects", "digits", "--top", "300")[1]
    rows = json.loads(run("suspects", "digits", "--top", "300", "--json")[1])["suspects"]
    assert out.startswith("First list: nobody has checked any of these labels yet. ")
    arrows = [" -> " in line for line in out.splitlines()[1::2]]
    assert arrows == [row["is_label_issue"] for row in rows]
    assert 0 < sum(arrows) < 300
    decisions.decide(1, 0, "keep", reviewer="ada")
    assert "First list" not in run("suspects", "digits", "--top", "2")[1]


def test_suspects__says_how_many_more_there_are(audited: tuple[Digits, int], run: Run) -> None:
    assert "The first 2 of 300; --top 300 lists all." in run("suspects", "digits", "--top", "2")[1]
    assert "The first" not in run("suspects", "digits", "--top", "300")[1]
    assert json.loads(run("suspects", "digits", "--top", "2", "--json")[1])["total"] == 300


def test_suspects__max_fdr_without_verified_rows_promises_nothing(
    audited: tuple[Digits, int], run: Run
) -> None:
    _, out, _ = run("suspects", "digits", "--max-fdr", "0.1", "--json")
    found = json.loads(out)
    assert found["suspects"] == []
    assert "Nothing can be promised" in found["statement"]


def test_verify__draw_fill_apply(audited: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    digits, _ = audited
    path = tmp_path / "sample.csv"
    assert run("verify", "digits", "--draw", "120", "--out", path)[0] == 0
    code, _, err = run("verify", "digits", "--draw", "5", "--out", path)
    assert code == 1
    assert "exists" in err
    lines = path.read_text().splitlines()
    filled = [line + str(digits.true_labels[int(line.split(",")[1])]) for line in lines[1:]]
    path.write_text("\n".join([lines[0], *filled]) + "\n")
    code, out, _ = run("verify", "digits", "--apply", path, "--reviewer", "ada", "--json")
    found = json.loads(out)
    assert (code, found["verdicts"]["judged"], found["noise_rate"]["kind"]) == (0, 120, "interval")
    assert [promise["q"] for promise in found["promises"]] == list(LEVELS)
    code, out, _ = run("verify", "digits", "--apply", path, "--reviewer", "ada")
    assert code == 0
    assert "120 judged" in out
    assert "of 120 labels checked at random are wrong" in out
    assert "180 more pictures" in out  # twice the draw would be more than there are left
    assert "  verified: 120 of 120 drawn at random\n" in run("status", "digits")[1]
    run("verify", "digits", "--apply", path, "--reviewer", "bob")
    out = run("verify", "digits", "--apply", path, "--reviewer", "ada")[1]
    assert out.startswith("0 judged, 0 not judged, 120 left to bob, who judged later.\n")


def test_verify__a_lost_file_is_written_again(audited: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new" / "sample.csv"
    assert run("verify", "digits", "--draw", "20", "--out", path)[0] == 0
    before = path.read_text()
    path.unlink()
    code, _, err = run("verify", "digits", "--draw-id", "2", "--out", path)
    assert code == 1
    assert "digits has no draw 2; its draws: 1 (20 samples, " in err
    code, out, _ = run("verify", "digits", "--draw-id", "1", "--out", path, "--json")
    assert (code, json.loads(out)["draw"], json.loads(out)["judged"]) == (0, 1, 0)
    path.unlink()
    code, out, err = run("verify", "digits", "--draw-id", "1", "--out", path)
    assert code == 0, err
    assert "the 20 samples of draw 1 again, 0 of them judged" in out
    assert path.read_text() == before
    assert run("verify", "digits", "--draw-id", "1", "--draw", "5", "--out", path)[0] == 2


@pytest.mark.parametrize(
    "args",
    [
        ("verify", "digits", "--draw", "5", "--out", "note.txt/sample.csv"),
        ("verify", "digits", "--draw", "5", "--out", "folder.csv", "--force"),
        ("export", "digits", "--out", "note.txt/cleaned.csv"),
        ("export", "digits", "--out", "note.txt/tree"),
        ("export", "digits", "--out", "folder.csv", "--force"),
        ("report", "digits", "--out", "note.txt/report.html"),
        ("report", "digits", "--out", "folder.html", "--force"),
    ],
)
def test_out__a_place_that_cannot_be_written_is_one_line(
    audited: tuple[Digits, int],
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text("a file is no folder")
    Path("folder.csv").mkdir()
    Path("folder.html").mkdir()
    code, out, err = run(*args)
    assert (code, out, err.count("\n")) == (1, "", 1)
    place = re.escape(args[args.index("--out") + 1])
    assert re.fullmatch(
        rf"auditor: {place} cannot be written \(.+\); choose another place, one that you can write to\.\n",
        err,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "folder.csv",
        "folder.html",
        "home",
        "note.txt",
    ]
    if args[0] == "verify":
        assert "has none yet" in run("verify", "digits", "--draw-id", "1", "--out", "new.csv")[2]


def test_export_and_review__round_trip(audited: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    out_path = tmp_path / "cleaned.csv"
    code, out, _ = run("export", "digits", "--out", out_path)
    assert code == 0
    assert "300 rows: 300 keep" in out
    lines = out_path.read_text().splitlines()
    place = lines[0].split(",").index("review_decision")
    cells = lines[1].split(",")
    cells[place] = "exclude"
    out_path.write_text("\n".join([lines[0], ",".join(cells)]) + "\n")
    _, said, _ = run("review", "digits", "--apply", out_path, "--reviewer", "ada", "--json")
    assert json.loads(said)["decisions"]["exclude"] == 1
    written = json.loads(run("export", "digits", "--out", out_path, "--force", "--json")[1])
    assert (written["num_rows"], written["num_exclude"]) == (300, 1)


def test_json__every_command_that_answers_has_it() -> None:
    serving = {"app", "job"}
    groups = [command for command in cli.commands.values() if isinstance(command, click.Group)]
    answering = {**cli.commands, **{name: one for group in groups for name, one in group.commands.items()}}
    lacking = {
        name
        for name, command in answering.items()
        if not isinstance(command, click.Group) and "as_json" not in {each.name for each in command.params}
    }
    assert lacking == serving


def test_help__no_line_is_cut(run: Run) -> None:
    for words in [
        [],
        ["weights"],
        *([name] for name in cli.commands),
        ["weights", "get"],
        ["weights", "list"],
    ]:
        told = run(*words, "--help")[1].partition("\n")[2]  # behind the usage, which ends in [ARGS]...
        assert not re.search(r"\.\.\.$|…", told, re.MULTILINE)


def test_verbose__shows_where_an_error_began(home: Path, forker: Forker) -> None:
    def says(*args: str) -> str:
        return forker.call(COMMAND, ["auditor", *args]).stderr

    assert "Traceback" not in says("suspects", "digit")
    assert "Traceback" in says("-v", "suspects", "digit")


def test_audit__settings_and_background_run(audited: tuple[Digits, int], run: Run) -> None:
    args = ["--engines", "cross_entropy", "--map", "pca", "--set", "cross_entropy.epochs=2"]
    code, out, err = run("audit", "digits", *args, "--set", "cross_entropy.network=mlp", "--json")
    assert code == 0, err
    assert json.loads(out)["engines"][0]["status"] == "finished"


def test_audit__wrong_setting_is_one_line(audited: tuple[Digits, int], run: Run) -> None:
    code, _, err = run("audit", "digits", "--set", "epochs=2")
    assert code == 1
    assert "is not in the form" in err


def test_audit__own_predictions_become_a_witness(
    audited: tuple[Digits, int], run: Run, tmp_path: Path
) -> None:
    digits, _ = audited
    rows = ["sample_id," + ",".join(str(k) for k in range(10))]
    for i, label in enumerate(digits.true_labels):
        rows.append(f"{i}," + ",".join("0.91" if k == label else "0.01" for k in range(10)))
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    args = ["--engines", "cross_entropy", "--map", "pca", "--set", "cross_entropy.epochs=2"]
    code, out, err = run("audit", "digits", *args, "--pred-probs", path, "--json")
    assert code == 0, err
    assert json.loads(out)["witnesses"] == ["cross_entropy", "mine"]


def test_audit__own_predictions_are_listed_and_forgotten(
    audited: tuple[Digits, int], run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "cross_entropy.csv"
    path.write_text("sample_id,0,1,2,3,4,5,6,7,8,9\n7,1,0,0,0,0,0,0,0,0,0\n")
    code, _, err = run("audit", "digits", "--pred-probs", path)
    assert code == 1
    assert "'cross_entropy' is an engine's name" in err
    assert len(json.loads(run("status", "digits", "--json")[1])["audits"]) == 1  # refused before training
    code, _, err = run("audit", "digits", "--pred-probs", "column:prob_")
    assert code == 1
    assert "digits was imported without a column 'prob_0'" in err
    own_models.add("digits", path, name="mine")
    assert "own predictions: mine" in run("status", "digits")[1]
    assert run("audit", "digits", "--forget-pred-probs", "mine", "--pred-probs", path)[0] == 2
    code, _, err = run("audit", "digits", "--forget-pred-probs", "yours")
    assert (code, err) == (1, "auditor: digits has no predictions of 'yours'; it has those of mine.\n")
    code, out, _ = run("audit", "digits", "--forget-pred-probs", "mine")
    assert (code, out) == (0, "digits: audits no longer use mine.\n")
    assert "own predictions" not in run("status", "digits")[1]


def test_move__follows_the_images(audited: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    digits, _ = audited
    code, _, err = run("move", "digits", tmp_path)
    assert code == 1
    assert str(tmp_path) in err
    shutil.copytree(digits.table.parent, tmp_path / "elsewhere")
    code, out, err = run("move", "digits", tmp_path / "elsewhere")
    assert code == 0, err
    assert "now reads from" in out


def test_import__bad_rows_are_listed_with_file_and_row(home: Path, run: Run, tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "source", num=30, num_wrong=3)
    (tmp_path / "source" / "images" / "0007.png").write_bytes(b"no picture")
    code, _, err = run("import", digits.table, "--name", "digits")
    assert code == 1
    assert "images/0007.png" in err
    assert err.rstrip().endswith("See --skip-bad.")
    assert run("status")[1].startswith("No datasets yet")
    assert run("import", digits.table, "--name", "digits", "--skip-bad")[0] == 0


def test_remove__forgets_the_dataset_and_leaves_the_source(audited: tuple[Digits, int], run: Run) -> None:
    digits, _ = audited
    assert json.loads(run("remove", "digits", "--yes", "--json")[1]) == {"removed": "digits", "left": []}
    assert run("suspects", "digits")[0] == 1
    assert digits.table.exists()


def test_doctor__hides_passwords(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIFTYONE_DATABASE_URI", "mongodb://bob:secret@one:27017,two:27017/x")
    _, out, _ = run("doctor")
    assert "secret" not in out
    assert "one:27017,two:27017/x" in out


def test_doctor__names_what_is_there(home: Path, run: Run) -> None:
    code, out, _ = run("doctor", "--json")
    found = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert set(found) == {
        "python",
        "packages",
        "extras",
        "torch",
        "gpu",
        "home",
        "disk",
        "catalog",
        "folders",
        "browser",
        "mongodb",
    }
    assert found["torch"]["state"] == "ok"
