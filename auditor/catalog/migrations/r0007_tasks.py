"""A dataset knows what its labels are: classes, masks or numbers; and a sample where its mask lies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns; all datasets of earlier versions have one class an image."""
    op.add_column("dataset", sa.Column("task", sa.String, nullable=False, server_default="classification"))
    op.add_column("dataset", sa.Column("masks", sa.JSON, nullable=True))
    op.add_column("sample", sa.Column("mask", sa.String, nullable=True))
