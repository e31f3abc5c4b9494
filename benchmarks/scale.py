"""An audit's tasks on several machines: seconds by workers, what a task costs, machines that are lost.

    python -m benchmarks.scale workers      # or tasks, kills, imports, many, settle, memory

- workers: five engines of ``quick`` in full on the 1,797 digits, by 1, 2 and 4 processes and by a Ray cluster of
  1, 2 and 4 machines with one core each. One after another in one run, so the ratios are of the same hour; a task
  computes with one thread everywhere. Said too: whether all gave the same bits.
- tasks: 300 trainings on nine rows, about a second each (so few rows have many short epochs): seconds a task
  beside those that it takes in this process.
- kills: the same engines, a cluster of three machines of which one is taken away 20
  times, whenever the trainings have gone on by another part; before that a backbone's features of the same digits,
  with 5 machines lost. Said: the same bits or not, and how many epochs were done twice.
- imports: 20,000 images of 28 px out of one Parquet file, and 2,000 of 1,000 px out of a folder, by 1, 2 and 4
  processes and machines of Ray.
- many (``--rows``): one import of so many images of 28 px out of Parquet files, decoded by one process: images a
  second, CPU seconds of all processes, the most memory that it held, and how long another process that wrote a row
  every tenth of a second waited for it while the catalog (SQLite) was filled.
- settle (``--rows``): how long another process waited in the same way while the scores of a finished audit were
  replaced.
- memory (``--rows``): the consensus of six engines, copies, the map and neighbours of so many rows, and one epoch
  of the plain engine with its scores on their features of a backbone (384 in float16), each in a process of its own
  on memory maps: seconds, and the most memory that it held (``mapped_mb`` counts the pages of files too, which the
  system takes back when it needs them). After half an hour one is stopped.
- neighbours: the 51 nearest of a million made rows of 16 and of 384 numbers, by one thread: CPU seconds, the most
  memory beside the rows, and the share that was found of what all pairs have, over 300 rows.

"Machines" are Ray's nodes on this one. One result a name in ``benchmarks/results/scale.json``.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import io
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import auditor
from auditor.audits import shards
from auditor.backbones import features
from auditor.bridges import engine_bridge
from auditor.bridges.engine_bridge import ENGINE_ORDER
from auditor.catalog import audits, datasets, db
from auditor.catalog.records import AuditSummary, NewAudit, NewDataset
from auditor.pictures.cache import image_cache
from auditor.results.settle import store
from auditor.work import executors
from auditor.work.kinds import NUM_NEIGHBOURS, Train
from auditor.work.ray_executor import RayExecutor
from auditor.work.tasks import Event, Outcome
from benchmarks import app_million
from benchmarks.import_speed import device
from engines.contract import TrainingData
from engines.neighbours.votes import MOST
from engines.registry import ENGINES
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parent / "results" / "scale.json"
WORKERS = (1, 2, 4)
EMPTY_TASKS, KILLS, EMBEDDING_KILLS = 300, 20, 5
BACKBONE = "timm:mobilenetv3_small_050"
NUM_CLASSES, WRONG = 10, 0.1
WIDTH, CLUSTERS, ROWS_AT_ONCE = 16, 20, 100_000
BACKBONE_WIDTH = 384
MADE_ROWS = 1_000_000
"""Rows among which ``neighbours`` are sought."""
MOST_SECONDS = 1_800
DONE: dict[str, int] = {}
"""How far the work of ``held`` is."""


class Quiet:
    """A listener that counts epochs and may do something about them."""

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self.epochs: Counter[tuple[str, str, int]] = Counter()
        self.failed: list[str] = []
        self._on_event = on_event

    def started(self, task: str) -> None:
        """See ``Listener``."""

    def heard(self, event: Event) -> None:
        """See ``Listener``."""
        self.epochs[event.task, event.stage, event.epoch] += 1
        if self._on_event is not None:
            self._on_event(event)

    def ended(self, outcome: Outcome) -> None:
        """See ``Listener``."""
        if outcome.error is not None:
            self.failed.append(outcome.error)

    def tick(self) -> None:
        """See ``Listener``."""


def main() -> None:
    """Measure what was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", choices=list(PARTS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of memory, many and settle")
    parser.add_argument(
        "--only",
        choices=sorted(set(OF_ALL_ROWS) - set(APART)),
        help="of memory; the other figures stay",
    )
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="scale-") as place:
        part = PARTS[arguments.name]
        more: tuple[Any, ...] = (arguments.rows, arguments.only) if part is memory else ()
        more = (arguments.rows,) if part in (many, settle) else more
        found = part(Path(place), *more)
    stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if part is memory and arguments.only and stored.get("memory", {}).get("rows") == arguments.rows:
        found = {**stored["memory"], **found}
    row = {**found, "load": [round(load, 1), round(os.getloadavg()[0], 1)]}
    row |= {"device": device(), "versions": versions()}
    stored[arguments.name] = row
    arguments.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    print(json.dumps(found, indent=1))


