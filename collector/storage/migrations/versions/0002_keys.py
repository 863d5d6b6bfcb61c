"""Keys of people and programs that work with the collector."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "keys",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
    )


def downgrade() -> None:
    """Drop it; only the operator's token works then."""
    op.drop_table("keys")
