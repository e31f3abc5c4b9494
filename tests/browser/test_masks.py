"""Masks from the import to cleaned PNGs, in a real browser."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from app.server.masks import strongest_first
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.labels.masks import deciding
from auditor.review import decisions
from tests.browser.conftest import (
    WAIT_MS,
    Server,
    click_until,
    downloaded,
    open_page,
    settled,
    wait_until,
)
from tests.browser.test_axe import findings_at_every_size
from tests.forker import Forker
from tests.masked import SHAPES, WRONG, write_source

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of images with masks; in some a disc is wrong but for a stripe in its middle: two regions."""
    folder = write_source(tmp_path / "shapes")
    for number in WRONG:
        path = folder / f"masks/{number:03d}.png"
        given, disc = np.array(Image.open(path)), SHAPES.masks[number] == 1
        middle = round(np.nonzero(disc)[1].mean())
        given[:, middle - 1 : middle + 1][disc[:, middle - 1 : middle + 1]] = 1
        Image.fromarray(given).save(path)
    return folder


@pytest.fixture
def server(source: Path, home: Path, monkeypatch: pytest.MonkeyPatch, forker: Forker) -> Iterator[Server]:
    """The app on an empty home; it may read the folder."""
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(source))
    running = Server(home, forker)
    running.start()
    yield running
    running.kill()


def in_view(page: Any) -> int:
    """The sample that is reviewed."""
    return int(page.locator("[data-testid=mask]").get_attribute("data-sample", timeout=WAIT_MS))


def import_the_folder(page: Any, server: Server, source: Path) -> None:
    open_page(page, server, "import")
    page.get_by_role("tab", name="Path on this server").click()
    page.get_by_text("Settings", exact=True).click()
    folder = page.locator(".st-key-import_masks input")
    click_until(page.get_by_text("masks: a class for each pixel"), folder.is_enabled, "the choice of masks")
    settled(page)
    page.locator(".st-key-import_path input").fill(str(source))
    page.locator(".st-key-import_path input").press("Enter")
    page.get_by_text("pictures with masks").wait_for(timeout=WAIT_MS)
    settled(page)
    page.locator(".st-key-import_start button:enabled").click(timeout=WAIT_MS)


def audit(page: Any) -> int:
    """As the page offers it: the plain engine on the quick preset. Returns the audit's number."""
    # Beside another browser a single press brought nothing: twice of four.
    settled(page)
    start = page.locator(".st-key-audit_mask_start button:enabled")
    click_until(page.get_by_role("button", name="Start an audit"), start.is_visible, "the audit's page")
    start.click(timeout=WAIT_MS)
    page.get_by_text(re.compile("Audit 1|How the engines ran")).first.wait_for(timeout=WAIT_MS)

    def is_over() -> bool:
        with session() as open_session:
            return audits.get(open_session, 1).status not in ("queued", "running")

    wait_until(is_over, "the audit's end")
    return 1


