"""What the command line says: never silently something else, never a traceback, always the remedy."""

from __future__ import annotations

import csv
import json
import pwd
import re
import shlex
import subprocess
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from auditor.audits import plan, worker
from auditor.catalog import audits, jobs
from auditor.catalog.db import session
from auditor.cli import output
from auditor.ground.errors import AuditFailedError
from auditor.importing import imports
from auditor.outputs import report
from auditor.results import own_models, settle
from auditor.review import decisions
from tests.auditor.conftest import Run
from tests.auditor.sample_pictures import write_folder
from tests.helpers import QUICK_OPTIONS, Digits, verify_truthfully, write_digits


def add_audit(dataset: str = "digits", *, finish: bool = True) -> int:
    """One more audit, planned or finished."""
    audit_id = plan.plan_audit(dataset, ["cross_entropy"], seed=1, options=QUICK_OPTIONS, map_method="pca")
    if finish:
        worker.run_audit(audit_id)
    return audit_id


def trust_of(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row["trust_score"] for row in csv.DictReader(file)]


def user_without_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number alone."""

    def unknown(number: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.parametrize("args", [("verify", "digits"), ("review", "digits"), ("fiftyone", "digits", "pull")])
def test_reviewer__nobody_logged_in_names_the_option(
    audited: tuple[Digits, int],
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
) -> None:
    user_without_name(monkeypatch)
    path = tmp_path / "sample.csv"
    assert run("verify", "digits", "--draw", "5", "--out", path)[0] == 0
    code, _, err = run(*args, *(() if args[0] == "fiftyone" else ("--apply", path)))
    assert code == 1
    assert err == "auditor: Your login name is not known; say who decided with --reviewer NAME.\n"


def test_reviewer__is_the_login_name_where_user_is_not_set(
    audited: tuple[Digits, int], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LOGNAME", "ada")
    path = tmp_path / "decisions.csv"
    path.write_text("sample_id,review_decision,cleaned_label\n3,exclude,\n")
    assert run("review", "digits", "--apply", path)[0] == 0
    assert decisions.outcomes(1)[3].reviewer == "ada"


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("epochs=abc", "Setting cross_entropy.epochs is 'abc', it must be a whole number."),
        ("epochs=2.5", "Setting cross_entropy.epochs is 2.5, it must be a whole number."),
        ("epochs=true", "Setting cross_entropy.epochs is True, it must be a whole number."),
        ("learning_rate=fast", "Setting cross_entropy.learning_rate is 'fast', it must be a number."),
        ("keeps_features=1", "Setting cross_entropy.keeps_features is 1, it must be true or false."),
        ("weights=3", "Setting cross_entropy.weights is 3, it must be text or null."),
    ],
)
def test_set__a_value_of_another_kind(audited: tuple[Digits, int], run: Run, setting: str, text: str) -> None:
    args = ("--engines", "cross_entropy", "--set", f"cross_entropy.{setting}")
    assert run("audit", "digits", *args) == (1, "", f"auditor: {text}\n")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "audit digits --resume --preset paper --set l2b.epochs=1",
            "--preset, --set has no effect together with --resume",
        ),
        (
            "audit digits --resume --pred-probs nothing.csv --seed 1",
            "--seed has no effect together with --resume",
        ),
        (
            "verify digits --apply sample.csv --seed 1 --force",
            "--seed, --force has no effect together with --apply",
        ),
        ("verify digits --draw-id 1 --out new.csv --seed 1", "--seed has no effect together with --draw-id"),
        (
            "export digits --out tree --force",
            "--force has no effect together with a folder; name a new folder",
        ),
    ],
)
def test_options__that_would_be_ignored_are_refused(
    audited: tuple[Digits, int], run: Run, command: str, message: str
) -> None:
    code, _, err = run(*command.split())
    assert code == 2
    assert message in " ".join(err.split())


def test_follow_audit__what_ended_its_job_before_the_work_is_told(audited: tuple[Digits, int]) -> None:
    audit_id = add_audit(finish=False)
    job_id = plan.job_of(audit_id)
    with session() as open_session:
        jobs.change(open_session, job_id, status="failed", error="It may not do that; ask for the right.")
    with pytest.raises(AuditFailedError, match=r"^It may not do that; ask for the right\.$"):
        output.follow_audit(audit_id)


def test_follow_audit__a_process_that_is_gone_is_told_in_words(audited: tuple[Digits, int]) -> None:
    audit_id, ended = add_audit(finish=False), subprocess.Popen(["true"])
    ended.wait()
    job_id = plan.job_of(audit_id)
    with session() as open_session:
        jobs.change(open_session, job_id, status="running", pid=ended.pid, host=jobs.this_host())
        audits.set_status(open_session, audit_id, "running")
    with pytest.raises(AuditFailedError, match=r"ended too early \(its process is gone\); `--resume`"):
        output.follow_audit(audit_id)


def test_demo__an_unknown_engine_is_refused_before_anything_is_imported(home: Path, run: Run) -> None:
    code, _, err = run("demo", "--no-app", "--engines", "cross_entropy, perceptron")
    assert code == 1
    assert "There is no engine 'perceptron'" in err
    assert "No datasets yet" in run("status")[1]


@pytest.mark.parametrize("command", ["app", "demo"])
def test_port__outside_is_wrong_usage(run: Run, command: str) -> None:
    code, _, err = run(command, "--port", "99999")
    assert code == 2
    assert "99999 is not in the range 1<=x<=65535" in err


def test_import__progress_ends_at_all(home: Path, tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "source", num=30, num_wrong=3)
    seen: list[imports.Progress] = []
    imports.import_dataset(digits.table, name="digits", workers=1, progress=seen.append)
    assert (seen[-1].stage, seen[-1].done, seen[-1].total) == ("registering", 30, 30)


def test_status__says_how_far_each_engine_is(audited: tuple[Digits, int], run: Run) -> None:
    audit_id = add_audit(finish=False)
    job_id = plan.job_of(audit_id)
    with session() as open_session:
        jobs.change(open_session, job_id, status="running")
    assert f"  audit {audit_id} (quick) running\n" in run("status", "digits")[1]
    with session() as open_session:
        values = {"status": "running", "progress": 0.25, "seconds": 10.0}
        audits.set_run(open_session, audit_id, "cross_entropy", **values)
    said = run("status", "digits")[1]
    assert re.search(
        rf"^  audit {audit_id} \(quick\) running: cross_entropy 25%, \d+ s left$", said, re.MULTILINE
    )


def test_pred_probs__takes_an_array(audited: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    digits, _ = audited
    probs = np.where(np.arange(10) == digits.true_labels[:, None], 0.91, 0.01)
    np.save(tmp_path / "mine.npy", probs)
    args = ["--engines", "cross_entropy", "--map", "pca", "--set", "cross_entropy.epochs=2"]
    args += ["--set", "cross_entropy.network=mlp", "--pred-probs", str(tmp_path / "mine.npy"), "--json"]
    code, out, err = run("audit", "digits", *args)
    assert code == 0, err
    assert json.loads(out)["witnesses"] == ["cross_entropy", "mine"]
    np.testing.assert_allclose(own_models.load(1)["mine"], probs, atol=1e-6)


def test_next_command__can_be_pasted(home: Path, run: Run, tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "source", num=30, num_wrong=3)
    name = "größe set; rm"
    out = run("import", digits.table, "--name", name)[1]
    command = re.search("^Next: (.*)", out, re.MULTILINE)
    assert command
    assert shlex.split(command[1]) == ["auditor", "audit", name]
    for args in (("suspects",), ("export", "--policy", "auto", "--max-fdr", "0.1", "--out", "out.csv")):
        err = run(args[0], name, *args[1:])[2]
        quoted = re.search("`(auditor audit .*)`", err)
        assert quoted
        assert shlex.split(quoted[1]) == ["auditor", "audit", name]


@pytest.mark.parametrize("out", ["out.csv", "tree"])
def test_export__a_bound_without_the_policy_is_refused(
    audited: tuple[Digits, int], run: Run, tmp_path: Path, out: str
) -> None:
    code, _, err = run("export", "digits", "--out", tmp_path / out, "--max-fdr", "0.1")
    assert code == 1
    assert "bounds the changes that the policy 'auto' makes; choose that policy, or leave the rate out" in err
    assert "See --policy." in err
    assert err.count("\n") == 1
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize("name", ["rep.pdf", "rep"])
def test_report__is_called_html(audited: tuple[Digits, int], run: Run, tmp_path: Path, name: str) -> None:
    code, _, err = run("report", "digits", "--out", tmp_path / name)
    assert code == 1
    assert err == f"auditor: {tmp_path / name}: a report is an HTML page; call it rep.html.\n"
    assert run("report", "digits", "--out", tmp_path / "rep.HTM")[0] == 0


@pytest.mark.parametrize("option", ["--label-column", "--path-column", "--true-label-column"])
def test_import__a_folder_has_no_columns(home: Path, run: Run, tmp_path: Path, option: str) -> None:
    folder = write_folder(tmp_path / "source")
    code, _, err = run("import", folder, "--name", "digits", option, "labels")
    assert code == 1
    (told,) = [line for line in err.splitlines() if line.startswith("auditor: ")]
    assert f"{folder} has no column 'labels'" in told
    assert told.endswith(f" See {option}.")


def test_suspects__says_how_many_verified_labels_a_promise_leaves_out(
    audited: tuple[Digits, int], run: Run
) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 150)
    settle.settle(audit_id)
    ranked = json.loads(run("suspects", "digits", "--top", "300", "--json")[1])["suspects"]
    found = json.loads(run("suspects", "digits", "--top", "300", "--max-fdr", "0.5", "--json")[1])
    listed = [row["sample_id"] for row in found["suspects"]]
    as_little = {row["sample_id"] for row in ranked[: found["suspects"][-1]["rank"]]} - set(listed)
    assert as_little
    assert as_little <= set(draw.sample_ids)
    left_out = re.search(r"(\d+) more have as little trust; they are not listed", found["statement"])
    assert left_out
    assert int(left_out[1]) >= len(as_little)


def test_audit_option__chooses_another_audit(audited: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    _, first = audited
    reports_before = run("suspects", "digits", "--json")[1]
    run("export", "digits", "--out", tmp_path / "before.csv")
    second = add_audit()
    assert run("suspects", "digits", "--json")[1] != reports_before
    assert run("suspects", "digits", "--json", "--audit", str(first))[1] == reports_before
    run("export", "digits", "--out", tmp_path / "newest.csv")
    run("export", "digits", "--out", tmp_path / "first.csv", "--audit", str(first))
    run("export", "digits", "--out", tmp_path / "second.csv", "--audit", str(second))
    assert trust_of(tmp_path / "first.csv") == trust_of(tmp_path / "before.csv")
    assert trust_of(tmp_path / "second.csv") == trust_of(tmp_path / "newest.csv")
    assert trust_of(tmp_path / "first.csv") != trust_of(tmp_path / "second.csv")
    assert run("report", "digits", "--out", tmp_path / "first.html", "--audit", str(first))[0] == 0
    assert ", seed 0, " in (tmp_path / "first.html").read_text()
    assert ", seed 1, " in report.report("digits")
    assert ", seed 1, " in report.report("digits", audit_id=second)


def test_audit_option__must_be_a_finished_one_of_the_dataset(
    audited: tuple[Digits, int], run: Run, tmp_path: Path
) -> None:
    digits, first = audited
    imports.import_dataset(digits.table, name="other", image_size=8, workers=1)
    unfinished, foreign = add_audit(finish=False), add_audit("other", finish=False)
    with session() as open_session:
        audits.set_status(open_session, foreign, "finished")
    for wrong in (unfinished, foreign, 99):
        text = f"Dataset 'digits' has no finished audit {wrong}; its finished audits: {first}."
        for args in (("suspects",), ("export", "--out", "no.csv"), ("report", "--out", "no.html")):
            assert run(args[0], "digits", *args[1:], "--audit", str(wrong)) == (1, "", f"auditor: {text}\n")


def test_suspects__open_ones_have_no_decision(audited: tuple[Digits, int], run: Run) -> None:
    first = json.loads(run("suspects", "digits", "--top", "1", "--json")[1])["suspects"][0]
    decisions.decide(1, first["sample_id"], "keep", reviewer="ada")
    out = run("suspects", "digits", "--top", "2", "--json")[1]
    rows = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["suspects"]
    assert [(row["decision"], row["reviewer"]) for row in rows] == [("keep", "ada"), (None, None)]
    text = run("suspects", "digits", "--top", "2")[1]
    assert text.splitlines()[1].endswith("keep")
    assert "nan" not in text


@pytest.mark.parametrize(
    "args",
    [
        ("status", "nothing"),
        ("suspects", "nothing", "--top", "none"),
        ("weights", "get", "nothing", "--no-such-option"),
        ("import", "no/such/source", "--name", "x"),
        ("restore", "nothing.tar"),
    ],
)
def test_json__a_command_that_fails_says_so_in_json_once(home: Path, run: Run, args: tuple[str, ...]) -> None:
    code, out, err = run(*args, "--json")
    assert code in (1, 2)
    told = json.loads(out)["error"]
    assert told
    assert err.splitlines()[-1].endswith(told)
    assert run(*args)[1] == ""
