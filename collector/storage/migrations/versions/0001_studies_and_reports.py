"""Studies, their documents and their reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables; those of releases without migrations are taken over as they are."""
    op.create_table(
        "studies",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("opens", sa.Date()),
        sa.Column("closes", sa.Date()),
        sa.Column("closed", sa.Boolean(), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "documents",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("canonical", sa.LargeBinary(), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "reports",
        sa.Column("study", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("payloads", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),
        if_not_exists=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop everything."""
    for table in ("reports", "documents", "studies"):
        op.drop_table(table)
