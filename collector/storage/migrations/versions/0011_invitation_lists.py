"""Which lists of invitations were taken in, so that none is a second time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the table, empty: nothing says what was taken in before."""
    op.create_table(
        "invitation_lists",
        sa.Column(
            "study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True, autoincrement=False
        ),
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("invitation_lists")
