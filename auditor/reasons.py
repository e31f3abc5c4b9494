"""Why a label is doubted or trusted, in words, for the samples that a screen shows.

Reasons are written for the requested samples only and read the witnesses' predictions row by row. Class names
come from a user's files: the text is data, and whoever shows it must escape it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.estimates import ClassPair, ClassReport
from auditor.evidence import UNLABELED, Witness
from auditor.intervals import percent
from auditor.trust import Consensus

NOTABLE_SHARE = 0.05
"""Share of both classes' labels from which their exchange is worth a sentence."""
WIDE_SPREAD = 0.5
"""Spread of the witnesses' ranks from which their disagreement is worth a sentence."""


@dataclass(frozen=True)
class Reason:
    """What speaks for or against one given label."""

    sample_id: int
    headline: str
    """One sentence that stands alone."""
    details: tuple[str, ...]
    """Further sentences, most telling first."""

    @property
    def text(self) -> str:
        """Headline and details in one paragraph."""
        return " ".join((self.headline, *self.details))


def explain(
    consensus: Consensus,
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    class_names: Sequence[str],
    sample_ids: Sequence[int] | NDArray[np.integer],
    *,
    neighbors: NDArray[np.integer] | None = None,
    pairs: Sequence[ClassPair] = (),
    reports: Sequence[ClassReport] = (),
    notes: Mapping[int, str] | None = None,
) -> list[Reason]:
    """Return one reason a sample, in the order asked for.

    Args:
        consensus: of ``trust.combine`` on these witnesses.
        witnesses: the same, for their predictions.
        given_labels: (N,) int, -1 unlabeled.
        class_names: K names.
        sample_ids: rows to explain.
        neighbors: (len(sample_ids), k) rows of similar samples, of ``embedding.nearest_neighbors``.
        pairs: of ``estimates.trading_pairs``.
        reports: of ``estimates.class_reports``.
        notes: further sentences by sample, such as a duplicate with another label.
    """
    votes = _votes(witnesses, np.asarray(sample_ids, dtype=np.int64))
    num_judged = int(np.isfinite(consensus.trust_score).sum())
    reasons = []
    for row, sample_id in enumerate(int(sample) for sample in sample_ids):
        given = int(given_labels[sample_id])
        details = [
            _rank_sentence(consensus, sample_id, num_judged),
            _neighbor_sentence(neighbors, row, given_labels, class_names),
            _split_sentence(consensus, sample_id),
            _pair_sentence(consensus, sample_id, pairs, given, class_names),
            _class_sentence(reports, given, class_names),
            (notes or {}).get(sample_id, ""),
        ]
        first = headline(given, votes[row], class_names)
        reasons.append(Reason(sample_id, first, tuple(detail for detail in details if detail)))
    return reasons


def _votes(witnesses: Sequence[Witness], ids: NDArray[np.int64]) -> list[list[tuple[str, int]]]:
    """Each requested sample's predicted class by witness, -1 where it has no opinion."""
    votes: list[list[tuple[str, int]]] = [[] for _ in ids]
    for witness in witnesses:
        if witness.pred_probs is None:
            continue
        for row, sample_id in enumerate(ids):
            probs = np.asarray(witness.pred_probs[sample_id])
            votes[row].append((witness.name, int(probs.argmax()) if np.isfinite(probs).all() else -1))
    return votes


def headline(given: int, votes: Sequence[tuple[str, int]], class_names: Sequence[str]) -> str:
    """What the witnesses together say; ``votes`` are (witness, predicted class or -1 without an opinion)."""
    votes = [(name, label) for name, label in votes if label >= 0]
    if not votes:
        return "No witness predicts a class for this sample."
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
    return f"{who} {sees} {seen!r} where the label says {class_names[given]!r}{backing}."


def _share_in_words(count: int, total: int) -> str:
    return f"All {total} witnesses" if count == total else f"{count} of {total} witnesses"


def _most_common(labels: Iterable[int]) -> tuple[int, int]:
    """Most frequent label and its count; ties go to the smaller label."""
    counts = Counter(labels)
    label = min(counts, key=lambda key: (-counts[key], key))
    return int(label), int(counts[label])


