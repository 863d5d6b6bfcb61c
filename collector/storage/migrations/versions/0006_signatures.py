"""Signatures of published studies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "signatures",
        sa.Column("study", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("algorithm", sa.String(32), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),
    )


def downgrade() -> None:
    """Drop it; the studies stay, unsigned."""
    op.drop_table("signatures")
