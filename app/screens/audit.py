"""Which engines judge the labels, how long will it take, and how is it going?"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import engine_settings, other_weights, own_features, watching, worst
from app.session import apart, readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor import kind
from auditor.audits import (
    DEFAULT_BUDGET_S,
    OVERNIGHT_S,
    EngineChoices,
    Finetune,
    heads_of,
    start_audit,
)
from auditor.backbones import features, weights
from auditor.backbones.features import NO_BACKBONE
from auditor.catalog.records import Audit, Dataset
from auditor.ground.settings import settings
from auditor.ground.vocabulary import CLASSIFICATION, MULTILABEL, REGRESSION, SEGMENTATION

OTHER_ENGINES = {
    SEGMENTATION: (
        {"cross_entropy": "plain cross-entropy"},
        "The engine trains on each half of the pictures and judges the other half.",
    ),
    REGRESSION: (
        {"cross_entropy": "mixture density network, the plain engine", "choicenet": "ChoiceNet"},
        "Each trains on a part of the pictures (two thirds, of features four fifths) and judges the others until "
        "all are judged.",
    ),
    MULTILABEL: (
        {"noise_model": "noise model, a question a class"},
        "It is fitted to four fifths of the pictures and judges the others, until all are judged.",
    ),
}
"""By what the labels are: engines by name, and what they do."""
PRESETS = {
    "quick": "quick: what suits a laptop",
    "standard": "standard: what we recommend on a GPU",
    "paper": "paper: each publication's own settings",
}
AUTO = "auto"
"""What an audit looks at where nobody chooses: what suits the images."""
TIMES = {
    apart.USUAL_TIME: "as long as is usual",
    120.0: "at most 2 minutes",
    DEFAULT_BUDGET_S: "at most 10 minutes",
    1_800.0: "at most 30 minutes",
    OVERNIGHT_S: "overnight",
    None: "until all is done",
}
OWN, OTHER = "own", "other"
FROM_SCRATCH = "the pictures, trained from scratch"
DEVICES = {"auto": "automatic: a GPU if there is one", "cpu": "CPU", "cuda": "GPU (CUDA)"}
FURTHER = {
    None: "the plain engine, where there is a GPU",
    Finetune.NONE.value: "no engine",
    Finetune.PLAIN.value: "the plain engine",
    Finetune.ALL.value: "every engine",
}
SHOWN = 12
"""Pictures of a dataset that no audit has looked at."""
SEEN = "audit_engines_seen"
MEASURED_S = LONG_S = 3_600
POLL_S = 0.5


@st.cache_resource
def engines_here() -> Future[list[apart.EngineTitle]]:
    """The registry, asked once: the process that answers takes seconds to load the training library."""
    return apart.choices()


@st.cache_resource(ttl=MEASURED_S, max_entries=64)
def usual_view(home: Path, name: str, version: str) -> Future[tuple[str, str]]:
    """Return what an audit takes by itself, found out once for a dataset as it was imported (``version``),
    and why.
    """
    del home, version
    return apart.usual_view(name)


@st.cache_resource(ttl=MEASURED_S, max_entries=64)
def durations_of(
    home: Path, name: str, version: str, preset: str, device: str, backbone: str, finetune: str | None
) -> Future[EngineChoices]:
    """Measured once for a dataset as it was imported and audited (``version``)."""
    del home, version
    return apart.durations_of(name, preset, device, backbone, finetune=finetune)


def view_of(dataset: Dataset) -> Future[tuple[str, str]]:
    """``usual_view`` of a dataset as it is now."""
    return usual_view(settings().home, dataset.name, str(dataset.created_at))


def backbones_here() -> list[str]:
    """The backbones whose weights are on this machine, and those of the installation side by side."""
    found = list(weights.here())
    pair = [one.name for one in found if one.place == weights.INSTALLATION]
    return [one.name for one in found] + [",".join(pair)] * (len(pair) > 1)


def choose_view(dataset: Dataset, place: DeltaGenerator) -> str | None:
    """Return what the engines look at: ``AUTO``, a backbone, ``NO_BACKBONE`` or the key of own features that
    are kept.

    None while a person says where other weights, or features of their own, are.
    """
    kept = {source.key: source for source in features.own(dataset.id)}
    networks = backbones_here()
    for added in (st.session_state.pop(panel.CHOSEN, None) for panel in (own_features, other_weights)):
        if added in [*networks, *kept]:
            st.session_state["audit_backbone"] = added
    titles = {
        AUTO: "what suits these pictures",
        NO_BACKBONE: FROM_SCRATCH,
        OTHER: "another network: fetch its weights, or drop a file with them …",
        OWN: "other features of your own …",
    }
    titles |= {key: own_features.title(source) for key, source in kept.items()}
    backbone = place.selectbox(
        "What the engines see",
        [AUTO, *networks, NO_BACKBONE, *kept, OTHER, OWN],
        format_func=lambda name: titles.get(name, f"features of {name.replace(',', ' and ')}"),
        key="audit_backbone",
        help="Features are what a network that was trained on millions of photos sees in a picture. It sees "
        "every picture once, before the engines start; later audits use the same.",
    )
    if backbone == OWN:
        own_features.add(dataset)
    elif backbone == OTHER:
        other_weights.add()
    return None if backbone in (OWN, OTHER) else backbone


@dataclass(frozen=True)
class Wanted:
    """What the form asks for."""

    backbone: str
    engines: list[str] | None
    """None: all that there are."""
    options: dict[str, dict[str, Any]]
    preset: str
    device: str
    seed: int
    budget: float | None
    finetune: str | None
    """A value of ``Finetune``."""
    alone: bool


def choose_engines(dataset: Dataset, backbone: str, fold: DeltaGenerator, *, is_open: bool) -> Wanted:
    """The settings behind the ``fold``: two hundred fields, and a library to load, that few people open."""
    wanted = Wanted(backbone, None, {}, "quick", "auto", 0, apart.USUAL_TIME, None, alone=False)
    # What was set in a field that is no longer drawn would be forgotten.
    if not (is_open or st.session_state.get(SEEN) or st.session_state.get(engine_settings.SEEN)):
        return wanted
    st.session_state[SEEN] = True
    with fold:
        with st.spinner("Asking for the engines …"):
            if backbone == AUTO:
                backbone = apart.wait_for(view_of(dataset))[0]
            engines = apart.wait_for(engines_here())
        has_backbone = backbone != NO_BACKBONE
        known = {choice.name: choice for choice in engines if has_backbone or not choice.needs_features}
        with st.expander("Which engines", key="audit_which"):
            st.caption("Each engine learns from the labels and judges every one; together they rank them.")
            columns = st.columns(3)
            chosen = [
                name
                for number, (name, choice) in enumerate(known.items())
                if columns[number % 3].checkbox(
                    choice.title, value=True, key=f"audit_engine_{name}", help=plain(choice.paper)
                )
            ]
        left, middle, right = st.columns([2, 1.3, 0.7])
        preset = left.selectbox("Preset", list(PRESETS), format_func=PRESETS.__getitem__, key="audit_preset")
        device = middle.selectbox(
            "Device", list(DEVICES), format_func=DEVICES.__getitem__, key="audit_device"
        )
        seed = right.number_input("Seed", 0, 2**31 - 1, 0, key="audit_seed")
        is_own = backbone in {source.key for source in features.own(dataset.id)}
        finetune = None
        if has_backbone and not is_own:
            finetune = st.selectbox(
                "Train the backbone further",
                [name for name in FURTHER if name != Finetune.ALL or "," not in backbone],
                format_func=FURTHER.__getitem__,
                key="audit_finetune",
                help="Fine-tuning: the engine trains the whole network on the pictures, in place of a small one on "
                "its features. It finds more and takes far longer: it is meant for a GPU, or few pictures.",
            )
        alone = any(row.status == "finished" for row in readers.audits_of(dataset.id)) and not st.checkbox(
            "Use the latest runs of earlier audits too",
            value=True,
            key="audit_hear_earlier",
            help="The ranking is then of the latest finished run of every engine on everything that it saw: "
            "images, a backbone's features, or your own. The page Engines lists them.",
        )
        on_images = Finetune(finetune or Finetune.NONE).engines(chosen)
        trained_on = {
            name: "finetuned" if name in on_images else "features" if has_backbone else "images"
            for name in chosen
        }
        options = engine_settings.choose([known[name] for name in chosen], preset, trained_on=trained_on)
    named = None if chosen == list(known) and not options else chosen
    return Wanted(backbone, named, options, preset, device, int(seed), wanted.budget, finetune, alone)


def start_form(dataset: Dataset) -> None:
    """See what it costs, start; what few people change is behind a fold. Nothing waits for what is measured."""
    engines_here()
    start = st.container()
    show_some(dataset)
    fold = st.expander("Settings", icon=":material/tune:", key="audit_engines", on_change="rerun")
    with fold:
        time, look = st.columns([2, 3])
        backbone = choose_view(dataset, look)
    if backbone is None:
        return
    wanted = choose_engines(dataset, backbone, fold, is_open=bool(fold.open))
    budget = time.selectbox(
        "Time to train in",
        list(TIMES),
        format_func=TIMES.__getitem__,
        disabled=wanted.preset != "quick",
        key="audit_budget",
        help="The audit does what finds most in that time: it leaves out what matters least. Usual is at most "
        f"{words.duration(DEFAULT_BUDGET_S)}, and on a GPU until all is done.",
    )
    wanted = replace(wanted, budget=budget if wanted.preset == "quick" else None)
    if wanted.backbone == AUTO and (found := cost(dataset, wanted)) is not None:
        look.caption(looks_with(dataset, found[0]))
    with start:
        what_it_does(dataset)
        if start_button(
            "audit_start", is_open=wanted.engines != [], costs=partial(watch_cost, dataset, wanted)
        ):
            with st.spinner("Checking the plan …"):
                audit_id = apart.plan(
                    dataset.name,
                    wanted.engines,
                    wanted.preset,
                    wanted.device,
                    wanted.seed,
                    wanted.options,
                    None if wanted.backbone == AUTO else wanted.backbone,
                    finetune=wanted.finetune,
                    budget=wanted.budget,
                    alone=wanted.alone,
                )
            begin(audit_id)


def show_some(dataset: Dataset) -> None:
    """Draw some of the pictures, where no audit has anything to say of them yet."""
    if all(row.summary.settled_at is None for row in readers.audits_of(dataset.id)):
        worst.draw_some(dataset, SHOWN, start=0.2)


def what_it_does(dataset: Dataset) -> None:
    """Draw what an audit is about to find out, which nothing measured has to be known for."""
    named = "labels" if dataset.task in (CLASSIFICATION, MULTILABEL) else kind.of(dataset).words
    state.headline("audit_start", words.count(dataset.num_samples), f"{named} to judge. Which are wrong?")


def start_button(key: str, *, is_open: bool, costs: Callable[[], object]) -> bool:
    """Return whether the one button of the form was pressed; beside it stands what it ``costs``, in one line,
    and what may be done meanwhile.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        is_pressed = st.button(
            "Start the audit",
            type="primary",
            icon=":material/play_circle:",
            disabled=not is_open,
            key=key,
            width=240,
        )
        with st.container(gap=None, width="stretch", key="audit_meanwhile"):
            costs()
            st.caption("It runs by itself: you can close this tab.")
    return is_pressed


