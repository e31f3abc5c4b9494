"""Which engines judge the labels, how long will it take, and how is it going?"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import engine_settings, own_features, watching
from app.session import apart, readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import budgets, durations, plan
from auditor.backbones import features, weights
from auditor.backbones.features import NO_BACKBONE
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import CLASSIFICATION, REGRESSION, SEGMENTATION
from auditor.masks import auditing

OTHER_ENGINES = {
    SEGMENTATION: (
        {"cross_entropy": "plain cross-entropy"},
        "A U-Net trains on each half of the images and judges the other half.",
    ),
    REGRESSION: (
        {"cross_entropy": "mixture density network, the plain witness", "choicenet": "ChoiceNet"},
        "Each trains on a part of the images (two thirds, or four fifths of features) and judges the others, until "
        "all are judged.",
    ),
}
"""By what the labels are: engines by name, and what they do."""
PRESETS = {
    "quick": "quick: minutes on a laptop",
    "standard": "standard: what we recommend on a GPU",
    "paper": "paper: each publication's own settings",
}
TIMES = {
    120.0: "2 minutes",
    budgets.DEFAULT_S: "10 minutes",
    1_800.0: "30 minutes",
    budgets.OVERNIGHT_S: "overnight",
    None: "as long as the preset takes",
}
OWN = "own"
FROM_SCRATCH = "the images, trained from scratch"
DEVICES = {"auto": "automatic: a GPU if there is one", "cpu": "CPU", "cuda": "GPU (CUDA)"}


@st.cache_resource(show_spinner="Looking up engines and backbones …")
def choices() -> list[apart.EngineTitle]:
    """The registry, asked once: the process that answers takes seconds to load the training library."""
    return apart.choices()


@st.cache_data(show_spinner="Measuring this machine …", ttl=3_600)
def durations_of(
    name: str, version: str, preset: str, device: str, backbone: str, finetune: bool
) -> durations.Choices:
    """Measured once for a dataset as it was imported and audited (``version``)."""
    del version
    return apart.durations_of(name, preset, device, backbone, finetune=finetune)


def backbones_here() -> list[str]:
    """The backbones whose weights are on this machine, and those of the installation side by side."""
    found = list(weights.here())
    pair = [one.name for one in found if one.place == weights.INSTALLATION]
    return [one.name for one in found] + [",".join(pair)] * (len(pair) > 1)


@st.cache_data(show_spinner="Looking at some of the images …")
def usual_view(name: str, version: str) -> tuple[str, str]:
    """What an audit takes by itself, found out once for a dataset as it was imported (``version``), and why."""
    del version
    return apart.usual_view(name)


def choose_view(dataset: Dataset, here: list[str], place: DeltaGenerator) -> str | None:
    """What the engines look at: a backbone, ``NO_BACKBONE`` or the key of own features that are kept.

    None while a person says where other features of their own are.
    """
    kept = {source.key: source for source in features.own(dataset.id)}
    if (added := st.session_state.pop(own_features.CHOSEN, None)) in kept:
        st.session_state["audit_backbone"] = added
    titles = {NO_BACKBONE: FROM_SCRATCH, OWN: "other features of your own …"}
    titles |= {key: own_features.title(source) for key, source in kept.items()}
    usual, why = usual_view(dataset.name, str(dataset.created_at))
    options = [*here, NO_BACKBONE, *kept, OWN]
    backbone = place.selectbox(
        "What the engines look at",
        options,
        index=options.index(usual) if usual in options else 0,
        format_func=lambda name: titles.get(name, f"features of {name.replace(',', ' and ')}"),
        key="audit_backbone",
    )
    if backbone == usual and why:
        place.caption(words.documented(why.replace("`", "``")))
    if backbone != OWN:
        return backbone
    own_features.add(dataset)
    return None


def start_form(dataset: Dataset) -> None:
    """Choose, see what it costs, start."""
    engines = choices()
    here = backbones_here()
    time, look = st.columns([2, 3])
    backbone = choose_view(dataset, here, look)
    if backbone is None:
        return
    kept = {source.key for source in features.own(dataset.id)}
    has_backbone, finetune = backbone != NO_BACKBONE, False
    if backbone in kept:
        st.caption("The engines train on these features in place of the images; nothing is computed first.")
    elif has_backbone:
        st.caption("The backbone looks at every image once, before the engines start. Later audits reuse it.")
        finetune = "," not in backbone and st.checkbox(
            "Train the backbone further, with every engine",
            key="audit_finetune",
            help="Fine-tuning: each engine trains the whole network on the images, from the same weights, in place "
            "of a small one on its features. It takes far longer and is meant for a GPU or few images.",
        )
    known = {choice.name: choice for choice in engines if has_backbone or not choice.needs_features}
    start, more = st.container(), st.expander("Engines, preset and device", icon=":material/model_training:")
    more.caption("Each engine trains its own model and judges every label; together they rank the labels.")
    columns = more.columns(3)
    chosen = [
        name
        for number, (name, choice) in enumerate(known.items())
        if columns[number % 3].checkbox(
            choice.title, value=True, key=f"audit_engine_{name}", help=plain(choice.paper)
        )
    ]
    left, middle, right = more.columns([2, 1.3, 0.7])
    preset = left.selectbox("Preset", list(PRESETS), format_func=PRESETS.__getitem__, key="audit_preset")
    device = middle.selectbox("Device", list(DEVICES), format_func=DEVICES.__getitem__, key="audit_device")
    seed = right.number_input("Seed", 0, 2**31 - 1, 0, key="audit_seed")
    trained_on = "finetuned" if finetune else "features" if has_backbone else "images"
    options = engine_settings.choose([known[name] for name in chosen], preset, trained_on=trained_on)
    # An audit leaves the features that the next one need not compute.
    version = f"{dataset.created_at} {len(readers.audits_of(dataset.id))}"
    measured = durations_of(dataset.name, version, preset, device, backbone, finetune)
    heads = [] if has_backbone else plan.heads_of(chosen, options)
    seconds = measured.seconds(chosen, heads, on_features=has_backbone and not finetune)
    is_budget_usual = measured.device == "cpu" and preset == "quick"
    budget = time.selectbox(
        "Time to train in",
        list(TIMES),
        index=list(TIMES).index(budgets.DEFAULT_S if is_budget_usual else None),
        format_func=TIMES.__getitem__,
        disabled=preset != "quick",
        key=f"audit_budget_{is_budget_usual}",
        help="The audit does what finds most in that time: it leaves out pixels first, then epochs.",
    )
    if budget is not None and seconds > budget:
        seconds = budget
        start.caption("The whole audit would take longer: it leaves out what matters least.")
    alone = False
    if any(row.status == "finished" for row in readers.audits_of(dataset.id)):
        alone = not more.checkbox(
            "Use the latest runs of earlier audits too",
            value=True,
            key="audit_hear_earlier",
            help="The ranking is then of the latest finished run of every engine on everything that it looked at: "
            "images, a backbone's features, or your own. The page Engines lists them.",
        )
    go, note = start.columns([1, 4], vertical_alignment="center")
    note.caption(
        f"About {words.duration(seconds)} for {words.plural(dataset.num_samples, 'sample')}, by a short test of "
        "this machine. It runs in its own process: you can close this tab."
    )
    if go.button("Start the audit", type="primary", disabled=not chosen, key="audit_start", width="stretch"):
        with st.spinner("Checking the plan …"):
            audit_id = apart.plan(
                dataset.name,
                chosen,
                preset,
                device,
                int(seed),
                options,
                backbone,
                finetune=finetune,
                budget=budget,
                alone=alone,
            )
        begin(audit_id)


def begin(audit_id: int) -> None:
    """Start a planned audit and watch it."""
    plan.start(audit_id)
    st.session_state["next_audit_watched"] = audit_id
    st.rerun()


def start_on_others(dataset: Dataset) -> None:
    """Choose engines and length of an audit of masks or numbers, start."""
    is_numbers, backbone = dataset.task == REGRESSION, NO_BACKBONE
    if is_numbers:
        chosen_view = choose_view(dataset, backbones_here(), st.container())
        if chosen_view is None:
            return
        backbone = chosen_view
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    engines, note = OTHER_ENGINES[dataset.task]
    chosen = left.multiselect("Engines", list(engines), list(engines), format_func=engines.__getitem__)
    preset = right.selectbox(
        "Preset", list(PRESETS), format_func=PRESETS.__getitem__, key="audit_mask_preset"
    )
    st.caption(f"{note} It runs in its own process: you can close this tab.")
    if st.button("Start the audit", type="primary", disabled=not chosen, key="audit_mask_start"):
        with st.spinner("Checking the plan …"):
            if is_numbers:
                audit_id = apart.plan_numbers(dataset.name, chosen, preset, backbone)
            else:
                audit_id = apart.call(auditing.plan_audit, dataset.name, chosen, preset=preset)
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
            width=420,
        )
    ]


dataset, bar = state.screen("Audit")
audits = readers.audits_of(dataset.id)
is_busy = any(readers.audit_state(row) in ("running", "queued") for row in audits)
if audits:
    watching.watch(dataset, choose_watched(audits))
with st.expander("Start a new audit", expanded=not audits), shown():
    if is_busy:
        st.caption("An audit of this dataset is running; a second one would make both slower.")
    (start_form if dataset.task == CLASSIFICATION else start_on_others)(dataset)
