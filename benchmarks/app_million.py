"""A million samples in the app: server time of Suspects' pages, of a card and of a verdict, and the app's memory.

    python -m benchmarks.app_million [--samples 1000000] [--postgres] [--side 28] [--home FOLDER] [--out FILE]

The catalog is made by this script: a million sample rows with images of ``--side`` pixels in the cache, and the
arrays of two engines with the features of a small network, which are settled as after every audit; a fifth of the
samples stands in groups of one picture. What the images show does not matter here; they differ from each other so
that no cache helps. The catalog is SQLite, or with ``--postgres`` a PostgreSQL of its own beside the home.
With ``--home`` an earlier catalog of the same size is used again, and one that was not made to the end is made on.
Times are the server's: the app runs as a process of its own and answers over HTTP on the loopback device; the page
itself is run by Streamlit's script runner. ``load_before`` says how much other work shared the machine.
``settling`` is what the consensus and its rows took in a process of its own, ``peak_mb`` the most memory it held.
``benchmarks/results/app_million.json`` has one row a catalog and number of samples.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks import private_postgres

ROOT = Path(__file__).resolve().parent.parent
CLASSES = [f"class {i}" for i in range(10)]
ENGINES = ("cross_entropy", "coteaching")
SIDE, FEATURES, EPOCHS = 28, 128, 10
WRONG = 0.05
COPIES = 3
"""Samples of a group that share their picture."""
DIFFER = 200
CHUNK = 50_000
PAGE = 60
REPEATS = 9
PAGE_LIMIT_S, MEMORY_LIMIT_MB = 0.1, 1024
SCREENS = ("suspects", "home", "verify", "map", "export", "audit", "engines", "classes")
"""Those that every reviewer opens come first."""


def main() -> None:
    """Make the catalog, measure, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--side", type=int, default=SIDE)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "app_million.json")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        home = options.home or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["AUDITOR_HOME"] = str(home)
        server = None
        if options.postgres:
            rows = home.with_name(f"{home.name}-postgres")
            if options.home is None:
                stack.callback(shutil.rmtree, rows)
            server = stack.enter_context(private_postgres.running(rows))
            os.environ["AUDITOR_DATABASE_URL"] = server
        made = make(options.samples, side=options.side, num_features=options.features)
        figures = {
            "samples": options.samples,
            "side": options.side,
            "features": options.features,
            "made": made,
            "machine": machine(),
            "database": database(server, home),
            **measure(options.samples),
        }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    stored = json.loads(options.out.read_text()) if options.out.exists() else {}
    stored[f"{'postgresql' if options.postgres else 'sqlite'} {options.samples}"] = figures
    options.out.write_text(json.dumps(stored, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


def database(server: str | None, home: Path) -> dict[str, Any]:
    """Which it is, and its megabytes with indexes."""
    if server is None:
        return {"name": "SQLite", "mb": round((home / "catalog.db").stat().st_size / 2**20)}
    from sqlalchemy import create_engine, text

    with create_engine(server).connect() as connection:
        size = int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
        name = str(connection.execute(text("SHOW server_version")).scalar_one())
    return {"name": f"PostgreSQL {name}", "mb": round(size / 2**20)}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    packages = ("streamlit", "starlette", "sqlalchemy", "pandas", "numpy")
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": psutil.cpu_count(),
        "load_before": [round(one, 1) for one in os.getloadavg()],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def make(num_samples: int, *, side: int = SIDE, num_features: int = FEATURES) -> dict[str, Any]:
    """Fill an empty home through the catalog's own functions, or go on where an earlier call was stopped.

    Returns seconds by step, and the settling's peak memory in MB.
    """
    from auditor.ground.settings import settings

    settings().make_home()
    note = settings().home / "made.json"
    made: dict[str, Any] = json.loads(note.read_text()) if note.exists() else {}
    steps: dict[str, Callable[[], Any]] = {
        "rows": lambda: _make_rows(num_samples, side),
        "images": lambda: _make_images(num_samples, side),
        "arrays": lambda: _make_arrays(num_samples, num_features),
        "settling": _settle_apart,
    }
    for name, step in steps.items():
        if name in made:
            continue
        began = time.perf_counter()
        more = step() or {}
        made[name] = {"seconds": round(time.perf_counter() - began, 1), **more}
        note.write_text(json.dumps(made))
        print(time.strftime("%H:%M:%S"), name, made[name], file=sys.stderr, flush=True)
    return made


def _given(num_samples: int) -> Any:
    """Labels at random; copies have one label, but for every ``DIFFER``-th group of them."""
    labels = np.random.default_rng(0).integers(0, len(CLASSES), num_samples)
    group = np.arange(num_samples) // COPIES
    is_copy = (np.arange(num_samples) % (5 * COPIES) < COPIES) & (group // 5 % DIFFER > 0)
    return np.where(is_copy, labels[group * COPIES], labels)


def _make_rows(num_samples: int, side: int) -> None:
    from auditor.catalog import audits, datasets
    from auditor.catalog.db import session
    from auditor.catalog.records import NewAudit, NewDataset, NewEngineRun, now
    from auditor.ground.settings import settings

    with session() as open_session:
        dataset = NewDataset(
            name="million", source="made by a script", source_kind="folder", root=str(settings().home),
            num_samples=num_samples, channels=1, height=side, width=side, class_names=CLASSES,
        )  # fmt: skip
        dataset_id = datasets.create(open_session, dataset, _sample_rows(_given(num_samples), side))
        audit = NewAudit(
            dataset_id=dataset_id, status="finished", preset="standard", device="cuda", seed=0,
            engines=list(ENGINES), started_at=now(), finished_at=now(),
        )  # fmt: skip
        runs = [NewEngineRun(engine=name, status="finished", progress=1.0) for name in ENGINES]
        audits.create(open_session, audit, runs)


def _make_images(num_samples: int, side: int) -> None:
    from auditor.ground.settings import settings

    generator = np.random.default_rng(1)
    folder = settings().dataset_folder(1)
    folder.mkdir(parents=True, exist_ok=True)
    shape = (num_samples, 1, side, side)
    cache = np.lib.format.open_memmap(folder / f"images_{side}x{side}x1.npy", "w+", np.uint8, shape)
    for start in range(0, num_samples, CHUNK):
        part = cache[start : start + CHUNK]
        part[:] = generator.integers(0, 256, part.shape, dtype=np.uint8)
    cache.flush()


def _settle_apart() -> dict[str, Any]:
    """Settle in a process of its own, which holds nothing else."""
    lines = (
        "from auditor.results import settle",
        "from benchmarks.app_million import peak_mb",
        "settle.settle(1)",
        "print(peak_mb())",
    )
    said = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], check=True, stdout=subprocess.PIPE, cwd=ROOT
    )
    return {"peak_mb": int(said.stdout)}


def peak_mb() -> int:
    """The most that this process ever held, with the pages of files that it looked at.

    Not ``ru_maxrss``: a new process begins with that of the one that started it.
    """
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 2**10


def _sample_rows(given: Any, side: int) -> Iterator[dict[str, Any]]:
    for i, label in enumerate(given.tolist()):
        path = f"{i // 1000:04d}/{i:07d}.png"
        group = i // COPIES if i % (5 * COPIES) < COPIES else None
        yield {
            "sample_id": i,
            "filepath": path,
            "location": path,
            "given_label": label,
            "original_height": side,
            "original_width": side,
            "duplicate_group": group,
            "duplicate_kind": None if group is None else "exact",
        }


def _make_arrays(num_samples: int, num_features: int) -> None:
    from auditor.ground.settings import settings
    from auditor.results import arrays
    from auditor.work import kinds, tasks

    audit_id, given, generator = 1, _given(num_samples), np.random.default_rng(2)
    is_wrong = generator.random(num_samples) < WRONG
    seen = np.where(
        is_wrong, (given + generator.integers(1, len(CLASSES), num_samples)) % len(CLASSES), given
    )
    settings().audit_folder(audit_id).mkdir(parents=True, exist_ok=True)
    np.savez(
        settings().audit_folder(audit_id) / "inputs.npz",
        labels=given,
        trusted=np.zeros(num_samples, np.bool_),
    )
    for engine in ENGINES:
        # No neighbours are sought here: which they are does not matter to the app, and it takes the audit minutes.
        neighbours = generator.integers(0, num_samples, (num_samples, kinds.NUM_NEIGHBOURS), dtype=np.int32)
        probs = generator.random((num_samples, len(CLASSES)), dtype=np.float32)
        probs[np.arange(num_samples), seen] += 4 * generator.random(num_samples, dtype=np.float32)
        probs /= probs.sum(axis=1, keepdims=True)
        doubt = probs.max(axis=1) - probs[np.arange(num_samples), given]
        trust = np.empty(num_samples, np.float32)
        trust[np.argsort(-doubt, kind="stable")] = np.arange(num_samples) / max(1, num_samples - 1)
        tasks.store_arrays(
            arrays.engine_folder(audit_id, engine),
            {
                "pred_probs": probs,
                "trust_score": trust,
                "embeddings": generator.standard_normal((num_samples, num_features), dtype=np.float32),
                "map": generator.standard_normal((num_samples, 2), dtype=np.float32),
                "neighbours": neighbours,
                "signal_loss": trust,
                "history_loss": generator.random((EPOCHS, num_samples), dtype=np.float32).astype(np.float16),
            },
        )
        told = {"provenance": {"is_out_of_sample": True}}  # so that they are pooled, and verdicts rank anew
        (arrays.engine_folder(audit_id, engine) / "result.json").write_text(json.dumps(told))
        about = {
            "title": engine,
            "paper": "",
            "signals": {"loss": {"title": "loss", "meaning": "", "high_means": "suspect"}},
        }
        (settings().audit_folder(audit_id) / f"{engine}.json").write_text(json.dumps(about))


def measure(num_samples: int) -> dict[str, Any]:
    """Run the app on the home and time what a reviewer asks of it."""
    with serving() as (url, server):
        process = psutil.Process(server.pid)
        figures: dict[str, Any] = {"seconds": App(url, process, num_samples).figures()}
        figures["memory_mb"] = {
            "resident": round(process.memory_info().rss / 2**20),
            "own": round(process.memory_full_info().uss / 2**20),
        }
    lines = "import json; from benchmarks import app_million; print(json.dumps(app_million.screens()))"
    said = subprocess.run([sys.executable, "-c", lines], check=True, stdout=subprocess.PIPE, cwd=ROOT)
    figures["screens"] = json.loads(said.stdout)
    largest = max(figures["memory_mb"]["resident"], figures["screens"]["peak_mb"])
    pages = [one for name, one in figures["seconds"].items() if "page" in name]
    figures["holds"] = {
        f"every page under {PAGE_LIMIT_S} s": max(one["median"] for one in pages) < PAGE_LIMIT_S,
        f"memory under {MEMORY_LIMIT_MB} MB": largest < MEMORY_LIMIT_MB,
    }
    return figures


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The app on the home that ``AUDITOR_HOME`` names, from when it answers: its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = str(ROOT / "app" / "main.py")
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
            while time.monotonic() < until:
                try:
                    urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.2)
            yield url, server
        finally:
            server.terminate()


