"""A page of the app in Streamlit's own test harness, with a dataset and a reviewer."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

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
