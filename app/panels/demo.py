"""The demo dataset, made at the press of a button, and a card of it for who has seen nothing yet."""

from __future__ import annotations

import base64
import io

import streamlit as st
from PIL import Image

from app.session import apart, state
from auditor.audits import start_audit
from auditor.cli import demo

NAME = demo.NAME
GIVEN, SUGGESTED = 3, 2
WRONG = (591, 696, 759, 1208, 1214, 1232, 1472, 1528, 1531)
"""Rows of scikit-learn's digits that are ``SUGGESTED`` and that the demo imports as ``GIVEN``."""
STAYS = 301
"""A row that is ``GIVEN``."""
EXAMPLES = 6
SIDE = 48


def offer() -> None:
    """A button that imports the demo's digits and starts their audit."""
    if st.button("Try the demo", icon=":material/science:", key="home_demo"):
        with st.spinner("Importing 1,797 digits …"):
            demo.prepare()
        start_audit(apart.plan(NAME, None, "quick", "auto", 0))
        state.go_to_dataset(NAME)
        state.go_to("audit")


@st.cache_data(max_entries=1, show_spinner=False)
def card() -> str:
    """HTML: a card as Suspects shows it, of the demo's digits, to look at."""
    from sklearn.datasets import load_digits  # takes a second to import: only on an empty machine

    pixels, truth = load_digits(return_X_y=True)

    def picture(row: int) -> str:
        digit = Image.fromarray((pixels[row].reshape(8, 8) * 255 / 16).astype("uint8"))
        file = io.BytesIO()
        digit.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(file, "PNG")
        return f'<img alt="" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'

    def like(label: int, tone: str) -> str:
        rows = [row for row in (truth == label).nonzero()[0].tolist() if row not in WRONG][:EXAMPLES]
        examples = "".join(picture(row) for row in rows)
        return f'<div class="like {tone}"><small>Most trusted: {label}</small><div>{examples}</div></div>'

    ticked = [f"<span>{picture(row)}<i>✓</i></span>" for row in WRONG]
    stays = f'<span class="stays">{picture(STAYS)}<i>stays</i></span>'
    tiles = "".join([*ticked[:6], stays, *ticked[6:]])
    says = (
        f"{len(WRONG) + 1} pictures given {GIVEN} look like {SUGGESTED}; {len(WRONG)} are ticked, one stays"
    )
    return (
        f'<div class="start-card" role="img" aria-label="{says}">'
        f"<p>{len(WRONG) + 1} pictures given <b class=given>{GIVEN}</b> look like "
        f"<b class=suggested>{SUGGESTED}</b></p>"
        f'<div class="tiles">{tiles}</div>'
        f'<div class="both">{like(GIVEN, "given")}{like(SUGGESTED, "suggested")}</div>'
        f"<footer><kbd>Enter</kbd> Change {len(WRONG)} labels to {SUGGESTED}, keep 1</footer></div>"
    )
