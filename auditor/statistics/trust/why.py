"""Why a label is doubted or trusted, in words.

Class names come from a user's files: the text is data, and whoever shows it must escape it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from auditor.ground.wording import evidence, plural
from auditor.statistics.rates import UNLABELED


def headline(
    given: int, votes: Sequence[tuple[str, int]], class_names: Sequence[str], suggested: int = -1
) -> str:
    """Return what the witnesses together say, and why another class than the one that they see is suggested.

    Args:
        given: the label, -1 without.
        votes: (witness, predicted class or -1 without an opinion).
        class_names: by class.
        suggested: class that is suggested in the label's place, -1 = none.
    """
    votes = [(name, label) for name, label in votes if label >= 0]
    if not votes:
        return "No engine predicts a class for this sample."
    favourite, count = _most_common(label for _, label in votes)
    seen = class_names[favourite]
    who = votes[0][0] if len(votes) == 1 else _share_in_words(count, len(votes))
    sees = "sees" if len(votes) == 1 or count == 1 else "see"
    if given == UNLABELED:
        return f"{who} {sees} {seen!r}; the sample has no label."
    if favourite == given:
        against = len(votes) - count
        rest = f", {against} something else" if against else ""
        return f"{who} {sees} {seen!r} as labeled{rest}."
    same = sum(label == given for _, label in votes)
    backing = f"; {same} {'agrees' if same == 1 else 'agree'} with the label" if same else ""
    said = f"{who} {sees} {seen!r} where the label says {class_names[given]!r}{backing}."
    if suggested in (UNLABELED, favourite):
        return said
    other, label = class_names[suggested], class_names[given]
    return f"{said} {other!r} is suggested by all probabilities and by how often each class is labeled {label!r}."


def _share_in_words(count: int, total: int) -> str:
    if count < total:
        return f"{count} of {total} engines"
    return "Both engines" if total == 2 else f"All {total} engines"


def _most_common(labels: Iterable[int]) -> tuple[int, int]:
    """Most frequent label and its count; ties go to the smaller label."""
    counts = Counter(labels)
    label = min(counts, key=lambda key: (-counts[key], key))
    return int(label), int(counts[label])


def engine_sentence(
    *,
    given: str | None,
    predicted: str,
    probability: float,
    history: Mapping[str, Sequence[float]],
) -> str:
    """One engine's verdict in words, with how often it dropped the sample while it trained.

    Its own probability is told as evidence: no verified row calibrates that of a single engine.

    Args:
        given: name of the given label, None where unlabeled.
        predicted: name of the class that the engine finds most likely.
        probability: of ``predicted``.
        history: signals by recorded epoch; ``selected`` is the share of the sample's visits that were kept.
    """
    if given is None:
        return f"sees {predicted!r} ({evidence(probability)}); there is no label to judge."
    says = f"agrees with {given!r}" if given == predicted else f"prefers {predicted!r} to {given!r}"
    sentence = f"{says} ({evidence(probability)})"
    kept = [value for value in history.get("selected", ()) if np.isfinite(value)]
    if kept:
        dropped = sum(value < 0.5 for value in kept)
        sentence += f"; dropped it in {dropped} of {plural(len(kept), 'recorded epoch')}"
    return sentence + "."
