"""What a person waits for in the app, by a real browser: first useful paint, bytes a page, key to picture.

    python -m benchmarks.app_pages [--samples 1800,1000000] [--home FOLDER] [--out FILE]

The catalogs are those of ``app_million``, made anew or taken from ``FOLDER/SAMPLES``. Each screen is opened three
times in a window of its own on a warm server; "useful" is when what the screen is for stands there: a card, a map.
``load_before`` says how much other work shared the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import app_million
from tools.pictures import FLAGS

USEFUL = {
    "": ".st-key-top_bar",
    "import": "[data-testid=stFileUploader]",
    "audit": "[data-testid=stHeading] >> nth=1",
    "verify": ".st-key-verify_draw",
    "suspects": "[data-testid=exemplars]",
    "map": ".map[data-state=ready]",
    "classes": ".vega-embed",
    "engines": ".vega-embed",
    "export": ".st-key-export_csv",
}
"""By screen, what has to stand there."""
KEYS = 12
PAINT_LIMIT_S, BYTES_LIMIT = 1.0, 1_000_000


def main() -> None:
    """Make or take the catalogs, measure, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", default="1800,1000000")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "app_pages.json")
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine": app_million.machine(), "by_samples": {}}
    with tempfile.TemporaryDirectory() as temporary:
        for number in map(int, options.samples.split(",")):
            home = (options.home or Path(temporary)) / str(number)
            os.environ["AUDITOR_HOME"] = str(home)
            app_million.make(number)
            with app_million.serving() as (url, _):
                figures["by_samples"][str(number)] = measure(url)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


def measure(url: str) -> dict[str, Any]:
    """Seconds and bytes by screen, and the milliseconds from a key to the next picture."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        look(browser, url, "", USEFUL[""])  # warms the server
        screens = {name or "home": screen(browser, url, name) for name in USEFUL}
        keys = key_to_picture(browser, url)
        browser.close()
    return {
        "screens": screens,
        "key_to_next_picture_ms": keys,
        "holds": {
            f"first useful paint under {PAINT_LIMIT_S} s": all(
                one["seconds"] < PAINT_LIMIT_S for one in screens.values()
            ),
            f"at most {BYTES_LIMIT:,} bytes of ours a page": all(
                one["bytes"] <= BYTES_LIMIT for one in screens.values()
            ),
        },
    }


def screen(browser: Any, url: str, name: str) -> dict[str, float]:
    """Medians of three looks."""
    looks = [look(browser, url, name, USEFUL[name]) for _ in range(3)]
    return {
        "seconds": round(statistics.median(one[0] for one in looks), 3),
        "bytes": statistics.median(one[1] for one in looks),
    }


def look(browser: Any, url: str, name: str, useful: str) -> tuple[float, int]:
    """Go to a screen from Home as a person does; seconds until it is useful, and bytes that came for it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": "auditor_reviewer", "value": "bench", "url": url}])
    page = context.new_page()
    page.goto(f"{url}/import" if name != "import" else url)
    page.get_by_test_id("stHeading").first.wait_for(timeout=120_000)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=120_000)
    page.wait_for_timeout(1500)  # what the first page itself still loads is not counted
    received: list[int] = []
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda seen: received.append(int(seen["encodedDataLength"])))
    network.on(
        "Network.webSocketFrameReceived", lambda seen: received.append(len(seen["response"]["payloadData"]))
    )
    title = {"": "Home"}.get(name, name.title())
    began = time.perf_counter()
    page.locator(".st-key-screens").get_by_role("link", name=title).click()
    page.locator(useful).first.wait_for(timeout=120_000)
    seconds = time.perf_counter() - began
    page.wait_for_timeout(700)
    context.close()
    return seconds, sum(received)


def key_to_picture(browser: Any, url: str) -> dict[str, float]:
    """Milliseconds from a verdict's key until the next sample's picture is painted."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": "auditor_reviewer", "value": "bench", "url": url}])
    page = context.new_page()
    page.goto(f"{url}/suspects?suspects_show=undecided")
    page.get_by_test_id("exemplars").wait_for(timeout=120_000)
    page.wait_for_timeout(1500)
    measure_one = """() => new Promise((resolve) => {
        const find = (root) => {
            for (const one of root.querySelectorAll('*')) {
                if (one.dataset && one.dataset.testid === 'picture') return one;
                const inside = one.shadowRoot && find(one.shadowRoot);
                if (inside) return inside;
            }
            return null;
        };
        const before = find(document).src, began = performance.now();
        const done = () => resolve(performance.now() - began);
        const check = () => {
            const image = find(document);
            if (image && image.src !== before && image.complete && image.naturalWidth) done();
            else requestAnimationFrame(check);
        };
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'q', bubbles: true }));
        check();
    })"""
    taken = []
    for _ in range(KEYS):
        taken.append(page.evaluate(measure_one))
        page.wait_for_timeout(250)
    context.close()
    return {"median": round(statistics.median(taken), 1), "worst": round(max(taken), 1)}


if __name__ == "__main__":
    main()
