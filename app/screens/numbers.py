"""Which numbers are wrong, what should they be, and what does a person say about them?"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app import components
from app.panels import fiftyone, judging, random_looks, worst
from app.session import readers, sign_in, state, words
from app.session.access import OWNER
from app.session.failures import shown
from auditor.catalog import scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.ground.numbers import figure, number_text, unit_of, without_unit
from auditor.ground.vocabulary import KEEP
from auditor.labels.numbers import KIND, nearest_examples, suggested_numbers
from auditor.results import statements
from auditor.review import blind

MOST_LISTED = 2_000
MOST_CHANGED = 12
"""Numbers that change, as pictures."""
MOST_POINTS = 2_000
"""Of the numbers that are no suspects, in the chart."""
ALIKE = 4
"""Samples beside each number to compare with."""
ALONG = 8
"""Trusted samples from the lowest to the highest number."""
"""What became of a suspect, by its decision."""
HEADS = {
    "sample_id": "sample",
    "filepath": "picture",
    "decision": "checked",
    "cleaned": "now",
    "reviewer": "by",
}
"""What the columns of checked numbers are called."""
BENCH, PICKED, VIEW, CHOSEN = "numbers_bench", "numbers_picked", "numbers_view", "numbers_chosen"
GOES_ON = "numbers_goes_on"
"""The audit beyond whose suspects somebody goes on."""
OTHERS = "others"
"""The step to less suspicious numbers."""


def listed(dataset: Dataset, audit: Audit, top: int) -> pd.DataFrame:
    """The numbers of least trust."""
    return KIND.table(dataset, audit, KIND.suspects(dataset, audit, top=top).page)


def in_unit(dataset: Dataset, number: str) -> str:
    """A number with its unit, where the name of the labels tells that."""
    return f"{number} {unit_of(dataset.class_names[0])}".strip()


def trusted(dataset: Dataset, audit: Audit, sample_id: int, number: float, kind: str) -> dict[str, Any]:
    """Trusted samples with about this number, to compare with."""
    given, table = readers.given_numbers(dataset), readers.score_table(audit)
    found = nearest_examples(given, table, number, ALIKE, sample_id)
    samples = [(one, number_text(value)) for one, value in found]
    others = trusted_samples(given, table, {sample_id})
    title = f"Not in doubt, nearest to {in_unit(dataset, figure(number))}"
    if len(others) and not given[others].min() <= number <= given[others].max():
        bound, end = ("low", "lowest") if number < given[others].min() else ("high", "highest")
        title = f"None as {bound} as {in_unit(dataset, figure(number))}: the {end} not in doubt"
    return {"kind": kind, "title": title, "samples": samples}


def trusted_samples(
    given: NDArray[np.float64], table: pd.DataFrame, apart_from: Collection[int]
) -> NDArray[np.int64]:
    """Samples with a number that are no suspects, without those of ``apart_from``."""
    rows = table.sample_id.to_numpy()[~table.is_label_issue.to_numpy(dtype=bool)]
    return rows[np.isfinite(given[rows]) & ~np.isin(rows, list(apart_from))]


def asked(dataset: Dataset, audit: Audit, row: dict[Hashable, Any]) -> dict[str, Any]:
    """A suspect as the screen shows it: its number, the suggested one, and what to compare it with."""
    sample, given, suggested = int(row["sample_id"]), float(row["given"]), float(row["suggested"])
    low, high = figure(row["suggested_low"]), figure(row["suggested_high"])
    name = without_unit(dataset.class_names[0])
    side = "above" if given > suggested else "below"
    return {
        "sample": sample,
        "path": row["filepath"],
        "question": f"{name}: {number_text(given)} or {in_unit(dataset, figure(suggested))}?",
        "other": not row["is_label_issue"] or not pd.isna(row["decision"]),
        "standing": ""
        if pd.isna(row["decision"])
        else f"{judging.OUTCOMES.get(row['decision'], row['decision'])} by {row['reviewer']}",
        "sides": [
            {
                "kind": "given",
                "title": "Given",
                "note": f"{figure(abs(given - suggested))} {side} the suggestion",
                "value": in_unit(dataset, number_text(given)),
            },
            {
                "kind": "suggested",
                "title": "Suggested",
                "note": f"likely {low} to {high}",
                "value": in_unit(dataset, figure(suggested)),
            },
        ],
        "number": given,
        "suggested": suggested,
        "alike": [
            trusted(dataset, audit, sample, given, "given"),
            trusted(dataset, audit, sample, suggested, "suggested"),
        ],
    }


def along_the_scale(dataset: Dataset, audit: Audit, apart_from: Collection[int]) -> dict[str, Any]:
    """Trusted samples from the lowest to the highest given number, none of ``apart_from``, to compare with."""
    given = readers.given_numbers(dataset)
    rows = trusted_samples(given, readers.score_table(audit), apart_from)
    places = np.linspace(given[rows].min(), given[rows].max(), ALONG) if len(rows) else np.empty(0)
    found = dict.fromkeys(int(rows[np.abs(given[rows] - one).argmin()]) for one in places)
    samples = [(one, number_text(float(given[one]))) for one in found]
    return {
        "kind": "scale",
        "title": f"Not in doubt, {dataset.class_names[0]} from low to high",
        "samples": samples,
    }


def chart_of(dataset: Dataset, audit: Audit, checked: pd.DataFrame) -> dict[str, Any]:
    """The chart beside the numbers: every suspect and others evenly spread.

    ``checked``: sample_id and cleaned, the number it has now, of what people decided.
    """
    table = readers.score_table(audit)
    samples, suspects = table.sample_id.to_numpy(), table.is_label_issue.to_numpy(dtype=bool)
    given = readers.given_numbers(dataset)[samples]
    predicted = suggested_numbers(audit).suggested.to_numpy()[samples]
    kept = suspects | (np.arange(len(table)) % -(-len(table) // MOST_POINTS) == 0)
    kept &= np.isfinite(given) & np.isfinite(predicted)
    rows = zip(samples[kept], given[kept], predicted[kept], suspects[kept], strict=True)
    return {
        "name": dataset.class_names[0],
        "sentence": statements.noise_rate_now(audit).sentence,
        "points": [[int(one), float(x), float(y), bool(marked)] for one, x, y, marked in rows],
        "answers": [
            [int(one), float(number) if np.isfinite(number) else None]
            for one, number in checked[["sample_id", "cleaned"]].astype(float).to_numpy()
        ],
    }


def pick(dataset: Dataset) -> None:
    """Keep the sample whose dot was clicked: it comes first from now on."""
    st.session_state[PICKED] = (dataset.id, int(st.session_state[BENCH]["point"]))


def review(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """The most suspicious numbers that nobody has decided on, beside all of them against what is predicted."""
    page = listed(dataset, audit, MOST_LISTED)
    suspects = page[page.is_label_issue]
    goes_on = st.session_state.get(GOES_ON) == audit.id
    waiting = (page if goes_on else suspects).query("decision.isna()")
    owner, picked = st.session_state.get(PICKED, (None, None))
    first = picked if owner == dataset.id else state.asked_sample(dataset)
    if first is not None:
        asked_for = KIND.table(dataset, audit, ask(scores.page_of, audit, [first]))
        waiting = pd.concat([asked_for, waiting[waiting.sample_id != first]])
    rows = waiting.head(judging.AT_ONCE).to_dict("records")
    components.judge(
        key=BENCH,
        connection=readers.connection(dataset),
        reviewer=reviewer,
        items=[asked(dataset, audit, row) for row in rows],
        left=int(suspects.decision.isna().sum()),
        total=len(suspects),
        noun="suspect",
        actions=judging.ON_NUMBER,
        finished="Every number of this list is checked." if goes_on else judging.ending(suspects),
        next_steps=judging.after(dataset) | ({} if goes_on else {OTHERS: "Check the next ones"}),
        last=bool(page.decision.notna().any()),
        audit_id=audit.id,
        chart=chart_of(dataset, audit, page[page.decision.notna()]),
        unit=unit_of(dataset.class_names[0]),
        on_point=partial(pick, dataset),
        on_next=partial(go_on, dataset, audit),
    )


def go_on(dataset: Dataset, audit: Audit) -> None:
    """Take the step that was chosen at the end: here it may be to numbers that are less suspicious."""
    if st.session_state[BENCH]["next"] == OTHERS:
        st.session_state[GOES_ON] = audit.id
    else:
        judging.go_on(dataset, audit, BENCH, VIEW)


def verify(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """Judge randomly drawn samples without a look at what is given or suggested."""
    scale = along_the_scale(dataset, audit, {sample for _, sample in blind.pending(dataset.id)})
    question = {"question": f"What number for {dataset.class_names[0]}?", "number": None, "alike": [scale]}
    random_looks.ask(
        dataset, audit, lambda: judging.blind(dataset, reviewer, judging.BLIND_NUMBER, lambda _: question)
    )


def decided(dataset: Dataset, audit: Audit) -> None:
    """Draw what people decided: the numbers that change as pictures, and all of them as a table."""
    page = listed(dataset, audit, dataset.num_samples)
    columns = ["sample_id", "filepath", "given", "suggested", "decision", "cleaned", "reviewer"]
    found: pd.DataFrame = page[page.decision.notna()][columns]
    if found.empty:
        st.write("Nobody has checked a number yet.")
        return
    changed = found[found.cleaned.notna() & (found.cleaned != found.given)]
    state.headline("numbers", f"{len(changed):,}", f"of {words.plural(len(found), 'checked number')} change")
    numbers = changed.head(MOST_CHANGED)[["sample_id", "given", "cleaned"]].itertuples(index=False)
    seen = [(int(sample), number_text(given), number_text(cleaned)) for sample, given, cleaned in numbers]
    worst.row(dataset, seen, key="numbers_changed")
    table = found.assign(
        decision=[judging.OUTCOMES.get(one, one) for one in found.decision],
        cleaned=found.cleaned.where(found.decision != KEEP, found.given),
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config=HEADS,
        on_select=partial(again, dataset, found.sample_id.tolist()),
        selection_mode="single-row",
        key=CHOSEN,
    )
    st.caption("A chosen row brings its number back.")


def again(dataset: Dataset, samples: list[int]) -> None:
    """Turn to the checked number that was chosen in the table."""
    if chosen := st.session_state[CHOSEN]["selection"]["rows"]:
        st.session_state[PICKED] = (dataset.id, samples[chosen[0]])
        st.session_state[VIEW] = judging.SUSPECTS


dataset, bar = state.screen("Numbers")
audit = state.require_audit(dataset)
view = judging.choose_view(dataset, audit, bar, VIEW)
reviewer = state.reviewer()
with shown():
    if view == state.RANDOM_SAMPLE:
        verify(dataset, audit, reviewer)
    elif view == judging.CHECKED:
        decided(dataset, audit)
    else:
        review(dataset, audit, reviewer)
if view == judging.CHECKED and sign_in.may(OWNER):
    with shown(), st.expander("Go on in FiftyOne", icon=":material/open_in_new:"):
        fiftyone.draw(dataset)
