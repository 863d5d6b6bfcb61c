"""A token is spent once: the hash of its nonce, in the transaction that stores its report."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "spent_tokens",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("nonce", sa.LargeBinary(32), primary_key=True),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop it; refused while tokens are spent, which an earlier release would not ask for."""
    if op.get_bind().execute(sa.text("SELECT count(*) FROM spent_tokens")).scalar_one():
        raise RuntimeError("tokens are spent")
    op.drop_table("spent_tokens")
