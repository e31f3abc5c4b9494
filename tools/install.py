"""Install packages as pip would, by uv, which takes half a minute where pip takes four and more.

    python -m tools.install --constraint requirements.lock -e '.[all]'

Into the environment of this Python. Indexes, folders of wheels, certificates and timeouts are those of pip's files
and variables. What uv cannot do (there is none for this machine; an index wants what only pip can say), pip does.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys

PIP = [sys.executable, "-m", "pip"]
AS_UV_CALLS_IT = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""By pip's name of a setting, the variable in which uv reads it."""
SECTIONS = ("global", "install", ":env:")
"""Of pip's settings; a later one wins."""


def settings_of_pip() -> dict[str, str]:
    """Return what pip's files and variables say, by its own names (``index-url``)."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout
    found: dict[tuple[str, str], str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        found[section, key] = ast.literal_eval(value)
    return {key: found[section, key] for place in SECTIONS for section, key in found if section == place}


def as_uv_reads_it(settings: dict[str, str]) -> dict[str, str]:
    """Environment variables with which uv looks where pip would."""
    found = {AS_UV_CALLS_IT[key]: value for key, value in settings.items() if key in AS_UV_CALLS_IT}
    for several, between in (("UV_INDEX", " "), ("UV_FIND_LINKS", ","), ("UV_INSECURE_HOST", " ")):
        if several in found:
            found[several] = between.join(found[several].split())
    # pip takes the best version of all indexes, and trusts whom the system trusts.
    return found | {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true"}


def install(arguments: list[str]) -> None:
    """As ``pip install`` with these arguments.

    Raises:
        subprocess.CalledProcessError: neither uv nor pip could; what they said is on the screen.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--constraint", action="append", default=[])
    constraints = [f"--constraint={one}" for one in parser.parse_known_args(arguments)[0].constraint]
    by_pip = [*PIP, "install", "--quiet", "--disable-pip-version-check"]
    by_uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    environment = as_uv_reads_it(settings_of_pip()) | os.environ
    if (
        subprocess.run([*by_pip, *constraints, "uv"], check=False).returncode
        or subprocess.run([*by_uv, *arguments], env=environment, check=False).returncode
    ):
        print("uv could not; pip does it, in some minutes.", file=sys.stderr, flush=True)
        subprocess.run([*by_pip, *arguments], check=True)


if __name__ == "__main__":
    install(sys.argv[1:])
