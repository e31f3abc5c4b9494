"""What importing the engines settles about OpenMP before torch is loaded."""

from __future__ import annotations

import importlib
import os

import pytest

import engines


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "3000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, None),
    ],
)
def test_engines__short_waits_unless_the_user_chose(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str], found: str | None
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that what the import sets is taken back afterwards
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    importlib.reload(engines)
    assert os.environ.get("GOMP_SPINCOUNT") == found
