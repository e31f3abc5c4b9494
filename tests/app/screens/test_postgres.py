"""Every screen with PostgreSQL as the catalog, on classes, masks and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import numbered
from tests.app import conftest as classes
from tests.app.screens.opened import ROOT, open_page
from tests.on_postgres import move_catalog

SCREENS = sorted(path.stem for path in (ROOT / "app" / "screens").glob("[a-z]*.py"))


@pytest.fixture(params=["classes", "masks", "numbers"])
def dataset(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> str:
    """The name of an audited dataset with such labels, in PostgreSQL."""
    if request.param == "numbers":
        request.getfixturevalue("empty_postgres")
        numbered.make_home(tmp_path)
        return "ages"
    request.getfixturevalue("copied_home" if request.param == "classes" else "audited_masks")
    request.getfixturevalue("empty_postgres")
    move_catalog(home)
    return classes.DATASET if request.param == "classes" else "shapes"


def test_screens__open_on_postgresql(dataset: str) -> None:
    for screen in SCREENS:
        app = open_page(screen, dataset)
        assert not app.error, screen
        assert app.title, screen
