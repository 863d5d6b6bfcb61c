"""The set of reports that a node of a secure sum is bound to, and its sum."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "secure_sums",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("ids", sa.LargeBinary(), nullable=False),
        sa.Column("total", sa.LargeBinary()),
    )


def downgrade() -> None:
    """Drop it; a node without it could be made to sum a second set."""
    op.drop_table("secure_sums")
