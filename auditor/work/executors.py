"""Where the tasks of an audit run: one after another here, in processes side by side, or on a Ray cluster.

All do the same: start each task once those that it comes after are done, pass on its epochs, try it a second time
where its process was lost or something unforeseen happened, and let the others go on where it fails for good. How
many run at once changes nothing in a result, because a task says with how many threads it computes.

``AUDITOR_EXECUTOR`` chooses: ``processes`` (the default: as many as there are cores and memory for),
``processes:N`` (N side by side; 1: one after another), ``ray`` or ``ray://HOST:10001``. On 1,797 digits with five
engines, side by side takes .63 of the time on four cores and .73 on two.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import psutil

from auditor.bridges import engine_bridge
from auditor.ground.errors import AuditFailedError
from auditor.ground.processes import usable_cores
from auditor.work import tasks
from auditor.work.graph import LOST, STOP_S, TICK_S, Graph
from auditor.work.ray_executor import RayExecutor
from auditor.work.tasks import Event, Listener, Outcome, Task

VARIABLE = "AUDITOR_EXECUTOR"
MOST_SIDE_BY_SIDE = 8
MOST_OF_ITSELF = 4
"""Tasks side by side where nobody named a number: a fifth of five engines saves nothing."""
ANY_CARD = "cuda"
"""A device that is whichever card is free; ``cuda:1`` is that one."""
MEMORY_OF_ONE = 1.5e9
"""Bytes that one more process may take: the training library, its buffers, a small network and its batches."""


class Executor(Protocol):
    """Something that does tasks."""

    def run(self, specs: Sequence[Task], listener: Listener) -> None:
        """Do all tasks; one that fails ends those that come after it, and no other.

        Raises:
            BaseException: what the listener raised, after every task was stopped at its next epoch.
        """


@dataclass(frozen=True)
class ExecutorChoice:
    """What a text such as ``processes``, ``processes:2``, ``ray`` or ``ray://head:10001`` says."""

    num: int = 0
    """Processes side by side; 0 = as many as fit."""
    is_ray: bool = False
    address: str | None = None
    """Of a Ray cluster; None = ``RAY_ADDRESS``, else a Ray of this machine."""

    @classmethod
    def of(cls, text: str | None = None) -> ExecutorChoice:
        """Read such a text; None: that of ``AUDITOR_EXECUTOR``.

        Raises:
            AuditFailedError: it names no executor.
        """
        if text is None:
            text = os.environ.get(VARIABLE) or "processes"
        kind, colon, rest = text.partition(":")
        if kind == "processes" and not colon:
            return cls()
        if kind == "processes" and rest.isdecimal() and 0 < int(rest) <= MOST_SIDE_BY_SIDE:
            return cls(num=int(rest))
        if kind == "ray" and (not colon or rest.strip("/")):
            return cls(is_ray=True, address=text if colon else None)
        raise AuditFailedError(
            f"There is no executor {text!r}; use processes, processes:N with N from 1 to {MOST_SIDE_BY_SIDE}, ray, "
            f"or ray://HOST:10001.",
            field="on",
        )


def side_by_side(choice: ExecutorChoice) -> int:
    """Return how many tasks run side by side on this machine: as chosen, or by its cores and free memory."""
    free = int(psutil.virtual_memory().available / MEMORY_OF_ONE)
    return choice.num or max(1, min(MOST_OF_ITSELF, training_cores(), free))