@contextmanager
def cluster(num: int, *, clients_port: int | None = None) -> Iterator[Any]:
    """``ray.cluster_utils.Cluster``: a head that does no work and ``num`` machines with one core each.

    ``clients_port`` is where the head listens for ``ray://``.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Else the process that serves a client, a fork, ends now and then in gRPC before it begins (Ray 2.60).
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # And it begins late where all cores are in use.
    os.environ["RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S"] = "120"
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8}
    found = Cluster(initialize_head=True, head_node_args={**head, "ray_client_server_port": clients_port})
    try:
        for _ in range(num):
            add_machine(found)
        yield found
    finally:
        found.shutdown()


def add_machine(found: Any, *, cores: int = 1) -> Any:
    """One more machine."""
    return found.add_node(num_cpus=cores, object_store_memory=10**8)


def digits(place: Path, *, side: int = 8) -> list[Train]:
    """Engines that read images, on digits of ``side`` px, a multiple of 8; a tenth of their labels drawn anew."""
    pixels, labels = load_digits(return_X_y=True)
    draw = np.random.default_rng(0)
    given = np.where(draw.random(len(labels)) < WRONG, draw.integers(0, NUM_CLASSES, len(labels)), labels)
    on_images = [engine for engine in ENGINE_ORDER if not engine_bridge.needs_features(engine)]
    made = _specs(place, np.zeros((len(labels), 1, 1)), given, *on_images)
    images = (pixels * 15.9).astype(np.uint8).reshape(-1, 1, 8, 8)
    np.save(place / "images.npy", images.repeat(side // 8, axis=2).repeat(side // 8, axis=3))
    return [
        dataclasses.replace(
            spec,
            engine=spec.name,
            config=dataclasses.asdict(ENGINES[spec.name].config_type.preset("quick")),
            features=None,
            images=str(place / "images.npy"),
            seed=0,
        )
        for spec in made
    ]


def _specs(place: Path, rows: np.ndarray, labels: np.ndarray, *names: str) -> list[Train]:
    """Trainings of the plain engine for as few epochs as there may be, each with its own seed."""
    place.mkdir(parents=True, exist_ok=True)
    np.save(place / "features.npy", rows.astype(np.float32))
    config = ENGINES["cross_entropy"].config_type.preset("quick").for_features()
    np.savez(place / "inputs.npz", labels=labels.astype(np.int64), trusted=np.zeros(len(labels), bool))
    return [
        Train(
            name=name,
            engine="cross_entropy",
            config=dataclasses.asdict(dataclasses.replace(config, epochs=1)),
            num_classes=int(labels.max()) + 1,
            inputs=str(place / "inputs.npz"),
            out=str(place / name),
            checkpoint=str(place / f"{name}.checkpoint"),
            features=str(place / "features.npy"),
            seed=seed,
            threads=1,
        )
        for seed, name in enumerate(names)
    ]


def bits(specs: list[Train]) -> str:
    """A fingerprint of what the tasks found."""
    whole = hashlib.sha256()
    for spec in specs:
        for name in ("pred_probs", "trust_score"):
            whole.update((Path(spec.out) / f"{name}.npy").read_bytes())
    return whole.hexdigest()


def timed(executor: executors.Executor, specs: list[Train], listener: Quiet) -> float:
    """Seconds until all tasks are done.

    Raises:
        RuntimeError: one of them failed.
    """
    began = time.monotonic()
    executor.run(specs, listener)
    if listener.failed:
        raise RuntimeError(listener.failed[0])
    return time.monotonic() - began


def workers(place: Path) -> dict[str, Any]:
    """Seconds of the same audit by number of workers."""
    seconds: dict[str, dict[str, float]] = {"processes": {}, "ray": {}}
    found = set()
    for num in WORKERS:
        specs = digits(place / f"processes-{num}")
        seconds["processes"][str(num)] = timed(executors.Processes(num), specs, Quiet())
        found.add(bits(specs))
    for num in WORKERS:
        specs = digits(place / f"ray-{num}")
        with cluster(num) as machines:
            seconds["ray"][str(num)] = timed(RayExecutor(machines.address), specs, Quiet())
        found.add(bits(specs))
    of_one = {kind: {num: each["1"] / value for num, value in each.items()} for kind, each in seconds.items()}
    return {"seconds": seconds, "times_as_fast_as_one": of_one, "same_bits": len(found) == 1}


def tasks(place: Path) -> dict[str, Any]:
    """Seconds that a task costs beside its work."""
    labels = np.arange(9) % 3
    rows = np.eye(3)[labels][:, None]
    names = [f"t{number}" for number in range(EMPTY_TASKS)]
    alone = timed(executors.Processes(1), _specs(place / "alone", rows, labels, *names), Quiet())
    beside = timed(executors.Processes(2), _specs(place / "beside", rows, labels, *names), Quiet())
    with cluster(2) as machines:
        away = timed(RayExecutor(machines.address), _specs(place / "away", rows, labels, *names), Quiet())
    return {
        "tasks": EMPTY_TASKS,
        "seconds": {"in this process": alone, "2 processes": beside, "Ray, 2 machines": away},
        # Two workers do the work itself in half of the time.
        "beside_the_work_s": {
            "2 processes": (beside - alone / 2) / EMPTY_TASKS,
            "Ray, 2 machines": (away - alone / 2) / EMPTY_TASKS,
        },
    }


def kills(place: Path) -> dict[str, Any]:
    """The same bits although machines are lost, and how much was done twice."""
    os.environ["AUDITOR_CHECKPOINT_INTERVAL_S"] = "0"
    alone, away = digits(place / "alone"), digits(place / "away")
    quiet = Quiet()
    timed(executors.Processes(1), alone, quiet)
    every = quiet.epochs.total() // (KILLS + 1)
    phases: Counter[str] = Counter()
    with cluster(3) as machines:
        embedded = _kills_of_embedding(place, machines)
        heard = Quiet()

        def lose(event: Event) -> None:
            if heard.epochs.total() >= every * (phases.total() + 1) and phases.total() < KILLS:
                phases[f"{event.task}: {event.stage}"] += 1
                _lose_one(machines, phases.total())

        heard._on_event = lose
        timed(RayExecutor(machines.address), away, heard)
    return {
        "kills": phases.total(),
        "heard_in": dict(phases),
        "same_bits": bits(alone) == bits(away),
        "epochs": quiet.epochs.total(),
        "epochs_done_twice": sum(count - 1 for count in heard.epochs.values()),
        "embedding": embedded,
    }


def _lose_one(machines: Any, number: int) -> None:
    nodes = machines.list_all_nodes()[1:]  # the first is the head
    machines.remove_node(nodes[number % len(nodes)], allow_graceful=False)
    add_machine(machines)


def _kills_of_embedding(place: Path, machines: Any) -> dict[str, Any]:
    """Features of 1,797 digits at 32 px by a small backbone with random weights, in tasks of 128 rows."""
    import safetensors.torch
    import timm
    import torch

    os.environ["AUDITOR_HOME"] = str(place / "home")
    torch.manual_seed(0)
    weights = place / "weights.safetensors"
    safetensors.torch.save_file(timm.create_model(BACKBONE.removeprefix("timm:")).state_dict(), weights)
    digits(place / "pictures", side=32)
    grey = np.load(place / "pictures" / "images.npy")
    np.save(place / "images.npy", grey.repeat(3, axis=1))
    source = features.of_backbone(BACKBONE, weights, side=32)
    here, away = 1, 2
    expected = features.embed(here, place / "images.npy", source, device="cpu", workers=1)
    shards.RANGES = 1
    lost: list[int] = []

    def lose(done: int) -> None:
        if len(lost) < EMBEDDING_KILLS and done > len(grey) * len(lost) / EMBEDDING_KILLS:
            lost.append(done)
            _lose_one(machines, len(lost))

    shards.embed(
        away, place / "images.npy", source, RayExecutor(machines.address), device="cpu", on_rows=lose
    )
    return {"kills_at_rows": lost, "same_bits": bool((features.load(away, source) == expected).all())}


def imports(place: Path) -> dict[str, Any]:
    """Images a second of one import by number of workers, and of machines of a cluster."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    draw, packed = np.random.default_rng(0), []
    for pixels in draw.integers(0, 256, (20_000, 28, 28), dtype=np.uint8):
        with tempfile.SpooledTemporaryFile() as stream:
            Image.fromarray(pixels).save(stream, "png")
            stream.seek(0)
            packed.append(stream.read())
    source = place / "images.parquet"
    pq.write_table(
        pa.table({"image": packed, "label": [str(number % 10) for number in range(len(packed))]}), source
    )
    folder = place / "photos"
    for number in range(2_000):
        file = folder / str(number % 10) / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(draw.integers(0, 256, (40, 40, 3), dtype=np.uint8))
        coarse.resize((1_000, 1_000), Image.Resampling.BICUBIC).save(file, quality=90)
    os.environ["AUDITOR_HOME"] = str(place / "home")
    return {"small": _rates("small", source), "photos": _rates("photos", folder)}


