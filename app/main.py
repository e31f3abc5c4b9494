"""Entry of the app: Streamlit with a few HTTP routes of our own beside it.

The routes carry images and verdicts. A verdict that travels as one small request is in the database some
milliseconds after the key was pressed, before the next image shows; a rerun of the page would take ten times
as long. ``frame.py`` is the Streamlit script.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

# `streamlit run app/main.py` puts app/ on the path; the packages lie one folder above.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.server import ROUTES, Gate, Packed
from app.session import failures

app = st.App(
    Path(__file__).with_name("frame.py"),
    routes=ROUTES,
    middleware=[Middleware(Gate), Middleware(Packed)],
    on_script_error=failures.show,
)

# Streamlit looks for garbage after every run of a page, and every request waits meanwhile: what was imported, which
# stays, is not looked through each time.
gc.freeze()
