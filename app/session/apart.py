"""Calls that load the training library, made in a process of their own.

The library takes more memory than the whole app and some seconds to load; the app needs it only to name the
engines, to forecast and to check a plan. The process waits for the next call for a while and then ends, so that one
visit of the Audit page pays for loading once. Values in and out are plain.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from auditor import api, kind
from auditor.audits import DEFAULT_BUDGET_S, EngineChoices, choose_features, engine_choices
from auditor.backbones import features
from auditor.bridges import engine_bridge
from auditor.catalog import reading
from auditor.catalog.db import close_all
from auditor.ground.apart import DiedError, Readers

USUAL_TIME = 0.0
"""The budget of whoever names none: ``budgets.DEFAULT_BUDGET_S`` on a CPU, none on a GPU."""
LEAVE_S, LEAVING = 0.2, "leaving"
"""How often a waiting page looks whether another is wanted, and the key that it reads for that."""

Args = ParamSpec("Args")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class EngineTitle:
    """One engine as the form shows it."""

    name: str
    title: str
    paper: str
    settings: Mapping[str, list[engine_bridge.Setting]]
    """By what the engine trains on: ``images``, ``features``, or ``finetuned``, a backbone on images."""
    needs_features: bool


_HELPER = Readers(1, most_bytes=None, most_s=None, is_fresh=True)
_WAITING = ThreadPoolExecutor(1)


def _under(environment: Mapping[str, str], function: Callable[..., Answer], args: Any, kwargs: Any) -> Answer:
    """The call with the app's environment of now, which names the home and the catalog."""
    os.environ.clear()
    os.environ.update(environment)
    try:
        return function(*args, **kwargs)
    finally:
        close_all()


def call(function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
    """``function(*args)`` in the helper process; its errors arrive here as they are."""
    try:
        return _HELPER.call(_under, dict(os.environ), function, args, kwargs)
    except DiedError:  # it was killed, for its memory or by somebody: a fresh one does the same again
        return _HELPER.call(_under, dict(os.environ), function, args, kwargs)


def later(function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Future[Answer]:
    """``call`` once those asked for before are done, while the page is drawn."""
    return _WAITING.submit(lambda: call(function, *args, **kwargs))


def wait_for(future: Future[Answer]) -> Answer:
    """Return what was asked for; who goes to another screen meanwhile need not wait for it."""
    while not wait([future], timeout=LEAVE_S).done:
        leave_page_if_asked()
    return future.result()


def leave_page_if_asked() -> None:
    """End this run of the page if another was asked for; Streamlit looks for that when its session is read."""
    import streamlit as st  # not in the helper process, which imports this module as well

    st.session_state.get(LEAVING)


def choices() -> Future[list[EngineTitle]]:
    """Every engine of the registry, which does not change while the app runs."""
    return later(_choices)


def plan(
    name: str,
    chosen: Sequence[str] | None,
    preset: str,
    device: str = "auto",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    backbone: str | None = features.NO_BACKBONE,
    *,
    finetune: str | None = None,
    budget: float | None = None,
    alone: bool = False,
) -> int:
    """Register an audit; nothing runs yet. Returns its id. ``options``: by engine, fields that differ.

    ``backbone``: whose weights are on this machine, the key of own features that are kept, ``"none"``, or None for
    what suits the images; ``finetune``: who trains it further, a value of ``Finetune``.
    ``budget``: seconds, instead of the preset, or ``USUAL_TIME``. ``alone``: runs of earlier audits are not heard.

    Raises:
        AuditorError: as ``plan.plan_audit``.
    """
    return call(_plan, name, chosen, preset, device, seed, options, backbone, finetune, budget, alone)


def own_features(name: str, source: str, column: str | None) -> features.FeatureSource:
    """Keep a person's own features of the dataset ``name``; ``column`` is of a table.

    Raises:
        AuditorError: as ``api.own_features``.
    """
    return call(api.own_features, name, source, column=column)


def usual_view(name: str) -> Future[tuple[str, str]]:
    """The backbone that an audit of the dataset ``name`` takes by itself, or ``"none"``, and a sentence why."""
    return later(_usual_view, name)


def durations_of(
    name: str, preset: str, device: str, backbone: str, *, finetune: str | None = None
) -> Future[EngineChoices]:
    """Return what each engine would take on the dataset ``name``, by a probe of this machine.

    ``backbone`` and ``finetune``: as ``plan``.
    """
    return later(_durations, name, preset, device, backbone, finetune)


def _usual_view(name: str) -> tuple[str, str]:
    source, why = choose_features(name, None)
    return features.NO_BACKBONE if source is None else source.name, why


def _durations(name: str, preset: str, device: str, backbone: str, finetune: str | None) -> EngineChoices:
    return engine_choices(reading.dataset(name), preset, device, _features(name, backbone), finetune)


def _choices() -> list[EngineTitle]:
    return [
        EngineTitle(
            one.name,
            one.title,
            one.paper,
            {
                "images": engine_bridge.settings_of(one.name),
                "features": engine_bridge.settings_of(one.name, on_features=True),
                "finetuned": engine_bridge.settings_of(one.name, is_finetuned=True),
            },
            one.needs_features,
        )
        for one in engine_bridge.engine_choices()
    ]


def _plan(
    name: str,
    chosen: Sequence[str] | None,
    preset: str,
    device: str,
    seed: int,
    options: Mapping[str, Mapping[str, Any]] | None,
    backbone: str | None,
    finetune: str | None,
    budget: float | None,
    alone: bool,
) -> int:
    if budget == USUAL_TIME:
        is_short = preset == "quick" and engine_bridge.resolve_device(device) == "cpu"
        budget = DEFAULT_BUDGET_S if is_short else None
    return kind.of(reading.dataset(name)).plan(
        name,
        chosen,
        preset=preset,
        device=device,
        seed=seed,
        options=options,
        features=_features(name, backbone),
        finetune=finetune,
        budget=budget,
        alone=alone,
    )


def _features(name: str, backbone: str | None) -> features.FeatureSource | None:
    """The user's own features of that key, or those of that backbone."""
    kept = {one.key: one for one in features.own(reading.dataset(name).id)}
    return kept[backbone] if backbone in kept else choose_features(name, backbone)[0]
