"""What the verify screen sends: blind verdicts on randomly drawn samples, and their undoing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import data
from auditor import verification
from auditor.catalog import verifications
from auditor.catalog.db import session
from auditor.catalog.models import now
from auditor.errors import AuditorError

SHARED_S = 300.0
"""How long ago somebody else's newest verdict may be, for the draw to count as judged by several people now."""


def record(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Write blind verdicts; each answer says whether that one is in the database, and what others did meanwhile."""
    return {"results": [_record_one(verdict) for verdict in payload["verdicts"]]}


def undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the verdict on one sample; ``last`` is the reviewer's newest that stands then, or None."""
    draw_id, reviewer = int(payload["draw"]), str(payload["reviewer"])
    verification.undo(draw_id, int(payload["sample"]), reviewer=reviewer)
    with session() as open_session:
        dataset_id = verifications.get_draw(open_session, draw_id).dataset_id
    return {"undone": int(payload["sample"]), "last": data.last_blind_item(dataset_id, reviewer)}


def _record_one(verdict: Mapping[str, Any]) -> dict[str, Any]:
    token, reviewer = str(verdict.get("token")), str(verdict["reviewer"])
    draw_id, sample_id = int(verdict["draw"]), int(verdict["sample"])
    try:
        with session() as open_session:
            dataset_id = verifications.get_draw(open_session, draw_id).dataset_id
            standing = verifications.verdicts(open_session, dataset_id)
        verification.record(
            draw_id, sample_id, str(verdict["decision"]), label=verdict.get("label"), reviewer=reviewer
        )
    except AuditorError as error:
        return {"token": token, "error": str(error)}
    before = standing.get((draw_id, sample_id))
    others = [row.created_at for row in standing.values() if row.reviewer != reviewer]
    return {
        "token": token,
        "judged": [f"{draw}/{sample}" for draw, sample in standing],
        "is_shared": bool(others) and (now() - max(others)).total_seconds() < SHARED_S,
        "judged_before_by": None if before is None or before.reviewer == reviewer else before.reviewer,
    }
