"""How often reports of a study were deleted: an export that was under way knows that it has a part."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Make the column; no export is under way from before."""
    op.add_column(
        "studies", sa.Column("deletions", sa.Integer(), nullable=False, server_default=sa.text("0"))
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_column("studies", "deletions")
