"""Whether an HTTP request names this machine, and whether the page that asks is its own.

A page of another website can make a browser call any address, and can give its own name the address 127.0.0.1
(DNS rebinding). Both of our servers ask here: the app, and the gate before FiftyOne's App.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

PLACE = re.compile(r"(\[[^\[\]@]*\]|[^\[\]@:]*)(:[0-9]*)?")
"""A host and its port; `urlsplit` passes over what stands beside brackets."""


def admits(hosts: list[str], origins: list[str], configured: Collection[str] = ()) -> bool:
    """Return whether a request with these headers may pass: one host of ours, and at most one origin, of ours too.

    ``configured``: other names, in small letters, by which this machine is reached; with a port where browsers
    use one that a proxy does not pass on.
    """
    if len(hosts) != 1 or len(origins) > 1 or not _is_ours(name_of(f"//{hosts[0]}"), configured):
        return False
    if not origins:
        return True  # no page asks: an image of this page, or a program of this machine
    scheme, _, place = origins[0].lower().partition("://")
    if scheme not in ("http", "https"):
        return False
    # A proxy may call us by another name than the page has. On this machine, another port is somebody else.
    is_by_proxy = place in configured and not is_loopback(name_of(f"//{place}") or "")
    return is_by_proxy or place == hosts[0].lower()


def is_loopback(name: str) -> bool:
    """Return whether a host's name or address is this machine and nothing else."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def name_of(url: str) -> str | None:
    """The host in a URL, without port and brackets, in small letters; None where there is not just that."""
    if any(letter <= " " or letter in "?#" for letter in url):
        return None  # `urlsplit` drops some of these in silence
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return None
    if PLACE.fullmatch(parts.netloc) is None or parts.path not in ("", "/"):
        return None
    return parts.hostname


def _is_ours(name: str | None, configured: Collection[str]) -> bool:
    return name is not None and (is_loopback(name) or name in {name_of(f"//{one}") for one in configured})
