"""An audit has two places for its scores: under its own number, and under the negative of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Scores of earlier versions stand under the audit's own number.

    A negative number is no audit's, so nothing may ask that it is. SQLite takes that off a table only where the
    table is made anew.
    """
    op.add_column("audit", sa.Column("scores_side", sa.Integer, nullable=False, server_default="1"))
    if op.get_bind().dialect.name != "sqlite":
        op.execute("ALTER TABLE score DROP CONSTRAINT IF EXISTS score_audit_id_fkey")
        return
    columns = (
        sa.Column("audit_id", sa.Integer, primary_key=True),
        sa.Column("sample_id", sa.Integer, primary_key=True),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("given_label", sa.Integer, nullable=False),
        sa.Column("trust_score", sa.Float),
        sa.Column("error_probability", sa.Float),
        sa.Column("is_label_issue", sa.Boolean, nullable=False),
        sa.Column("suggested_label", sa.Integer, nullable=False),
        sa.Column("suggested_probability", sa.Float, nullable=False),
        sa.Column("agreement", sa.Integer, nullable=False),
        sa.Column("disagreement", sa.Float, nullable=False),
    )
    names = ", ".join(column.name for column in columns)
    op.create_table("score_anew", *columns)
    op.execute(f"INSERT INTO score_anew ({names}) SELECT {names} FROM score")
    op.drop_table("score")
    op.rename_table("score_anew", "score")
    op.create_index("score_by_rank", "score", ["audit_id", "rank", "error_probability"])
    pair = ["audit_id", "given_label", "suggested_label", "rank", "is_label_issue"]
    op.create_index("score_by_pair", "score", pair)
