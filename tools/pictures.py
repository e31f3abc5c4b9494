"""Take the pictures of every screen again: four sizes, light and dark; the best go into the documentation.

    python -m tools.pictures [--home FOLDER] [--dataset digits] [--masks NAME] [--numbers NAME]
        [--out build/pictures] [--sizes ...]

``--home`` is an ``AUDITOR_HOME`` with an audited dataset, and perhaps one of masks and one of numbers; it stays as
it is. Without it one is made (minutes): of real photos where they are (``tools.real_sets``), else of the digits of
``auditor demo``, some shapes and some ages. On a copy of it cards are settled for the moving picture. Chromium is
that of ``AUDITOR_CHROMIUM`` or the one installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import Image

from benchmarks import images
from tools import real_sets
from tools.pages import DOCS, ROOT

MASKS, NUMBERS = "masks", "numbers"
SCREENS = ("", "import", "audit", "verify", "suspects", MASKS, NUMBERS, "map", "classes", "engines", "export")
SIZES = ("1440x900", "1280x800", "1024x768", "390x844")
SCHEMES = ("light", "dark")
BEST = {
    "": "home",
    "audit": "audit",
    "verify": "verify",
    "map": "map",
    "engines": "engines",
}
"""Screens of the documentation, with the names of their files in ``docs/images``."""
MAKE_OTHERS = """
import pathlib, sys
from tests import masked, numbered
for maker in (masked, numbered):
    maker.make_home(pathlib.Path(sys.argv[1]) / maker.__name__)
"""
OTHERS = {MASKS: "shapes", NUMBERS: "ages"}
"""Screens of another kind of label, and what the datasets of ``MAKE_OTHERS`` are called."""
PAINT_MS = 2_500
"""Charts and pictures are painted some time after the page is said to be ready."""
WAIT_MS = 120_000
KEY_MS = 700
"""A key that comes as a card does counts for nothing."""
ALL = """(root, name) => [...root.querySelectorAll("*")].flatMap((one) => [
  ...(one.matches(name) ? [one] : []), ...(one.shadowRoot ? all(one.shadowRoot, name) : [])])"""
WHOLE = f"""() => {{ const all = {ALL};
  return all(document, "img").every((one) => one.complete || !one.getClientRects().length
    || one.getBoundingClientRect().top > innerHeight); }}"""
NEXT_CARD = f"""(before) => {{ const all = {ALL};
  return !all(document, ".picks").some((one) => one.dataset.samples === before); }}"""
FILM, FILM_SIZE, FILM_WIDTH, FILM_CARDS = "cards.webp", (1180, 780), 960, 5
"""The moving picture: its file, the window, its own width in pixels, and how many cards are settled."""
SEEN_MS, CLICKED_MS, END_MS = 1_900, 700, 2_600
"""How long a frame stands: a card, a click on it, the last one."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Serve the home, take the pictures, put the best beside the documentation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--dataset", default="digits")
    for kind in OTHERS:
        parser.add_argument(
            f"--{kind}", help=f"a dataset of {kind} in --home; without one that screen is left out"
        )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "pictures")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--no-docs", action="store_true", help="leave docs/images as it is")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        home = options.home or Path(temporary) / "home"
        environment = os.environ | {"AUDITOR_HOME": str(home.resolve())}
        if options.home is None and has_photos():
            subprocess.run([sys.executable, "-m", "tools.real_sets", str(home)], check=True, cwd=ROOT)
            vars(options).update(
                {MASKS: real_sets.STREET, NUMBERS: real_sets.ROAD, "dataset": real_sets.PHOTOS}
            )
        elif options.home is None:
            demo = [sys.executable, "-m", "auditor", "demo", "--no-app"]
            others = [sys.executable, "-c", MAKE_OTHERS, temporary]
            for command in (others, demo):  # the newest dataset stands first on Home
                subprocess.run(command, check=True, env=environment, cwd=ROOT)
            vars(options).update(OTHERS)
        datasets = {
            screen: vars(options)[screen] if screen in OTHERS else options.dataset for screen in SCREENS
        }
        with serving(environment) as url:
            take(url, datasets, options.out, options.sizes.split(","))
        copied = Path(temporary) / "copied"
        shutil.copytree(home, copied)
        with serving(environment | {"AUDITOR_HOME": str(copied)}) as url:
            film(url, options.dataset, truth_of(copied, options.dataset), options.out / FILM)
    if not options.no_docs:
        shutil.copy(options.out / FILM, DOCS / "images" / FILM)
        for screen, name in BEST.items():
            shutil.copy(
                options.out / f"{screen or 'home'}-1440x900-light.png", DOCS / "images" / f"{name}.png"
            )


