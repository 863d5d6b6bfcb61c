"""A study that was deleted is told from one that was closed: no device is to answer it, whatever its age."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Make the column; what was deleted before counts as closed, which it is too."""
    op.add_column("studies", sa.Column("deleted", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("studies", "deleted")
