"""Every screen and what it becomes: no serious finding of axe, light and dark; it fits the window at four sizes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from auditor.catalog import scores
from auditor.catalog.db import session
from auditor.review import blind, decisions, drawing
from tests.app.conftest import DATASET
from tests.browser.conftest import WAIT_MS, Server, in_colours, open_page, still
from tests.browser.test_review import OLDER

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
# Masks, Numbers and Sets refuse this set: tests called like them look at them with sets of their own.
PAGES = [
    "",
    "import",
    "audit",
    "verify",
    "suspects",
    "masks",
    "numbers",
    "sets",
    "map",
    "classes",
    "engines",
    "export",
]
SIZES = [(390, 844), (640, 400), (1024, 768), (1280, 800)]
"""A phone, a laptop's window at a zoom of 200 %, a tablet, a laptop; the last is the one that axe looks at."""
FITS = """(width) => window.innerWidth === width
    && [document.documentElement, document.querySelector("[data-testid=stMain]")].every(
        (one) => one.scrollWidth <= one.clientWidth)
    && document.querySelector(".st-key-top_bar").getBoundingClientRect().top < 40"""
"""The window has that width, and the page fits into it: nothing scrolls sideways, no empty rows are above it."""
TEXT_SIZES = """() => {
  const sizes = new Set();
  const walk = (root) => {
    for (const one of root.querySelectorAll("*")) {
      if (one.shadowRoot) walk(one.shadowRoot);
      const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!hasText || !one.getClientRects().length || ["STYLE", "SCRIPT"].includes(one.tagName)) continue;
      const { fontFamily, fontSize } = getComputedStyle(one);
      if (!fontFamily.includes("Material")) sizes.add(fontSize);
    }
  };
  walk(document);
  return [...sizes].sort();
}"""
"""Sizes of the text that the page shows, icons apart."""
SCALE = {"12.25px", "14px", "21px", "39.998px"}
VIOLATIONS: dict[str, Any] = {"resultTypes": ["violations"]}
CHECKED = {"light": VIOLATIONS, "dark": VIOLATIONS | {"runOnly": ["color-contrast"]}}
"""By colour scheme, axe's options: in the dark only colours are others."""


def open_grid(page: Any, server: Server) -> None:
    open_page(page, server, f"suspects?{OLDER}")
    page.locator("[data-testid=bench][data-state=ready]").wait_for(timeout=WAIT_MS)
    if page.get_by_test_id("confusion").count():
        page.keyboard.press("t")  # the cards come first
        page.get_by_test_id("card").wait_for(timeout=WAIT_MS)
    if page.get_by_test_id("tile").count() == 0:  # it comes back to what this tab showed
        page.keyboard.press("g")
    page.get_by_test_id("tile").first.wait_for(timeout=WAIT_MS)


def open_keys(page: Any, server: Server) -> None:
    open_grid(page, server)
    page.keyboard.press("?")
    page.get_by_test_id("help").wait_for(timeout=WAIT_MS)


def open_audit_form(page: Any, server: Server) -> None:
    open_page(page, server, f"audit?{OLDER}")
    page.get_by_text("Start a new audit").click(timeout=WAIT_MS)
    page.locator(".st-key-audit_start button").wait_for(timeout=WAIT_MS)
    still(page)  # the forecast may still move what is below it, away from under a click
    page.get_by_text("Settings", exact=True).click(timeout=WAIT_MS)
    page.get_by_label("Seed").wait_for(timeout=WAIT_MS)


def open_import_preview(page: Any, server: Server) -> None:
    open_page(page, server, f"import?{OLDER}")
    picture = io.BytesIO()
    Image.new("L", (16, 16), 90).save(picture, "PNG")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        for name in ("cat/1.png", "dog/2.png"):
            members.writestr(name, picture.getvalue())
    upload = {"name": "pets.zip", "mimeType": "application/zip", "buffer": packed.getvalue()}
    page.locator(".st-key-import_file input[type=file]").set_input_files(upload)
    page.locator(".st-key-import_start button:enabled").wait_for(timeout=WAIT_MS)


def open_verified(page: Any, server: Server) -> None:
    for draw, sample in blind.pending(1):
        blind.record(draw, sample, "unsure", reviewer="Ada")
    open_page(page, server, f"verify?{OLDER}")
    page.get_by_test_id("verified").wait_for(timeout=WAIT_MS)


def open_finished(page: Any, server: Server) -> None:
    """Whoever comes when every suspect is checked reads what comes next."""
    with session() as open_session:
        scored = scores.table(open_session, 1)
    suspects = scored.sample_id[scored.is_label_issue].tolist()
    decisions.decide_many(1, [(one, "keep", None) for one in suspects], reviewer="Ada", audit_id=1)
    open_page(page, server, f"suspects?{OLDER}")
    page.get_by_text("Every suspect here is checked.").wait_for(timeout=WAIT_MS)


def open_palette(page: Any, server: Server) -> None:
    open_page(page, server, f"engines?{OLDER}")
    page.keyboard.press("Control+k")
    page.keyboard.type("12")
    page.locator("dialog.palette .pictured img").first.wait_for(timeout=WAIT_MS)


STATES = {
    "grid": open_grid,
    "key sheet": open_keys,
    "audit form": open_audit_form,
    "import preview": open_import_preview,
    "Verify done": open_verified,
    "finished queue": open_finished,
    "palette": open_palette,
}
"""What a screen becomes after some clicks, and how one gets there."""


def serious_findings(page: Any, scheme: str = "light") -> list[tuple[str, str]]:
    """(rule, element) of what axe finds serious or critical on the page as it is."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    return [
        (one["id"], str(node["target"]))
        for one in axe.run(page, options=CHECKED[scheme]).response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def findings_at_every_size(page: Any, name: str, artifacts: Path) -> list[tuple[str, ...]]:
    """(name, scheme, rule, element) of what axe finds on a page that fits the window at four sizes, light and dark.

    Each is a picture in ``artifacts``; the page is left at the last size, in the dark.
    """
    found: list[tuple[str, ...]] = []
    for scheme in CHECKED:
        in_colours(page, scheme)
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function(FITS, arg=width, timeout=WAIT_MS)
            still(page)
            page.screenshot(path=str(artifacts / f"{name}-{scheme}-{width}x{height}.png"))
        found += [(name, scheme, *one) for one in serious_findings(page, scheme)]
    return found


def test_screens__have_no_serious_finding_and_fit_the_window(
    browser: Any, running: Server, artifacts: Path
) -> None:
    drawing.draw(DATASET, 4)
    context = browser.new_context()
    context.add_cookies([{"name": "auditor_reviewer", "value": "Ada", "url": running.url}])
    page = context.new_page()
    found, odd = [], {}
    for path in PAGES:
        open_page(page, running, f"{path}?{OLDER}")
        odd[path] = set(page.evaluate(TEXT_SIZES)) - SCALE
        found += findings_at_every_size(page, path or "home", artifacts)
    for state, reach in STATES.items():
        reach(page, running)
        for scheme in CHECKED:
            in_colours(page, scheme)
            found += [(state, scheme, *one) for one in serious_findings(page, scheme)]
    assert found == []
    assert not {path: sizes for path, sizes in odd.items() if sizes}