def _rates(kind: str, source: Path) -> dict[str, Any]:
    """Images a second, and whether all ways decode to the same bits."""
    rate: dict[str, dict[str, float]] = {"processes": {}, "ray": {}}
    pictures = set()

    def timed_import(how: str, num: int, **options: Any) -> None:
        began = time.monotonic()
        found = auditor.import_dataset(source, name=f"{kind} {how} {num}", progress=False, **options)
        rate[how][str(num)] = len(found) / (time.monotonic() - began)
        pictures.add(hashlib.sha256(image_cache(found.table).tobytes()).hexdigest())

    for num in WORKERS:
        timed_import("processes", num, workers=num)
    for num in WORKERS:
        with cluster(num) as machines:
            os.environ["RAY_ADDRESS"] = machines.address
            timed_import("ray", num, on="ray")
            del os.environ["RAY_ADDRESS"]
    return {"images_a_second": rate, "same_bits": len(pictures) == 1}


def many(place: Path, num_rows: int) -> dict[str, Any]:
    """Seconds and memory of one large import, and how long others waited to write."""
    os.environ["AUDITOR_HOME"] = str(place / "home")
    source = place / "images"
    source.mkdir()
    _write_pictures(source, num_rows)
    with db.session() as session:
        datasets.names(session)  # makes the catalog, so that nobody waits for that
    lines = f"from benchmarks import scale; scale.held('import', {str(place)!r})"
    said, waits = _waits_for(lines, place / "home")
    return {"rows": num_rows, **said, "images_a_second": round(num_rows / said["seconds"]), **waits}


