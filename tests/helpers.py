"""Real handwritten digits as a user would have them, what makes an audit of them quick, and a browser."""

from __future__ import annotations

import csv
import http.server
import os
import random
import shutil
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from auditor.catalog.records import Draw
from auditor.review import blind, decisions, drawing

WAIT_S = 240.0
"""How long a test waits for a process: generous, because the machine that tests may be busy with other work."""
QUICK_OPTIONS = {
    "cross_entropy": {"epochs": 6, "network": "mlp", "views": 1},
}
"""Config fields that make an audit of a few hundred digits last a second or two."""


@dataclass(frozen=True)
class Digits:
    """A CSV of digit images with some wrong labels."""

    table: Path
    given_labels: NDArray[np.int64]
    true_labels: NDArray[np.int64]

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """(N,) bool."""
        return self.given_labels != self.true_labels


def write_digits(folder: Path, *, num: int = 300, num_wrong: int = 30, seed: int = 0) -> Digits:
    """Write ``num`` digits as PNG with ``digits.csv`` (filepath, label, batch); ``num_wrong`` labels are wrong."""
    pixels, truth = load_digits(return_X_y=True)
    pixels, truth = pixels[:num], truth[:num].astype(np.int64)
    generator = np.random.default_rng(seed)
    given = truth.copy()
    wrong = generator.choice(num, size=num_wrong, replace=False)
    given[wrong] = (truth[wrong] + generator.integers(1, 10, size=num_wrong)) % 10
    (folder / "images").mkdir(parents=True)
    with (folder / "digits.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filepath", "label", "batch"])
        for i in range(num):
            path = f"images/{i:04d}.png"
            grey = np.clip(pixels[i].reshape(8, 8) * 16, 0, 255).astype(np.uint8)
            Image.fromarray(grey).save(folder / path)
            writer.writerow([path, str(given[i]), f"=lot{i % 3}"])
    return Digits(folder / "digits.csv", given, truth)


def verify_truthfully(digits: Digits, size: int, *, seed: int = 0, purpose: str = "rate") -> Draw:
    """Draw ``size`` of the digits imported as "digits" and judge each by its true label."""
    draw = drawing.draw("digits", size, seed=seed, purpose=purpose)
    for sample_id in draw.sample_ids:
        label = int(digits.true_labels[sample_id])
        blind.record(draw.id, sample_id, "label", label=label, reviewer="ada")
    return draw


def decide_some(digits: Digits) -> None:
    """Verified rows to judge on, and every third wrong label outside of them corrected, as a comparison needs."""
    held = verify_truthfully(digits, 60).sample_ids
    for sample_id in [int(i) for i in np.flatnonzero(digits.is_wrong) if i not in held][::3]:
        label = int(digits.true_labels[sample_id])
        decisions.decide(1, sample_id, "relabel", label=label, reviewer="ada")


def free_port() -> int:
    """A port that nobody listens on.

    It is below those that the system hands out: no connection of another program gets it in between.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port between 20000 and 32000")


def wait_for_end(pid: int) -> None:
    """Wait until the process of that number has ended, whoever started it."""
    with suppress(psutil.NoSuchProcess):
        _, alive = psutil.wait_procs([psutil.Process(pid)], timeout=WAIT_S)
        assert not alive, f"process {pid} is still there"


def chromium() -> str:
    """Path of the Chromium to drive: ``AUDITOR_CHROMIUM`` or the one installed; skips where there is none."""
    path = os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    if not Path(path).exists():
        pytest.skip(f"no Chromium at {path}; install it or set AUDITOR_CHROMIUM")
    return path


def empty_site() -> http.server.ThreadingHTTPServer:
    """A server on another port of this machine that answers everything with an empty page."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html><body>another site</body></html>")

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def suggestions(page: pd.DataFrame) -> list[tuple[int, int]]:
    """The (sample_id, suggested label) of a page of ``scores.page`` that would change a label."""
    page = page[(page.suggested_label >= 0) & (page.suggested_label != page.given_label)]
    return list(zip(page.sample_id.tolist(), page.suggested_label.tolist(), strict=True))
