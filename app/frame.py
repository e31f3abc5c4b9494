"""The frame of every screen: navigation, the chosen dataset, and the one place where errors end."""

from __future__ import annotations

import streamlit as st

from app.session import ahead, choices, failures, navigation, readers, sign_in, state
from auditor.catalog import folders

st.set_page_config(page_title="Label auditor", page_icon="🔎", layout="wide", initial_sidebar_state=236)
# Room for the work: Streamlit's own margins are made for prose.
st.html(
    "<style>"
    '[data-testid="stMainBlockContainer"] {padding-left: 2rem; padding-right: 2rem; padding-bottom: 1.5rem}'
    '[data-testid="stSidebarHeader"] {height: 2.2rem; padding-bottom: 0}'
    ".st-key-remember_name {position: absolute; height: 0; overflow: hidden}"
    # Pictures with a label below: six in a row, fewer where the window is narrow.
    '[class*="st-key-pictures_"] {display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 0.75rem; '
    "max-width: 80rem}"
    '[class*="st-key-pictures_small_"] {grid-template-columns: repeat(12, minmax(0, 1fr))}'
    '[class*="st-key-pictures_"] > * {width: 100% !important; min-width: 0}'
    '[class*="st-key-pictures_"] img {aspect-ratio: 1; object-fit: cover; border-radius: 0.5rem; width: 100%}'
    '[class*="st-key-pictures_"] [data-testid="stImageCaption"] {overflow-wrap: anywhere}'
    '[class*="st-key-strip_"] img {aspect-ratio: 1; object-fit: cover; border-radius: 0.5rem}'
    # Streamlit's captions are paler than 4.5 : 1.
    '[data-testid="stCaptionContainer"] {opacity: 0.85 !important}'
    # The accent as small text is too dark on a dark page.
    '[data-testid="stTab"], [data-testid="stTab"] p {color: inherit !important}'
    "a.download {display: inline-block; padding: 0.4rem 0.9rem; border-radius: 0.5rem; font-weight: 500; "
    "color: white !important; background: #0b63b5; text-decoration: none}"
    "a.download:hover {filter: brightness(0.9)} a.download:focus-visible {outline: 2px solid; outline-offset: 2px}"
    "pre.layout {margin: 0; padding: 0.75rem 1rem; border-radius: 0.5rem; background: rgb(128 128 128 / 9%); "
    "font: 0.9rem/1.6 ui-monospace, Menlo, Consolas, monospace; overflow-x: auto}"
    # One bar of 48 pixels above every screen.
    ".st-key-top_bar {min-height: 48px; margin-bottom: 0.25rem}"
    ".st-key-top_bar h1 {font-size: 1.35rem; padding: 0}"
    ".st-key-screens a {padding: 0.2rem 0.5rem}"
    # What stands above the picture of the bench; the filters fold away behind its button (figures.js).
    "body:has(.st-key-suspects_filters) {--bench-above: 286px}"
    "html[data-filters=open] body:has(.st-key-suspects_filters) {--bench-above: 342px}"
    "html:not([data-filters=open]) :is(.st-key-suspects_filters, "
    '[data-testid="stLayoutWrapper"]:has(> .st-key-suspects_filters)) {display: none}'
    # The pictures of a region stand beside the map, at its height.
    ".st-key-map_region {height: calc(100vh - 130px); overflow-y: auto; scroll-margin-top: 26vh}"
    ".st-key-classes_pairs button {justify-content: flex-start; text-align: left; min-height: 0}"
    # Pictures fill the width that there is.
    ':is(.st-key-map_region, .st-key-engines_part) [class*="st-key-pictures_"] '
    "{display: grid; grid-template-columns: repeat(auto-fill, minmax(104px, 1fr)); gap: 0.5rem}"
    ':is(.st-key-map_region, .st-key-engines_part) [class*="st-key-pictures_"] :is(img, div) '
    "{width: 100% !important; max-width: 100%}"
    # Engines stand side by side, as many as there is room for.
    ".st-key-engines_each {display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 1rem}"
    ".st-key-engines_each a {display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; "
    "overflow: hidden}"
    # The menu of a dataset's card keeps its width.
    "@media (min-width: 641px) {"
    '[data-testid="stHorizontalBlock"]:has(> * [class*=st-key-home_more]) {flex-wrap: nowrap}'
    '[data-testid="stColumn"]:has([class*=st-key-home_more]) {min-width: 4.2rem}'
    "}"
    # Narrower than a laptop: two rows of filters, each wide enough for its words.
    "@media (min-width: 641px) and (max-width: 1100px) {"
    '.st-key-verify_work [data-testid="stHorizontalBlock"] {flex-wrap: wrap}'
    '.st-key-verify_work [data-testid="stHorizontalBlock"] > [data-testid="stColumn"] {min-width: 100%}'
    '[class*="st-key-pictures_small_"] {grid-template-columns: repeat(6, minmax(0, 1fr))}'
    '.st-key-suspects_filters [data-testid="stHorizontalBlock"] {flex-wrap: wrap; gap: 0.4rem}'
    '.st-key-suspects_filters [data-testid="stColumn"] {min-width: 31%; flex: 1 1 31%}'
    '.st-key-top_bar [data-testid="stPageLink"] {display: none}'
    "}"
    # Where the sidebar is folded away its button stands in one line with the title.
    "@media (max-width: 767px) {"
    '[data-testid="stHeader"] {background: none; pointer-events: none}'
    '[data-testid="stHeader"] :is(button, a) {pointer-events: auto}'
    '[data-testid="stExpandSidebarButton"] {backdrop-filter: blur(8px)}'
    '[data-testid="stMainBlockContainer"] {padding-top: 0}'
    ".st-key-top_bar {padding-left: 2.4rem; min-height: 44px; row-gap: 0.4rem; margin-top: -0.7rem}"
    ".st-key-top_bar > :first-child {min-height: 44px; justify-content: center}"
    '.st-key-top_bar > [data-testid="stLayoutWrapper"]:has(.st-key-map_engine) '
    "{width: calc(100% + 2.4rem) !important; margin-left: -2.4rem}"
    '[data-testid="stHorizontalBlock"]:has(> .st-key-map_engine) {flex-wrap: nowrap; width: 100%}'
    ":is(.st-key-map_engine, .st-key-map_colour) {flex: 1 1 0; width: auto !important; min-width: 0}"
    "}"
    "@media (max-width: 640px) {"
    # The card of a dataset: its button and its menu in one line.
    '[data-testid="stColumn"]:has([class*=st-key-home_more]) {min-width: 4.2rem; flex: none; width: auto}'
    '[data-testid="stColumn"]:has([class*=st-key-home_next]) {min-width: 0; flex: 1 1 8rem}'
    '[class*="st-key-pictures_"] {grid-template-columns: repeat(3, minmax(0, 1fr))}'
    '[class*="st-key-pictures_small_"] {grid-template-columns: repeat(4, minmax(0, 1fr))}'
    ".st-key-map_region {height: auto; min-height: 80vh}"
    '.st-key-top_bar [data-testid="stPageLink"] {display: none}'
    '[data-testid="stMainBlockContainer"] {padding: 0 0.9rem 1rem}'
    "html:not([data-filters=open]) :is(.st-key-suspects_show, [class*=st-key-suspects_search]) {display: none}"
    ".st-key-suspects_show {margin-left: -2.4rem}"
    '.st-key-suspects_filters [data-testid="stHorizontalBlock"] {gap: 0.3rem}'
    "}"
    "</style>" + ahead.fetching(readers.base_path()),
    unsafe_allow_javascript=True,
)