def settle(place: Path, num_rows: int) -> dict[str, Any]:
    """How long others waited to write while the scores of a finished audit were replaced (SQLite)."""
    os.environ["AUDITOR_HOME"] = str(place / "home")
    with db.session() as session:
        names: dict[str, Any] = {
            "name": "many",
            "uuid": "many",
            "source": "none",
            "source_kind": "folder",
            "root": "/",
        }
        shape: dict[str, Any] = {
            "num_samples": 0,
            "channels": 1,
            "height": 8,
            "width": 8,
            "class_names": ["a"],
        }
        dataset_id = datasets.create(session, NewDataset(**names, **shape), ())
        audit = NewAudit(dataset_id=dataset_id, preset="quick", device="cpu", seed=0, engines=[])
        audit_id = audits.create(session, audit, [])
    _store_scores(audit_id, num_rows)
    lines = (
        f"from benchmarks import scale; scale.DONE['rows'] = {num_rows}; scale.held('scores', {str(place)!r})"
    )
    said, waits = _waits_for(lines, place / "home")
    return {**said, **waits}


def _store_scores(audit_id: int, num_rows: int) -> None:
    draw = np.random.default_rng()
    trust, classes = draw.random(num_rows), draw.integers(0, NUM_CLASSES, (2, num_rows))
    columns = {
        "rank": trust.argsort().argsort(),
        "given_label": classes[0],
        "trust_score": trust,
        "error_probability": 1 - trust,
        "is_label_issue": trust < WRONG,
        "suggested_label": classes[1],
        "suggested_probability": trust,
        "agreement": classes[0],
        "disagreement": trust,
    }
    with db.session() as session:
        audit = audits.get(session, audit_id)
    store(audit, columns, AuditSummary())


