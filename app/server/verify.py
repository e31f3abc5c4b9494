"""What the verify screen sends: blind verdicts on randomly drawn samples, and their undoing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.server import bodies
from app.session import readers
from auditor.catalog import draws, reviews
from auditor.catalog.db import ask
from auditor.catalog.records import Review
from auditor.ground.errors import AuditorError, CatalogError, VerificationError
from auditor.review import blind, schema


def record(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Write blind verdicts; each answer says whether that one is in the database, the last what others judged."""
    verdicts = schema.read(bodies.Verdicts, payload).verdicts
    results = [_record_one(verdict) for verdict in verdicts]
    if results and "error" not in results[-1]:
        standing = _standing(verdicts[-1]["draw"])
        results[-1]["judged"] = [f"{draw}/{sample}" for draw, sample in standing]
    return {"results": results}


def undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Undo the verdict on one sample; ``last`` is the reviewer's newest verdict after that, or None.

    ``refused`` says why it stays, where somebody else's later verdict counts.
    """
    body = schema.read(bodies.BlindUndo, payload)
    draw_id, reviewer = body.draw, body.reviewer
    refused = None
    try:
        blind.undo(draw_id, body.sample, reviewer=reviewer)
    except VerificationError as error:
        refused = str(error)
    return {"refused": refused, "last": readers.last_blind_item(ask(draws.get, draw_id).dataset_id, reviewer)}


def _standing(draw_id: int) -> dict[tuple[int, int], Review]:
    return ask(reviews.verdicts, ask(draws.get, draw_id).dataset_id)


def _record_one(verdict: Mapping[str, Any]) -> dict[str, Any]:
    token = str(verdict.get("token"))
    try:
        said = schema.read(schema.BlindVerdict, verdict)
        asks = blind.record(
            said.draw,
            said.sample,
            said.decision,
            label=said.label,
            number=said.number,
            labels=said.labels,
            reviewer=said.reviewer,
        )
    except CatalogError:  # no word against this verdict: the browser keeps it and sends it again
        raise
    except AuditorError as error:
        return {"token": token, "error": str(error)}
    return {"token": token, "asks": asks}
