"""Used invitations are told by tags until a day's are deleted together; a fit's time is a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

MINUTES_A_DAY = 1440


def upgrade() -> None:
    """Make the tables; invitations that are there stay good."""
    op.add_column("studies", sa.Column("spending", sa.LargeBinary()))
    op.create_table(
        "spent_invitations",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("tag", sa.LargeBinary(32), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table("upkeep", sa.Column("day", sa.Date(), primary_key=True))
    op.alter_column("posteriors", "minute", new_column_name="day")
    op.execute(f"UPDATE posteriors SET day = day / {MINUTES_A_DAY}")


def downgrade() -> None:
    """Drop them; refused while used invitations are not deleted yet, which would be good again."""
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT count(*) FROM spent_invitations")).scalar_one():
        raise RuntimeError("used invitations are not deleted yet")
    op.alter_column("posteriors", "day", new_column_name="minute")
    op.execute(f"UPDATE posteriors SET minute = minute * {MINUTES_A_DAY}")
    op.drop_table("upkeep")
    op.drop_table("spent_invitations")
    op.drop_column("studies", "spending")
