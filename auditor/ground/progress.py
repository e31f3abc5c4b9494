"""How far a piece of work is: what every long function tells whoever watches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY_S = 0.2
"""Least time between two reports of one stage."""


@dataclass(frozen=True)
class Progress:
    """How far a stage of the work is."""

    stage: str
    """What is done now, for people: ``decoding``, ``writing rows``."""
    done: float
    total: float | None
    """None while the amount is not known."""
    seconds_left: float | None
    """None while nothing tells."""


OnProgress = Callable[[Progress], None]
"""May raise to stop the work."""


class Ticker:
    """Calls back a few times a second at most, and estimates the time left from the rate so far."""

    def __init__(
        self, on_progress: OnProgress | None, stage: str, total: int | None, *, already: int = 0
    ) -> None:
        """Start the clock of a stage, of which ``already`` were done before."""
        self._call, self._stage, self._total, self._already = on_progress, stage, total, already
        self._start = time.monotonic()
        self._last = 0.0
        self.at(already)

    def at(self, done: int) -> None:
        """Report that ``done`` of the total are done."""
        now = time.monotonic()
        if self._call is None or (now - self._last < EVERY_S and done != self._total):
            return
        self._last = now
        left = None
        if self._total is not None and done > self._already:
            left = (now - self._start) / (done - self._already) * (self._total - done)
        self._call(Progress(self._stage, done, self._total, left))
