"""Which codes ended as a backup was put back: their people may have got a token since it was made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the mark; earlier releases deleted such codes."""
    op.add_column("codes", sa.Column("ended", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Delete them, and drop the mark: no such code may be good again."""
    op.execute("DELETE FROM codes WHERE ended")
    op.drop_column("codes", "ended")