class App:
    """The running app, asked as its components ask it."""

    def __init__(self, url: str, process: psutil.Process, num_samples: int) -> None:
        self.url, self.process, self.num_samples = url, process, num_samples
        from app.session import access

        self.token = access.token()

    def post(self, path: str, **body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}/bench/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "X-Auditor-Token": self.token},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def image(self, sample: int) -> None:
        with urllib.request.urlopen(f"{self.url}/bench/image/1/{sample}?size=128&t={self.token}") as answer:
            answer.read()

    def map(self) -> None:
        with urllib.request.urlopen(f"{self.url}/bench/map/1/{ENGINES[0]}?t={self.token}") as answer:
            answer.read()

    def figures(self) -> dict[str, Any]:
        """Median and worst seconds of each request; the first call of a kind is one of them."""
        queue = {"undecided": True}
        items = self.post("queue", audit=1, where=queue, limit=PAGE)["items"]
        ids = iter([item["sample"] for item in items])
        deep = iter(np.linspace(0, 0.99 * self.num_samples, REPEATS).astype(int).tolist())
        pages = iter(range(REPEATS))
        cards = iter([item["sample"] for item in items])
        copies = iter(range(0, 5 * COPIES * REPEATS, 5 * COPIES))
        pair, engine = {**queue, "given": 3, "suggested": 5}, {**queue, "engine": ENGINES[0]}

        corner = [[0.5, 0.5], [2.0, 0.5], [2.0, 2.0], [0.5, 2.0]]
        region = {**queue, "region": {"engine": ENGINES[0], "polygon": corner}}

        def next_page() -> None:
            self.post("queue", audit=1, where=queue, after=items[-1]["rank"] + PAGE * next(pages), limit=PAGE)

        def tiles() -> None:
            for item in items:
                self.image(item["sample"])

        def verdict() -> None:
            sample = next(ids)
            body = {"token": str(sample), "dataset": 1, "audit": 1, "sample": sample, "reviewer": "bench"}
            self.post("verdicts", verdicts=[{**body, "seen": None, "decision": "unsure", "label": None}])

        actions: dict[str, Callable[[], Any]] = {
            "first page": lambda: self.post("queue", audit=1, where=queue, limit=PAGE),
            "next page": next_page,
            "page anywhere in the list": lambda: self.post(
                "queue", audit=1, where=queue, after=next(deep), limit=PAGE
            ),
            "page of one class pair": lambda: self.post("queue", audit=1, where=pair, limit=PAGE),
            "page of one engine": lambda: self.post("queue", audit=1, where=engine, limit=PAGE),
            "page of a region": lambda: self.post("queue", audit=1, where=region, limit=PAGE),
            "count of the queue": lambda: self.post("queue-size", audit=1, where=queue),
            "count of a region": lambda: self.post("queue-size", audit=1, where=region),
            "map": self.map,
            "60 thumbnails": tiles,
            "verdict": verdict,
            "card": lambda: self.post("card", audit=1, sample=next(cards)),
            "card of a copy": lambda: self.post("card", audit=1, sample=next(copies)),
            "progress": lambda: self.post("progress", audit=1),
        }
        return {name: timed(action, self.process) for name, action in actions.items()}