def cost(dataset: Dataset, wanted: Wanted) -> tuple[str, str, float] | None:
    """With what the audit looks and why, and about how many seconds it takes; None until that is known."""
    engines, view = engines_here(), view_of(dataset)
    if not engines.done() or (wanted.backbone == AUTO and not view.done()):
        return None
    backbone, why = view.result() if wanted.backbone == AUTO else (wanted.backbone, "")
    # An audit leaves the features that the next one need not compute.
    version = f"{dataset.created_at} {len(readers.audits_of(dataset.id))}"
    asked = (settings().home, dataset.name, version, wanted.preset, wanted.device, backbone, wanted.finetune)
    found = durations_of(*asked)
    if not found.done():
        return None
    measured, has_backbone = found.result(), backbone != NO_BACKBONE
    names = [one.name for one in engines.result() if has_backbone or not one.needs_features]
    chosen = wanted.engines or names
    heads = [] if has_backbone else heads_of(chosen, wanted.options)
    seconds = measured.seconds(chosen, heads, on_features=has_backbone)
    limit = wanted.budget
    if limit == apart.USUAL_TIME:
        limit = DEFAULT_BUDGET_S if measured.device == "cpu" else None
    return backbone, why, seconds if limit is None else min(limit, seconds)


def watch_cost(dataset: Dataset, wanted: Wanted) -> None:
    """Draw what the audit costs, looked for again until it is known."""
    is_known = cost(dataset, wanted) is not None
    st.fragment(say_cost, run_every=None if is_known else POLL_S)(dataset, wanted, is_known)


