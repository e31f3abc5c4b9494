"""Comparisons that were stopped or killed go on, and say what they would have said."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from click.testing import CliRunner

from auditor.bridges import engine_bridge
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.cli.commands import cli
from auditor.experiments import before_after
from auditor.experiments.kept_trainings import FORGET_AFTER_S, Training, Trainings
from auditor.ground.errors import AuditFailedError
from auditor.ground.progress import Progress
from auditor.ground.settings import settings
from auditor.review import decisions
from auditor.work import executors
from tests.forker import KILLED, Forker
from tests.helpers import QUICK_OPTIONS, Digits, decide_some

FAST = QUICK_OPTIONS["cross_entropy"]


@pytest.fixture(autouse=True)
def _every_epoch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_CHECKPOINT_INTERVAL_S", "0")
    monkeypatch.setenv(executors.VARIABLE, "processes:1")  # in this process, where epochs are counted


@pytest.fixture
def decided(audited: tuple[Digits, int]) -> Digits:
    """What can be compared."""
    digits, _ = audited
    decide_some(digits)
    return digits


def kept(kind: str) -> list[str]:
    folder = settings().dataset_folder(1) / f"{kind}-unfinished"
    return sorted(path.suffix for path in folder.glob("*"))


def stop_at(done: float) -> object:
    """A callback that presses Ctrl-C once so much is done."""

    def press(progress: Progress) -> None:
        if progress.done >= done:
            raise KeyboardInterrupt

    return press


@pytest.fixture
def epochs_trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many epochs each call of the engine trained."""
    trained: list[int] = []
    original = engine_bridge.train

    def counting(*args: object, on_epoch: object, **options: object) -> object:
        trained.append(0)

        def count(record: object) -> None:
            trained[-1] += 1
            on_epoch(record)  # type: ignore[operator]

        return original(*args, on_epoch=count, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_bridge, "train", counting)
    return trained


@pytest.mark.usefixtures("decided")
def test_before_after__stopped_goes_on_where_it_was(epochs_trained: list[int]) -> None:
    whole = before_after.train_before_and_after("digits", seeds=(0, 1), options=FAST)
    assert epochs_trained == [6, 6, 6, 6]
    assert kept("compare") == []
    epochs_trained.clear()
    with pytest.raises(AuditFailedError, match="Stopped after 2 of 4 trainings; start the same again"):
        before_after.train_before_and_after("digits", seeds=(0, 1), options=FAST, on_progress=stop_at(2.4))
    assert epochs_trained == [6, 6, 3]
    assert kept("compare") == [".checkpoint", ".inputs", ".inputs", ".npz", ".npz"]
    epochs_trained.clear()
    seen: list[Progress] = []
    again = before_after.train_before_and_after("digits", seeds=(0, 1), options=FAST, on_progress=seen.append)
    assert sum(epochs_trained) <= 4 + 6  # the third epoch's checkpoint may not have been written
    assert len(epochs_trained) == 2
    assert again == whole
    assert seen[0].done == 2
    assert kept("compare") == []


def test_before_after__another_question_takes_nothing_over(
    decided: Digits, epochs_trained: list[int]
) -> None:
    with pytest.raises(AuditFailedError, match="Stopped after 1 of 2"):
        before_after.train_before_and_after("digits", seeds=(0,), options=FAST, on_progress=stop_at(1.5))
    sample_id = int(np.flatnonzero(decided.is_wrong)[-1])
    decisions.decide(1, sample_id, "exclude", reviewer="ada")
    epochs_trained.clear()
    before_after.train_before_and_after("digits", seeds=(0,), options=FAST)
    # The given labels are the same as before, the cleaned ones are not.
    assert epochs_trained == [6]
    epochs_trained.clear()
    before_after.train_before_and_after("digits", seeds=(0,), options=FAST | {"epochs": 5})
    assert epochs_trained == [5, 5]


def test_forget__leaves_what_others_may_come_back_to(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    with session() as open_session:
        dataset = datasets.get(open_session, "digits")
    labels = np.asarray(digits.given_labels)
    config = engine_bridge.configs(["cross_entropy"], "quick", {"cross_entropy": FAST})["cross_entropy"]
    first, second = (Trainings(dataset, "compare", device="cpu") for _ in range(2))
    first.train([Training("cross_entropy", labels, config, 0)])
    second.train([Training("cross_entropy", labels, config, 1)])
    second.forget()
    assert kept("compare") == [".npz"]
    (left,) = (settings().dataset_folder(1) / "compare-unfinished").glob("*.npz")
    week_ago = time.time() - FORGET_AFTER_S - 1
    os.utime(left, (week_ago, week_ago))
    Trainings(dataset, "compare", device="cpu")
    assert kept("compare") == []


@pytest.mark.usefixtures("decided")
def test_compare__killed_goes_on_where_it_was(
    forker: Forker, epochs_trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["compare", "digits", "--seeds", "2", "--preset", "quick"]
    command += ["--set", "epochs=5", "--set", "network=mlp", "--device", "cpu"]
    died = forker.call(KILLED, ["auditor", *command])
    assert died.returncode == -signal.SIGKILL, died.stderr
    # The second died between being kept and being cleared up.
    assert kept("compare") == ["", ".inputs", ".inputs", ".inputs", ".npz", ".npz"]
    again = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert epochs_trained == [5, 5]  # two of four were kept
    assert kept("compare") == []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(executors, "usable_cores", lambda: 2)
    whole = CliRunner().invoke(cli, [*command, "--on", "processes:2"], catch_exceptions=False)
    assert again.stdout == whole.stdout  # also with all of them side by side, in processes
    assert epochs_trained == [5, 5]
    assert "accuracy" in whole.stdout
