"""The hashes of removed keys, which no server may take for the operator's token."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the table, empty: nothing says what was removed before."""
    op.create_table("removed_keys", sa.Column("hash", sa.LargeBinary(32), primary_key=True))


def downgrade() -> None:
    """Drop it."""
    op.drop_table("removed_keys")
