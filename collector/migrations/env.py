"""Alembic's entry point: runs every step on the connection from collector.migrations."""

from alembic import context

from collector.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
