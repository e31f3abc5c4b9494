"""A page of the app in Streamlit's own test harness, with a dataset and a reviewer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from auditor import jobs
from auditor.ground.settings import settings

ROOT = Path(__file__).resolve().parents[3]


def open_page(screen: str, dataset: str) -> AppTest:
    """That page, as ada sees it."""
    app = AppTest.from_file(str(ROOT / "app" / "frame.py"), default_timeout=240)
    app.query_params["dataset"] = dataset
    app.session_state["reviewer"] = "ada"
    app.run()
    app.switch_page(f"screens/{screen}.py").run()
    assert not app.exception
    return app


def press(app: AppTest, label: str) -> None:
    """Press the button that says so."""
    next(one for one in app.button if one.label == label).click()
    app.run()
    assert not app.exception


def wait_until_over(job_id: int) -> None:
    """Wait for the process of that job."""
    deadline = time.monotonic() + 240
    while not jobs.overview(job_id).is_over:
        assert time.monotonic() < deadline, jobs.overview(job_id)
        time.sleep(0.05)


def made_by(screen: str, dataset: str, label: str) -> Path:
    """Press the button of an export, wait for its job, and return the file that the page then offers."""
    app = open_page(screen, dataset)
    press(app, label)
    (seen,) = jobs.listed("export")
    wait_until_over(seen.job.id)
    (link,) = [one.proto.body for one in app.run().get("html") if "/bench/file/" in one.proto.body]
    assert f"/{seen.job.id}?" in link
    return settings().job_folder(seen.job.id) / seen.job.arguments["file"]


def asked_of(app: AppTest, component: str = "auditor_judge") -> dict[str, Any]:
    """What the page gives that component, read as strictly as a browser reads it."""
    (shown,) = (one.proto for one in app.get("bidi_component") if one.proto.component_name == component)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not valid JSON")

    return json.loads(shown.json, parse_constant=refuse)
