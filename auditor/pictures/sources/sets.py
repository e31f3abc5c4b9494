"""Sets of classes as text: how a cell says several, and how the same cell says others.

Inside the product a set is a JSON list of names, whatever form its source has. An empty cell is no label; an empty
list is a picture that shows none of the classes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from auditor.ground.names import normal

SIGNS = ("|", ";", "\n", ",", " ")
"""What parts the names in a cell, the first of them that occurs in any; a space only where it parts classes."""

SHOWN = re.compile(
    r"(?:(?:tf|torch)\.)?(?:tensor|array|EagerTensor)\((?P<array>.+?)(?:,\s*(?:dtype|device|shape)=.*)?\)"
    r"|(?:np|numpy)\.\w{1,20}\((?P<scalar>.+)\)|(?P<bytes>b(?:'.*'|\".*\"))",
    re.DOTALL,
)
"""What NumPy, PyTorch and Python show in place of a value: ``tensor(3)``, ``np.str_('cat')``, ``b'cat'``."""


ONE_CLASS = "one class per image can be audited, or several with the task multilabel"


def one_or_set(names: Iterable[str], several: str, *, are_sets: bool) -> str | None:
    """Return the label that a picture's names are: their set, or the only one; None where there is none.

    Raises:
        ValueError: one class is read and there are several; ``several`` says what the picture has.
    """
    found = list(dict.fromkeys(names))
    if found and are_sets:
        return set_text(found)
    if len(found) > 1:
        raise ValueError(f"{several}; {ONE_CLASS}")
    return next(iter(found), None)


def set_text(names: Iterable[str]) -> str:
    """Return a set as a JSON list, each name once."""
    return json.dumps(list(dict.fromkeys(names)), ensure_ascii=False)


def read_set(text: str, sign: str | None) -> list[str]:
    """Return the names in a cell: a list of JSON, Python, NumPy or PostgreSQL, or names with ``sign`` between."""
    found = read_list(text)
    if found is None:
        found = [normal(part) for part in text.split(sign)] if sign else [normal(text)]
    return list(dict.fromkeys(name for name in found if name))


def sign_of(texts: Collection[str]) -> str | None:
    """Return what parts the names in these cells; None where nothing does."""
    plain = [text for text in texts if read_list(text) is None]
    for sign in SIGNS[:-1]:
        if any(sign in text.strip() for text in plain):
            return sign
    single = {normal(text) for text in plain if " " not in text.strip()}
    spaced = [text.split() for text in plain if " " in text.strip()]
    return " " if spaced and all(part in single for parts in spaced for part in parts) else None


def written_like(before: str, names: Sequence[str], sign: str | None) -> str:
    """Return a set in the form that a cell has.

    ``sign`` is that of its column; where none of its cells has two names, they are joined by ``|``.
    """
    cell = before.strip()
    if not cell or read_list(cell) is None:
        return (sign or SIGNS[0]).join(names)
    try:
        value = json.loads(cell)
    except ValueError:
        if "'" in cell:
            return repr(list(names))
        return f"{cell[0]}{(sign or ',').join(names)}{cell[-1]}"
    if isinstance(value, dict):
        return json.dumps(flagged_like(value, names), ensure_ascii=False)
    return json.dumps(valued_like(value, names), ensure_ascii=False)


def flagged_like(before: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return an object of ones and zeros, or of true and false, that says these names."""
    return {key: type(one)(key in names) for key, one in before.items()}


def valued_like(before: Any, names: Sequence[str]) -> list[str] | list[int]:
    """Return the names as a list has them: as numbers where it holds numbers."""
    are_numbers = isinstance(before, list) and (
        all(isinstance(one, int) for one in before) and (before or all(map(str.isdecimal, names)))
    )
    return [int(name) for name in names] if are_numbers else list(names)


def read_list(text: str) -> list[str] | None:
    """Return the names in a list, an object of ones and zeros or what a program shows; None where it is none."""
    shown = SHOWN.fullmatch(text)
    if shown is not None:
        return _of_shown(shown)
    if not text or not (text[0] in "[({" and text[-1] in "])}"):
        return None
    # Python reads ['cat' 'dog'], as NumPy writes it, as one text.
    for read in () if re.search(r"['\"]\s+['\"]", text) else (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(value, dict):
            return _of_object(value)
        if isinstance(value, (list, tuple, set)):
            return _distinct([normal(str(one)) for one in value])
    inner = text[1:-1].strip()  # [cat, dog], {cat,dog} of PostgreSQL and ['cat' 'dog'] of NumPy
    words = inner.split()
    if len(words) > 1 and all(map(str.isdecimal, words)):
        return words
    if text[0] == "(" or ":" in inner or (re.search(r"[,'\"]", inner) is None and " " in inner):
        return None
    parts = re.findall(r"'([^']*)'|\"([^\"]*)\"|([^,'\"\s][^,'\"]*)", inner)
    return _distinct([normal("".join(part)) for part in parts])


def _of_shown(shown: re.Match[str]) -> list[str] | None:
    """The labels in what a program shows of a value; None where it is none of a label."""
    inner = (shown["array"] or shown["scalar"] or shown["bytes"]).strip()
    if inner.startswith(("[", "(")):
        return read_list(inner)
    try:
        value = ast.literal_eval(inner)
        value = value.decode() if isinstance(value, bytes) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return [normal(str(value))] if isinstance(value, (str, int, float)) else None


def _of_object(value: dict[object, object]) -> list[str]:
    """The keys that are set of ``{"cat": 1, "dog": 0}``; of any other object all that is in it."""
    if all(one in (0, 1) for one in value.values()):
        return [normal(str(key)) for key, one in value.items() if one]
    return [normal(str(one)) for item in value.items() for one in item]


def _distinct(names: list[str]) -> list[str]:
    """Each name once; ``[0, 0]`` stays two, as ``[1, 0]`` is."""
    return names if all(map(str.isdecimal, names)) else list(dict.fromkeys(names))
