"""An import and an audit without the calls that only Linux has, in a process of its own.

    python -m tests.other_systems macos|windows FOLDER

Takes the calls away, loads every module of the product, imports digits and audits them below FOLDER, and prints
what it reached.
"""

from __future__ import annotations

import errno
import importlib
import importlib.abc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
MACOS = (os, "posix_fallocate"), (os, "sched_getaffinity"), (psutil.Process, "cpu_affinity")
WINDOWS = (*MACOS[:2], (os, "pwrite"), (os, "nice"))
WINDOWS_MODULES = ("fcntl", "resource", "pwd", "grp", "termios")


class NotThere(importlib.abc.MetaPathFinder):
    """Refuses modules of another system to our own code; other packages choose by ``sys.platform``."""

    def find_spec(self, name: str, *_: object) -> None:
        if name in WINDOWS_MODULES:
            raise ModuleNotFoundError(name)


def no_proc(path: str, *given: Any, readlink: Callable[..., str] = os.readlink, **named: Any) -> str:
    """``os.readlink`` where there is no ``/proc``."""
    if os.fspath(path).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, "no such file", path)
    return readlink(path, *given, **named)


def take_away(system: str) -> None:
    """Make this process lack what the system lacks."""
    import torch  # noqa: F401 - it and its helpers chose for this system already

    from engines.shared import device

    for owner, name in MACOS if system == "macos" else WINDOWS:
        delattr(owner, name)
    os.readlink = no_proc  # type: ignore[assignment]
    device.PROCESS_STATUS = ROOT / "nowhere"
    if system == "windows":
        for name in WINDOWS_MODULES:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, NotThere())


def main(system: str, folder: Path) -> None:
    import torch

    os.environ["AUDITOR_HOME"] = str(folder / "home")
    take_away(system)
    for layer in ("auditor", "engines"):
        for path in sorted((ROOT / layer).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not name.endswith(("__main__", ".plugin.__init__")):
                importlib.import_module(name.removesuffix(".__init__"))

    from auditor.audits import plan, worker
    from auditor.fiftyone_bridge.processes import alone
    from auditor.ground import processes
    from auditor.ground.errors import FiftyOneError
    from auditor.importing.imports import import_dataset
    from auditor.review import decisions
    from engines.shared.device import peak_memory_bytes
    from tests.auditor.sample_pictures import write_folder

    # Only for the import, which forks on Linux: other packages are this system's own.
    here, sys.platform = sys.platform, {"macos": "darwin", "windows": "win32"}[system]
    report = import_dataset(write_folder(folder / "digits", 1_200), name="digits", workers=2)
    sys.platform = here
    options = {"cross_entropy": {"epochs": 1, "views": 1}}
    processes.yield_to_others()
    worker.run_audit(
        plan.plan_audit("digits", ["cross_entropy"], device="cpu", options=options, map_method="pca")
    )
    refused = False
    with alone("push"):
        try:
            with alone("push"):
                pass
        except FiftyOneError:
            refused = True
    found = {
        "samples": report.num_samples,
        "labeled": int((decisions.labels_to_train_on(report.dataset_id)[0] >= 0).sum()),
        "cores": processes.usable_cores(),
        "peak": peak_memory_bytes(torch.device("cpu")),
        "second push refused": refused,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
