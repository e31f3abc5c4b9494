"""What the environment says, and what it cannot mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from auditor.catalog import db
from auditor.catalog.db import session
from auditor.ground.errors import AuditorError
from auditor.ground.settings import Settings, number, settings


@pytest.mark.parametrize("text", ["x", "nan", "inf", "-1", "1e999", "101", "²"])
def test_number__what_is_none_is_one_line_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("AUDITOR_X", text)
    with pytest.raises(AuditorError, match="AUDITOR_X is .*; use a number from 0 to 100"):
        number("AUDITOR_X", 5.0, least=0.0, most=100.0)


@pytest.mark.parametrize(("text", "found"), [("", 5.0), ("0", 0.0), ("2.5", 2.5), ("100", 100.0)])
def test_number__of_the_variable_or_the_default(
    monkeypatch: pytest.MonkeyPatch, text: str, found: float
) -> None:
    monkeypatch.setenv("AUDITOR_X", text)
    assert number("AUDITOR_X", 5.0, least=0.0, most=100.0) == found


def test_settings__home_of_an_unknown_user_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_HOME", "~nosuchuser/x")
    with pytest.raises(AuditorError, match="set AUDITOR_HOME"):
        settings()


def test_database_url__is_below_a_home_of_any_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUDITOR_DATABASE_URL", raising=False)
    for name in ("50%", "50%25", "what?", "what?x=1", "a#b", "a@b:c"):
        home = tmp_path / name
        monkeypatch.setenv("AUDITOR_HOME", str(home))
        with session() as open_session:
            open_session.execute(text("SELECT 1"))
        assert (home / "catalog.db").stat().st_size
        db.close_all()


def test_session__below_a_home_that_is_too_long_for_sqlite(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AUDITOR_DATABASE_URL", raising=False)
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path.joinpath(*["x" * 200] * 3)))
    with pytest.raises(
        AuditorError, match=r"path is too long for SQLite; set AUDITOR_HOME to one of at most"
    ):
        session().__enter__()


def test_catalog_name__of_a_broken_address_shows_no_password() -> None:
    for url in ("postgresql+psycopg://ann:secret@host:port/x", "postgresql+psycopg://ann:secret@host/x"):
        assert "secret" not in Settings(Path("x"), url).catalog_name
