"""How long a push of 50,000 samples to FiftyOne takes: new, again, and its pull.

The images are one real digit, linked 50,000 times; five engines' scores are random, since only their number
counts here. FiftyOne, its MongoDB and every request are real.

    python -m benchmarks.fiftyone_push --samples 50000 --out benchmarks/results/fiftyone_push.json
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

NUM_CLASSES = 10
SIGNALS = {
    "cross_entropy": ["loss", "margin"],
    "coteaching": ["selected"],
    "umn": ["epsilon"],
    "l2b": ["alpha", "beta"],
    "choicenet": ["rho"],
}


def main() -> None:
    """Build the home, push twice, pull, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fiftyone_push.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["AUDITOR_HOME"] = f"{place}/home"
        # FiftyOne's own service, in a folder that is thrown away: nothing lands in the user's database.
        os.environ.pop("FIFTYONE_DATABASE_URI", None)
        os.environ["FIFTYONE_CONFIG_PATH"] = f"{place}/none.json"
        os.environ["FIFTYONE_DATABASE_DIR"] = f"{place}/db"
        measured = _measure(Path(place), arguments.samples)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(measured, indent=2) + "\n")
    print(json.dumps(measured, indent=2))


def _measure(place: Path, num: int) -> dict[str, Any]:
    from auditor.bridges import fiftyone_door
    from auditor.fiftyone_bridge import sync
    from auditor.ground.progress import Progress

    build(place, num)
    seconds: dict[str, float] = {}
    stages: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        began, cpu = time.monotonic(), time.process_time()
        result = work()
        seconds[name] = round(time.monotonic() - began, 2)
        seconds[f"{name}_cpu_of_this_process"] = round(time.process_time() - cpu, 2)
        return result

    def watch(step: Progress) -> None:
        stages.setdefault(step.stage, round(time.monotonic() - began, 2))

    timed("start_mongodb_and_fiftyone", fiftyone_door.connect)
    began = time.monotonic()
    first = timed("push_new", lambda: sync.push_audit("bench", progress=watch))
    second = timed("push_again", lambda: sync.push_audit("bench"))
    target = sync.open_pushed("bench")
    target.match({"sample_index": {"$lt": 1000}}).tag_samples("exclude")
    pulled = timed("pull_1000_of_them", lambda: sync.pull_decisions("bench", reviewer="bench"))
    timed("pull_nothing_new", lambda: sync.pull_decisions("bench", reviewer="bench"))
    assert (first.num_added, second.num_added, len(target)) == (num, 0, num)
    assert pulled.counts == {"exclude": 1000}
    packages = ("fiftyone", "fiftyone-brain", "pymongo", "numpy", "scikit-learn")
    return {
        "num_samples": num,
        "seconds": seconds,
        "stage_of_push_new_began_at": stages,
        "load_average_at_the_end": [round(value, 1) for value in os.getloadavg()],
        "cpus": os.cpu_count(),
        "device": f"{platform.machine()} CPU, {_cpu_name()}",
        "versions": {name: importlib.metadata.version(name) for name in packages}
        | {"python": platform.python_version(), "mongodb": _mongodb_version()},
    }


def _mongodb_version() -> str:
    from fiftyone.core.odm import get_db_conn

    return str(get_db_conn().client.server_info()["version"])


def build(place: Path, num: int) -> None:
    """A home with one dataset of ``num`` samples and a finished audit by five engines."""
    from auditor.catalog import audits, datasets, scores
    from auditor.catalog.db import session
    from auditor.catalog.records import NewAudit, NewDataset, NewEngineRun
    from auditor.pictures.decoding import decode
    from auditor.results import arrays as results
    from auditor.work import tasks

    names = [f"{i:06d}.png" for i in range(num)]
    _link_images(place / "images", names)
    picture = decode((place / "images" / names[0]).read_bytes(), size=8, channels=1).content_hash.hex()
    generator = np.random.default_rng(0)
    given = generator.integers(0, NUM_CLASSES, num)
    with session() as open_session:
        dataset = NewDataset(
            name="bench",
            source=str(place / "images"),
            source_kind="folder",
            root=str(place / "images"),
            num_samples=num,
            channels=1,
            height=8,
            width=8,
            class_names=[str(label) for label in range(NUM_CLASSES)],
        )
        rows = (
            {
                "sample_id": i,
                "filepath": name,
                "location": name,
                "given_label": int(given[i]),
                "content_hash": picture,
            }
            for i, name in enumerate(names)
        )
        dataset_id = datasets.create(open_session, dataset, rows)
        audit = NewAudit(
            dataset_id=dataset_id,
            preset="quick",
            device="cpu",
            seed=0,
            engines=list(SIGNALS),
            status="finished",
        )
        runs = [NewEngineRun(engine=engine, status="finished") for engine in SIGNALS]
        audit_id = audits.create(open_session, audit, runs)
        trust = generator.random(num)
        rank = np.empty(num, dtype=np.int64)
        rank[np.argsort(trust)] = np.arange(num)
        columns = {
            "rank": rank,
            "given_label": given,
            "trust_score": trust,
            "error_probability": 1 - trust,
            "is_label_issue": trust < 0.08,
            "suggested_label": (given + 1) % NUM_CLASSES,
            "suggested_probability": generator.random(num),
            "agreement": generator.integers(0, 5, num),
            "disagreement": generator.random(num),
        }
        scores.store(open_session, audit_id, columns)
    for engine, signals in SIGNALS.items():
        arrays = {
            "pred_probs": generator.dirichlet(np.ones(NUM_CLASSES), num).astype(np.float32),
            "trust_score": generator.random(num, dtype=np.float32),
            "embeddings": generator.standard_normal((num, 128), dtype=np.float32),
            "map": generator.standard_normal((num, 2), dtype=np.float32),
        }
        arrays |= {f"signal_{name}": generator.random(num, dtype=np.float32) for name in signals}
        tasks.store_arrays(results.engine_folder(audit_id, engine), arrays)


def _link_images(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True)
    pixels = np.clip(load_digits().images[0] * 16, 0, 255).astype(np.uint8)
    for start in range(0, len(names), 20_000):  # a file system allows some 65,000 links to one file
        first = folder / names[start]
        Image.fromarray(pixels).save(first)
        for name in names[start + 1 : start + 20_000]:
            os.link(first, folder / name)


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
