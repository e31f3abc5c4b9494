"""What the verify screen sends: blind verdicts on randomly drawn samples, and their undoing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import data
from auditor import verification
from auditor.catalog import verifications
from auditor.catalog.db import session
from auditor.errors import AuditorError


def record(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Write blind verdicts; each answer says whether that one is in the database."""
    return {"results": [_record_one(verdict) for verdict in payload["verdicts"]]}


def undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the verdict on one sample; ``last`` is the reviewer's newest that stands then, or None."""
    draw_id, reviewer = int(payload["draw"]), str(payload["reviewer"])
    verification.undo(draw_id, int(payload["sample"]), reviewer=reviewer)
    with session() as open_session:
        dataset_id = verifications.get_draw(open_session, draw_id).dataset_id
    return {"undone": int(payload["sample"]), "last": data.last_blind_item(dataset_id, reviewer)}


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
