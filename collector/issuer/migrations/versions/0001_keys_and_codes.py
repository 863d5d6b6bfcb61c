"""The issuer's address, its keys, and the codes that it gives tokens for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table("issuer", sa.Column("address", sa.String(500), primary_key=True))
    op.create_table(
        "token_keys",
        sa.Column("study", sa.String(64), primary_key=True),
        sa.Column("place", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("spki", sa.LargeBinary(), nullable=False),
        sa.Column("private", sa.LargeBinary(), nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
    )
    op.create_table(
        "codes",
        sa.Column("hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("request", sa.LargeBinary(32)),
        sa.ForeignKeyConstraint(["study", "place"], ["token_keys.study", "token_keys.place"]),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop them."""
    for name in ("codes", "token_keys", "issuer"):
        op.drop_table(name)
