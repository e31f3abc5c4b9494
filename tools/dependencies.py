"""Known weaknesses of the installed packages: ``python -m tools.dependencies`` asks pip-audit.

Where the index does not answer such questions, as some mirrors do not, this says so and ends with exit code 2.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

STAYS: dict[str, str] = {}
"""Identifiers of weaknesses that stay for now, each with the reason."""


def weaknesses(report: dict[str, Any]) -> list[str]:
    """One line for each weakness in pip-audit's JSON that ``STAYS`` does not list, sorted."""
    return sorted(
        f"{package['name']} {package['version']}: {found['id']}, fixed in {found['fix_versions'] or 'none'}"
        for package in report["dependencies"]
        for found in package.get("vulns", [])
        if not {found["id"], *found.get("aliases", [])} & set(STAYS)
    )


def main() -> int:
    """Exit code 1 where a weakness is not listed in ``STAYS``, 2 where the index does not answer."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        print(f"Not audited: {last}")
        return 2
    found = weaknesses(report)
    print("\n".join(found) or f"{len(report['dependencies'])} packages, no known weakness.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