def test_masks__from_the_import_to_cleaned_pngs(
    source: Path, server: Server, browser: Any, artifacts: Path
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    import_the_folder(page, server, source)
    audit_id = audit(page)
    with session() as open_session:
        dataset = datasets.get(open_session, "shapes")
    assert dataset.task == "segmentation"

    open_page(page, server, "masks?dataset=shapes")
    first = in_view(page)
    assert first in WRONG
    page.locator(".over.light").wait_for(timeout=WAIT_MS)  # one region in the light
    page.keyboard.press("h")
    page.locator(".over.light").wait_for(state="detached", timeout=WAIT_MS)
    page.keyboard.press("h")
    page.set_viewport_size({"width": 390, "height": 844})
    bar = page.get_by_role("toolbar", name="Verdict").bounding_box(timeout=WAIT_MS)
    assert bar is not None
    assert bar["y"] + bar["height"] <= 844, "the actions stay in view on a phone"
    buttons = page.get_by_role("toolbar", name="Verdict").locator("button:visible, summary:visible")
    wait_until(lambda: buttons.count() == 5, "three answers, undo, and one menu of the rest", page)
    page.set_viewport_size({"width": 1280, "height": 800})
    wait_until(lambda: buttons.count() > 5, "all buttons in a line", page)
    photo, close_up = (page.locator(one).bounding_box() for one in (".layers", "[data-testid=close-up]"))
    assert photo["width"] > 500
    assert close_up["width"] > 0.3 * photo["width"]
    page.locator("[data-layer=doubt]").wait_for(state="hidden", timeout=WAIT_MS)
    page.keyboard.press("d")
    page.keyboard.press("g")
    page.locator("[data-layer=doubt]").wait_for(timeout=WAIT_MS)
    page.get_by_role("list", name="Classes of this mask").wait_for(timeout=WAIT_MS)
    photo, classes = (page.locator(one).bounding_box() for one in (".layers", "img.over.given"))
    assert photo == classes, "the classes lie elsewhere than the photo"
    assert findings_at_every_size(page, "masks-of-shapes", artifacts) == []
    regions = strongest_first(deciding.regions_of(dataset, audit_id, first))
    for is_again in (False, True):
        page.keyboard.press("l")  # only the first is changed, to a class that nobody suggested
        search = page.get_by_role("textbox", name="Which class is this region?")
        if is_again:
            search.press("Enter")  # nothing is typed: nothing is chosen
            search.press(re.sub(r"\D", "", dataset.class_names[2]) or "3")
        else:
            search.fill(dataset.class_names[2])
            search.press("Enter")
        page.get_by_text("Region 2 of 2 ·").wait_for(timeout=WAIT_MS)
        if is_again:
            page.reload(timeout=WAIT_MS)  # what was said of a region stays until its mask is decided
            page.get_by_text("Region 2 of 2 ·").wait_for(timeout=WAIT_MS)
        settled(page)
        assert decisions.outcomes(dataset.id) == {}
        page.keyboard.press("q")
        page.get_by_test_id("masks-end").get_by_text("The one suspect mask is checked").wait_for(
            timeout=WAIT_MS
        )
        assert set(decisions.outcomes(dataset.id)) == {first}
        if not is_again:
            page.keyboard.press("z")
            page.locator(f"[data-testid=mask][data-sample='{first}']").wait_for(timeout=WAIT_MS)
            assert decisions.outcomes(dataset.id) == {}
    settled(page)
    page.get_by_test_id("masks-end").get_by_role("button", name="Export the cleaned masks").click()
    made = page.get_by_role("link", name="Download shapes-masks.zip")
    made.wait_for(timeout=WAIT_MS)
    cleaned = downloaded(page, made)
    settled(page)
    page.get_by_text("Checked", exact=True).click()
    page.get_by_role("button", name="Z Undo").wait_for(state="detached", timeout=WAIT_MS)
    page.get_by_role("button", name=re.compile(f"Sample {first}, region")).first.click(timeout=WAIT_MS)
    page.locator(f"[data-testid=mask][data-sample='{first}'][data-decision=relabel]").wait_for(
        timeout=WAIT_MS
    )
    settled(page)
    page.keyboard.press("ArrowRight")  # no other: it stays
    page.get_by_text("changed by", exact=False).wait_for(timeout=WAIT_MS)
    page.get_by_text("Random sample", exact=True).click()
    page.get_by_role("button", name="Start").wait_for(timeout=WAIT_MS)
    second = (first + 1) % dataset.num_samples
    with zipfile.ZipFile(cleaned) as packed:
        after = np.asarray(Image.open(io.BytesIO(packed.read(f"masks/{first:03d}.png"))))
        other = packed.read(f"masks/{second:03d}.png")
    before = np.asarray(Image.open(source / f"masks/{first:03d}.png"))
    assert ((before != after) == regions[0].pixels).all()
    assert (after[regions[0].pixels] == 2).all()
    assert other == (source / f"masks/{second:03d}.png").read_bytes()
