"""What an audit does in a given time: settings from the one that finds most to the one that takes least.

The order follows what was measured. Photos of 224 px with planted confusions, plain engine: 112 px AUROC .950 and
average precision .756 for a quarter of the work of 224 px, 64 px .942 and .711 for a twelfth. Images of CIFAR-10:
30 epochs instead of 10 were worth .02 to .05. Five trainings on a few images find a little more than one and four
on what its network sees (1,797 digits: 178 of 180 wrong labels first instead of 175), and take many times as long;
on 25,000 images one training of 45 epochs finds more than five of 10 to 30 (human errors, AUROC .933 and .944
against .928 and .941) in a quarter of their time. Of the engines that train on what the network sees, L2B finds
what it does not (structured errors), and the others add nothing to both (four sets of labels). So from
``MANY_ROWS`` on nothing but the network trains on images; then those others go first, then pixels, then epochs,
then L2B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.ground.errors import AuditFailedError
from auditor.ground.wording import plural

DEFAULT_BUDGET_S = 600.0
"""Budget of an audit on a CPU where nobody says otherwise."""
OVERNIGHT_S = 8 * 3_600.0
UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0}
MANY_ROWS = 10_000
"""Rows from which 45 epochs find more than 30; with fewer a network memorises wrong labels."""
KEPT = "l2b"
"""The engine that stays beside the network longest."""
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


def parse_budget(text: str) -> float:
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
    if num_rows < MANY_ROWS:
        yield Rung(list(engines), "quick", found, "")
    ways = []
    for pixels, epochs in LADDER:
        smaller = None if pixels is None or pixels >= side else pixels
        if (epochs <= 30 or num_rows >= MANY_ROWS) and (smaller, epochs) not in ways:
            ways.append((smaller, epochs))
    few = may_leave_out and KEPT in engines and len(engines) > 2
    for way in ways:
        yield _short(list(engines), found, trunk, *way, "")
        if few:
            yield _short([trunk, KEPT], found, trunk, *way, f", and of the other engines {KEPT}")
    if may_leave_out and len(engines) > 1:
        yield _short([trunk], found, trunk, *ways[-1], " and no other engine")


def _short(
    engines: list[str],
    options: Mapping[str, dict[str, Any]],
    trunk: str,
    side: int | None,
    epochs: int,
    left_out: str,
) -> Rung:
    """The trunk for so many epochs, on images of that longest side (None: as they are), others on what it sees."""
    short: dict[str, Any] = {"epochs": epochs, "keeps_features": len(engines) > 1}
    short |= {} if side is None else {"side": side}
    own = {name: values for name, values in options.items() if name in engines}
    pixels = "" if side is None else f" at {side} px"
    sentence = f"{plural(epochs, 'epoch')} of {trunk}{pixels}{left_out}"
    return Rung(engines, "quick", own | {trunk: short | own.get(trunk, {})}, sentence)
