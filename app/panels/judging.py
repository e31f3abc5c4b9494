"""One label after the other with the keys of the bench: what is asked, and what an answer does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from app import components
from app.session import readers, words
from app.session.failures import shown
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import DECISIONS, EXCLUDE, KEEP, LABEL, RELABEL, UNDO, UNSURE, VERDICTS
from auditor.review import blind as verdicts
from auditor.review import decisions

TURN = "judging_turn"
Said = Mapping[str, Any]
"""An answer: ``sample``, ``draw`` or None, ``name`` of a decision, a verdict or ``UNDO``, ``number`` or None."""


def action(name: str, button: str, key: str, text: str, **more: Any) -> dict[str, Any]:
    """A button of the screen and its key; ``id`` where its key is not that of the answer's name."""
    return {"id": name, "name": name, "button": button, "key": key, "text": text, "tone": "", **more}


def on_number(suggested: float) -> list[dict[str, Any]]:
    """What a person can decide on a given number; the suggestion is taken as it is shown."""
    numbers = {RELABEL: suggested}
    return [
        action(name, one.button, one.key, one.help, tone=name, number=numbers.get(name))
        for name in (KEEP, RELABEL, EXCLUDE, UNSURE)
        for one in (DECISIONS[name],)
    ]


BLIND_NUMBER = [
    action(EXCLUDE, "No number fits", VERDICTS[EXCLUDE].keys[0], "no number fits: exclude the sample"),
    action(UNSURE, VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0], VERDICTS[UNSURE].help),
]
BLIND_MASK = [
    action(KEEP, "It is right", DECISIONS[KEEP].key, "the outline is right", tone=KEEP),
    # A key of its own: W takes a suggestion, and here is none.
    action(RELABEL, "It is wrong", "i", "the outline is wrong", id="wrong"),
    action(EXCLUDE, "Leave the image out", DECISIONS[EXCLUDE].key, "exclude the image"),
    action(UNSURE, VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0], VERDICTS[UNSURE].help),
]
"""What a person answers about a random sample of numbers and of masks."""


def ask(
    dataset: Dataset,
    key: str,
    take: Callable[[Said], None],
    *,
    item: dict[str, Any] | None,
    actions: list[dict[str, Any]],
    finished: str,
    can_undo: bool,
) -> None:
    """Show ``item``, as ``components.judge`` describes it, and hand every answer to ``take``."""

    def answered() -> None:
        st.session_state[TURN] = st.session_state.get(TURN, 0) + 1
        with shown():
            take(st.session_state[key]["answer"])

    components.judge(
        key=key,
        connection=readers.connection(dataset),
        item=item,
        actions=actions,
        typed=LABEL,
        finished=finished,
        can_undo=can_undo,
        turn=st.session_state.get(TURN, 0),
        on_answer=answered,
    )


def decide_number(dataset: Dataset, audit: Audit, reviewer: str, said: Said) -> None:
    """Record what a person answered about a suspect; a typed number is a correction as the suggested one is."""
    if said["name"] == UNDO:
        decisions.undo_last(dataset.id, reviewer)
        return
    decision = RELABEL if said["name"] == LABEL else said["name"]
    decisions.decide(
        dataset.id,
        said["sample"],
        decision,
        number=said["number"],
        reviewer=reviewer,
        audit_id=audit.id,
    )


def judge_blind(dataset: Dataset, reviewer: str, said: Said) -> None:
    """Record what a person answered about a random sample, or take the newest verdict back."""
    if said["name"] == UNDO:
        if (last := readers.last_blind_item(dataset.id, reviewer)) is not None:
            verdicts.undo(last["draw"], last["sample"], reviewer=reviewer)
        return
    draw, sample, number = said["draw"], said["sample"], said["number"]
    if asks := verdicts.record(draw, sample, said["name"], number=number, reviewer=reviewer):
        st.toast(f"Sample {sample}: {asks}")


def blind(
    dataset: Dataset, reviewer: str, actions: list[dict[str, Any]], asked: Callable[[int], dict[str, Any]]
) -> None:
    """The next random sample that waits, as ``asked`` describes it, or that none is left."""
    waiting = verdicts.pending(dataset.id)
    item = None
    if waiting:
        draw, sample = waiting[0]
        item = {"sample": sample, "draw": draw, **asked(sample)}
        item["progress"] = f"{words.plural(len(waiting), 'sample')} to check · sample {sample}"
    can_undo = readers.last_blind_item(dataset.id, reviewer) is not None
    if item is None and not can_undo:
        return
    ask(
        dataset,
        "judge_blind",
        partial(judge_blind, dataset, reviewer),
        item=item,
        actions=actions,
        finished="Every chosen sample is checked.",
        can_undo=can_undo,
    )
