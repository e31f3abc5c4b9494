"""What a person waits for in the app, by a real browser: first useful paint, bytes a page, key to picture.

    python -m benchmarks.app_pages [--catalogs 1800,50000,1000000,photos,masks,numbers] [--home FOLDER] [--out FILE]

Catalogs with a number are those of ``app_million``: pictures of 28 pixels that were never on a disk. ``photos`` are
those of ``tools.real_sets``, audited by the defaults; ``masks`` and
``numbers`` are those of the tests. They are made anew or taken from ``FOLDER/CATALOG``; the JSON keeps what it says
of other catalogs. Each screen is opened three times in a window of its own on a warm server, from another screen,
so Streamlit's scripts and fonts are there (``screens``); and once as the first page that a browser ever shows
(``first_visit``), with the bytes by kind. "Useful" is when what the screen is for stands there: a card, a map.
Bytes are all that come until the page is quiet. ``fast_hand`` is a hand that
begins as soon as the first picture stands there, a key every ``GAPS_MS``: milliseconds to the next picture, and how
long the request took that ranked the rest anew. ``other_tab`` is how long a verdict takes to its mark
in another tab. ``load_before`` and ``load_after`` say how much other work shared the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks import app_million
from benchmarks.backbones import commit
from tests import masked, numbered
from tools import real_sets
from tools.pictures import FLAGS, MASKS, NUMBERS, OTHERS

USEFUL = {
    "": "[class*=st-key-pictures_] img",
    "import": "[data-testid=stFileUploader]",
    "audit": ".st-key-audit_next",
    "verify": ".st-key-verify_draw, .st-key-verify_next",
    "suspects": "[data-testid=exemplars], [data-testid=confusion]",
    "map": ".map[data-state=ready]",
    "classes": ".st-key-classes_matrix",
    "engines": ".st-key-engines_parted img",
    "export": ".st-key-export_csv",
}
"""By screen, what has to stand there."""
OF_OTHERS = {MASKS: "[data-testid=mask]", NUMBERS: "[data-testid=picture]"}
"""The same of screens for another kind of label."""
PHOTOS = "photos"
KEYS = 12
GAPS_MS, FAST_KEYS, DECISIONS = (150, 500), 40, 10
QUIET_MS, QUIET_BYTES, MOST_WAITS = 2_000, 4_000, 15
"""Pictures come after the page is useful: until so few bytes come in that time."""
PAINT_LIMIT_S, BYTES_LIMIT = 1.0, 1_000_000

TO_PICTURE = """async (gaps) => {
    const find = (root) => {
        for (const one of root.querySelectorAll('*')) {
            if (one.dataset && one.dataset.testid === 'picture') return one;
            const inside = one.shadowRoot && find(one.shadowRoot);
            if (inside) return inside;
        }
        return null;
    };
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const taken = [];
    for (const gap of gaps) {
        const before = find(document).src, began = performance.now();
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'q', bubbles: true }));
        for (let image; !image || image.src === before || !image.complete || !image.naturalWidth; await frame()) {
            image = find(document);
        }
        taken.push(performance.now() - began);
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, gap - taken.at(-1))));
    }
    return taken;
}"""
"""Milliseconds from each of the keys, so far apart, until the next sample's picture is painted."""


