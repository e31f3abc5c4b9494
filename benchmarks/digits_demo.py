"""The demo's figures as a record: what was found among 1,797 real digits, and how long each step took.

    python -m benchmarks.digits_demo

Runs ``auditor demo --no-app`` in a home of its own and writes ``benchmarks/results/digits_demo.json``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "digits_demo.json"


def main() -> None:
    """Run the demo and keep its figures."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["AUDITOR_HOME"] = home
        from auditor.bridges import engine_bridge
        from auditor.cli import demo

        figures = demo.run()
        versions, device = engine_bridge.machine()
    record = {
        "command": "python -m benchmarks.digits_demo",
        "seed": demo.SEED,
        "device": device,
        "processors": os.cpu_count(),
        "versions": versions,
        **dataclasses.asdict(figures),
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
