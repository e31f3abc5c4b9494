"""Which tasks of an audit wait, which run, and what was tried: the part that all executors share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from auditor.work.tasks import Listener, Outcome, Task

ATTEMPTS = 2
LOSSES = 20
"""Attempts that may end because a machine of a cluster was lost, which says nothing about the task."""
TICK_S = 0.4
STOP_S = 20.0
"""How long a task that was asked to stop may take until its next epoch; then its process is ended."""
LOST = "its process was ended from outside; is there enough memory?"


@dataclass
class Graph:
    """The tasks of an audit and how far they are."""

    waiting: list[Task]
    listener: Listener
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)

    def next(self, fits: Callable[[Task], bool] = lambda _: True) -> Task | None:
        """A task that may start now, taken from those that wait; those that can never start are ended."""
        for spec in list(self.waiting):
            lost = next((name for name in spec.after if name in self.failed), None)
            if lost is not None:
                self.waiting.remove(spec)
                self._fail(spec.name, f"{lost}, whose result it needs, failed: {self.failed[lost]}", True)
            elif all(name in self.done for name in spec.after) and fits(spec):
                self.waiting.remove(spec)
                self.attempts[spec.name] = self.attempts.get(spec.name, 0) + 1
                self.listener.started(spec.name)
                return spec
        return None

    def ended(self, spec: Task, outcome: Outcome) -> None:
        """An attempt is over: record it, or let the task wait for another one."""
        if outcome.result is not None:
            self.done.add(spec.name)
            self.listener.ended(outcome)
        elif outcome.is_cancelled:
            raise KeyboardInterrupt
        elif outcome.is_lost and self.losses.get(spec.name, 0) < LOSSES:
            self.losses[spec.name] = self.losses.get(spec.name, 0) + 1
            self.attempts[spec.name] -= 1
            self.waiting.insert(0, spec)
        elif outcome.is_explained or self.attempts[spec.name] >= ATTEMPTS:
            self._fail(spec.name, outcome.error or "", outcome.is_explained)
        else:
            self.waiting.insert(0, spec)

    def _fail(self, name: str, error: str, is_explained: bool) -> None:
        self.failed[name] = error
        self.listener.ended(Outcome(name, error=error, is_explained=is_explained))
