"""What Alembic runs: every step on the connection that collector.migrations hands over."""

from __future__ import annotations

from alembic import context

from collector.issuer.models import IssuerBase

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=IssuerBase.metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
