"""Whether the database was put back from a backup, which knows nothing of later tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the mark; what is migrated was no copy."""
    op.add_column("issuer", sa.Column("is_copy", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("issuer", "is_copy")
