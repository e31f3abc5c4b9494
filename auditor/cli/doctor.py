"""What this machine has for the product and what it lacks, each with the remedy (`auditor doctor`)."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from packaging.requirements import Requirement

from auditor.bridges import fiftyone_door
from auditor.ground.processes import usable_cores
from auditor.ground.settings import settings
from auditor.ground.wording import plural

MIN_FREE_GB = 2.0
MOST_LISTED = 10
NOT_FOR_USERS = frozenset(["all", "dev", "docs", "bench"])
"""Extras that bring nothing of their own, or only what developers need."""


@dataclass(frozen=True)
class Check:
    """One line of the doctor."""

    name: str
    state: str
    """``ok``, ``missing`` (the rest still works) or ``broken`` (audits cannot run)."""
    text: str

    @property
    def mark(self) -> str:
        """Return how the line begins."""
        return {"ok": "ok      ", "missing": "missing ", "broken": "BROKEN  "}[self.state]

    @property
    def is_fatal(self) -> bool:
        """Audits cannot run."""
        return self.state == "broken"


def checks() -> list[Check]:
    """Look at everything, in the order in which it matters."""
    looks: list[Callable[[], Check]] = [
        _python,
        _packages,
        _extras,
        _torch,
        _gpu,
        _home,
        _disk,
        _catalog,
        _folders,
        _browser,
        _mongodb,
    ]
    return [look() for look in looks]


def _python() -> Check:
    version = sys.version.split()[0]
    right = (3, 11) <= sys.version_info[:2] <= (3, 13)
    remedy = "" if right else "; use Python 3.11 to 3.13"
    return Check("python", "ok" if right else "broken", f"{version} at {sys.executable}{remedy}")


def _packages() -> Check:
    try:
        needs = importlib.metadata.requires("label-auditor") or []
    except importlib.metadata.PackageNotFoundError:
        return Check("packages", "broken", "label-auditor is not installed here; run `pip install -e .`")
    problems = [problem for need in needs if (problem := _version_problem(Requirement(need)))]
    if problems:
        return Check("packages", "broken", "; ".join(problems) + "; run `pip install -e .` again")
    return Check("packages", "ok", f"{plural(len(needs), 'requirement')} met")


def _extras() -> Check:
    """Return which of the optional packages are here, by the extra that brings them."""
    try:
        metadata = importlib.metadata.metadata("label-auditor")
        needs = [Requirement(need) for need in importlib.metadata.requires("label-auditor") or []]
    except importlib.metadata.PackageNotFoundError:
        return Check("extras", "missing", "unknown, because label-auditor is not installed here")
    there, missing = list[str](), list[str]()
    for extra in metadata.get_all("Provides-Extra") or []:
        if extra in NOT_FOR_USERS:
            continue
        of_it = [need for need in needs if need.marker and need.marker.evaluate({"extra": extra})]
        lacks = [need.name for need in of_it if not _is_installed(need.name)]
        (missing if lacks else there).append(extra)
    if not missing:
        return Check("extras", "ok", ", ".join(there))
    remedy = f"pip install 'label-auditor[{','.join(missing)}]'"
    return Check("extras", "missing", f"{', '.join(missing)}; to have them: {remedy}")


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _version_problem(need: Requirement) -> str | None:
    if need.marker is not None and not need.marker.evaluate({"extra": ""}):
        return None
    try:
        have = importlib.metadata.version(need.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{need.name} is missing"
    fits = need.specifier.contains(have, prereleases=True)
    return None if fits else f"{need.name} {have} is outside {need.specifier}"


def _torch() -> Check:
    from auditor.bridges.engine_bridge import machine

    try:
        found, _ = machine()
    except (ImportError, OSError, RuntimeError) as error:
        return Check(
            "torch", "broken", f"cannot be imported ({error}); install torch and torchvision together"
        )
    return Check("torch", "ok", ", ".join(f"{name} {version}" for name, version in found.items()))


def _gpu() -> Check:
    from auditor.bridges.engine_bridge import machine, refused_cards

    try:
        _, device = machine()
        refused = refused_cards()
    except (ImportError, OSError, RuntimeError):
        return Check("gpu", "missing", "unknown, because torch cannot be imported")
    if device.startswith("cuda"):
        return Check("gpu", "ok", device)
    found = "; ".join(refused) or "none"
    return Check(
        "gpu", "missing", f"{found}; audits run on {plural(usable_cores(), 'CPU core')}, use the preset quick"
    )


def _home() -> Check:
    home = settings().home
    probe = home / f".probe-{uuid.uuid4().hex}"
    try:
        settings().make_home()
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Check("home", "broken", f"{home} cannot be written ({error.strerror}); set AUDITOR_HOME")
    return Check("home", "ok", str(home))


def _disk() -> Check:
    place = settings().home
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 1e9
    enough = free >= MIN_FREE_GB
    text = f"{free:.1f} GB free at {place}"
    return Check("disk", "ok" if enough else "missing", text if enough else text + "; free some space")


def _catalog() -> Check:
    from auditor.catalog import datasets
    from auditor.catalog.db import ask
    from auditor.ground.errors import AuditorError

    try:
        count = len(ask(datasets.list_all))
    except AuditorError as error:
        return Check("catalog", "broken", str(error))
    return Check("catalog", "ok", f"{settings().catalog_name}, {plural(count, 'dataset')}")


def _folders() -> Check:
    from auditor.catalog import folders
    from auditor.catalog.db import ask
    from auditor.ground.errors import AuditorError

    try:
        found = ask(folders.strays)
    except (AuditorError, OSError):
        return Check("folders", "missing", "unknown, because the catalog cannot be read")
    if not found:
        return Check("folders", "ok", "every dataset and audit has its own")
    listed = "; ".join(f"{stray.folder} {stray.text}" for stray in found[:MOST_LISTED])
    more = f"; and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return Check("folders", "missing", listed + more)


def _browser() -> Check:
    names = ("chromium", "google-chrome", "chromium-browser", "firefox")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        return Check("browser", "missing", "none on this machine; open the app's address on another machine")
    return Check("browser", "ok", found)


def _mongodb() -> Check:
    if missing := fiftyone_door.missing():
        return Check("mongodb", "missing", f"{missing} Everything else works without FiftyOne.")
    uri = fiftyone_door.configured_uri()
    where = "FiftyOne starts its own" if uri is None else f"FiftyOne's at {fiftyone_door.host_of(uri)}"
    return Check("mongodb", "ok", where)
