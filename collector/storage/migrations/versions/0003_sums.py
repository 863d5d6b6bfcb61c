"""The running summary of each version; `migrate` has it counted once all tables have their new form."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "sums",
        sa.Column("study", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("slot", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("sums", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),
    )


def downgrade() -> None:
    """Drop it; the reports still say everything."""
    op.drop_table("sums")