def say_cost(dataset: Dataset, wanted: Wanted, was_known: bool) -> None:
    """One line: about how long the audit takes, as soon as that was found out."""
    with shown():
        found = cost(dataset, wanted)
        if found is None:
            st.markdown(
                roughly(dataset, wanted.preset, wanted.budget) or "How long it takes is being found out."
            )
        elif not was_known:
            st.rerun()  # stops the polling
        else:
            _, why, seconds = found
            st.markdown(
                f"**About {words.duration(seconds)}** on this machine.",
                help=words.documented(why.replace("`", "``")) or None,
            )


def roughly(dataset: Dataset, preset: str, limit: float | None = None) -> str:
    """Return one sentence on the time that an audit takes, by what is known of it without a try; empty without
    that.
    """
    seconds = EngineChoices.roughly(dataset, preset, readers.audits_of(dataset.id))
    if seconds is None:
        return ""
    limit = DEFAULT_BUDGET_S if limit == apart.USUAL_TIME else limit
    seconds = seconds if limit is None else min(seconds, limit)
    minutes = f"{words.plural(max(1, round(seconds / 60)), 'minute')}"
    return f"**About {words.duration(seconds) if seconds >= LONG_S else minutes}.**"


def looks_with(dataset: Dataset, backbone: str) -> str:
    """Return one line on what the engines see."""
    if backbone == NO_BACKBONE:
        return "The engines train on the pictures themselves."
    if any(backbone == source.key for source in features.own(dataset.id)):
        return "The engines see your own features."
    networks = " and ".join(one.removeprefix("timm:") for one in backbone.split(","))
    return f"Looks with {plain(networks)}."


