"""Labels that somebody has refused or put off: a column beside them says so, and they count for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from auditor.ground.wording import plural
from auditor.pictures.sources.columns import FALSE_WORDS, TRUE_WORDS, find_column
from auditor.pictures.sources.rows import printable

ACCEPTED = {"answer": "accept", "assignmentstatus": "Approved", "assignment:status": "APPROVED"}
"""Columns of Prodigy, Mechanical Turk and Toloka, which mean nothing else: what they say of a label that counts."""
STATUSES = (
    *("status", "label_status", "annotation_status", "review_status", "reviewstatus", "task_status"),
    *("state", "review_state", "review_result", "review", "qa", "qa_status", "decision"),
)
"""Columns that may speak of the label, or of what the picture shows."""
REFUSING = (
    *("rejected", "reject", "skipped", "skip", "ignored", "ignore"),
    *("deleted", "discarded", "excluded", "invalid"),
)
ACCEPTING = ("approved", "accepted")
"""Columns of yes and no about the label, also with ``is_`` before them."""
REFUSED = frozenset(
    [
        *("reject", "rejected", "refused", "declined", "disapproved", "invalid", "wrong", "incorrect"),
        *("discard", "discarded", "deleted", "removed", "ignore", "ignored", "skip", "skipped", "cancelled"),
        *("canceled", "needs review", "needs_review", "to review", "unreviewed", "not approved"),
    ]
)


class Refusals:
    """Tells of a row whether its label is refused, by a column beside it."""

    def __init__(
        self, columns: Iterable[str], label: str | None, *, is_believed: bool, is_kept: bool = False
    ) -> None:
        """``is_believed``: a person named the column of labels, thus takes them whatever a column may say.

        ``is_kept``: labels that a known tool refused are asked about as any others, for the source has no place
        where an export could say that they count after all.
        """
        rest = [column for column in columns if column != label]
        of_tools = find_column(rest, tuple(ACCEPTED))
        self.column = None if is_kept else of_tools
        """The one of a known tool."""
        flags = tuple(f"{before}{one}" for before in ("", "is_") for one in (*REFUSING, *ACCEPTING))
        doubtful = find_column(rest, STATUSES if label is None else (*STATUSES, *flags))
        self._doubtful = of_tools if is_kept and of_tools is not None else doubtful
        self._is_believed = is_believed
        self._found: dict[tuple[str, str], set[int]] = {}

    @property
    def accepted(self) -> str:
        """The word of a label that counts."""
        return ACCEPTED[(self.column or "").strip().lower().replace(" ", "_")]

    def is_refused(self, row: int, cells: Mapping[str, object]) -> bool:
        """Return whether the label of a row counts for nothing.

        Raises:
            ValueError: a column may say so, and a person has to; the text says how.
        """
        said = _refusing(cells, self.column)
        if said and self.column is not None:
            self._found.setdefault((self.column, said), set()).add(row)
            return True
        said = _refusing(cells, self._doubtful)
        if said and self._doubtful is not None:
            if not self._is_believed:
                raise ValueError(
                    f"has the {printable(self._doubtful, 40)} {printable(said, 40)!r}, so that its label may not "
                    "count; remove such rows, leave them out, or name the column of labels to take them as they are"
                )
            self._found.setdefault((self._doubtful, said), set()).add(row)
        return False

    def remarks(self) -> Iterator[str]:
        """Return how many labels are refused, and how many are taken all the same."""
        for (column, said), rows in self._found.items():
            what = "without a label" if column == self.column else "with the label kept"
            yield f"{plural(len(rows), 'row')} {what}: {said!r} in the column {printable(column, 40)!r}."


def _refusing(cells: Mapping[str, object], column: str | None) -> str:
    """The cell in lower case where it refuses; else empty."""
    said = cells.get(column) if column is not None else None
    word = "" if said is None or column is None else str(said).strip().lower()
    flag = (column or "").strip().lower().removeprefix("is_")
    is_no = (flag in REFUSING and word in TRUE_WORDS) or (flag in ACCEPTING and word in FALSE_WORDS - {""})
    return word if word in REFUSED or is_no else ""
