"""The fast part of the campaign: a few trials of each family (``make faults`` runs all of them)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faults.campaign import FAMILIES

ROOT = Path(__file__).resolve().parents[2]


def test_campaign__a_few_trials_of_each_family_end_well_and_go_on_where_they_were(tmp_path: Path) -> None:
    log, table = tmp_path / "faults.jsonl", tmp_path / "faults.md"
    for most in ("1", "2"):
        command = [sys.executable, "-m", "tests.faults.campaign", "--minutes", "5", "--most", most]
        done = subprocess.run(
            [*command, "--log", str(log), "--table", str(table)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted((row["family"], row["number"]) for row in rows) == sorted(
        (name, number) for name in FAMILIES for number in range(2)
    )
    assert f"| all | {2 * len(FAMILIES)} | 0 | 0 | 0 | 0 |" in table.read_text()
