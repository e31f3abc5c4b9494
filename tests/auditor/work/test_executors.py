"""Executors: the same tasks in this process and side by side, lost processes, failures, cancelling."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from auditor.audits import plan, worker
from auditor.catalog import audits
from auditor.catalog.db import session
from auditor.ground.errors import AuditFailedError
from auditor.results import arrays
from auditor.work import executors, tasks
from auditor.work.kinds import Train, of_json
from auditor.work.tasks import Event, Outcome
from engines.registry import ENGINES
from tests.helpers import Digits

EPOCHS = 4


class Heard:
    """What a listener heard; ``on_event`` may do something about it."""

    def __init__(self, on_event=None) -> None:
        self.begun: list[str] = []
        self.events: list[Event] = []
        self.outcomes: dict[str, Outcome] = {}
        self._on_event = on_event

    def started(self, task: str) -> None:
        self.begun.append(task)

    def heard(self, event: Event) -> None:
        self.events.append(event)
        if self._on_event is not None:
            self._on_event(event)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes[outcome.task] = outcome

    def tick(self) -> None:
        return


def specs(place: Path, *names: str, epochs: int = EPOCHS) -> list[Train]:
    """Trainings of the plain engine on 60 rows of features, with the seeds 0, 1, ..."""
    place.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    rows = (generator.normal(size=(60, 1, 8)) + labels[:, None, None]).astype(np.float32)
    np.save(place / "features.npy", rows)
    np.savez(place / "inputs.npz", labels=labels, trusted=np.zeros(60, bool))
    config = ENGINES["cross_entropy"].config_type.preset("quick").for_features()
    values = dataclasses.asdict(dataclasses.replace(config, epochs=epochs))
    return [
        Train(
            name=name,
            engine="cross_entropy",
            config=values,
            num_classes=3,
            inputs=str(place / "inputs.npz"),
            out=str(place / name),
            checkpoint=str(place / f"{name}.checkpoint"),
            features=str(place / "features.npy"),
            seed=seed,
            threads=1,
        )
        for seed, name in enumerate(names)
    ]


def results(specs: list[Train]) -> list[bytes]:
    """The arrays of every task."""
    return [(Path(spec.out) / "pred_probs.npy").read_bytes() for spec in specs]


def children() -> list[psutil.Process]:
    return [
        one for one in psutil.Process().children(recursive=True) if "task_process" in " ".join(one.cmdline())
    ]


def test_processes__side_by_side_give_the_bits_of_one_after_another_and_survive_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_CHECKPOINT_INTERVAL_S", "0")
    alone, beside = (specs(tmp_path / place, "a", "b") for place in ("alone", "beside"))
    for few in (alone, beside):  # long enough to be met at work by a process that hears of it late
        few[1] = dataclasses.replace(few[1], config={**few[1].config, "epochs": 150})
    executors.Processes(1).run(alone, Heard())
    killed: list[str] = []

    def kill_all(event: Event) -> None:
        if not killed and event.task == "b" and event.epoch == 1:
            killed.append(event.task)
            for child in children():
                child.send_signal(signal.SIGKILL)
                child.wait()  # one that still dies would take the next task with it

    heard = Heard(kill_all)
    executors.Processes(2).run(beside, heard)
    assert results(beside) == results(alone)
    assert heard.begun.count(killed[0]) == 2
    assert not children()
    again = Heard()
    executors.Processes(1).run(beside, again)
    assert not again.events  # results that lie there are taken
    assert all(outcome.result is not None for outcome in again.outcomes.values())


def test_processes__a_failure_ends_what_waits_for_it_and_nothing_else(tmp_path: Path) -> None:
    first, second, third, fourth = specs(tmp_path, "first", "second", "third", "fourth", epochs=1)
    first = dataclasses.replace(first, config={**first.config, "gone": 1})
    second = dataclasses.replace(second, after=("first",))
    third = dataclasses.replace(third, features=str(tmp_path / "absent.npy"))
    heard = Heard()
    executors.Processes(1).run([first, second, third, fourth], heard)
    assert heard.begun == ["first", "third", "third", "fourth"]
    assert "had the setting 'gone'" in (heard.outcomes["first"].error or "")
    assert "first, whose result it needs, failed" in (heard.outcomes["second"].error or "")
    assert "absent.npy is missing" in (heard.outcomes["third"].error or "")
    assert heard.outcomes["fourth"].result is not None


def test_processes__what_the_listener_raises_stops_all_tasks(tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        raise OSError("stop")

    for num in (1, 2):
        heard = Heard(stop)
        with pytest.raises(OSError, match="stop"):
            executors.Processes(num).run(specs(tmp_path / str(num), "a", "b", epochs=100_000), heard)
        assert not heard.outcomes
        assert not children()


def test_threads__cores_are_shared_by_those_that_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "usable_cores", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.setenv(executors.VARIABLE, "processes:1")
    assert executors.threads_by_engine(["a", "b"], [], "cpu") == {}
    monkeypatch.setenv(executors.VARIABLE, "processes:2")
    assert executors.threads_by_engine(["a", "b", "c"], ["a"], "cpu") == {"a": 4, "b": 2, "c": 2}
    assert executors.threads_by_engine(["a", "b"], [], "cuda") == {}
    monkeypatch.setenv(executors.VARIABLE, "processes:8")
    assert executors.threads_by_engine(list("abcdef"), [], "cpu")["f"] == 1


def test_threads__where_nobody_named_a_number_memory_and_cores_say_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executors, "usable_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv(executors.VARIABLE, raising=False)
    monkeypatch.setattr(executors, "MEMORY_OF_ONE", 1.0)
    assert executors.threads_by_engine(list("abcde"), [], "cpu") == dict.fromkeys("abcde", 2)
    monkeypatch.setattr(executors, "MEMORY_OF_ONE", 1e18)
    assert executors.threads_by_engine(list("abcde"), [], "cpu") == {}


def test_placed__tasks_on_any_card_take_one_each(tmp_path: Path) -> None:
    """With a pretended number of cards."""
    plain = specs(tmp_path, "a")[0]
    any_card, third = (
        dataclasses.replace(plain, device=device, threads=None) for device in ("cuda", "cuda:3")
    )
    first = executors.placed(any_card, [], [0, 2])
    assert first == dataclasses.replace(any_card, device="cuda:0")
    second = executors.placed(any_card, [first], [0, 2])
    assert second == dataclasses.replace(any_card, device="cuda:2")
    assert executors.placed(any_card, [first, second], [0, 2]) is None
    assert executors.placed(any_card, [second], [0, 2]) == first
    assert executors.placed(any_card, [plain], [0, 2]) is None
    # One that names its card, and one of a machine that has one, is alone.
    assert executors.placed(third, [], [0, 2]) == third
    assert executors.placed(third, [first], [0, 2]) is None
    assert executors.placed(any_card, [], [0]) == any_card
    assert executors.placed(any_card, [any_card], [0]) is None
    # On the CPU those that share the cores are side by side.
    assert executors.placed(plain, [plain], []) == plain
    assert executors.placed(dataclasses.replace(plain, threads=None), [plain], []) is None


@pytest.mark.parametrize(
    "text", ["processes:0", "processes:x", "processes:9", "processes:", "", "threads", "ray:", "ray://"]
)
def test_choice__other_texts_are_refused(text: str) -> None:
    with pytest.raises(AuditFailedError, match="There is no executor"):
        executors.ExecutorChoice.of(text)


def test_spec__survives_json(tmp_path: Path) -> None:
    spec = dataclasses.replace(specs(tmp_path, "a")[0], after=("b",))
    assert of_json(spec.as_json()) == spec
    assert tasks.finished(spec) is None
    assert os.path.exists(spec.inputs)


def test_audit__side_by_side_ends_with_the_bits_of_one_after_another(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audited
    monkeypatch.setattr(executors, "usable_cores", lambda: 2)
    engines = ["cross_entropy", "coteaching"]
    search = {
        "search_rule": "random",
        "search_epochs": 2,
        "search_iterations": 1,
        "search_samples": 2,
        "anchors": (),
    }
    short: dict[str, dict[str, Any]] = {"cross_entropy": {"epochs": 2}, "coteaching": {"epochs": 2} | search}
    found = []
    for on in ("processes:2", "processes:1"):
        monkeypatch.setenv(executors.VARIABLE, "processes:2")  # as it is planned: with a thread each
        audit_id = plan.plan_audit("digits", engines, options=short, map_method="pca", device="cpu")
        monkeypatch.setenv(executors.VARIABLE, on)
        worker.run_audit(audit_id)
        seen = plan.audit_overview(audit_id)
        assert (seen.state, [one.progress for one in seen.engines]) == ("finished", [1.0, 1.0])
        with session() as open_session:
            curve = [(each.stage, each.epoch) for each in audits.epochs(open_session, audit_id, "coteaching")]
        found.append((curve, *(arrays.pred_probs(audit_id, name).tobytes() for name in engines)))
    assert found[0] == found[1]
