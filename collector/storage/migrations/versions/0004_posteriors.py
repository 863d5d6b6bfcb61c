"""Running posteriors, fitted beside the collector."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "posteriors",
        sa.Column("study", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("minute", sa.Integer(), nullable=False),
        sa.Column("fitted", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),
    )


def downgrade() -> None:
    """Drop it; posteriors can be fitted again."""
    op.drop_table("posteriors")
