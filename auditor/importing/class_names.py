"""What the labels of a source mean: which names are one class, and which are several classes of one image.

A source that declares its classes is believed; of the names in any other, what is clear is done and what is not is
asked about, once, with counts. Nothing is guessed in silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import alike, normal
from auditor.ground.wording import plural
from auditor.pictures.sources import SHOWN, SourceInfo, printable, read_list

NO_LABEL = frozenset(
    [
        *(
            "nan",
            "<na>",
            "n/a",
            "#n/a",
            "null",
            "nat",
            "?",
            "-",
            "--",
            "\\n",
            "(null)",
            "(none)",
            "<none>",
            "[none]",
        ),
        *("#ref!", "#value!", "#name?", "#div/0!", "#null!", "#num!"),
        *("unlabeled", "unlabelled", "not labeled", "not labelled", "no label", "no_label", "nolabel"),
    ]
)
"""What programs and people write for an empty cell, in lower case."""
NO_LABEL_AS_WRITTEN = frozenset(["None", "NA"])
"""What Python and R write for it, letter for letter: ``none`` is a class of many sets."""
PERHAPS_NO_LABEL = frozenset(["none", "na", "nil", "empty", "missing", "undefined"])
"""Classes that may be none, in lower case."""
NO_NUMBER = "-1"
"""No label beside the numbers of classes from 0; a class where it and 1 are all there are."""
MOST_REMARKS = 5
"""Sets of like names that are spelt out; the others are counted."""
SURE_SEPARATORS = ("|", ";")
"""Nobody writes these into the name of one class; the others are separators where their parts are classes."""
SEPARATORS = (*SURE_SEPARATORS, "\n", "\t", ",", "/", "\\", "+", "&", ":", " and ", " ", "_", "-")
VECTORS = (",", ";", " ")
"""Between the ones and zeros of several classes."""
_FORMULA = re.compile(r"=\s*[A-Z][A-Z.0-9]{1,30}\s*\(.*", re.DOTALL)
_EXPONENT = re.compile(r"-?[0-9]\.[0-9]{1,20}e[+-]?[0-9]{1,2}")
"""A number as NumPy's savetxt writes it."""
_FLOAT = re.compile(r"-?[0-9]{0,15}\.?[0-9]{1,15}")
_WHOLE_FLOAT = re.compile(r"-?[0-9]{1,15}(\.0+)?")


