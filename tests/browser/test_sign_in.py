"""Signing in at an identity provider, in a real browser: owners, reviewers and readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.review import decisions
from tests.app.conftest import DATASET
from tests.browser.conftest import WAIT_MS, Server, settled, wait_until
from tests.forker import Forker

pytest.importorskip("authlib", reason="the extra team is not installed")
from tests.identity import CLIENT, SECRET, NamingProxy, Provider

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture
def provider() -> Iterator[Provider]:
    running = Provider("ada@example.org")
    yield running
    running.close()


@pytest.fixture
def server(
    copied_home: Path, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forker: Forker
) -> Iterator[Server]:
    """The app on a home with an audit, where people sign in; Ada owns it."""
    running = Server(copied_home, forker)
    secrets = tmp_path / "secrets.toml"
    auth = {
        "redirect_uri": f"{running.url}/oauth2callback",
        "cookie_secret": "of this test, long enough to sign with",
        "client_id": CLIENT,
        "client_secret": SECRET,
        "server_metadata_url": f"{provider.address}/.well-known/openid-configuration",
    }
    secrets.write_text("[auth]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in auth.items()))
    monkeypatch.setenv("STREAMLIT_SECRETS_FILES", str(secrets))
    monkeypatch.setenv("AUDITOR_OWNERS", "Ada@example.org")
    monkeypatch.setenv("AUDITOR_REVIEWERS", "ben@example.org")
    running.start()
    yield running
    running.kill()


def signed_in(browser: Any, server: Server, provider: Provider, email: str, page: str = "") -> Any:
    """A page after that person has signed in."""
    provider.email = email
    visited = browser.new_context().new_page()
    visited.goto(f"{server.url}/{page}", timeout=WAIT_MS)
    visited.get_by_role("button", name="Sign in").click(timeout=WAIT_MS)
    visited.get_by_test_id("stSidebar").get_by_text(email).wait_for(timeout=WAIT_MS)
    return visited


def screens(page: Any) -> set[str]:
    """Titles of the screens that the sidebar offers."""
    links = page.locator(".st-key-screens a")
    links.last.wait_for(timeout=WAIT_MS)
    settled(page)
    return {one.strip().splitlines()[-1] for one in links.all_inner_texts()}


def test_sign_in__each_role_has_its_screens_and_decides_under_its_name(
    browser: Any, server: Server, provider: Provider, artifacts: Path
) -> None:
    stranger = browser.new_context().new_page()
    stranger.goto(server.url, timeout=WAIT_MS)
    stranger.get_by_role("button", name="Sign in").wait_for(timeout=WAIT_MS)
    stranger.screenshot(path=str(artifacts / "sign_in.png"))
    assert not stranger.locator(".st-key-screens").count()
    assert DATASET not in stranger.content()

    ada = signed_in(browser, server, provider, "ada@example.org")
    assert {"Home", "Import", "Audit", "Suspects", "Export"} <= screens(ada)

    ben = signed_in(browser, server, provider, "ben@example.org")
    assert {"Home", "Verify", "Suspects"} <= screens(ben)
    assert not {"Import", "Audit", "Export"} & screens(ben)
    ben.locator(".st-key-screens").get_by_text("Suspects").click()
    ben.locator("[data-testid=confusion]").wait_for(timeout=WAIT_MS)
    ben.keyboard.press("t")  # the cards come first
    ben.locator("[data-testid=card]").wait_for(timeout=WAIT_MS)
    ben.screenshot(path=str(artifacts / "signed_in_reviewer.png"))
    first = ben.locator("[data-testid=card]").get_attribute("data-sample")
    ben.keyboard.press("q")
    ben.locator(f"[data-testid=card]:not([data-sample='{first}'])").wait_for(timeout=WAIT_MS)
    with session() as open_session:
        dataset_id = datasets.get(open_session, DATASET).id
    wait_until(lambda: decisions.outcomes(dataset_id), "the verdict of the key", ben)
    assert {row.reviewer for row in decisions.outcomes(dataset_id).values()} == {"ben@example.org"}

    eve = signed_in(browser, server, provider, "eve@example.org")
    assert "Classes" in screens(eve)
    assert not {"Verify", "Suspects", "Export"} & screens(eve)


def test_sign_in__by_the_header_of_a_proxy(
    browser: Any, copied_home: Path, monkeypatch: pytest.MonkeyPatch, forker: Forker
) -> None:
    monkeypatch.setenv("AUDITOR_USER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("AUDITOR_OWNERS", "ada")
    server = Server(copied_home, forker)
    server.start()
    proxy = NamingProxy(int(server.url.rpartition(":")[2]), "X-Forwarded-User: ben")
    try:
        around = browser.new_context().new_page()
        around.goto(server.url, timeout=WAIT_MS)
        around.get_by_text("The proxy did not say who you are").wait_for(timeout=WAIT_MS)
        assert DATASET not in around.content()
        ben = browser.new_context().new_page()
        ben.goto(proxy.url, timeout=WAIT_MS)
        ben.get_by_test_id("stSidebar").get_by_text("ben").wait_for(timeout=WAIT_MS)
        assert "Suspects" in screens(ben)  # whoever is no owner reviews, where no reviewers are named
        assert not {"Import", "Audit", "Export"} & screens(ben)
    finally:
        proxy.close()
        server.kill()
