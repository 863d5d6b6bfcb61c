"""The running summary of each version, built from the reports that are there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.orm import Session

from collector.reports.running_summary import build_sums

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table and fill it."""
    op.create_table(
        "sums",
        sa.Column("study", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("slot", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("sums", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),
    )
    with Session(bind=op.get_bind()) as session:
        build_sums(session)
        session.flush()


def downgrade() -> None:
    """Drop it; the reports still say everything."""
    op.drop_table("sums")
