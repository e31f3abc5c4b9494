"""A source that lives in a process apart: what its files do to the libraries that parse them, they do there.

Rows and payloads come over a pipe, many at a time. Who reads sees a ``Source`` like any other.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from auditor.ground import apart
from auditor.ground.apart import Apart, DiedError
from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.roots import remarks
from auditor.pictures.sources.rows import (
    Outcomes,
    Payload,
    Problem,
    Rewritable,
    Source,
    SourceInfo,
    SourceRow,
    printable,
)

ROWS_AT_ONCE = 2_000
PLACES_AT_ONCE = 256
BYTES_AT_ONCE = 16 * 2**20
"""Of payloads in one answer; one that is larger comes alone."""

Args = ParamSpec("Args")
Answer = TypeVar("Answer")


class SourceApart:
    """The source that ``opened`` opens, in a process of its own."""

    info: SourceInfo
    ignored: list[str]

    def __init__(self, named: str, process: Apart) -> None:
        """``named`` is what the person called it."""
        self._named, self._process = named, process
        self.info, self.ignored = self._ask(_about)

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        self._ask(_begin_rows)
        while True:
            rows, self.ignored = self._ask(_more_rows)
            yield from rows
            if len(rows) < ROWS_AT_ONCE:
                return

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``."""
        self._ask(_begin_payloads)
        wanted = iter(locations)
        while places := list(itertools.islice(wanted, PLACES_AT_ONCE)):
            left = len(places)
            while left:
                found = self._ask(_more_payloads, places)
                if not found:  # the source became shorter
                    return
                yield from found
                places, left = [], left - len(found)

    def remarks(self) -> list[str]:
        """See ``roots.remarks``."""
        return self._ask(_remarks)

    def _ask(self, function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        try:
            return self._process.call(function, *args, **kwargs)
        except DiedError as error:
            raise _refused(self._named, error) from error


class RewritableApart(SourceApart):
    """One that can be written again."""

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``."""
        self._ask(_write_again, out, list(outcomes), list(class_names))


def open_apart(named: str, opened: Callable[Args, Source], *args: Args.args, **kwargs: Args.kwargs) -> Source:
    """``opened(*args)`` in a process of its own, which ends with the source; within a process apart, here.

    Raises:
        ImportRefusedError: it cannot be read, or reading it ended that process.
    """
    if apart.is_apart():
        return opened(*args, **kwargs)
    process = Apart()
    try:
        is_rewritable = process.call(_open, opened, args, kwargs)
        source = (RewritableApart if is_rewritable else SourceApart)(named, process)
    except DiedError as error:
        raise _refused(named, error) from error
    except BaseException:
        process.close()
        raise
    weakref.finalize(source, process.close)
    return source


def _refused(named: str, error: DiedError) -> ImportRefusedError:
    return ImportRefusedError(f"{printable(named)} {error}; write it again, or leave it out.")


# In the process apart, which has one source and what is read of it: one pass of each kind at a time.
_source: list[Source] = []
_rows: Iterator[SourceRow | Problem] = iter(())
_payloads: Iterator[Payload] = iter(())
_wanted: deque[str] = deque()
_num_due = 0


def _open(opened: Callable[..., Source], args: Any, kwargs: Any) -> bool:
    _source.append(opened(*args, **kwargs))
    apart.AT_END.append(_source.clear)
    return isinstance(_source[0], Rewritable)


def _about() -> tuple[SourceInfo, list[str]]:
    return _source[0].info, _source[0].ignored


def _begin_rows() -> None:
    global _rows
    _rows = iter(_source[0].rows())


def _more_rows() -> tuple[list[SourceRow | Problem], list[str]]:
    found = list(itertools.islice(_rows, ROWS_AT_ONCE))
    return found, _source[0].ignored if len(found) < ROWS_AT_ONCE else []


def _begin_payloads() -> None:
    global _payloads, _num_due
    _wanted.clear()
    _num_due = 0
    _payloads = iter(_source[0].payloads(_drained()))


def _drained() -> Iterator[str]:
    """Yield what is wanted. A source asks for a place when the payload before it was taken, thus never too
    early.
    """
    while _wanted:
        yield _wanted.popleft()


def _more_payloads(places: list[str]) -> list[Payload]:
    global _num_due
    _wanted.extend(places)
    _num_due += len(places)
    found, size = list[Payload](), 0
    while _num_due and size < BYTES_AT_ONCE and (payload := next(_payloads, None)) is not None:
        found.append(payload)
        size += len(payload)
        _num_due -= 1
    return found


def _remarks() -> list[str]:
    return remarks(_source[0])


def _write_again(out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
    source = _source[0]
    assert isinstance(source, Rewritable)
    source.write_again(out, outcomes, class_names)
