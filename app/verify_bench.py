"""What the verify screen sends: blind verdicts on randomly drawn samples, and their undoing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor import verification
from auditor.errors import AuditorError


def record(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Write blind verdicts; each answer says whether that one is in the database."""
    return {"results": [_record_one(verdict) for verdict in payload["verdicts"]]}


def undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the verdict on one sample."""
    verification.undo(int(payload["draw"]), int(payload["sample"]), reviewer=str(payload["reviewer"]))
    return {"undone": int(payload["sample"])}


def _record_one(verdict: Mapping[str, Any]) -> dict[str, Any]:
    token = str(verdict.get("token"))
    try:
        verification.record(
            int(verdict["draw"]),
            int(verdict["sample"]),
            str(verdict["decision"]),
            label=verdict.get("label"),
            reviewer=str(verdict["reviewer"]),
        )
    except AuditorError as error:
        return {"token": token, "error": str(error)}
    return {"token": token}
