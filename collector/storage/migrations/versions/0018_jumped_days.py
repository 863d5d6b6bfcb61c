"""Which day of upkeep came so long after the one before that no report is deleted on it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Make the column. The last upkeep's day may have been such a one."""
    op.add_column("upkeep", sa.Column("jumped", sa.Date()))
    op.execute("UPDATE upkeep SET jumped = day")


def downgrade() -> None:
    """Drop it."""
    op.drop_column("upkeep", "jumped")
