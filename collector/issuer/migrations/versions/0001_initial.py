"""The tables of the first release, of `collector.issuer.models`. Later revisions state their changes."""

from __future__ import annotations

from alembic import op

from collector.issuer.models import IssuerBase

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    IssuerBase.metadata.create_all(op.get_bind())
