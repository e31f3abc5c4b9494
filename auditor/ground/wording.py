"""Numbers with their nouns, and names that were nearly right, as people read them."""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Iterable

from auditor.ground.vocabulary import CLASSIFICATION, LABELS, REGRESSION

DIRECTIONS = frozenset(["LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"])
"""What makes the text after it run the other way."""


ONE = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Verbs of many -> of one; every other one gets an s."""


def plural(number: int, noun: str, verb: str = "") -> str:
    """``1 sample``, ``2,000 samples``, ``3 classes``; with a verb: ``1 sample has``, ``2 samples have``."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "tch")) else "s"
    if verb and number == 1:
        verb = ONE.get(verb, f"{verb}s")
    return f"{number:,} {noun}{ending} {verb}".rstrip()


def kind_of_labels(task: str, num_classes: int) -> str:
    """Return what the labels are: ``10 classes``, ``masks of 3 classes`` or ``numbers``."""
    if task == CLASSIFICATION:
        return plural(num_classes, "class")
    return LABELS[task] if task == REGRESSION else f"{LABELS[task]} of {plural(num_classes, 'class')}"


def percent(share: float) -> str:
    """Write a share for people: two figures where it is small, never a certainty that rounding made."""
    if not math.isfinite(share):
        return "unknown"
    if 0.0 < share < 0.0005:
        return "less than 0.1 %"
    if 0.995 <= share < 1.0:
        return "more than 99 %"
    text = f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
    return f"{text.removesuffix('.0')} %"


def interval(low: float, high: float) -> str:
    """``3.1 – 6.4 %``, ``6.5 – 16 %``: both ends as ``percent`` writes them."""
    start = percent(low)
    return f"{start.removesuffix(' %') if start[0].isdigit() else start} – {percent(high)}"


NOTHING_STANDS_OUT = "Nothing stands out. Check some at random to be sure."
ORDER_ALONE = (
    "No label is called a suspect: the engines learned from the labels that they judge and contradict most of "
    "them, so there is an order and no cut. Verify some at random to get one."
)


def no_suspects(num_found: int, *, is_order_alone: bool) -> str:
    """Return what is said of an audit that flags no label: that none stands out, or that nobody can tell.

    ``num_found``: labels that people found wrong all the same.
    """
    if num_found and not is_order_alone:
        return (
            f"Nothing stood out by itself, but people found {plural(num_found, 'wrong label')}: look at the first "
            "of the list, and use the verdicts in the ranking."
        )
    return ORDER_ALONE if is_order_alone else NOTHING_STANDS_OUT


def evidence(share: float) -> str:
    """An uncalibrated probability in words: ``strong``, ``some`` or ``weak evidence``; ``no`` if it is unknown."""
    if not math.isfinite(share):
        return "no evidence"
    return "strong evidence" if share >= 0.8 else "some evidence" if share >= 0.4 else "weak evidence"


def odds_of_wrong(share: float) -> str:
    """``85 % likely wrong``: only where verified rows say so."""
    return f"{percent(share)} likely wrong"


def engines_against(against: int, engines: int) -> str:
    """``5 of 7 engines say otherwise``: said of a label where no verified row says how likely it is wrong."""
    if engines == 1:
        return "the engine says otherwise" if against else "the engine agrees"
    return f"{against} of {engines} engines say otherwise"


def duration(seconds: float | None) -> str:
    """90 as ``1 min 30 s``; None as ``unknown``."""
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def visible(text: str) -> str:
    r"""``text`` for a terminal: what would move the cursor, change colours or turn the order is spelled (\x1b)."""
    return "".join(_spelled(c) if _acts(c) else c for c in text)


def _acts(character: str) -> bool:
    if character in "\n\t":
        return False
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in DIRECTIONS


def _spelled(character: str) -> str:
    return repr(character)[1:-1] if not character.isprintable() else f"\\u{ord(character):04x}"


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """``did you mean 'photos'?`` with the nearest of ``names``; ``otherwise`` where none is near."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise
