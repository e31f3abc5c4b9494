"""One log of decisions: blind verdicts become rows of ``review``, and ``decision`` says which row counts now.

What a verdict amounts to is written down at once: the class that a person saw keeps the given label or corrects it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TIME = sa.DateTime(timezone=True)
REVIEW = sa.table(
    "review",
    *(
        sa.column(name, sa.Integer)
        for name in ("id", "dataset_id", "sample_id", "label", "draw_id", "reverts")
    ),
    *(sa.column(name, sa.String) for name in ("kind", "decision", "reviewer", "source")),
    sa.column("created_at", TIME),
)
VERDICT = sa.table(
    "verdict",
    *(sa.column(name, sa.Integer) for name in ("id", "dataset_id", "draw_id", "sample_id", "label")),
    *(sa.column(name, sa.String) for name in ("decision", "reviewer")),
    sa.column("created_at", TIME),
)
SAMPLE = sa.table(
    "sample", *(sa.column(name, sa.Integer) for name in ("dataset_id", "sample_id", "given_label"))
)
OLD_DECISION = sa.table(
    "decision", *(sa.column(name, sa.Integer) for name in ("dataset_id", "sample_id", "review_id"))
)


def upgrade() -> None:
    """Move the verdicts into the log, then write down what counts for each sample."""
    connection = op.get_bind()
    op.add_column("review", sa.Column("kind", sa.String, nullable=False, server_default="suspect"))
    # As text: Alembic refuses a column with a reference for SQLite, which takes it.
    op.execute("ALTER TABLE review ADD COLUMN draw_id INTEGER REFERENCES draw (id)")
    op.create_index("review_by_kind", "review", ["dataset_id", "kind"])
    op.execute("UPDATE review SET kind = 'unseen' WHERE source = 'unseen'")
    counts = _looks(connection)
    for key, verdict in _verdicts(connection).items():
        look = counts.get(key)
        is_later = look is None or look["kind"] == "unseen" or look["created_at"] < verdict["created_at"]
        if is_later and (look is None or verdict["decision"] != "unsure"):
            counts[key] = verdict
    op.drop_table("verdict")
    op.drop_table("decision")
    decision = op.create_table(
        "decision",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), primary_key=True),
        sa.Column("sample_id", sa.Integer, primary_key=True),
        sa.Column("review_id", sa.Integer, sa.ForeignKey("review.id"), nullable=False),
    )
    rows = [
        {"dataset_id": dataset_id, "sample_id": sample_id, "review_id": one["id"]}
        for (dataset_id, sample_id), one in counts.items()
    ]
    op.bulk_insert(decision, rows)


def _looks(connection: sa.Connection) -> dict[tuple[int, int], dict[str, Any]]:
    """The decision that counted for each (dataset_id, sample_id), blind verdicts apart."""
    found = connection.execute(
        sa.select(
            OLD_DECISION.c.dataset_id,
            OLD_DECISION.c.sample_id,
            REVIEW.c.id,
            REVIEW.c.kind,
            REVIEW.c.created_at,
        ).join(REVIEW, REVIEW.c.id == OLD_DECISION.c.review_id)
    )
    return {(row.dataset_id, row.sample_id): row._asdict() for row in found}


def _verdicts(connection: sa.Connection) -> dict[tuple[int, int], dict[str, Any]]:
    """Write every verdict into the log; returns the one that counts for each (dataset_id, sample_id)."""
    same = (SAMPLE.c.dataset_id == VERDICT.c.dataset_id) & (SAMPLE.c.sample_id == VERDICT.c.sample_id)
    statement = sa.select(VERDICT, SAMPLE.c.given_label).join(SAMPLE, same).order_by(VERDICT.c.id)
    largest = sa.select(sa.func.max(REVIEW.c.id)).scalar_subquery()
    latest: dict[tuple[int, int], dict[str, Any]] = {}
    for row in connection.execute(statement).all():
        key = (row.dataset_id, row.sample_id)
        decision, label = row.decision, None
        if decision == "label":
            is_kept = row.label == row.given_label
            decision, label = ("keep", None) if is_kept else ("relabel", row.label)
        values = {
            "dataset_id": row.dataset_id,
            "sample_id": row.sample_id,
            "kind": "blind",
            "decision": decision,
            "label": label,
            "reviewer": row.reviewer,
            "created_at": row.created_at,
            "source": "verify",
            "draw_id": row.draw_id,
            "reverts": latest[key]["id"] if decision == "undo" and key in latest else None,
        }
        connection.execute(sa.insert(REVIEW).values(**values))
        latest[key] = values | {"id": connection.execute(sa.select(largest)).scalar_one()}
    return {key: one for key, one in latest.items() if one["decision"] != "undo"}
