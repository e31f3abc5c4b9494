"""Names of classes and files, written by different people, systems and keyboards: when are two the same?"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from urllib.parse import unquote

_SPACES = re.compile(r"[\s_]+|(?<=\w)-(?=\w)")
_IN_A_WORD = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])")
_ACCENTS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+|[\ufe00-\ufe0f]")
"""Marks on Latin letters, and the signs that choose between looks of one sign."""
_COPIED = re.compile(
    r"(?:copy(?: \(?\d{1,2}\)?)? of|copie de|kopie von) (?P<of>.+)"
    r"|(?P<from>.+?)(?: ?\(\d{1,2}\)|[ ._-]+\(?(?:copy|copie|kopie|copia|duplicate|old|new|backup|bak|orig)\)?"
    r"(?: ?\(?\d{1,2}\)?)?)+",
    re.IGNORECASE,
)
"""What systems and people call the copy of a folder: ``cat (1)``, ``cat - Copy (2)``, ``Copy of cat``, ``cat_old``.
"""
_AROUND = "'\"`\u2018\u2019\u201c\u201d.,;:|"
_LOOK_LIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425"
    "\u03bf\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u2010\u2011\u2012\u2013\u2014\u2212",
    "aeopcyxijsABEKMHOPCTX" + "oABEHIKMNOPTX" + "-" * 6,
)
"""Cyrillic and Greek letters, and dashes, that nobody can tell from Latin ones and a hyphen."""


def normal(text: str) -> str:
    """The one spelling of characters that can be written in two ways (NFC), without spaces around it.

    macOS writes é in names of files as e and an accent; everybody else as one character.
    """
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def likeness(name: str) -> str:
    """Equal for names that a person takes for one.

    Case, spaces, underscores, hyphens, invisible signs, accents, letters of another script that look the same,
    quotes and stops around it, and zeros before a number do not count; nor what programs make of signs on their way
    (``caf\u00c3\u00a9``, ``hot%20dog``, ``cats &amp; dogs``).
    """
    text = unquote(name) if "%" in name else name
    text = html.unescape(text) if "&" in text else text
    text = text if text.isascii() else _without_accents(_as_meant(text)).translate(_LOOK_LIKE)
    seen = "".join(sign for sign in text if unicodedata.category(sign) != "Cf").strip()
    seen = seen.strip(_AROUND) or seen
    plain = _SPACES.sub(" ", _IN_A_WORD.sub("", seen)).strip().casefold()
    return plain.lstrip("0") or "0" if plain.isdecimal() else plain


def _as_meant(text: str) -> str:
    """UTF-8 that somebody read as Western letters, read once more."""
    for encoding in ("cp1252", "latin-1"):
        with suppress(UnicodeError):
            return text.encode(encoding).decode("utf-8")
    return text


def _without_accents(text: str) -> str:
    """Latin letters without their accents; in other scripts these make another word."""
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return unicodedata.normalize("NFKC", plain)


def alike(names: Iterable[str]) -> list[list[str]]:
    """The sets of two and more names that a person takes for one, or that systems give to copies of one."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[likeness(name)].append(name)
    for key, group in list(groups.items()):
        copied = _COPIED.fullmatch(group[0].strip())
        original = key if copied is None else likeness(copied["of"] or copied["from"])
        if original != key and original in groups:
            groups[original] += groups.pop(key)
    return [group for group in groups.values() if len(group) > 1]


class Spellings:
    """Takes a name for the first one that looks like it: ``Train`` for ``train``."""

    def __init__(self, what: str) -> None:
        """``what`` the names are of, in the plural."""
        self._what = what
        self._first: dict[str, str] = {}
        self._taken: dict[str, str] = {}

    def first(self, name: str | None) -> str | None:
        """The spelling that came first; nothing for nothing."""
        if not name:
            return None
        found = self._first.setdefault(likeness(name), name)
        if found != name:
            self._taken[name] = found
        return found

    def remarks(self) -> list[str]:
        """Return which names were taken for others."""
        said = ", ".join(f"{name!r} is {found!r}" for name, found in self._taken.items())
        return [f"{self._what} that look alike are one: {said}."] if said else []


def first_twice(names: Iterable[str]) -> str | None:
    """The first name that occurs more than once; None where none does."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


class Names:
    """Finds a class by its name, in whatever characters somebody wrote it."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` in the order of their numbers."""
        self._numbers = {normal(name): number for number, name in enumerate(names)}
        self._numbers |= {name: number for number, name in enumerate(names)}

    def number(self, text: str) -> int | None:
        """The class of that name; None where there is none."""
        return self._numbers.get(text, self._numbers.get(normal(text)))