def timed(action: Callable[[], Any], process: psutil.Process | None = None) -> dict[str, float]:
    """Median and worst wall seconds of some calls, and the processor seconds that the server spent on each."""
    seconds = []
    spent = _processor_seconds(process)
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    spent = (_processor_seconds(process) - spent) / REPEATS
    return {
        "median": round(statistics.median(seconds), 4),
        "worst": round(max(seconds), 4),
        "cpu": round(spent, 4),
    }


def _processor_seconds(process: psutil.Process | None) -> float:
    times = (process or psutil.Process()).cpu_times()
    return float(times.user + times.system)


def screens() -> dict[str, Any]:
    """Seconds that the script of each screen takes, first and later (caches filled), and the most memory by then.

    One process opens them one after the other, as one server does.
    """
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "app" / "frame.py"), default_timeout=600)
    app.session_state["reviewer"] = "bench"
    app.run()
    found: dict[str, Any] = {"seconds": {}}
    for name in SCREENS:
        app.switch_page(f"screens/{name}.py")
        began = time.perf_counter()
        app.run()
        first = time.perf_counter() - began
        if app.exception:
            raise RuntimeError(f"{name}: {app.exception[0].value}")
        peak = peak_mb()
        found["seconds"][name] = {"first": round(first, 3), "later": timed(app.run), "peak_mb": peak}
    found["peak_mb"] = peak
    return found


if __name__ == "__main__":
    main()
