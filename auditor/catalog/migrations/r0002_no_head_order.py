"""Without the orders of reviews that stood among the draws: nobody can ask for one any more."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Delete the orders; the verdicts given in one are in the log like all others."""
    op.execute("DELETE FROM draw WHERE purpose = 'order'")
