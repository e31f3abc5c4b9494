"""What the pool found, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.ground.wording import percent, plural

TOO_LOW, SURE = 2.0, 0.6
"""Of a guess that is too low the range reaches above this multiple and begins above this share: said of 110 of 508
sets, of which 85 have as many wrong labels or all but a tenth (``benchmarks/results/guess.md``)."""


def is_least(low: float, point: float, high: float) -> bool:
    """Return whether a guess is rather too low than too high, as where errors depend on the picture."""
    return high > TOO_LOW * point and low > SURE * point


def guess_sentence(
    low: float, point: float, high: float, num_labeled: int, *, is_fitted: bool, stands_out: bool
) -> str:
    """Return how many labels are wrong by the pool alone.

    Args:
        low: the range's lower end, in [0, 1].
        point: the guess.
        high: the range's upper end.
        num_labeled: labels that it is about.
        is_fitted: False where no witness could be pooled.
        stands_out: False where a model for which every label is right explains them as well.
    """
    labels = plural(num_labeled, "label")
    if not is_fitted:
        return (
            f"How many of {labels} are wrong is not known: every engine learned from the labels that it judges. "
            "Verify a random sample to know."
        )
    if not stands_out:
        return (
            f"A guess: nothing shows that any of {labels} is wrong, and at most {percent(high)} may be (nothing "
            "verified). Verify a random sample to know."
        )
    about = "at least about" if is_least(low, point, high) else "about"
    return (
        f"A guess: {about} {percent(point)} of {labels} may be wrong ({percent(low)} to {percent(high)}, nothing "
        "verified). Verify a random sample to know."
    )


def trust_sentence(weights: Mapping[str, float], unpooled: Sequence[str]) -> str:
    """Whom trust rests on.

    Args:
        weights: shares of the witnesses that are pooled; empty where none is.
        unpooled: names of the others.
    """
    if not weights:
        return (
            "Every engine learned from the labels that it judges, so all count the same and their mean rank is "
            "the trust."
        )
    in_order = sorted(weights, key=lambda name: -weights[name])
    named = ", ".join(f"{name} {percent(weights[name])}" for name in in_order)
    said = f"Trust comes from one pool of all that judge labels which they did not learn from: {named}."
    if unpooled:
        verb = "ranks" if len(unpooled) == 1 else "rank"
        said += f" {' and '.join(unpooled)} learned from the labels and {verb} only what no other judges."
    return said