def main() -> None:
    """Make or take the catalogs, measure, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--catalogs", default=f"1800,50000,1000000,{PHOTOS},{MASKS},{NUMBERS}")
    parser.add_argument("--home", type=Path)
    parser.add_argument(
        "--keys-only", action="store_true", help="only what keys bring; figures of screens stay as they are"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "app_pages.json")
    options = parser.parse_args()
    figures: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.catalogs.split(","):
            home = (options.home or Path(temporary)) / name
            os.environ["AUDITOR_HOME"] = str(home)
            dataset, useful = catalog(name, home)
            machine = app_million.machine() | {"commit": commit()}
            with app_million.serving() as (url, _):
                found = measure(url, dataset, useful, screens=not options.keys_only)
            machine["load_after"] = [round(one, 1) for one in os.getloadavg()]
            before = figures.get(name, {}) if options.keys_only else {}
            if "screens" in before:  # of an earlier run: its machine stays beside it
                machine["screens"] = before["machine"].get("screens", before["machine"])
            figures[name] = before | {"machine": machine, **found}
            figures[name]["holds"] = holds(figures[name])
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


def catalog(name: str, home: Path) -> tuple[str, dict[str, str]]:
    """Make it where it is not there yet; its dataset, and the screens to look at with what has to stand there."""
    if name.isdigit():
        app_million.make(int(name))
        return "million", USEFUL
    makers: dict[str, Callable[[], object]] = {
        PHOTOS: lambda: real_sets.photos(home),
        MASKS: lambda: masked.make_home(home / "made"),
        NUMBERS: lambda: numbered.make_home(home / "made"),
    }
    if not (home / "catalog.db").exists():
        (home / "made").mkdir(parents=True)
        makers[name]()
    return (real_sets.PHOTOS, USEFUL) if name == PHOTOS else (OTHERS[name], {name: OF_OTHERS[name]})


def measure(url: str, dataset: str, useful: dict[str, str], *, screens: bool = True) -> dict[str, Any]:
    """Seconds and bytes by screen where they are asked for, and what keys bring on the screen of suspects."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    found: dict[str, Any] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in useful if screens else useful.keys() & {"suspects"}:  # warms the server
            first_visit(browser, url, dataset, name, useful[name])
        if screens:
            found["screens"] = {
                name or "home": screen(browser, url, dataset, name, useful[name]) for name in useful
            }
            found["first_visit"] = {
                name or "home": first_visit(browser, url, dataset, name, useful[name]) for name in useful
            }
        if "suspects" in useful:
            found["key_to_next_picture_ms"] = key_to_picture(browser, url, dataset)
            found["fast_hand"] = fast_hand(browser, url, dataset)
            found["other_tab_ms"] = other_tab(browser, url, dataset)
        browser.close()
    return found


def holds(found: dict[str, Any]) -> dict[str, bool]:
    """Which of the goals are met, of those that were measured."""
    said: dict[str, bool] = {}
    if "screens" in found:
        ours, cold = found["screens"].values(), found["first_visit"].values()
        said[f"first useful paint under {PAINT_LIMIT_S} s"] = all(
            one["seconds"] < PAINT_LIMIT_S for one in ours
        )
        said[f"at most {BYTES_LIMIT:,} bytes of ours a page"] = all(
            one["bytes"] <= BYTES_LIMIT for one in ours
        )
        said[f"at most {BYTES_LIMIT:,} bytes at a first visit"] = all(
            sum(one["bytes"].values()) <= BYTES_LIMIT for one in cold
        )
    if "fast_hand" in found:
        said["a verdict's mark in another tab within a second"] = found["other_tab_ms"]["worst"] <= 1000
        ranked = found["fast_hand"]["ranked_anew_ms"]
        said["the rest ranked anew within a second"] = bool(ranked) and max(ranked) <= 1000
    return said


class Received:
    """Bytes that a page receives from now on, by kind: Script, Font, Image, Page (Streamlit's socket), others."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.kinds: dict[str, str] = {}
        self.bytes: Counter[str] = Counter()
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        network.on(
            "Network.responseReceived", lambda seen: self.kinds.update({seen["requestId"]: seen["type"]})
        )
        network.on("Network.loadingFinished", self._finished)
        network.on("Network.webSocketFrameReceived", self._frame)

    def wait(self) -> None:
        """Until hardly anything comes any more."""
        for _ in range(MOST_WAITS):
            before = self.bytes.total()
            self.page.wait_for_timeout(QUIET_MS)
            if self.bytes.total() - before < QUIET_BYTES:
                return

    def _finished(self, seen: Any) -> None:
        self.bytes[self.kinds.get(seen["requestId"], "Other")] += int(seen["encodedDataLength"])

    def _frame(self, seen: Any) -> None:
        self.bytes["Page"] += len(seen["response"]["payloadData"])


def new_page(browser: Any, url: str) -> Any:
    """A page of a browser that was never here, of a reviewer who has a name."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": "auditor_reviewer", "value": "bench", "url": url}])
    return context.new_page()


def first_visit(browser: Any, url: str, dataset: str, name: str, useful: str) -> dict[str, Any]:
    """Seconds until a screen is useful that a browser shows first, and the bytes that come for it by kind."""
    page = new_page(browser, url)
    received = Received(page)
    began = time.perf_counter()
    page.goto(f"{url}/{name}?dataset={quote(dataset)}")
    page.locator(useful).first.wait_for(timeout=120_000)
    seconds = time.perf_counter() - began
    received.wait()
    page.context.close()
    return {"seconds": round(seconds, 3), "bytes": dict(received.bytes)}