def _rank_sentence(consensus: Consensus, sample_id: int, num_judged: int) -> str:
    trust = float(consensus.trust_score[sample_id])
    if not np.isfinite(trust):
        return ""
    below = int(np.count_nonzero(consensus.trust_score < trust)) / num_judged
    chance = percent(float(consensus.error_probability[sample_id]))
    basis = (
        "a guess, nothing is verified" if consensus.error_probability_is_guess else "from verified samples"
    )
    if below <= 0.5:
        place = f"Its trust is among the lowest {percent(max(below, 0.001))} of {num_judged:,} labels"
    else:
        place = f"Its trust is above that of {percent(below)} of {num_judged:,} labels"
    return f"{place}; probability that the label is wrong: {chance} ({basis})."


def _neighbor_sentence(
    neighbors: NDArray[np.integer] | None,
    row: int,
    given_labels: NDArray[np.integer],
    class_names: Sequence[str],
) -> str:
    if neighbors is None or not neighbors.shape[1]:
        return ""
    labels = [int(label) for label in given_labels[neighbors[row]] if label != UNLABELED]
    if not labels:
        return ""
    favourite, count = _most_common(labels)
    return (
        f"{count} of its {len(labels)} most similar labeled samples are labeled {class_names[favourite]!r}."
    )


def _split_sentence(consensus: Consensus, sample_id: int) -> str:
    ranks = consensus.witness_ranks[sample_id]
    if not np.isfinite(ranks).any() or float(consensus.disagreement[sample_id]) < WIDE_SPREAD:
        return ""
    high, low = int(np.nanargmax(ranks)), int(np.nanargmin(ranks))
    return (
        f"The witnesses part: {consensus.witness_names[high]} ranks it above {percent(float(ranks[high]))} "
        f"of all labels, {consensus.witness_names[low]} above only {percent(float(ranks[low]))}."
    )


def _pair_sentence(
    consensus: Consensus, sample_id: int, pairs: Sequence[ClassPair], given: int, class_names: Sequence[str]
) -> str:
    suggested = int(consensus.suggested_label[sample_id])
    if not consensus.is_doubtful[sample_id]:
        return ""
    for pair in pairs:
        strong = min(pair.first_share, pair.second_share) >= NOTABLE_SHARE
        if strong and {pair.first, pair.second} == {given, suggested}:
            count = pair.first_given_second + pair.second_given_first
            both = f"{class_names[given]!r} and {class_names[suggested]!r}"
            return f"{both} are often exchanged here ({count:,} doubtful labels)."
    return ""


def _class_sentence(reports: Sequence[ClassReport], given: int, class_names: Sequence[str]) -> str:
    for report in reports:
        if report.label == given and report.cannot_be_judged:
            return f"Beware: {class_names[given]!r} cannot be judged from the labels ({report.why})."
    return ""


def engine_sentence(
    *,
    given: str | None,
    predicted: str,
    probability: float,
    given_probability: float | None,
    history: Mapping[str, Sequence[float]],
) -> str:
    """One engine's verdict in words, with how often it dropped the sample while it trained.

    Args:
        given: name of the given label, None where unlabeled.
        predicted: name of the class that the engine finds most likely.
        probability: of ``predicted``.
        given_probability: of ``given``, None where unlabeled.
        history: signals by recorded epoch; ``selected`` is the share of the sample's visits that were kept.
    """
    if given is None:
        return f"sees {predicted!r} ({percent(probability)}); there is no label to judge."
    if given == predicted:
        sentence = f"agrees with {given!r} ({percent(probability)})"
    else:
        sentence = f"prefers {predicted!r} ({percent(probability)}) to {given!r}"
        sentence += f" ({percent(given_probability)})" if given_probability is not None else ""
    kept = [value for value in history.get("selected", ()) if np.isfinite(value)]
    if kept:
        dropped = sum(value < 0.5 for value in kept)
        sentence += f"; dropped it in {dropped} of {len(kept)} recorded epochs"
    return sentence + "."
