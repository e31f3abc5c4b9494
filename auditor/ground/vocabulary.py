"""The words of the product, said once: decisions, what they mean, how they came about, and an export's columns.

A new decision is one row of ``DECISIONS``. Whoever interprets a decision asks here by its name; a place in a tuple
means nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

CLASSIFICATION, SEGMENTATION, REGRESSION = "classification", "segmentation", "regression"
MULTILABEL = "multilabel"
TASKS = (CLASSIFICATION, SEGMENTATION, REGRESSION, MULTILABEL)
"""What the labels of a dataset are: a class an image, a mask an image (a class a pixel), a number an image, or a
set of classes an image, which may be empty."""
LABELS = {CLASSIFICATION: "classes", SEGMENTATION: "masks", REGRESSION: "numbers", MULTILABEL: "sets"}
"""What the labels of each task are called."""
KEEP, RELABEL, EXCLUDE = "keep", "relabel", "exclude"
UNSURE, MULTIPLE, NONE, UNREADABLE = "unsure", "multiple", "none", "unreadable"
UNDO = "undo"
"""A row of the log that takes back an earlier one; it decides nothing by itself."""
RIGHT, WRONG, UNCLEAR = "right", "wrong", "unclear"
"""What a decision says about the given label, on its own, as the label of that sample."""
ACTIONS = (KEEP, RELABEL, EXCLUDE)
"""What an export does with a sample."""


@dataclass(frozen=True)
class Decision:
    """One decision that a person can take on a label."""

    name: str
    says: str
    """``RIGHT``, ``WRONG`` or ``UNCLEAR``: about the given label."""
    action: str
    """One of ``ACTIONS``: what an export does with the sample."""
    words: str
    """What screens say once it is taken."""
    key: str
    """The key of the review bench that takes it."""
    button: str
    help: str
    """What the bench's list of keys says."""
    colour: str
    """Of its samples on the map: #rrggbb."""
    takes: str = ""
    """``class`` where it names the right class, ``classes`` where it names several."""
    of_many: str = ""
    """What it does to all samples of a region together; empty where that is not offered."""


DECISIONS: dict[str, Decision] = {
    one.name: one
    for one in (
        Decision(
            KEEP,
            says=RIGHT,
            action=KEEP,
            words="kept",
            key="q",
            button="Keep",
            help="keep the given label",
            colour="#009E73",
            of_many="keep their given labels",
        ),
        Decision(
            RELABEL,
            says=WRONG,
            action=RELABEL,
            words="relabeled",
            key="w",
            button="Change as suggested",
            help="change it as suggested",
            colour="#0b76c5",
            takes="class",
            of_many="give them the class",
        ),
        Decision(
            EXCLUDE,
            says=WRONG,
            action=EXCLUDE,
            words="excluded",
            key="e",
            button="Exclude",
            help="exclude the sample",
            colour="#6b7280",
            of_many="exclude them",
        ),
        # The reviewer cannot tell.
        Decision(
            UNSURE,
            says=UNCLEAR,
            action=KEEP,
            words="not sure",
            key="n",
            button="Not sure",
            help="not sure",
            colour="#CC79A7",
            of_many="mark them as not sure",
        ),
        # Without one right class a sample leaves a single-label data set.
        Decision(
            MULTIPLE,
            says=WRONG,
            action=EXCLUDE,
            words="several classes",
            key="m",
            button="Several",
            help="several classes apply",
            colour="#8C6BB1",
            takes="classes",
        ),
        Decision(
            NONE,
            says=WRONG,
            action=EXCLUDE,
            words="no class fits",
            key="x",
            button="None fits",
            help="none of the classes applies",
            colour="#C0392B",
        ),
        Decision(
            UNREADABLE,
            says=WRONG,
            action=EXCLUDE,
            words="unreadable",
            key="u",
            button="Unreadable",
            help="unreadable picture",
            colour="#B0A000",
        ),
    )
}
"""Every decision by its name, in the order in which screens show them."""
FOUND_RIGHT = frozenset(one.name for one in DECISIONS.values() if one.says == RIGHT)
FOUND_WRONG = frozenset(one.name for one in DECISIONS.values() if one.says == WRONG)
"""Decisions that say the given label alone is not right."""
DISPUTED = "disputed"
"""What counts where a blind verdict differs from what another person said before. Nobody takes this decision; until
somebody looks once more no label changes."""
NOT_CLEAR = frozenset(one.name for one in DECISIONS.values() if one.says == UNCLEAR) | {DISPUTED}
EXCLUDING = frozenset(one.name for one in DECISIONS.values() if one.action == EXCLUDE)
"""Decisions after which the sample has no single right label."""

LABEL = "label"


@dataclass(frozen=True)
class Verdict:
    """One answer of a person who judges a sample blind."""

    name: str
    keys: tuple[str, ...]
    """The keys of the Verify screen that give it."""
    button: str
    help: str
    """What the screen's list of keys says."""
    takes: str = ""
    """``class`` where it names the class that the person sees; its own key names the given one."""


VERDICTS: dict[str, Verdict] = {
    one.name: one
    for one in (
        Verdict(LABEL, keys=("q",), button="It is right", help="the given label is right", takes="class"),
        Verdict(EXCLUDE, keys=("e",), button="No class fits", help="no class fits: exclude the sample"),
        Verdict(UNSURE, keys=("n",), button="Not sure", help="not sure"),
    )
}
"""What a person answers who judges a sample blind: the class that they see, no class fits, or not sure."""

RATE, PROMISES = "rate", "promises"
PURPOSES = (RATE, PROMISES)
"""What a draw is for: ``rate`` takes every label as often as any other, ``promises`` most rows from the head of the
ranking."""

SUSPECT, BLIND = "suspect", "blind"
KINDS = (SUSPECT, BLIND)
"""How a label was decided: looking at the sample and the suggestion, or at a randomly drawn sample without it."""

RULING = "ruling"
"""The source of a decision on a sample about which people differed: it ends the dispute."""

LEVELS = (0.05, 0.10, 0.20)
"""The false-discovery rates that screens and exports offer: 1 in 20, 1 in 10, 1 in 5 flags may be wrong."""

EXPORT_MARKS = frozenset(
    ["sample_id", "filepath", "given_label", "cleaned_label", "action", "review_decision"]
)
"""A header with all of these is an export of ours."""
REVIEW_COLUMNS = (
    *("review_decision", "review_labels", "cleaned_label", "reviewer", "reviewed_at", "review_kind"),
)


def from_verdict(verdict: str, label: int | None, given_label: int) -> tuple[str, int | None]:
    """(decision, label) that a blind verdict amounts to: the class that a person sees keeps the given label or
    corrects it.
    """
    if verdict != LABEL:
        return verdict, None
    return (KEEP, None) if label == given_label else (RELABEL, label)


def for_screens() -> dict[str, dict[str, Any]]:
    """Words, keys and colours of every decision by name, as plain values for the browser."""
    shown = ("says", "words", "key", "button", "help", "colour", "takes")
    return {name: {field: getattr(one, field) for field in shown} for name, one in DECISIONS.items()}


def verdicts_for_screens() -> dict[str, dict[str, Any]]:
    """Keys and words of every blind verdict by name, as plain values for the browser."""
    return {name: asdict(one) for name, one in VERDICTS.items()}