def screen(browser: Any, url: str, dataset: str, name: str, useful: str) -> dict[str, float]:
    """Medians of three looks."""
    looks = [look(browser, url, dataset, name, useful) for _ in range(3)]
    return {
        "seconds": round(statistics.median(one[0] for one in looks), 3),
        "bytes": statistics.median(one[1] for one in looks),
    }


def look(browser: Any, url: str, dataset: str, name: str, useful: str) -> tuple[float, int]:
    """Go to a screen from another as a person does; seconds until it is useful, and bytes that came for it."""
    page = new_page(browser, url)
    page.goto(f"{url}/{'import' if name != 'import' else ''}?dataset={quote(dataset)}")
    page.get_by_test_id("stHeading").first.wait_for(timeout=120_000)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=120_000)
    page.wait_for_timeout(1500)  # what the first page itself still loads is not counted
    received = Received(page)
    title = {"": "Home"}.get(name, name.title())
    began = time.perf_counter()
    page.locator(".st-key-screens").get_by_role("link", name=title).click()
    page.locator(useful).first.wait_for(timeout=120_000)
    seconds = time.perf_counter() - began
    received.wait()
    page.context.close()
    return seconds, received.bytes.total()


def one_by_one(browser: Any, url: str, dataset: str) -> Any:
    """Suspects with one sample after the other, as soon as the first picture stands there."""
    page = new_page(browser, url)
    page.goto(f"{url}/suspects?suspects_show=undecided&dataset={quote(dataset)}")
    page.locator("[data-testid=bench][data-state=ready]").wait_for(timeout=120_000)
    if page.get_by_test_id("confusion").count():
        page.keyboard.press("t")  # cards come first
    page.get_by_test_id("picture").wait_for(timeout=120_000)
    return page


def key_to_picture(browser: Any, url: str, dataset: str) -> dict[str, float]:
    """Milliseconds from a verdict's key until the next sample's picture is painted."""
    page = one_by_one(browser, url, dataset)
    page.wait_for_timeout(1500)
    taken = []
    for _ in range(KEYS):
        taken += page.evaluate(TO_PICTURE, [250])
    page.context.close()
    return {"median": round(statistics.median(taken), 1), "worst": round(max(taken), 1)}


def fast_hand(browser: Any, url: str, dataset: str) -> dict[str, Any]:
    """Milliseconds to the next picture of a fast hand, and of each request that ranked the rest anew."""
    page = one_by_one(browser, url, dataset)
    ranked: list[float] = []

    def look_at(request: Any) -> None:
        if request.url.endswith("/bench/progress") and request.response().json()["moved"] is not None:
            ranked.append(round(request.timing["responseEnd"], 1))

    page.on("requestfinished", look_at)
    chance = random.Random(0)
    taken = page.evaluate(TO_PICTURE, [chance.uniform(*GAPS_MS) for _ in range(FAST_KEYS)])
    page.wait_for_timeout(QUIET_MS)
    page.context.close()
    found = {
        "median": statistics.median(taken),
        "p95": statistics.quantiles(taken, n=20)[-1],
        "worst": max(taken),
    }
    return {name: round(one, 1) for name, one in found.items()} | {"ranked_anew_ms": ranked}


def other_tab(browser: Any, url: str, dataset: str) -> dict[str, float]:
    """Milliseconds from a verdict's key until its mark stands in another tab."""
    pages = [one_by_one(browser, url, dataset) for _ in range(2)]
    for page in pages:
        page.keyboard.press("g")
        page.get_by_test_id("tile").first.wait_for(timeout=120_000)
    pages[1].wait_for_timeout(QUIET_MS)
    theirs = set(pages[1].get_by_test_id("tile").evaluate_all("all => all.map((one) => one.dataset.sample)"))
    chance, taken = random.Random(0), []
    for _ in range(DECISIONS):
        cursor = pages[0].locator(".tile.cursor")
        sample = cursor.get_attribute("data-sample")
        began = time.perf_counter()
        pages[0].keyboard.press("q")
        if sample in theirs:
            pages[1].locator(f".tile[data-sample='{sample}']:not([data-decision=''])").wait_for(
                timeout=120_000
            )
            taken.append(1000 * (time.perf_counter() - began))
        pages[0].wait_for_timeout(chance.uniform(100, 1500))  # so that no rhythm of the tabs helps
    for page in pages:
        page.context.close()
    return {"median": round(statistics.median(taken), 1), "worst": round(max(taken), 1), "marks": len(taken)}


if __name__ == "__main__":
    main()
