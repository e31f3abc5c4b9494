"""What belongs together: datasets and audits get a UUID, which a manifest in their folders repeats; leases.

The UUID of an older row is made from what it says of itself, so that two copies of one catalog agree on it.
"""

from __future__ import annotations

import json
import uuid

import sqlalchemy as sa
from alembic import op

from auditor.ground.settings import settings

revision = "0004"
down_revision = "0003"

NAMESPACE = uuid.UUID("6f0d1f0a-6a0b-4c58-9a5e-0a7d6c1f9f3b")


def upgrade() -> None:
    """Add the columns and the table; folders that are there get the manifest that they lack."""
    connection = op.get_bind()
    for table, place in (("dataset", settings().datasets), ("audit", settings().audits)):
        op.add_column(table, sa.Column("uuid", sa.String, nullable=False, server_default=""))
        named = "name" if table == "dataset" else "dataset_id"
        rows = connection.execute(sa.text(f"SELECT id, {named}, created_at FROM {table}")).all()
        for number, name, created_at in rows:
            own = uuid.uuid5(NAMESPACE, f"{table} {number} {name} {created_at}").hex
            change = sa.text(f"UPDATE {table} SET uuid = :own WHERE id = :number")
            connection.execute(change, {"own": own, "number": number})
            folder = place / str(number)
            if folder.is_dir() and not (folder / "manifest.json").exists():
                title = f"dataset {name}" if table == "dataset" else f"audit {number}"
                text = json.dumps({"uuid": own, "title": title}, indent=1, ensure_ascii=False)
                (folder / "manifest.json").write_text(text, encoding="utf-8")
    op.create_table(
        "lease",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("uuid", sa.String, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("process_started", sa.Float, nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
    )
