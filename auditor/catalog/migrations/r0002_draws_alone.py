"""Without orders of reviews among the draws, and without planted controls: nobody can ask for them any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Delete both; the verdicts given in an order of a review stay in the log, and a control decided no label."""
    op.execute("DELETE FROM draw WHERE purpose = 'order'")
    op.execute("DELETE FROM review WHERE kind = 'control'")
    if any(column["name"] == "control_rate" for column in sa.inspect(op.get_bind()).get_columns("dataset")):
        op.drop_column("dataset", "control_rate")
