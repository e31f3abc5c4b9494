"""Components of our own: values in, values out. The JavaScript and CSS beside this file is package data.

Everything that comes from a user's files travels as data and is set as text by the JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from auditor.ground import vocabulary

FOLDER = Path(__file__).parent
NAME_COOKIE = "auditor_reviewer"
SHARED = ("core.js", "layer.js", "keys.js", "toolbar.js", "viewer.js")


@cache
def _source(*names: str) -> str:
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


_BENCH = st.components.v2.component(
    "auditor_bench",
    css=_source("bench.css"),
    js=_source(*SHARED, "figures.js", "card.js", "lens.js", "cards.js", "bench.js"),
)
_VERIFY = st.components.v2.component(
    "auditor_verify", css=_source("bench.css"), js=_source(*SHARED, "verify.js")
)
_MASKS = st.components.v2.component(
    "auditor_masks",
    css=_source("bench.css"),
    js=_source("core.js", "layer.js", "keys.js", "toolbar.js", "masks.js"),
)
_JUDGE = st.components.v2.component(
    "auditor_judge", css=_source("bench.css"), js=_source(*SHARED, "scatter.js", "judge.js")
)
_MAP = st.components.v2.component(
    "auditor_map", css=_source("bench.css", "map.css"), js=_source("core.js", "points.js", "map.js")
)
_NAME = st.components.v2.component("auditor_name", js=_source("name.js"))


def review_bench(
    *,
    key: str,
    connection: dict[str, Any],
    audit_id: int,
    class_names: list[str | None],
    reviewer: str,
    queue: dict[str, Any],
    mode: str = "card",
    page_size: int = 60,
    refresh: int = 0,
    links: bool = False,
) -> None:
    """The review bench on one queue.

    Args:
        key: unique on the page.
        connection: how to reach our routes.
        audit_id: whose ranking and evidence is shown.
        class_names: the dataset's classes; None for one that was merged into another.
        reviewer: who decides.
        queue: which samples, as ``queues.suspect_filter`` reads it.
        mode: ``cards`` (confusion cards), ``card`` (one sample) or ``grid`` to open with.
        page_size: tiles on a page.
        refresh: another number loads the page afresh, for example after a batch was undone.
        links: offer a link to the sample in view, for a page whose address names a queue.
    """
    _BENCH(
        key=key,
        data={
            "connection": connection,
            "audit": audit_id,
            "classNames": class_names,
            "reviewer": reviewer,
            "decisions": vocabulary.for_screens(),
            "queue": queue,
            "mode": mode,
            "pageSize": page_size,
            "refresh": refresh,
            "links": links,
        },
    )


def verify_bench(
    *,
    key: str,
    connection: dict[str, Any],
    class_names: list[str | None],
    reviewer: str,
    items: list[dict[str, Any]],
    total: int,
    examples: Mapping[int, Sequence[int]],
    last: dict[str, Any] | None,
    on_milestone: Callable[[], None],
) -> None:
    """Blind verdicts on ``items`` (draw, sample, given, filepath), one at a time, beside ``examples`` of the given
    class.

    ``on_milestone`` is called after every ten verdicts and after the last one, before the page runs again.
    """
    _VERIFY(
        key=key,
        data={
            "connection": connection,
            "classNames": class_names,
            "reviewer": reviewer,
            "items": items,
            "total": total,
            "examples": {str(label): list(samples) for label, samples in examples.items()},
            "last": last,
            "verdicts": vocabulary.verdicts_for_screens(),
        },
        on_milestone_change=on_milestone,
    )


def mask_bench(
    *,
    key: str,
    connection: dict[str, Any],
    audit_id: int,
    class_names: list[str],
    colours: list[str],
    reviewer: str,
    items: list[dict[str, Any]],
    decisions: Sequence[str],
    first: int | None,
    shape: tuple[int, int],
    is_done: bool,
    next_steps: Mapping[str, str],
    on_next: Callable[[], None],
) -> None:
    """Review of masks, one at a time.

    Args:
        key: unique on the page.
        connection: how to reach our routes.
        audit_id: whose ranking, doubt and suggestions are shown.
        class_names: the dataset's classes.
        colours: of these, as ``#rrggbb``.
        reviewer: who decides.
        items: (sample, filepath, decision), the most suspicious first.
        decisions: names of what can be decided on a mask.
        first: the sample to begin with; None: the first that nobody has decided on.
        shape: width and height of the picture to begin with, whose room is kept until it is there.
        is_done: what was decided is listed; a press on one asks ``on_next`` for the ``Suspects``, to see it again.
        next_steps: buttons at the end of the list: what each says by what ``on_next`` is told.
        on_next: called when one was chosen, which arrives as ``session_state[key]["next"]``.
    """
    words = vocabulary.for_screens()
    _MASKS(
        key=key,
        data={
            "connection": connection,
            "audit": audit_id,
            "classNames": class_names,
            "colours": colours,
            "reviewer": reviewer,
            "items": items,
            "decisions": {name: words[name] for name in decisions},
            "first": first,
            "shape": shape,
            "isDone": is_done,
            "next": [{"id": name, "text": text} for name, text in next_steps.items()],
        },
        on_next_change=on_next,
    )


def judge(
    *,
    key: str,
    connection: dict[str, Any],
    reviewer: str,
    items: list[dict[str, Any]],
    left: int,
    noun: str,
    actions: list[dict[str, Any]],
    finished: str,
    last: dict[str, Any] | bool | None,
    total: int | None = None,
    next_steps: Mapping[str, str] | None = None,
    audit_id: int | None = None,
    chart: dict[str, Any] | None = None,
    unit: str = "",
    on_point: Callable[[], None] | None = None,
    on_next: Callable[[], None] | None = None,
) -> None:
    """Labels to answer on, one at a time, with buttons and keys as on the bench.

    Args:
        key: unique on the page.
        connection: how to reach our routes.
        reviewer: who answers.
        items: what is asked, in this order: ``sample``, ``draw`` of a random sample, ``path``, ``question`` and the
            ``label`` above it, whether it is an ``other`` than those that ``left`` counts,
            ``layers`` (paths of transparent pictures over it) with its ``shape`` (width, height) in pixels,
            ``standing`` (what was decided before, by whom), ``sides`` (kind, title, note, value), ``number`` to
            begin with where one can be typed, ``suggested`` number, ``alike`` (kind, title, samples with texts); of
            sets of classes ``chips`` (name, doubt: missing, extra or nothing) of all classes, and the ``given`` and
            the ``suggested`` set.
        left: how many are left, these and those that follow.
        noun: what they are: "suspect" or "sample".
        actions: what can be answered: ``id`` of its key, ``name`` of the answer, ``key``, ``button``, ``text`` in
            the list of keys, ``tone``.
        finished: what is shown there when nothing is left.
        last: the answer that can be taken back, if any: of random samples its ``draw`` and ``sample``.
        total: how many there are, the answered ones too; None: that is not told.
        next_steps: buttons of that moment, the one to press first: what it says by what ``on_next`` is told.
        audit_id: whose suspects they are; None: of random samples, which are judged without a suggestion.
        chart: of numbers, what is drawn beside them: ``name``, ``sentence``, ``points`` (sample, given, suggested,
            whether it is a suspect) and ``answers`` (sample, number now or None).
        unit: of the numbers, where it is known.
        on_point: called when a dot was clicked whose sample is none of ``items``; its sample arrives as
            ``session_state[key]["point"]`` before.
        on_next: called when one of ``next_steps`` was chosen, which arrives as ``session_state[key]["next"]``.
    """
    is_blind = audit_id is None
    _JUDGE(
        key=key,
        data={
            "connection": connection,
            "reviewer": reviewer,
            "items": items,
            "left": left,
            "total": total,
            "noun": noun,
            "actions": actions,
            "finished": finished,
            "last": last,
            "next": [{"id": name, "text": text} for name, text in (next_steps or {}).items()],
            "audit": audit_id,
            "route": "blind" if is_blind else "verdicts",
            "typed": vocabulary.LABEL,
            "takes": None if is_blind else vocabulary.RELABEL,
            "chart": chart,
            "unit": unit,
        },
        on_more_change=lambda: None,
        on_point_change=on_point or (lambda: None),
        on_next_change=on_next or (lambda: None),
    )


def embedding_map(
    *,
    key: str,
    connection: dict[str, Any],
    audit_id: int,
    engine: str,
    class_names: list[str | None],
    colour: str,
    region: list[list[float]] | None,
    version: int,
    on_region: Callable[[], None],
) -> None:
    """The map of the features or of one engine.

    A drawn region arrives as ``session_state[key]["region"]`` before ``on_region`` runs.

    Args:
        key: unique on the page.
        connection: how to reach our routes.
        audit_id: whose scores colour the points.
        engine: whose embedding it is; ``features`` for those of a backbone.
        class_names: the dataset's classes; None for one that was merged into another.
        colour: ``given``, ``suggested``, ``trust``, ``review``, ``reviewer`` or ``split``.
        region: polygon in the map's coordinates to draw, or None.
        version: another number loads the points afresh, for example after decisions.
        on_region: called when a region was drawn ([] = cleared).
    """
    _MAP(
        key=key,
        data={
            "connection": connection,
            "audit": audit_id,
            "engine": engine,
            "classNames": class_names,
            "decisions": vocabulary.for_screens(),
            "colour": colour,
            "region": region,
            "version": version,
        },
        on_region_change=on_region,
    )


def remember_name(name: str) -> None:
    """Keep the reviewer's name in this browser, so that it is asked once."""
    with st.container(height=1, border=False, key="remember_name"):
        _NAME(key="auditor_name", data={"name": name, "cookie": NAME_COOKIE})
