"""A database has an identity: devices tell the collector that published their study from another one."""

from __future__ import annotations

import os

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table and draw the identity. A copy of the database, such as a backup, has the same."""
    table = op.create_table(
        "collector",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("identity", sa.LargeBinary(16), nullable=False),
    )
    op.bulk_insert(table, [{"number": 1, "identity": os.urandom(16)}])


def downgrade() -> None:
    """Drop it; devices then keep what is refused."""
    op.drop_table("collector")