@contextlib.contextmanager
def serving(environment: dict[str, str]) -> Iterator[str]:
    """The app's address while it runs on that environment's home."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(ROOT / "app" / "main.py"),
        "--server.port",
        str(port),
    ]
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as app:
        try:
            url, until = f"http://127.0.0.1:{port}", time.monotonic() + WAIT_MS / 1000
            while True:
                try:
                    urllib.request.urlopen(f"{url}/_stcore/health", timeout=10).close()
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.2)
            yield url
        finally:
            app.terminate()


def take(url: str, datasets: dict[str, str | None], folder: Path, sizes: list[str]) -> None:
    """One PNG a screen that has a dataset, size and scheme: ``SCREEN-SIZE-SCHEME.png``."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        for scheme in SCHEMES:
            context = browser.new_context(color_scheme=scheme)
            context.add_cookies([{"name": "auditor_reviewer", "value": "Ada", "url": url}])
            page = context.new_page()
            for screen, name in datasets.items():
                if name is None:
                    continue
                open_screen(page, f"{url}/{screen}?dataset={quote(name)}")
                for size in sizes:
                    width, height = (int(side) for side in size.split("x"))
                    page.set_viewport_size({"width": width, "height": height})
                    page.wait_for_timeout(PAINT_MS)
                    wait_for_pictures(page)
                    page.screenshot(path=str(folder / f"{screen or 'home'}-{size}-{scheme}.png"))
            context.close()
        browser.close()


def film(url: str, dataset: str, truth: Mapping[int, int], file: Path) -> None:
    """A moving picture of confusion cards: what does not belong is clicked away, and one key settles the rest."""
    from playwright.sync_api import sync_playwright

    frames: list[tuple[Image.Image, int]] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(viewport=dict(zip(("width", "height"), FILM_SIZE, strict=True)))
        context.add_cookies([{"name": "auditor_reviewer", "value": "Ada", "url": url}])
        page = context.new_page()

        def shot(milliseconds: int) -> None:
            seen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            height = round(FILM_WIDTH * seen.height / seen.width)
            frames.append((seen.resize((FILM_WIDTH, height), Image.Resampling.LANCZOS), milliseconds))

        open_screen(page, f"{url}/suspects?dataset={quote(dataset)}")
        for _ in range(FILM_CARDS):
            page.get_by_test_id("confusion").wait_for(timeout=WAIT_MS)
            wait_for_pictures(page)
            page.wait_for_timeout(KEY_MS)
            shot(SEEN_MS)
            key, tiles = "Enter", page.get_by_test_id("card-tile")
            shown = tiles.evaluate_all(
                "all => all.map(one => [one.dataset.sample, one.dataset.suggested].map(Number))"
            )
            wrong = [truth.get(sample, suggested) != suggested for sample, suggested in shown]
            if all(wrong):
                key = "q"  # keeps all
            for place in np.flatnonzero(wrong) if not all(wrong) else ():
                tiles.nth(place).click()
                shot(CLICKED_MS)
            card = page.locator(".picks").get_attribute("data-samples")
            page.keyboard.press(key)
            page.wait_for_function(NEXT_CARD, arg=card, timeout=WAIT_MS)
        wait_for_pictures(page)
        shot(END_MS)
        browser.close()
    first, *others = [one for one, _ in frames]
    durations = [milliseconds for _, milliseconds in frames]
    first.save(file, save_all=True, append_images=others, duration=durations, loop=0, quality=80, method=6)


def truth_of(home: Path, dataset: str) -> dict[int, int]:
    """The right class by sample where the dataset knows it: who films clicks as one who sees it."""
    os.environ["AUDITOR_HOME"] = str(home)
    from auditor.catalog import reading
    from auditor.pictures import cache

    labels = cache.true_labels(reading.dataset(dataset))
    return {} if labels is None else dict(enumerate(labels.tolist()))


def has_photos() -> bool:
    """Say whether the real pictures of the benchmarks are here."""
    try:
        return (images.folder() / "clothing").is_dir()
    except FileNotFoundError:
        return False


def chromium() -> str:
    """The browser's program."""
    return os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"


def wait_for_pictures(page: Any) -> None:
    """Until every picture in view is whole."""
    page.wait_for_function(WHOLE, timeout=WAIT_MS)


def open_screen(page: Any, address: str) -> None:
    """Go there and wait until the page has run."""
    page.goto(address, timeout=WAIT_MS)
    page.get_by_test_id("stHeading").first.wait_for(timeout=WAIT_MS)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')", timeout=WAIT_MS)


if __name__ == "__main__":
    main()