def training_cores() -> int:
    """Cores that trainings may use: what this process may, and no more than ``OMP_NUM_THREADS`` where it is set."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(usable_cores(), int(wanted)) if wanted.isdecimal() and int(wanted) > 0 else usable_cores()


def threads_by_engine(
    engines: Sequence[str], first: Sequence[str], device: str, on: str | None = None
) -> dict[str, int]:
    """Return how many threads each engine computes with, by engine: fixed when an audit is planned.

    Empty where engines train one after another with what the process has. On a cluster as on this machine, so that
    the same audit gives the same bits on both.

    Args:
        engines: that are trained.
        first: those of them that the others wait for, one after another; they have all cores.
        device: only on the CPU do engines train side by side.
        on: where they train (``ExecutorChoice.of``).
    """
    choice, num_cores = ExecutorChoice.of(on), training_cores()
    beside = [name for name in engines if name not in first]
    num = max(1, min(side_by_side(choice), len(beside), num_cores))
    if device != "cpu" or (num == 1 and not choice.is_ray):
        return {}
    return {name: num_cores if name in first else num_cores // num for name in engines}


def executor_for(on: str | None = None) -> Executor:
    """Return the executor that ``ExecutorChoice.of`` reads from the text."""
    choice = ExecutorChoice.of(on)
    return RayExecutor(choice.address) if choice.is_ray else Processes(side_by_side(choice))


class Processes:
    """Tasks on this machine, up to ``num`` side by side, each in a process; with 1, in this process.

    Tasks on the device ``cuda`` take a card each. One that names its card, or no number of threads on the CPU, has
    the machine for itself.
    """

    def __init__(self, num: int = 1) -> None:
        self._num = num

    def run(self, specs: Sequence[Task], listener: Listener) -> None:
        """See ``Executor``."""
        graph = Graph(list(specs), listener)
        on_any_card = sum(spec.device == ANY_CARD for spec in specs)
        cards = engine_bridge.usable_cards() if on_any_card > 1 and self._num > 1 else []
        num = min(self._num, max(sum(_shares(spec) for spec in specs), min(on_any_card, len(cards))))
        if num > 1:
            with _Team(num, cards) as team:
                team.run(graph)
            return
        while (spec := graph.next()) is not None:
            graph.ended(spec, _here(spec, listener))


def placed(spec: Task, beside: Sequence[Task], cards: Sequence[int]) -> Task | None:
    """The task as it can be done beside those that run now, on a card of its own; None = it has to wait.

    ``cards``: indices of those that may be used.
    """
    if spec.device == ANY_CARD and len(cards) > 1:
        taken = {one.device for one in beside}
        free = [name for name in (f"{ANY_CARD}:{card}" for card in cards) if name not in taken]
        if not free or not all(device.startswith(f"{ANY_CARD}:") for device in taken):
            return None
        return dataclasses.replace(spec, device=free[0])
    return spec if not beside or all(map(_shares, (*beside, spec))) else None


def _shares(spec: Task) -> bool:
    """Return whether the task leaves room for others."""
    return spec.threads is not None and spec.device == "cpu"


def _here(spec: Task, listener: Listener) -> Outcome:
    """An attempt in this process; what the listener raises is no fault of the task."""
    raised: list[BaseException] = []

    def say(event: Event) -> None:
        try:
            listener.heard(event)
        except BaseException as error:
            raised.append(error)
            raise

    outcome = tasks.attempt(spec, say)
    if raised:
        raise raised[0]
    return outcome


Answers = queue.SimpleQueue[tuple["_Member", subprocess.Popen[str], dict[str, Any] | None]]


class _Member:
    """One process that does tasks, and the next one where it was lost."""

    def __init__(self, answers: Answers) -> None:
        self.spec: Task | None = None
        self.placed: Task | None = None
        """The task, with its card."""
        self._process: subprocess.Popen[str] | None = None
        self._answers = answers

    @property
    def lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def begin(self, spec: Task, placed: Task) -> None:
        self.spec, self.placed = spec, placed
        if not self.lives:
            self._start(spec.threads)
        self._send({"task": json.loads(placed.as_json())})

    def ask_to_stop(self) -> None:
        self._send({"stop": True})

    def end(self) -> None:
        """Also of one that said no more: it closes its pipes a moment before it is gone, and hears no task then."""
        if self._process is not None:
            if self.lives:
                self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            self._process = None

    def _start(self, num_threads: int | None) -> None:
        self.end()
        threads = {} if num_threads is None else {"OMP_NUM_THREADS": str(num_threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "auditor.work.task_process"],
            env={**os.environ, **threads},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):  # the process is gone: whoever reads its answers hears so
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with suppress(OSError, ValueError):  # cut off in a line, or closed here
            for line in process.stdout:
                self._answers.put((self, process, json.loads(line)))
        self._answers.put((self, process, None))

    def is_at_work(self, process: subprocess.Popen[str]) -> bool:
        """Return whether it has a task, and this is its process of now and not one that was lost before."""
        return self.spec is not None and process is self._process


class _Team:
    """Processes side by side; all are gone when the block ends."""

    def __init__(self, num: int, cards: Sequence[int]) -> None:
        self._cards = cards
        self._answers: Answers = queue.SimpleQueue()
        self._members = [_Member(self._answers) for _ in range(num)]

    def __enter__(self) -> _Team:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._stop()
        for member in self._members:
            member.end()

    def _placed(self, spec: Task) -> Task | None:
        running = [one.placed for one in self._members if one.spec is not None and one.placed is not None]
        return placed(spec, running, self._cards)

    def run(self, graph: Graph) -> None:
        """Do all tasks of the graph."""
        while True:
            for member in self._members:
                if member.spec is not None:
                    continue
                spec = graph.next(lambda spec: self._placed(spec) is not None)
                if spec is not None and (there := self._placed(spec)) is not None:
                    member.begin(spec, there)
            if all(member.spec is None for member in self._members):
                return
            try:
                member, process, answer = self._answers.get(timeout=TICK_S)
            except queue.Empty:
                graph.listener.tick()
                continue
            if member.spec is None or not member.is_at_work(process):
                continue
            if answer is None:
                spec, member.spec = member.spec, None
                member.end()
                graph.ended(spec, Outcome(spec.name, error=f"{spec.name}: {LOST}"))
            elif "event" in answer:
                graph.listener.heard(Event(**answer["event"]))
            else:
                spec, member.spec = member.spec, None
                graph.ended(spec, Outcome(**answer["outcome"]))

    def _stop(self) -> None:
        """Ask every task to stop at its next epoch, so that its checkpoint is the newest there can be."""
        at_work = [member for member in self._members if member.spec is not None and member.lives]
        for member in at_work:
            member.ask_to_stop()
        deadline = time.monotonic() + STOP_S
        while at_work and time.monotonic() < deadline:
            try:
                member, _, answer = self._answers.get(timeout=TICK_S)
            except queue.Empty:
                continue
            if (answer is None or "outcome" in answer) and member in at_work:
                at_work.remove(member)
