"""A task as a process of its own does it: what it does not need is not loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from auditor.work import tasks
from tests.auditor.work.test_executors import specs

ROOT = Path(__file__).resolve().parents[3]
ATTEMPT = """
import json, sys
from auditor.work import kinds, tasks
spec = kinds.of_json(json.loads(sys.argv[1]))
assert tasks.attempt(spec, lambda _: None).error is None
heavy = ("pandas", "scipy.stats", "sklearn", "sqlalchemy", "sqlmodel", "torch._dynamo")
print([name for name in heavy if name in sys.modules])
"""


def test_attempt__loads_no_catalog_no_tables_and_no_compiler(tmp_path: Path) -> None:
    """They take five seconds of a core, in each of an audit's processes."""
    (spec,) = specs(tmp_path, "a", epochs=2)
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPT, json.dumps(spec.as_json())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert tasks.finished(spec)