PAGES = {
    "": [
        st.Page("screens/home.py", title="Home", icon=":material/home:", default=True),
        st.Page("screens/import_.py", title="Import", icon=":material/upload:", url_path="import"),
        st.Page("screens/audit.py", title="Audit", icon=":material/play_circle:", url_path="audit"),
    ],
    "Review": [
        st.Page("screens/verify.py", title="Verify", icon=":material/fact_check:", url_path="verify"),
        st.Page("screens/suspects.py", title="Suspects", icon=":material/rule:", url_path="suspects"),
        st.Page("screens/masks.py", title="Masks", icon=":material/texture:", url_path="masks"),
        st.Page("screens/numbers.py", title="Numbers", icon=":material/123:", url_path="numbers"),
        st.Page("screens/map.py", title="Map", icon=":material/scatter_plot:", url_path="map"),
    ],
    "Understand": [
        st.Page("screens/classes.py", title="Classes", icon=":material/grid_on:", url_path="classes"),
        st.Page("screens/engines.py", title="Engines", icon=":material/compare:", url_path="engines"),
    ],
    "Finish": [
        st.Page("screens/export.py", title="Export", icon=":material/download:", url_path="export"),
    ],
}

with failures.shown(), folders.checked_once():
    sign_in.require()
    pages = navigation.allowed(PAGES)
    page = st.navigation(pages, position="hidden")
    choices.turn_page(page.url_path)
    state.choose_dataset()
    navigation.draw(pages)
    state.show_reviewer()
    page.run()
