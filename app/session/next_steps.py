"""The one thing to do next with a dataset: Home, Audit, Verify and the end of a queue say the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.session import words
from app.session.readers import Status
from auditor.ground.vocabulary import MULTILABEL, REGRESSION, SEGMENTATION
from auditor.results import queues
from auditor.results.progress import left_in_words
from auditor.review import drawing

SUSPECTS = {"undecided": True, "issues": True}
FEW_LEFT = 0.01
"""Of all labels: when no more than these are wrong and no suspect waits, further random samples can wait."""


@dataclass(frozen=True)
class Step:
    """What to do, where, and what the button that leads there says."""

    sentence: str
    page: str
    button: str

    @property
    def headline(self) -> tuple[str, str]:
        """Return the number that it begins with (``25``, ``About 3``, ``0 to 33``) or nothing, and what follows."""
        begins = re.match(r"((?:About )?\d\S*(?: to \d\S*)?) (.*)", self.sentence)
        return (begins[1], begins[2]) if begins else ("", self.sentence)


SUSPECTS_OF = {SEGMENTATION: "masks", REGRESSION: "numbers", MULTILABEL: "sets"}
"""By what the labels are, the screen on which its suspects are checked; of classes it is Suspects."""


def waiting(seen: Status) -> int:
    """Suspects of the newest audit that nobody has checked."""
    return (queues.sizes(seen.finished, SUSPECTS)[0] or 0) if seen.finished else 0


def is_about_clean(seen: Status) -> bool:
    """Return whether random samples say that about nothing is left: ``FEW_LEFT`` of the labels at most."""
    left = seen.left
    return left is not None and left.has_middle and left.point <= FEW_LEFT * seen.dataset.num_samples


def of(seen: Status) -> Step:
    """An audit, then its suspects, then a random sample that says what is left, then the export."""
    audit = seen.finished
    if audit is None and seen.running is not None:
        return Step("An audit is running; its curves show how it learns.", "audit", "Watch the audit")
    if audit is None:
        return Step("Start an audit: it trains the engines and ranks every label.", "audit", "Start an audit")
    if seen.dataset.task == SEGMENTATION:
        return _of_others(seen, "mask", "with a suspect region", "Review masks")
    if seen.dataset.task == REGRESSION:
        return _of_others(seen, "number", "far from what is predicted", "Review numbers")
    if seen.dataset.task == MULTILABEL:
        return _of_others(seen, "picture", "with a suspect label", "Review pictures")
    left = waiting(seen)
    if 0 < seen.verified < seen.drawn and (left or not is_about_clean(seen)):
        checked = f"{seen.verified} of {words.plural(seen.drawn, 'random sample')} checked; finish the rest."
        return Step(checked, "verify", "Continue verifying")
    if left:
        text = f"{words.plural(left, 'suspect')} {'waits' if left == 1 else 'wait'} to be checked."
        if seen.running is not None and seen.running.id == audit.id:
            text += " Other engines still train; the order gets better when they are done."
        return Step(text, "suspects", "Review the suspects")
    if seen.verified == 0:
        text = "Check a random sample: it says how many wrong labels are left, and promises need it."
        size = drawing.next_size(seen.dataset.id)
        return Step(text, "verify", f"Verify {words.plural(size, 'sample')}")
    if seen.left is None or (seen.left.high < 1 and seen.left.kind == "interval"):
        return Step("No wrong label should be left; export the cleaned table.", "export", "Export")
    return Step(f"{left_in_words(seen.left)}; export the cleaned table.", "export", "Export")


def _of_others(seen: Status, noun: str, doubted: str, button: str) -> Step:
    """Return the step where labels are no classes: ``noun`` is one of them."""
    page = SUSPECTS_OF[seen.dataset.task]
    waiting, whole, _ = queues.sizes(seen.finished, SUSPECTS) if seen.finished else (0, 0, 0)
    if not whole:
        return Step(f"There is no {noun} {doubted}.", page, button)
    if not waiting:
        return Step(f"Every {noun} {doubted} is checked.", page, button)
    waits = "waits" if waiting == 1 else "wait"
    return Step(f"{words.plural(waiting, noun)} {doubted} {waits} to be checked.", page, button)
