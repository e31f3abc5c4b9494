"""Every screen, light and dark: no serious and no critical finding of axe, and it fits the window at four sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.review import random_sample
from tests.app.conftest import DATASET
from tests.browser.conftest import WAIT_MS, Server, in_colours, open_page, still
from tests.browser.test_review import OLDER

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
PAGES = [
    "",
    "import",
    "audit",
    "verify",
    "suspects",
    "masks",
    "numbers",
    "map",
    "classes",
    "engines",
    "export",
]
SIZES = [(390, 844), (640, 400), (1024, 768), (1280, 800)]
"""A phone, a laptop's window at a zoom of 200 %, a tablet, a laptop; the last is the one that axe looks at."""
FITS = "(width) => window.innerWidth === width && document.documentElement.scrollWidth <= width"
"""The window has that width, and the page fits into it."""
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
SCALE = {"12.25px", "14px", "21px"}
VIOLATIONS: dict[str, Any] = {"resultTypes": ["violations"]}
CHECKED = {"light": VIOLATIONS, "dark": VIOLATIONS | {"runOnly": ["color-contrast"]}}
"""By colour scheme, axe's options: in the dark only colours are others."""


def serious_findings(page: Any, scheme: str = "light") -> list[tuple[str, str]]:
    """(rule, element) of what axe finds serious or critical on the page as it is."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    return [
        (one["id"], str(node["target"]))
        for one in axe.run(page, options=CHECKED[scheme]).response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_screens__have_no_serious_finding_and_fit_the_window(
    browser: Any, running: Server, artifacts: Path
) -> None:
    random_sample.draw(DATASET, 4)
    context = browser.new_context()
    context.add_cookies([{"name": "auditor_reviewer", "value": "Ada", "url": running.url}])
    page = context.new_page()
    found, odd = [], {}
    for path in PAGES:
        open_page(page, running, f"{path}?{OLDER}")
        odd[path] = set(page.evaluate(TEXT_SIZES)) - SCALE
        for scheme in CHECKED:
            in_colours(page, scheme)
            for width, height in SIZES:
                page.set_viewport_size({"width": width, "height": height})
                page.wait_for_function(FITS, arg=width, timeout=WAIT_MS)
                still(page)
                page.screenshot(path=str(artifacts / f"{path or 'home'}-{scheme}-{width}x{height}.png"))
            found += [(path, scheme, *one) for one in serious_findings(page, scheme)]
    assert found == []
    assert not {path: sizes for path, sizes in odd.items() if sizes}
