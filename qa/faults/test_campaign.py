"""The fast part of the campaign: a trial of each family (``make faults`` runs all of them)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from qa.faults.campaign import QUICK, ROOT

DONE = "environment that holds nonsense"
"""A family whose trial was done before."""


WORK = """
import subprocess, sys
from qa.faults.trial import temporary
with temporary() as place:
    (place / "home").mkdir()
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(place)])
    print(sleeper.pid, flush=True)
    sleeper.wait()
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_temporary__nothing_is_left_by_a_signal(tmp_path: Path, sign: signal.Signals) -> None:
    def start() -> tuple[subprocess.Popen[str], psutil.Process]:
        env = os.environ | {"TMPDIR": str(tmp_path)}
        command = [sys.executable, "-c", WORK]
        process = subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE)
        assert process.stdout is not None
        return process, psutil.Process(int(process.stdout.readline()))

    process, sleeper = start()
    try:
        process.send_signal(sign)
        process.wait(60)
        assert bool(list(tmp_path.iterdir())) is (sign == signal.SIGKILL)
        if sign == signal.SIGKILL:
            assert sleeper.is_running()
            process, after = start()
            sleeper.wait(60)
            after.kill()
            process.terminate()
            process.wait(60)
            assert not list(tmp_path.iterdir())
    finally:
        process.kill()
        with suppress(psutil.NoSuchProcess):
            sleeper.kill()


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
