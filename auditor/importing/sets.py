"""What the labels of a source mean that are sets of classes: which names its cells hold, and what parts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.ground.errors import ImportRefusedError
from auditor.importing.class_names import PERHAPS_NO_LABEL, Meaning, is_no_label, merge_alike
from auditor.pictures.sources import SourceInfo, ordered_class_names, printable, read_list, read_set, sign_of


@dataclass
class Sets:
    """The sets that occur in a source."""

    class_names: list[str]
    members: dict[str, list[int]]
    """By what a cell says: its classes, rising; cells that say that there is no label are left out."""
    notes: list[str] = field(default_factory=list)
    question: ImportRefusedError | None = None
    """What has to be answered before an import."""

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return how many pictures show each class, by how often each cell occurs."""
        found = dict.fromkeys(self.class_names, 0)
        for text, count in counts.items():
            for label in self.members.get(text, ()):
                found[self.class_names[label]] += count
        return found

    def distinct(self, texts: list[str]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return which set each text is, (T + 1,) with -1 at the end, and the (S, K) sets."""
        number: dict[tuple[int, ...], int] = {}
        which = [
            number.setdefault(tuple(self.members[text]), len(number)) if text in self.members else -1
            for text in texts
        ]
        table = np.zeros((len(number), len(self.class_names)), np.bool_)
        for labels, place in number.items():
            table[place, list(labels)] = True
        return np.array([*which, -1], np.int32), table


def read_sets(info: SourceInfo, counts: Mapping[str, int], *, merge: bool | None = None) -> Sets:
    """Return what the cells mean that occur ``counts`` times each.

    ``merge`` answers whether names that look alike are one class.
    """
    declared = set(info.class_names or ())
    sign = "|" if info.is_own_export else sign_of([text for text in counts if text not in declared])
    none = [text for text in counts if text not in declared and is_no_label(text)]
    counts = {text: count for text, count in counts.items() if text not in none}
    named = {text: [text] if text in declared else read_set(text, sign) for text in counts}
    single: Counter[str] = Counter()
    for text, names in named.items():
        single.update(dict.fromkeys(names, counts[text]))
    found = Meaning()
    if _are_vectors(counts):
        found.question = ImportRefusedError(
            f"Labels are vectors of ones and zeros such as {printable(next(iter(counts)), 40)}, and nothing names "
            "their places; write a column a class, or lists of names.",
            field="label_column",
        )
    elif info.class_names is None:
        merge_alike(single, found, merge)
    called = {name: found.called.get(name) or name for name in single}
    own = dict.fromkeys(called[name] for name in single)
    names = list(info.class_names or ordered_class_names(list(own)))
    names += [name for name in own if name not in names]
    place = {name: number for number, name in enumerate(names)}
    members = {text: sorted({place[called[name]] for name in said}) for text, said in named.items()}
    several = sum(count for text, count in counts.items() if len(members[text]) > 1)
    notes = [f"{several:,} of {sum(counts.values()):,} labeled pictures have several labels."]
    notes += [f"{text!r} is no label." for text in none]
    if sign is not None and not info.is_own_export:
        notes.append(f"Names are parted at {sign!r}.")
    notes += [
        f"{name!r} is taken for a class; leave the cell empty where there is no label, or write [] where none fits."
        for name in names
        if name.lower() in PERHAPS_NO_LABEL
    ]
    return Sets(names, members, notes + found.notes, found.question)


def _are_vectors(texts: Mapping[str, int]) -> bool:
    """Return whether all cells are lists of as many ones and zeros."""
    lists = [read_list(text) for text in texts]
    return (
        len({len(one or ()) for one in lists}) == 1
        and all(one is not None and len(one) > 1 and set(one) <= {"0", "1"} for one in lists)
        and any(len(set(one or ())) < len(one or ()) for one in lists)
    )
