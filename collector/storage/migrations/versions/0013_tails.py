"""The running summary also counts how many reports lie far out; `migrate` counts all reports again for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Delete the sums, which lack that part: they are made of the reports again."""
    op.execute(sa.text("DELETE FROM sums"))


def downgrade() -> None:
    """Delete them too: `ldpkit admin recount` of the earlier release makes its own."""
    op.execute(sa.text("DELETE FROM sums"))