def begin(audit_id: int) -> None:
    """Start a planned audit and watch it."""
    start_audit(audit_id)
    st.session_state["next_audit_watched"] = audit_id
    st.rerun()


def start_on_others(dataset: Dataset) -> None:
    """Start an audit of masks, numbers or sets; engines and length are behind a fold."""
    start = st.container()
    show_some(dataset)
    fold = st.expander("Settings", icon=":material/tune:")
    backbone: str | None = NO_BACKBONE
    engines, note = OTHER_ENGINES[dataset.task]
    with fold:
        if "backbone" not in kind.of(dataset).unused["audit"]:
            chosen_view = choose_view(dataset, st.container())
            if chosen_view is None:
                return
            backbone = None if chosen_view == AUTO else chosen_view
        left, right = st.columns([2, 1], vertical_alignment="bottom")
        chosen = left.multiselect("Engines", list(engines), list(engines), format_func=engines.__getitem__)
        preset = right.selectbox(
            "Preset", list(PRESETS), format_func=PRESETS.__getitem__, key="audit_mask_preset"
        )
    with start:
        what_it_does(dataset)
        if start_button(
            "audit_mask_start",
            is_open=bool(chosen),
            costs=partial(st.markdown, f"{roughly(dataset, preset)} {note}"),
        ):
            with st.spinner("Checking the plan …"):
                audit_id = apart.plan(dataset.name, chosen, preset, backbone=backbone)
            begin(audit_id)


def choose_watched(audits: list[Audit]) -> Audit:
    """The audit to look at: the one just started, else the one chosen, at first the newest."""
    by_id = {row.id: row for row in audits}
    wanted = st.session_state.pop("next_audit_watched", None)
    if wanted in by_id:
        st.session_state["audit_watched"] = wanted
    if len(audits) == 1:
        return audits[0]
    return by_id[
        st.selectbox(
            "Audit",
            list(by_id),
            format_func=lambda key: state.audit_title(by_id[key]),
            key="audit_watched",
            label_visibility="collapsed",
            width=340,
        )
    ]


dataset, bar = state.screen("Audit")
audits = readers.audits_of(dataset.id)
is_busy = any(readers.audit_state(row) in ("running", "queued") for row in audits)
# Each has a place of its own, and an audit that begins empties the form's at once. It is no placeholder otherwise:
# those are emptied with every run, and what was unfolded in them folds.
watched, form = st.container(), st.empty() if is_busy else st.container()
if audits:
    with bar:
        chosen = choose_watched(audits)
    with watched:
        watching.watch(dataset, chosen)
if is_busy:  # a second one would make both slower, and so does measuring how long it would take
    st.stop()
with form:
    fold = st.expander("Start a new audit", icon=":material/restart_alt:") if audits else st.container()
with fold, shown():
    (start_form if dataset.task == CLASSIFICATION else start_on_others)(dataset)
