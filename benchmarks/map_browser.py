"""Is the map of 100,000 points fluid? Seconds to its first picture, milliseconds a frame, seconds to a region.

    python -m benchmarks.map_browser [--samples 100000] [--out FILE]

The real app and a real Chromium without a GPU, on the catalog of ``app_million``. A frame is one step of the wheel
or of a drag: from the event to the end of the browser's next painted frame. A region is drawn as a lasso around a
third of the points; its seconds run until its images stand below the map.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import app_million

CHROMIUM = os.environ.get("AUDITOR_CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FRAMES = 40
WAIT_MS = 120_000
FRAME_TIMES = """(canvas, [kind, steps]) => new Promise((resolve) => {
  const box = canvas.getBoundingClientRect();
  const times = [];
  const at = (i) => ({ clientX: box.left + box.width * (0.45 + 0.1 * Math.sin(i / 5)),
                       clientY: box.top + box.height * (0.45 + 0.1 * Math.cos(i / 5)),
                       bubbles: true, pointerId: 1 });
  if (kind === 'pan') canvas.setPointerCapture = () => {};
  if (kind === 'pan') canvas.dispatchEvent(new PointerEvent('pointerdown', { ...at(0), shiftKey: true }));
  const step = (i) => {
    if (i === steps) {
      if (kind === 'pan') canvas.dispatchEvent(new PointerEvent('pointerup', at(i)));
      resolve(times);
      return;
    }
    const began = performance.now();
    if (kind === 'zoom') canvas.dispatchEvent(new WheelEvent('wheel', { ...at(i), deltaY: i % 2 ? 90 : -90 }));
    else canvas.dispatchEvent(new PointerEvent('pointermove', at(i)));
    requestAnimationFrame(() => setTimeout(() => { times.push(performance.now() - began); step(i + 1); }, 0));
  };
  step(0);
})"""


def main() -> None:
    """Make the catalog, measure, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "map_browser.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["AUDITOR_HOME"] = home
        app_million.make(options.samples)
        figures = {"samples": options.samples, "machine": app_million.machine(), **measure()}
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


def measure() -> dict[str, Any]:
    """Serve the home and look at the map as a person does."""
    from playwright.sync_api import sync_playwright

    with app_million.serving() as (url, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        figures = _look(browser, url)
        figures["chromium"] = browser.version
        browser.close()
    return figures


def _look(browser: Any, url: str) -> dict[str, Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": "auditor_reviewer", "value": "bench", "url": url}])
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    sent = {"bytes": 0}
    page.on(
        "response", lambda answer: sent.update(bytes=_size(answer)) if "/bench/map/" in answer.url else None
    )
    seconds = []
    for _ in range(2):  # the first visit fills the server's caches
        began = time.perf_counter()
        page.goto(f"{url}/map?dataset=million")
        page.locator(".map[data-state=ready]").wait_for()
        seconds.append(round(time.perf_counter() - began, 2))
    frames = {
        kind: _times(page.get_by_test_id("map").evaluate(FRAME_TIMES, [kind, FRAMES]))
        for kind in ("zoom", "pan")
    }
    page.keyboard.press("h")
    region, counted = _lasso(page)
    return {
        "seconds_to_the_first_picture": {"first visit": seconds[0], "again": seconds[1]},
        "map_bytes": sent["bytes"],
        "milliseconds_a_frame": frames,
        "seconds_from_lasso_to_images": region,
        "samples_in_the_lasso": counted,
    }


def _size(answer: Any) -> int:
    return int(answer.headers.get("content-length", 0))


def _times(times: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(times), 1), "worst": round(max(times), 1)}


def _lasso(page: Any) -> tuple[float, str]:
    box = page.get_by_test_id("map").bounding_box()
    x, y, radius = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["height"] * 0.12
    page.mouse.move(x + radius, y)
    page.mouse.down()
    for step in range(1, 25):
        angle = step / 24 * 2 * math.pi
        page.mouse.move(x + radius * math.cos(angle), y + radius * math.sin(angle))
    page.mouse.up()
    began = time.perf_counter()
    # Suspects stood beside the map before: what counts is that as many pictures wait there as the region holds.
    number = page.get_by_role("heading", name="in the region").inner_text().split()[0]
    page.locator(".figure", has_text=f"{number}not checked").wait_for()
    page.get_by_test_id("tile").first.wait_for()
    return round(time.perf_counter() - began, 2), page.get_by_test_id("map-status").inner_text()


if __name__ == "__main__":
    main()
