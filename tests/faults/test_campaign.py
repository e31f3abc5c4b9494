"""The fast part of the campaign: a trial of each family (``make faults`` runs all of them)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.faults.campaign import QUICK
from tests.forker import CAMPAIGN, Forker


def test_campaign__a_trial_of_each_quick_family_end_well_and_go_on_where_they_were(
    tmp_path: Path, forker: Forker
) -> None:
    log, table = tmp_path / "faults.jsonl", tmp_path / "faults.md"
    for chosen in (QUICK[-1:], QUICK):
        command = ["campaign", "--minutes", "5", "--most", "1"]
        command += [word for name in chosen for word in ("--family", name)]
        done = forker.call(CAMPAIGN, [*command, "--log", str(log), "--table", str(table)])
        assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted((row["family"], row["number"]) for row in rows) == sorted((name, 0) for name in QUICK)
    assert f"| all | {len(QUICK)} | 0 | 0 | 0 | 0 | | |" in table.read_text()
