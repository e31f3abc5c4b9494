"""The fast part of the campaign: a trial of each family (``make faults`` runs all of them)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from qa.faults.campaign import QUICK, ROOT

DONE = "environment that holds nonsense"
"""A family whose trial was done before."""


def test_campaign__a_trial_of_each_quick_family_end_well_and_go_on_where_they_were(
    tmp_path: Path,
) -> None:
    log, table = tmp_path / "faults.jsonl", tmp_path / "faults.md"
    before = {"family": DONE, "number": 0, "outcome": "ok", "text": "", "seed": 0}
    log.write_text(json.dumps(before | {"date": "2026-01-01", "commit": "of before"}) + "\n")
    command = [sys.executable, "-m", "qa.faults.campaign", "--minutes", "5", "--most", "1"]
    command += [word for name in [DONE, *QUICK] for word in ("--family", name)]
    command += ["--log", str(log), "--table", str(table)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted((row["family"], row["number"]) for row in rows) == sorted(
        (name, 0) for name in [DONE, *QUICK]
    )
    assert f"| all | {len(QUICK) + 1} | 0 | 0 | 0 | 0 | | |" in table.read_text()
    counts = {row["family"]: row for row in json.loads(table.with_suffix(".json").read_text())["families"]}
    assert (counts[DONE]["trials"], counts[DONE]["commits"]) == (1, "of before")
