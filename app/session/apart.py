"""Calls that load the training library, made in a process of their own.

The library takes more memory than the whole app and some seconds to load; the app needs it only to name the
engines, to forecast and to check a plan. The process waits ``IDLE_S`` for the next call and then ends, so that one
visit of the Audit page pays for loading once. Values in and out are plain.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from auditor import api
from auditor.audits import durations, usual_features
from auditor.audits import plan as auditing
from auditor.backbones import features
from auditor.bridges import engine_bridge
from auditor.catalog import reading
from auditor.catalog.db import close_all
from auditor.numbers import auditing as of_numbers

LEAVE_S, LEAVING = 0.2, "leaving"
"""How often a waiting page looks whether another is wanted, and the key that it reads for that."""
IDLE_S = 120.0
"""How long the process waits for another call."""

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


class _Helper:
    """The process, begun at the first call and ended when it was idle for long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._calls = 0
        self._idle: threading.Timer | None = None

    def call(self, leaves_page: bool, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        try:
            return self._call(leaves_page, function, *args, **kwargs)
        except (
            BrokenProcessPool
        ):  # it was killed, for its memory or by somebody: a fresh one does the same again
            return self._call(leaves_page, function, *args, **kwargs)

    def _call(self, leaves_page: bool, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_the_app)
            pool = self._pool
            self._calls += 1
            future = pool.submit(_under, dict(os.environ), function, args, kwargs)
        try:
            while leaves_page and not wait([future], timeout=LEAVE_S).done:
                leave_page_if_asked()
            return future.result()
        except BrokenProcessPool:
            self._forget(pool)
            raise
        finally:
            with self._lock:
                self._calls -= 1
                self._idle = threading.Timer(IDLE_S, self.end)
                self._idle.daemon = True
                self._idle.start()

    def _forget(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None

    def end(self) -> None:
        """End the process unless a call is in it."""
        with self._lock:
            if self._calls or self._pool is None:
                return
            pool, self._pool = self._pool, None
        pool.shutdown()


_HELPER = _Helper()


def _end_with_the_app() -> None:
    """An app that is killed closes nothing: its helper would wait for a call for ever."""

    def watch() -> None:
        app = multiprocessing.parent_process()
        if app is not None:
            app.join()
            os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


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
    return _HELPER.call(False, function, *args, **kwargs)


def asked(function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
    """``call`` of what only answers a question: who goes to another screen meanwhile need not wait for it."""
    return _HELPER.call(True, function, *args, **kwargs)


def leave_page_if_asked() -> None:
    """End this run of the page if another was asked for; Streamlit looks for that when its session is read."""
    import streamlit as st  # not in the helper process, which imports this module as well

    st.session_state.get(LEAVING)


def choices() -> list[EngineTitle]:
    """Every engine of the registry, which does not change while the app runs."""
    return asked(_choices)


def plan(
    name: str,
    chosen: Sequence[str] | None,
    preset: str,
    device: str,
    seed: int,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    backbone: str = features.NO_BACKBONE,
    *,
    finetune: bool = False,
    budget: float | None = None,
    alone: bool = False,
) -> int:
    """Register an audit; nothing runs yet. Returns its id. ``options``: by engine, fields that differ.

    ``backbone``: whose weights are on this machine, the key of own features that are kept, or ``"none"``;
    ``finetune``: the engines train it further.
    ``budget``: seconds, instead of the preset. ``alone``: runs of earlier audits are not heard.

    Raises:
        AuditorError: as ``auditing.plan``.
    """
    return call(_plan, name, chosen, preset, device, seed, options, backbone, finetune, budget, alone)


def plan_numbers(name: str, chosen: Sequence[str], preset: str, backbone: str = features.NO_BACKBONE) -> int:
    """Register an audit of numbers; nothing runs yet. Returns its id. ``backbone`` as in ``plan``.

    Raises:
        AuditorError: as ``numbers.auditing.plan_audit``.
    """
    return call(_plan_numbers, name, chosen, preset, backbone)


def own_features(name: str, source: str, column: str | None) -> features.FeatureSource:
    """Keep a person's own features of the dataset ``name``; ``column`` is of a table.

    Raises:
        AuditorError: as ``api.own_features``.
    """
    return call(api.own_features, name, source, column=column)


def usual_view(name: str) -> tuple[str, str]:
    """The backbone that an audit of the dataset ``name`` takes by itself, or ``"none"``, and a sentence why."""
    return call(_usual_view, name)


def durations_of(
    name: str, preset: str, device: str, backbone: str = features.NO_BACKBONE, *, finetune: bool = False
) -> durations.Choices:
    """What each engine would take on the dataset ``name``, by a probe of this machine.

    ``backbone`` and ``finetune``: as ``plan``.
    """
    return asked(_durations, name, preset, device, backbone, finetune)


def _usual_view(name: str) -> tuple[str, str]:
    source, why = usual_features.choose(name, None)
    return features.NO_BACKBONE if source is None else source.name, why


def _durations(name: str, preset: str, device: str, backbone: str, finetune: bool) -> durations.Choices:
    dataset = reading.dataset(name)
    source = _features(name, backbone)
    finetuned = auditing.pretrained(source) if finetune else None
    return durations.choices(dataset, preset, device, source, finetuned)


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
    backbone: str,
    finetune: bool,
    budget: float | None,
    alone: bool,
) -> int:
    return auditing.plan(
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


def _plan_numbers(name: str, chosen: Sequence[str], preset: str, backbone: str) -> int:
    return of_numbers.plan_audit(name, chosen, preset=preset, features=_features(name, backbone))


def _features(name: str, backbone: str) -> features.FeatureSource | None:
    """The user's own features of that key, or those of that backbone."""
    kept = {one.key: one for one in features.own(reading.dataset(name).id)}
    return kept[backbone] if backbone in kept else usual_features.choose(name, backbone)[0]
