"""Numbers and names as people read them. Names from a user's files are text: never Markdown, never HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from auditor.ground.wording import duration as duration
from auditor.ground.wording import interval as interval
from auditor.ground.wording import percent as percent
from auditor.ground.wording import plural as plural

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~$:&])")

SHORTCODE = re.compile(r":(?=[\w+-][\w/+-]*:)")
"""Streamlit turns ``:material/home:`` and ``:smile:`` into pictures after backslashes are gone."""
WORD_JOINER = "\u2060"
"""Takes no room and breaks such a code apart."""

FIELDS = {
    "label_column": "Column of labels",
    "path_column": "Column of picture paths",
    "true_label_column": "Column of known true labels",
    "root": "Root folder of the paths in a table",
    "annotators": "Columns of several annotators",
    "annotator_column": "Column of who answered, one row an answer",
    "image_size": "Image size",
    "skip_bad": "Leave out rows with problems",
    "merge_classes": "Names that are nearly the same",
    "layout": "The first folders are",
    "masks_on": "Masks of turned pictures are",
    "encoding": "Encoding of the table",
    "name": "Name of the dataset",
}
"""What a parameter of an import is called on its page."""


def plain(text: str) -> str:
    """Text for ``st.markdown`` and labels in which no character is markup."""
    apart = SHORTCODE.sub(f":{WORD_JOINER}", " ".join(text.split()))
    return MARKDOWN.sub(r"\\\1", apart)


def documented(text: str) -> str:
    """A docstring as Markdown: ``code`` in double backticks stays code, the rest is text as in ``plain``."""
    parts = " ".join(text.split()).split("``")
    return "".join(
        f"`{part}`" if place % 2 else MARKDOWN.sub(r"\\\1", part) for place, part in enumerate(parts)
    )


def count(number: float | None) -> str:
    """12345.6 as ``12,346``; None and NaN as a dash."""
    return "–" if number is None or number != number else f"{round(number):,}"


def ago(moment: datetime | None) -> str:
    """``5 minutes ago``; a dash for None."""
    if moment is None:
        return "–"
    seconds = (datetime.now(tz=UTC) - moment).total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return f"{plural(int(seconds // size), unit)} ago"
    return "just now"


def class_name(names: Sequence[str], label: int | None) -> str:
    """The class of that index, or ``unlabeled``."""
    return "unlabeled" if label is None or label < 0 else names[label]
