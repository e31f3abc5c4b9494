"""What an audit does in a given time: settings from the one that finds most to the one that takes least.

The order follows what was measured (photos of 224 px with planted confusions, plain engine): 112 px AUROC .950 and
average precision .756 for a quarter of the work of 224 px, 64 px .942 and .711 for a twelfth; and on images of
CIFAR-10 30 epochs instead of 10 were worth .02 to .05. Five trainings on the images find a little more than one
and four on what its network sees (1,797 digits: 178 of 180 wrong labels first instead of 175), and take many times
as long. So the trainings on images go first, then pixels, then epochs, then engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.ground.errors import AuditFailedError
from auditor.ground.wording import plural

DEFAULT_S = 600.0
"""Budget of an audit on a CPU where nobody says otherwise."""
OVERNIGHT_S = 8 * 3_600.0
UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0}
MANY_ROWS = 10_000
"""Rows from which 45 epochs find more than 30; with fewer a network memorises wrong labels."""
LADDER = (
    (None, 45),
    (None, 30),
    (64, 30),
    (64, 20),
    (64, 12),
    (32, 20),
    (32, 12),
    (32, 6),
)
"""(longest side, epochs of the plain engine), the one that finds most first."""


@dataclass(frozen=True)
class Rung:
    """One way to audit."""

    engines: list[str]
    preset: str
    options: dict[str, dict[str, Any]]
    sentence: str
    """What it does, for people; empty where nothing is left out."""


def parse(text: str) -> float:
    """Seconds of ``10m``, ``90s``, ``1.5h`` or ``overnight``.

    Raises:
        AuditFailedError: it is none of these.
    """
    if text == "overnight":
        return OVERNIGHT_S
    try:
        seconds = float(text[:-1]) * UNITS[text[-1:]]
    except (ValueError, KeyError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise AuditFailedError(f"The budget {text!r} is no time; write it as 10m, 90s, 2h or overnight.")
    return seconds


def rungs(
    engines: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    *,
    num_rows: int,
    side: int,
    trunk: str,
    reduces: bool,
    may_leave_out: bool,
) -> Iterator[Rung]:
    """Ways to audit, the one that finds most first. What ``options`` set stays as it is.

    Args:
        engines: that are wanted.
        options: config fields by engine.
        num_rows: of the dataset.
        side: longest side of its images, as they are trained on without a budget.
        trunk: the engine on whose features the others train.
        reduces: whether fewer pixels and epochs of ``trunk`` make it shorter; otherwise only the preset does.
        may_leave_out: whether engines may be left out, because nobody named them.
    """
    found = {name: dict(values) for name, values in options.items()}
    if not reduces or trunk not in engines:
        yield from (Rung(list(engines), preset, found, "") for preset in ("standard", "quick"))
        return
    last = Rung(list(engines), "quick", found, "")
    yield last
    seen = set()
    for pixels, epochs in LADDER:
        smaller = None if pixels is None or pixels >= side else pixels
        if (epochs > 30 and num_rows < MANY_ROWS) or (smaller, epochs) in seen:
            continue
        seen.add((smaller, epochs))
        short: dict[str, Any] = {"epochs": epochs, "keeps_features": len(engines) > 1}
        short |= {} if smaller is None else {"side": smaller}
        sentence = f"{plural(epochs, 'epoch')} of {trunk}" + ("" if smaller is None else f" at {smaller} px")
        last = Rung(list(engines), "quick", found | {trunk: short | found.get(trunk, {})}, sentence)
        yield last
    if may_leave_out and len(engines) > 1:
        alone = {trunk: last.options[trunk]}
        yield Rung([trunk], "quick", alone, f"{last.sentence} and no other engine")
