"""Studies that take reports from invited people only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the table; every study that is there stays open to all."""
    op.add_column("studies", sa.Column("invited", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "invitations",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("hash", sa.LargeBinary(32), primary_key=True),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop it; every study is open to all then."""
    op.drop_table("invitations")
    op.drop_column("studies", "invited")
