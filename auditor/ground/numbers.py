"""Numbers as labels: how a person's text is read as one, and how one is written again."""

from __future__ import annotations

import math
import re

_IN_BRACKETS = re.compile(r"[(\[]\s*([^()\[\]]{1,12}?)\s*[)\]]\s*$")
_BEHIND = re.compile(r"_(mm|cm|m|km|mg|g|kg|s|ms|px|deg|years|months|days|hours|minutes|percent)$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read_number(text: str) -> float:
    """The finite number that ``text`` writes, with a decimal point.

    Raises:
        ValueError: it writes none; the text says what it is instead and the remedy, without a full stop.
    """
    found = text.strip()
    if found.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise ValueError(f"is {found}, which is no number to learn from; correct it, or leave the cell empty")
    if not _NUMBER.fullmatch(found):
        hint = "; write it with a decimal point" if re.fullmatch(r"[+-]?\d+,\d+", found) else ""
        shown = ascii(found[:40])
        raise ValueError(f"is {shown}, which is no number{hint or '; correct it, or leave the cell empty'}")
    value = float(found)
    if not math.isfinite(value):
        raise ValueError(f"is {found[:40]!a}, which is too large; correct it, or leave the cell empty")
    return value


def figure(value: float) -> str:
    """A suggested number as people read it: without the dust that adding and subtracting leave behind."""
    return f"{value:.10g}"


def number_text(value: float) -> str:
    """``value`` in the shortest text that is read as the same number: ``3`` and not ``3.0``."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(float(value))


def unit_of(name: str) -> str:
    """The unit in the name of a column, as in ``width (cm)``, ``weight [kg]`` or ``age_years``; empty where there
    is none."""
    found = _IN_BRACKETS.search(name) or _BEHIND.search(name)
    return found.group(1) if found else ""


def without_unit(name: str) -> str:
    """The name of a column without the unit in it: ``width`` of ``width (cm)``, ``age`` of ``age_years``."""
    bare = _BEHIND.sub("", _IN_BRACKETS.sub("", name)).strip()
    return bare or name
