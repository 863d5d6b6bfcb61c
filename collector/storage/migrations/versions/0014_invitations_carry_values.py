"""An invitation may carry public values, such as the stratum of the sampling frame that it was drawn from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Make the column; invitations that are there carry nothing."""
    op.add_column("invitations", sa.Column("public", sa.Text()))


def downgrade() -> None:
    """Drop it; refused while an invitation carries something, which its report would lack."""
    carrying = sa.text("SELECT count(*) FROM invitations WHERE public IS NOT NULL")
    if op.get_bind().execute(carrying).scalar_one():
        raise RuntimeError("invitations carry public values")
    op.drop_column("invitations", "public")
