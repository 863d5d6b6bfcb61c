"""What a node of a secure sum contributes to the drawing of its set; secure sums take invited shares only."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Make the table; from now on a share needs an invitation."""
    op.create_table(
        "drawings",
        sa.Column("study", sa.Integer(), sa.ForeignKey("studies.number"), primary_key=True),
        sa.Column("nonce", sa.LargeBinary(32), nullable=False),
        sa.Column("commitment", sa.Text(), nullable=False),
        sa.Column("shown_for", sa.LargeBinary(32)),
        sa.Column("drawing", sa.LargeBinary()),
    )
    connection = op.get_bind()
    documents = connection.execute(sa.text("SELECT study, canonical FROM documents")).all()
    summed = {study for study, canonical in documents if json.loads(bytes(canonical)).get("route")}
    for study in summed:
        invited = sa.text("UPDATE studies SET invited = :yes WHERE number = :study")
        connection.execute(invited, {"yes": True, "study": study})


def downgrade() -> None:
    """Drop it; a node without it could be made to show another nonce."""
    op.drop_table("drawings")
