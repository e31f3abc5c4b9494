"""How fast a dataset is imported: seconds by stage, images a second and memory, for each kind of source.

    python -m benchmarks.import_speed --data DATA [--workers 2] [--match TEXT] [--out FILE]

``DATA`` holds ``mnist-train.parquet`` and may hold ``cifar10-train.parquet`` and ``clothing/``. MNIST is also
written out as a folder of PNG, as CSV beside it and as a zip. Every import runs in a process of its own.
``--match`` measures only the sources whose name contains TEXT and replaces only their figures in the file.
``cpu_seconds`` (all processes) tells the cost where other work shares the machine; ``load_before`` says how
much did.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("pillow", "numpy", "pyarrow", "imagehash", "scipy", "sqlalchemy")


def main() -> None:
    """Measure every source and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "import_speed.json")
    parser.add_argument("--match", default="")
    parser.add_argument("--only", help="one source, imported in this process")
    parser.add_argument("--options", default="{}")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measure(arguments.only, arguments.workers, json.loads(arguments.options))))
        return
    with tempfile.TemporaryDirectory(prefix="import-speed-") as folder:
        measured = {
            name: in_own_process(name, source, arguments.workers, options)
            for name, source, options in sources(arguments.data, Path(folder), arguments.match)
        }
    before = json.loads(arguments.out.read_text())["results"] if arguments.out.exists() else []
    results = {row["source"]: row for row in before} | measured
    found = {"device": device(), "versions": versions(), "results": list(results.values())}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def sources(data: Path, folder: Path, match: str) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """(name, source, options of the import) of everything that is measured; written only when it is asked for."""
    train, tree = data / "mnist-train.parquet", folder / "mnist"
    human = {"label_column": "label_aggre", "true_label_column": "label"}
    makers: dict[str, tuple[Callable[[], Path], dict[str, Any]]] = {
        "MNIST, Parquet": (lambda: train, {}),
        "MNIST, folder of PNG": (lambda: write_tree(train, tree), {}),
        "MNIST, CSV and PNG": (lambda: write_csv(write_tree(train, tree)), {}),
        "MNIST, zip of the folder": (lambda: write_zip(write_tree(train, tree), folder / "mnist.zip"), {}),
        "CIFAR-10, Parquet of JPEG": (lambda: data / "cifar10-train.parquet", human),
        "photographs of clothes, folder of JPEG": (lambda: data / "clothing", {}),
    }
    for name, (make, options) in makers.items():
        if match in name and (source := make()).exists():
            yield name, source, options


def write_tree(parquet: Path, root: Path) -> Path:
    """The Parquet file's images as a folder with a sub-folder a class, written once."""
    if root.exists():
        return root
    from pyarrow.parquet import ParquetFile

    number = 0
    for batch in ParquetFile(parquet).iter_batches(batch_size=1000):
        for row in batch.to_pylist():
            path = root / str(row["label"]) / f"{number:06d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row["image"]["bytes"])
            number += 1
    return root


def write_csv(tree: Path) -> Path:
    """A table of the same files; it lies beside the folder."""
    table = tree.with_suffix(".csv")
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "camera"])
        for path in sorted(tree.rglob("*.png")):
            writer.writerow([str(path.relative_to(tree.parent)), path.parent.name, "a"])
    return table


def write_zip(tree: Path, archive: Path) -> Path:
    """The same folder, zipped."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path in sorted(tree.rglob("*.png")):
            packed.write(path, path.relative_to(tree))
    return archive


def in_own_process(name: str, source: Path, workers: int, options: dict[str, Any]) -> dict[str, Any]:
    """One import with a home of its own, so that nothing is warm but the disk cache."""
    with tempfile.TemporaryDirectory(prefix="import-speed-home-") as home:
        command = [sys.executable, "-m", "benchmarks.import_speed", "--data", ".", "--only", str(source)]
        command += ["--workers", str(workers), "--options", json.dumps(options)]
        environment = {**os.environ, "AUDITOR_HOME": home, "OMP_NUM_THREADS": "1"}
        before = os.getloadavg()[0]
        run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    shared = {"source": name, "workers": workers, "load_before": round(before, 2)}
    found: dict[str, Any] = shared | json.loads(run.stdout)
    print(found, file=sys.stderr)
    return found


def measure(source: str, workers: int, options: dict[str, Any]) -> dict[str, Any]:
    """Import once in this process: seconds by stage, CPU seconds of all processes, peak memory beside the map."""
    from auditor.importing.imports import Progress, import_dataset

    starts: dict[str, float] = {}
    callbacks = 0

    def watch(progress: Progress) -> None:
        nonlocal callbacks
        callbacks += 1
        starts.setdefault(progress.stage, time.monotonic())

    # A thread would keep the import from forking its workers, so memory is watched from another process.
    watcher = subprocess.Popen(
        [sys.executable, "-c", WATCHER, str(os.getpid())], stdout=subprocess.PIPE, text=True
    )
    begin = time.monotonic()
    report = import_dataset(source, name="measured", workers=workers, progress=watch, **options)
    end = time.monotonic()
    watcher.terminate()
    assert watcher.stdout is not None
    peak = max((float(line) for line in watcher.stdout), default=0.0)
    marks = [*starts.values(), end]
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "samples": report.num_samples,
        "channels": report.channels,
        "image_size": report.image_size,
        "seconds": round(end - begin, 2),
        "samples_per_second": round(report.num_samples / (end - begin)),
        "seconds_by_stage": {s: round(marks[i + 1] - marks[i], 2) for i, s in enumerate(starts)},
        "cpu_seconds": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "peak_unshared_mb": round(peak),
        "progress_calls": callbacks,
        "duplicates": report.duplicates,
    }


WATCHER = """
import sys, time, psutil
process = psutil.Process(int(sys.argv[1]))
while True:
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            if one.pid != psutil.Process().pid:
                total += one.memory_full_info().uss
        except psutil.Error:
            continue
    print(total / 2**20, flush=True)
    time.sleep(0.2)
"""


def device() -> dict[str, Any]:
    """What the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown"
    )
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Python and the packages that do the work."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


if __name__ == "__main__":
    main()
