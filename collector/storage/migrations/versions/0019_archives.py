"""Where a study's reports went that are here no more, how many they were, which are to be deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Make them."""
    op.add_column("studies", sa.Column("archived", sa.Text()))
    op.create_table(
        "archived_reports",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("day", sa.Date(), primary_key=True),
        sa.Column("reports", sa.Integer(), nullable=False),
    )
    op.create_table(
        "waiting_withdrawals",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("taken", sa.Boolean(), nullable=False, server_default=sa.false()),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop them; refused while a study is archived, whose reports an earlier release would not miss."""
    if op.get_bind().execute(sa.text("SELECT count(*) FROM studies WHERE archived <> ''")).scalar_one():
        raise RuntimeError("studies are archived")
    op.drop_table("waiting_withdrawals")
    op.drop_table("archived_reports")
    op.drop_column("studies", "archived")
