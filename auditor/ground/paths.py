"""Which file is meant by a path or an id that somebody else's program wrote?

A name that leads to no file may still mean one: without its suffix, in other letters, from a folder further up or
down, with the prefix that an upload got. It is taken where it can mean one file alone, and the caller says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from auditor.ground.names import normal

SUFFIXES = frozenset(
    [
        *("png", "jpg", "jpeg", "jpe", "jfif", "bmp", "gif", "tif", "tiff", "webp", "avif", "jp2", "heic"),
        *("heif", "dcm", "ppm", "pgm", "pbm", "pnm"),
    ]
)
SAME_SUFFIX = {"jpeg": "jpg", "jpe": "jpg", "jfif": "jpg", "tiff": "tif"}
UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
"""What Label Studio puts before the name of a file that is uploaded."""
LOCAL = re.compile(r"[A-Za-z]:(?=[/\\])")
MOST_NAMED = 3


class Paths:
    """Names of files, found by what somebody wrote for one."""

    def __init__(self, names: Iterable[str]) -> None:
        """``names`` are relative, parted by slashes; nothing is sorted before one is not found as it is."""
        self._names = dict.fromkeys(names)
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._by_number: dict[str, list[str]] = defaultdict(list)

    def __contains__(self, text: str) -> bool:
        """Return whether a file is called exactly so."""
        return text in self._names

    def find(self, text: str) -> str | None:
        """The file of that name, else the one that ``text`` may mean; None where it is none or several."""
        if text in self._names:
            return text
        best = self._best(text)
        if not best and "%" in text:
            best = self._best(unquote(text))
        return best[0] if len(best) == 1 else None

    def _sort(self) -> None:
        for name in self._names:
            _, stem, _ = _parts(name)
            self._by_stem[stem].append(name)
            if stem.isdecimal():
                self._by_number[stem.lstrip("0")].append(name)
            if UPLOADED.match(stem):
                self._by_stem[UPLOADED.sub("", stem, count=1)].append(name)

    def hint(self, text: str) -> str:
        """Return which files are nearly called so, for a message; empty where none is."""
        several = self._best(text) or self._by_stem.get(_parts(text)[1], [])
        if not several:
            return ""
        more = f" and {len(several) - MOST_NAMED:,} more" if len(several) > MOST_NAMED else ""
        named = ", ".join(several[:MOST_NAMED]) + more
        return f"{named} {'is' if len(several) == 1 else 'are'} there"

    def _best(self, text: str) -> list[str]:
        if not self._by_stem:
            self._sort()
        wanted, stem, suffix = _parts(text)
        stems = [stem, UPLOADED.sub("", stem, count=1), stem.removesuffix(".0")]
        scored: dict[int, list[str]] = defaultdict(list)
        named = [one for key in stems for one in self._by_stem.get(key, [])]
        if not named and stems[2].isdecimal():  # spreadsheets write 0001 as 1
            named = self._by_number.get(stems[2].lstrip("0"), [])
        for name in dict.fromkeys(named):
            own, _, own_suffix = _parts(name)
            score = _agreement(wanted, own)
            if score is not None and suffix in ("", own_suffix):
                scored[score].append(name)
        return scored[max(scored)] if scored else []


def _agreement(wanted: list[str], own: list[str]) -> int | None:
    """Return how many folders are the same; None where one path does not end like the other."""
    count = min(len(wanted), len(own))
    if wanted[len(wanted) - count :] != own[len(own) - count :]:
        return None
    return 2 * count + (len(wanted) == len(own))


def _parts(text: str) -> tuple[list[str], str, str]:
    """(folders, stem, suffix of an image), all in lower case and one spelling."""
    if "://" in text:
        text = unquote(urlsplit(text).path)
    clean = LOCAL.sub("", normal(text)).replace("\\", "/").casefold()
    *folders, name = clean.split("/")
    stem, dot, suffix = name.rpartition(".")
    folders = [folder for folder in folders if folder not in ("", ".", "..")]
    if dot and stem and suffix in SUFFIXES:
        return folders, stem, SAME_SUFFIX.get(suffix, suffix)
    return folders, name, ""
