"""Take the pictures of every screen again: four sizes, light and dark; the best go into the documentation.

    python -m tools.pictures [--home FOLDER] [--dataset digits] [--masks NAME] [--numbers NAME]
        [--out build/pictures] [--sizes ...]

``--home`` is an ``AUDITOR_HOME`` with an audited dataset, and perhaps one of masks and one of numbers; without it
the digits of ``auditor demo``, some shapes and some ages are made in a temporary one (minutes). Chromium is that of
``AUDITOR_CHROMIUM`` or the one installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.pages import DOCS, ROOT

MASKS, NUMBERS = "masks", "numbers"
SCREENS = ("", "import", "audit", "verify", "suspects", MASKS, NUMBERS, "map", "classes", "engines", "export")
SIZES = ("1440x900", "1280x800", "1024x768", "390x844")
SCHEMES = ("light", "dark")
BEST = {
    "": "home",
    "audit": "audit",
    "verify": "verify",
    "suspects": "suspects",
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
        if options.home is None:
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
    if not options.no_docs:
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
            url, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
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

    chromium = os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
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
                    page.screenshot(path=str(folder / f"{screen or 'home'}-{size}-{scheme}.png"))
            context.close()
        browser.close()


def open_screen(page: Any, address: str) -> None:
    """Go there and wait until the page has run."""
    page.goto(address)
    page.get_by_test_id("stHeading").first.wait_for(timeout=WAIT_MS)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')", timeout=WAIT_MS)


if __name__ == "__main__":
    main()
