"""Who is at the page, and what that person may do.

Who it is, in this order: whoever signed in by OpenID Connect, where Streamlit's secrets have a section ``[auth]``;
whom the proxy names, where ``AUDITOR_USER_HEADER`` says in which header; else the name that a person types, and
everybody who can open the app may do everything.

Where people sign in, those in ``AUDITOR_OWNERS`` may do everything, and reviewers decide labels: all others, or
those in ``AUDITOR_REVIEWERS`` where it is set. Who is neither may look. A page hands its role to our routes with
the signed token of ``access``.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import streamlit as st

from app.session import access
from app.session.access import OWNER, READER, REVIEWER, Person
from app.session.words import plain
from auditor.ground.errors import AuditorError

HEADER, OWNERS, REVIEWERS = "AUDITOR_USER_HEADER", "AUDITOR_OWNERS", "AUDITOR_REVIEWERS"
EVERYBODY = "*"
NAME_CLAIMS = ("email", "preferred_username", "sub")
"""Of an identity: the first that it has is the name under which decisions are kept."""

SCREENS = {
    "home": READER,
    "import": OWNER,
    "audit": OWNER,
    "verify": REVIEWER,
    "suspects": REVIEWER,
    "masks": REVIEWER,
    "numbers": REVIEWER,
    "sets": REVIEWER,
    "map": READER,
    "classes": READER,
    "engines": READER,
    "export": OWNER,
}
"""The role that each screen needs."""
SENTENCES = {
    OWNER: "You are an owner: you import, audit, review and export.",
    REVIEWER: "You are a reviewer: you decide labels. Owners import, audit and export.",
    READER: "You may look at Home, Map, Classes and Engines. An owner of the app can make you a reviewer.",
}


def person() -> Person:
    """Return whoever is at this page.

    Raises:
        AuditorError: a sign-in is asked for and cannot be used.
    """
    name = _name()
    return Person(None, OWNER) if name is None else Person(name, role(name))


def may(wanted: str) -> bool:
    """Return whether whoever is at this page has that role, or one that may do more."""
    return person().may(wanted)


def role(name: str) -> str:
    """Return what somebody who signed in may do."""
    if _names(name, OWNERS, ""):
        return OWNER
    return REVIEWER if _names(name, REVIEWERS, EVERYBODY) else READER


def require() -> None:
    """Ask a person to sign in, where one must; stops the page until somebody has.

    Raises:
        AuditorError: signing in needs a package that is not here.
    """
    if not uses_openid() or st.user.is_logged_in:
        return
    if find_spec("authlib") is None:
        raise AuditorError("Signing in needs the package authlib: pip install 'label-auditor[team]'.")
    _, middle, _ = st.columns([1, 1.4, 1])
    with middle.container(border=True, key="sign_in"):
        st.title("Label auditor", anchor=False)
        st.caption("Your decisions are kept under the name that you sign in with.")
        st.button("Sign in", type="primary", icon=":material/login:", on_click=st.login, key="sign_in_button")
    st.stop()


def draw(found: Person) -> None:
    """The person in the sidebar, with the role in words and, by OpenID Connect, a way out."""
    assert found.name is not None
    with st.sidebar.popover(f"{plain(found.name)}", icon=":material/person:", width="stretch"):
        st.caption(SENTENCES[found.role])
        if uses_openid():
            st.button("Sign out", on_click=st.logout, icon=":material/logout:", key="sign_out")


def opens(screen: str) -> bool:
    """Return whether whoever is here may open the screen, named as in the app's address (the first one
    ``home``).
    """
    return may(SCREENS[screen])


def uses_openid() -> bool:
    """Return whether people sign in by OpenID Connect.

    Raises:
        AuditorError: a file of secrets is there and cannot be read: nobody is let in by mistake.
    """
    try:
        return "auth" in st.secrets
    except FileNotFoundError as error:  # also what Streamlit raises for a file that it cannot read
        there = [path for path in st.get_option("secrets.files") if Path(path).exists()]
        if not there:
            return False
        raise AuditorError(
            f"{there[0]} cannot be read, so it is not known who may sign in ({error}); repair or remove it."
        ) from error


def _name() -> str | None:
    """Of whoever signed in; None where nobody has to."""
    if uses_openid():
        claims = st.user.to_dict()
        if claims.get("email_verified") is False:
            raise AuditorError(
                "Your identity provider has not verified your e-mail address; ask it to do so."
            )
        name = next((str(claims[claim]) for claim in NAME_CLAIMS if claims.get(claim)), "")
        if not name:
            raise AuditorError(f"Your identity provider tells no name (one of {', '.join(NAME_CLAIMS)}).")
        return name
    header = os.environ.get(HEADER)
    if not header:
        return None
    return told_by_proxy(st.context.headers.get_all(header), header)


def told_by_proxy(values: list[str], header: str) -> str:
    """The name in the proxy's header.

    Raises:
        AuditorError: it is missing, or there twice: then a browser may have sent one of them.
    """
    if len(values) > 1:
        raise AuditorError(
            f"The request names you {len(values)} times (header {header}); let the proxy drop what browsers send."
        )
    name = values[0].strip() if values else ""
    if not name:
        raise AuditorError(
            f"The proxy did not say who you are (header {header}); open the app through it and sign in there."
        )
    return name


def is_asked() -> bool:
    """Return whether people sign in at all, by either way."""
    return bool(os.environ.get(HEADER)) or uses_openid()


def visitor(token: str | None) -> Person | None:
    """Return who holds a token that a page of this app was given; None where it opens nothing.

    Where people sign in, the token of an app without is worth nothing. The role is that of now.
    """
    if is_asked():
        name = access.signed(token)
        return None if name is None else Person(name, role(name))
    return Person(None, OWNER) if access.is_known(token) else None


def token() -> str:
    """Return what this page sends with each request to our routes."""
    found = person()
    return access.token() if found.name is None else access.sign(found.name)


def _names(name: str, variable: str, default: str) -> bool:
    listed = {one.strip().casefold() for one in os.environ.get(variable, default).split(",") if one.strip()}
    return EVERYBODY in listed or name.casefold() in listed