def _scores(place: Path) -> None:
    assert place.is_dir()
    _store_scores(1, DONE["rows"])


def _waits_for(lines: str, home: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a process says that runs these lines, and how long another one waited that wrote meanwhile."""
    working = subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE)
    waits = [0.0]
    while working.poll() is None:
        time.sleep(0.1)
        with closing(sqlite3.connect(home / "catalog.db", timeout=600)) as other:
            began = time.monotonic()
            other.execute("UPDATE last_id SET last_id = last_id")
            other.commit()
            waits.append(time.monotonic() - began)
    assert working.stdout is not None
    said = json.loads(working.stdout.read().splitlines()[-1])
    return said, {"another_wrote": len(waits) - 1, "longest_wait_s": round(max(waits), 2)}


def _write_pictures(folder: Path, num_rows: int) -> None:
    """Parquet files of 100,000 grey pictures of 28 px, each another one."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    draw = np.random.default_rng(0)
    for start in range(0, num_rows, ROWS_AT_ONCE):
        packed = []
        for coarse in draw.integers(0, 256, (min(ROWS_AT_ONCE, num_rows - start), 7, 7), dtype=np.uint8):
            stream = io.BytesIO()
            Image.fromarray(coarse.repeat(4, axis=0).repeat(4, axis=1)).save(stream, "png", compress_level=1)
            packed.append(stream.getvalue())
        labels = [str(number % 10) for number in range(len(packed))]
        pq.write_table(pa.table({"image": packed, "label": labels}), folder / f"{start:010d}.parquet")


def _import(place: Path) -> None:
    auditor.import_dataset(place / "images", name="many", workers=1, progress=False)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    DONE["cpu_seconds"] = round(sum(one.ru_utime + one.ru_stime for one in spent))


def memory(place: Path, num_rows: int, only: str | None) -> dict[str, Any]:
    """Seconds and most megabytes of what an audit does with all rows at once."""
    if only != "training":
        _make_rows(place, num_rows)
    if only in (None, "training"):
        _make_features(place, num_rows)
    found: dict[str, Any] = {}
    for name in [only] if only else [name for name in OF_ALL_ROWS if name not in APART]:
        lines = f"from benchmarks import scale; scale.held({name!r}, {str(place)!r})"
        said = subprocess.run([sys.executable, "-c", lines], check=True, stdout=subprocess.PIPE)
        found[name] = json.loads(said.stdout.splitlines()[-1])
        print(name, found[name], file=sys.stderr, flush=True)
    return {
        "rows": num_rows,
        "features": WIDTH,
        "classes": NUM_CLASSES,
        "engines": len(ENGINE_ORDER),
        **found,
    }


def _make_rows(place: Path, num_rows: int) -> None:
    """Features in clusters by class, probabilities, and images of which a hundredth stands twice."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, NUM_CLASSES, num_rows)
    np.save(place / "labels.npy", labels)
    centres = draw.normal(size=(NUM_CLASSES * CLUSTERS, WIDTH))

    def new(name: str, dtype: Any, *shape: int) -> Any:
        return np.lib.format.open_memmap(place / f"{name}.npy", "w+", dtype, (num_rows, *shape))

    features, images = new("features", np.float16, WIDTH), new("images", np.uint8, 1, 8, 8)
    probs = [new(f"probs_{engine}", np.float32, NUM_CLASSES) for engine in ENGINE_ORDER]
    for start in range(0, num_rows, ROWS_AT_ONCE):
        given = labels[start : start + ROWS_AT_ONCE]
        at = slice(start, start + len(given))
        nearby = centres[given * CLUSTERS + draw.integers(0, CLUSTERS, len(given))]
        features[at] = nearby + draw.normal(size=nearby.shape)
        images[at] = draw.integers(0, 256, (len(given), 1, 8, 8), dtype=np.uint8)
        images[start : start + len(given) // 200] = (
            images[at][-(len(given) // 200) :] if len(given) > 200 else 0
        )
        for one in probs:
            part = draw.random((len(given), NUM_CLASSES), dtype=np.float32)
            part[np.arange(len(given)), given] += 3 * (draw.random(len(given)) > WRONG)
            one[at] = part / part.sum(axis=1, keepdims=True)


def _make_features(place: Path, num_rows: int) -> None:
    """Features as a backbone leaves them, one view, and labels of which a tenth is drawn anew."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, NUM_CLASSES, num_rows)
    centres = draw.normal(0, 0.3, size=(NUM_CLASSES, BACKBONE_WIDTH)).astype(np.float32)
    shape = (num_rows, 1, BACKBONE_WIDTH)
    features = np.lib.format.open_memmap(place / "backbone.npy", "w+", np.float16, shape)
    for start in range(0, num_rows, ROWS_AT_ONCE):
        part = labels[start : start + ROWS_AT_ONCE]
        noise = draw.standard_normal((len(part), BACKBONE_WIDTH), dtype=np.float32)
        features[start : start + ROWS_AT_ONCE, 0] = centres[part] + noise
    is_wrong = draw.random(num_rows) < WRONG
    np.save(place / "given.npy", np.where(is_wrong, draw.integers(0, NUM_CLASSES, num_rows), labels))


def held(name: str, place: str) -> None:
    """Do one of ``OF_ALL_ROWS`` in this process, and print seconds and megabytes."""
    most, is_done = [0], threading.Event()

    def watch() -> None:
        while not is_done.wait(0.02):
            status = Path("/proc/self/status").read_text()
            most[0] = max(most[0], int(status.split("RssAnon:")[1].split()[0]) // 1024)
            if time.monotonic() - began > MOST_SECONDS:
                say(stopped=True)
                os._exit(0)

    def say(**more: Any) -> None:
        mapped = app_million.peak_mb()
        found = {"seconds": round(time.monotonic() - began, 1), "peak_mb": most[0], "mapped_mb": mapped}
        print(json.dumps(found | DONE | more), flush=True)

    began = time.monotonic()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    OF_ALL_ROWS[name](Path(place))
    is_done.set()
    watcher.join()
    say()


def _load(place: Path, name: str) -> Any:
    return np.load(place / f"{name}.npy", mmap_mode="r")


def _consensus(place: Path) -> None:
    from auditor.statistics import Witness, combine

    labels = np.load(place / "labels.npy")
    rows = np.arange(len(labels))
    probs = [_load(place, f"probs_{engine}") for engine in ENGINE_ORDER]
    witnesses = [
        Witness(engine, np.asarray(one[rows, labels]), one, is_out_of_sample=True)
        for engine, one in zip(ENGINE_ORDER, probs, strict=True)
    ]
    del rows
    combine(witnesses, labels, NUM_CLASSES)


def _copies(place: Path) -> None:
    from auditor.importing.duplicates import find_duplicates

    images, labels = _load(place, "images"), np.load(place / "labels.npy")
    # Pixels drawn at random are as spread as hashes of unlike pictures.
    pixels = np.asarray(images).reshape(len(labels), -1)
    content, seen = pixels[:, :32].copy(), pixels[:, 32:40].copy().view(np.uint64).ravel()
    found = find_duplicates(content, seen, images, labels)
    assert found.num_groups


def _map(place: Path) -> None:
    from auditor.work import embedding

    embedding.map_2d(_load(place, "features"))


def _neighbours(place: Path) -> None:
    from auditor.work import embedding

    embedding.neighbor_table(_load(place, "features"), num_neighbors=NUM_NEIGHBOURS)


def neighbours(place: Path) -> dict[str, Any]:
    """The search for neighbours among ``MADE_ROWS`` rows, by a process and thread a width."""
    found: dict[str, Any] = {}
    for width in (16, BACKBONE_WIDTH):
        _make_clusters(place / "clusters.npy", MADE_ROWS, width)
        lines = f"from benchmarks import scale; scale.held('nearest', {str(place)!r})"
        said = subprocess.run([sys.executable, "-c", lines], check=True, stdout=subprocess.PIPE)
        found[f"{width} numbers"] = json.loads(said.stdout.splitlines()[-1]) | {"recall": _recall(place)}
        print(width, found[f"{width} numbers"], file=sys.stderr, flush=True)
    return {"rows": MADE_ROWS, "k": MOST, **found}


def _make_clusters(path: Path, num_rows: int, width: int) -> None:
    """Rows that differ in 12 hidden numbers around one of 300 centres, and a little noise in all."""
    draw = np.random.default_rng(0)
    mix = draw.normal(size=(12, width)).astype(np.float32)
    centres = draw.normal(size=(300, 12)).astype(np.float32)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (num_rows, width))
    for start in range(0, num_rows, ROWS_AT_ONCE):
        num = len(rows[start : start + ROWS_AT_ONCE])
        hidden = centres[draw.integers(0, 300, num)] + draw.standard_normal((num, 12), dtype=np.float32)
        noise = draw.standard_normal((num, width), dtype=np.float32)
        rows[start : start + ROWS_AT_ONCE] = hidden @ mix + 0.3 * noise


def _nearest(place: Path) -> None:
    from engines.neighbours.search import nearest, unit_rows

    rows = unit_rows(_load(place, "clusters"))
    began = time.process_time()
    _, similar = nearest(rows, MOST)
    DONE["cpu_seconds"] = round(time.process_time() - began)
    np.save(place / "similar.npy", similar)


def _recall(place: Path) -> float:
    """Of the true nearest of 300 rows, the share that is as near as what ``_nearest`` found."""
    from engines.neighbours.search import unit_rows

    rows, similar = unit_rows(_load(place, "clusters")), _load(place, "similar")
    asked = np.sort(np.random.default_rng(1).choice(len(rows), 300, replace=False))
    true = np.full((len(asked), MOST), -np.inf, dtype=np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        values = rows[asked] @ rows[start : start + ROWS_AT_ONCE].T
        values[asked[:, None] == np.arange(start, start + values.shape[1])] = -np.inf
        true = -np.sort(-np.concatenate([true, values], axis=1), axis=1)[:, :MOST]
    return round(float(np.mean(similar[asked] >= true[:, -1:] - 1e-6)), 4)


def _training(place: Path) -> None:
    spec = ENGINES["cross_entropy"]
    config = dataclasses.replace(spec.config_type.preset("quick").for_features(), epochs=1)
    given, features = np.load(place / "given.npy"), _load(place, "backbone")
    spec.train(TrainingData(None, given, NUM_CLASSES, features=features), config, seed=0, device="cpu")


OF_ALL_ROWS: dict[str, Callable[[Path], None]] = {
    "consensus": _consensus,
    "copies": _copies,
    "import": _import,
    "map": _map,
    "nearest": _nearest,
    "neighbours": _neighbours,
    "scores": _scores,
    "training": _training,
}
APART = ("import", "nearest", "scores")
"""Those that are no part of ``memory``."""
PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "workers": workers,
    "tasks": tasks,
    "kills": kills,
    "imports": imports,
    "many": many,
    "memory": memory,
    "neighbours": neighbours,
    "settle": settle,
}

if __name__ == "__main__":
    main()
