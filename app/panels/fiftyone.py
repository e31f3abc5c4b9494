"""Hand the audit to FiftyOne and take decisions back, by the command line in a process of its own.

FiftyOne holds a database connection a process and takes seconds to import, so the app never loads it.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

import streamlit as st

from app.session import state
from auditor.catalog.models import DatasetTable
from auditor.errors import AuditorError


def draw(dataset: DatasetTable) -> None:
    """Two buttons and what came of the last one."""
    left, right, rest = st.columns([1, 1, 2], vertical_alignment="center")
    rest.caption("The newest audit is pushed. Then open its App from a terminal:")
    rest.code(f"auditor fiftyone {shlex.quote(dataset.name)} open", language=None)
    if left.button("Push to FiftyOne", key="export_fiftyone_push", icon=":material/upload:"):
        with st.spinner("Pushing ..."):
            pushed = run(dataset.name, "push")
        st.success(f"{pushed['num_samples']:,} samples are in FiftyOne, {pushed['num_added']:,} of them new.")
    if right.button("Pull decisions", key="export_fiftyone_pull", icon=":material/download:"):
        with st.spinner("Pulling ..."):
            pulled = run(dataset.name, "pull", reviewer=state.reviewer() or "fiftyone")
        taken = sum(pulled["counts"].values())
        st.success(f"{taken:,} decisions came from FiftyOne; {len(pulled['listed'])} need a look.")
        for listed in pulled["listed"]:
            st.text(" ".join(str(value) for value in listed.values()))


def run(name: str, action: str, *, reviewer: str = "") -> dict[str, Any]:
    """Run ``auditor fiftyone NAME ACTION --json`` and return what it prints.

    Raises:
        AuditorError: the command's own one line.
    """
    command = [sys.executable, "-m", "auditor", "fiftyone", "--json"]
    command += ["--reviewer", reviewer] if reviewer else []
    done = subprocess.run([*command, "--", name, action], capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the command failed"
        raise AuditorError(last.removeprefix("auditor: "))
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