@dataclass
class Meaning:
    """What is made of the names that occur in a source."""

    called: dict[str, str | None] = field(default_factory=dict)
    """Names that are another class's, or none (None)."""
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of several classes of one image, and these classes."""
    notes: list[str] = field(default_factory=list)
    question: ImportRefusedError | None = None
    """What has to be answered before an import."""


def meaning_of_names(
    info: SourceInfo, counts: Mapping[str, int], *, merge: bool | None = None, joined: bool = False
) -> Meaning:
    """Return what the names mean that occur ``counts`` times each.

    ``merge`` answers whether names that look alike are one class, ``joined`` whether ``cat|dog`` is a class.
    """
    found = Meaning()
    if info.is_numeric or info.masks is not None:
        return found
    if info.class_names is not None:
        groups = alike(info.class_names)
        found.notes = [f"{_quoted(group)} look alike: {_number(group)} classes?" for group in groups]
        found.notes = _fewer(found.notes)
        return found
    formula = next(filter(_FORMULA.fullmatch, counts), None)
    if formula is not None:
        found.question = ImportRefusedError(
            f"Labels are formulas of a spreadsheet ({printable(formula, 60)}); save the table with their values.",
            field="label_column",
        )
        return found
    _read_lists(counts, found)
    if found.question is not None:
        return found
    _leave_missing(_called(counts, found), found)
    if found.question is not None:
        return found
    _read_whole_numbers(counts, found)
    names = [name for name in counts if found.called.get(name, name) is not None]
    if names and all(map(_FLOAT.fullmatch, names)) and not all(map(_WHOLE_FLOAT.fullmatch, names)):
        found.notes.append(
            f"Labels are numbers with fractions ({_quoted(names[:3])}); amounts are imported with the task "
            "regression."
        )
    single = _called(counts, found)
    joints = _joined(single)
    if joined:
        shown = list(joints)[:MOST_REMARKS]
        found.notes += (
            [f"{_quoted(shown)} {'is a class' if len(shown) == 1 else 'are classes'}."] if shown else []
        )
    else:
        found.several |= {
            name: parts for name in counts if (parts := joints.get(found.called.get(name, name) or ""))
        }
    merge_alike({name: n for name, n in single.items() if joined or name not in joints}, found, merge)
    found.notes += [
        f"{name!r} is taken for a class; leave it empty for an unlabeled sample."
        for name in single
        if name.lower() in PERHAPS_NO_LABEL
    ]
    return found


def refusal(name: str, parts: Sequence[str]) -> str:
    """Return why an image with several labels is not imported as it is."""
    shown = printable(", ".join(parts), 60)
    return (
        f"has several labels ({shown}); one class per image can be audited: leave such images out, say that a "
        f"name such as {printable(name, 60)!r} is a class of its own, or import all with the task multilabel"
        if len(parts) > 1 and not name.lstrip().startswith(("[", "(", "{"))
        else f"has several labels ({shown}); one class per image can be audited: leave such images out, or import "
        "all with the task multilabel"
    )


def _leave_missing(single: Mapping[str, int], found: Meaning) -> None:
    """Names that stand for no label are none; asked about where numbers leave open whether one does."""
    numbers = {number for name in single if _WHOLE_FLOAT.fullmatch(number := _whole(name))}
    if numbers == {NO_NUMBER, "0", "1"}:
        found.question = ImportRefusedError(
            "Labels are -1, 0 and 1: -1 may be a class or no label. List the classes in a file of class names if "
            "it is one, or leave it empty for unlabeled samples.",
            field="class_names",
        )
        return
    missing = [name for name in single if is_no_label(name) or (_whole(name) == NO_NUMBER and "0" in numbers)]
    for name in missing:
        found.called |= dict.fromkeys((name, *_all_called(name, found)))
        found.notes.append(
            f"{printable(name, 40)!r} is no label ({plural(single[name], 'sample')} unlabeled); if it is a class, "
            "list all classes in a file of class names."
        )


def is_no_label(name: str) -> bool:
    """Return whether a cell says that there is no label."""
    return name.lower() in NO_LABEL or name in NO_LABEL_AS_WRITTEN


def _whole(name: str) -> str:
    """A whole number as pandas or NumPy may write it, without its ``.0``; any other name as it is."""
    if _EXPONENT.fullmatch(name) and float(name).is_integer():
        return str(int(float(name)))
    return name.partition(".")[0] if _WHOLE_FLOAT.fullmatch(name) else name


def _all_called(name: str, found: Meaning) -> list[str]:
    return [one for one, called in found.called.items() if called == name]


def _called(counts: Mapping[str, int], found: Meaning) -> Counter[str]:
    """Return how often each class occurs, by what it is called so far."""
    result: Counter[str] = Counter()
    for name, count in counts.items():
        own = found.called.get(name, name)
        if own is not None and name not in found.several:
            result[own] += count
    return result


def _read_lists(counts: Mapping[str, int], found: Meaning) -> None:
    """``['cat']`` is cat, ``['cat', 'dog']`` are two, ``[]`` is none."""
    for name in counts:
        parts = read_list(name)
        if parts is None:
            continue
        if any(part[:1] in ("{", "[") for part in parts):
            found.question = ImportRefusedError(
                f"Labels are objects such as {printable(name, 80)}: boxes or shapes, and one class per image can "
                "be audited; name another column of labels, or write boxes as COCO and import them with boxes.",
                field="label_column",
            )
            return
        if len(parts) > 1:
            found.several[name] = tuple(parts)
        else:
            found.called[name] = parts[0] if parts else None
    if found.called:
        what = (
            "Values that a program shows" if any(map(SHOWN.fullmatch, found.called)) else "Lists of one label"
        )
        found.notes.append(f"{what} are that label: {_quoted(list(found.called)[:3])}.")


def _read_whole_numbers(counts: Mapping[str, int], found: Meaning) -> None:
    """Class numbers of pandas beside an empty cell: 1.0 is the class 1, where every name is a whole number."""
    names = [name for name in counts if name not in found.several and name not in found.called]
    if names and all(_WHOLE_FLOAT.fullmatch(_whole(name)) for name in names):
        found.called |= {name: _whole(name) for name in names if "." in name}


def _joined(single: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """The names that are put together of others: of classes, or of parts that come back in other such names."""
    split = {name: dict(_splits(name)) for name in single}
    used: Counter[tuple[str, str]] = Counter()
    for parts_by in split.values():
        used.update((sign, part) for sign, parts in parts_by.items() for part in parts)
    found = {}
    for name, parts_by in split.items():
        for sign, parts in parts_by.items():
            are_classes = all(part in single for part in parts)
            recur = sign in (*SURE_SEPARATORS, ",") and all(used[sign, part] > 1 for part in parts)
            if are_classes or recur or sign == "|" or (sign in VECTORS and all(map(str.isdecimal, parts))):
                found[name] = parts
                break
    return found


def _splits(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for sign in SEPARATORS:
        if sign in name:
            parts = tuple(normal(part) for part in name.split(sign))
            several = tuple(dict.fromkeys(parts))
            if all(parts) and (len(several) > 1 or (sign in VECTORS and parts[0].isdecimal())):  # 0,0 as 1,0
                yield sign, several if len(several) > 1 else parts


def merge_alike(single: Mapping[str, int], found: Meaning, merge: bool | None) -> None:
    """Note in ``found`` which of the names, by how often each occurs, are one class, or ask."""
    groups = alike(single)
    if not groups or merge is False:
        return
    counted = [", ".join(f"{name!r} ({single[name]:,})" for name in group) for group in groups]
    if merge is None:
        more = f" and {len(groups) - MOST_REMARKS:,} more such sets" if len(groups) > MOST_REMARKS else ""
        found.question = ImportRefusedError(
            f"Some class names look alike: {printable('; '.join(counted[:MOST_REMARKS]), 400)}{more}. Say whether "
            "each such set is one class.",
            field="merge_classes",
        )
        return
    for group in groups:
        most = max(group, key=lambda name: (single[name], name == name.strip(), -len(name)))
        for name in {*group, *(one for each in group for one in _all_called(each, found))} - {most}:
            found.called[name] = most
    found.notes += _fewer([f"One class was made of {one}." for one in counted])


def _fewer(notes: list[str]) -> list[str]:
    more = len(notes) - MOST_REMARKS
    return notes[:MOST_REMARKS] + ([f"{more:,} more such sets of class names."] if more > 0 else [])


def _quoted(names: Sequence[str]) -> str:
    shown = [repr(printable(name, 60)) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _number(group: Sequence[str]) -> str:
    return "two" if len(group) == 2 else str(len(group))
