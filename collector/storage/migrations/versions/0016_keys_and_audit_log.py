"""Keys have a scope, a last day and a day of last use; what operators did is written down."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

APPEND_ONLY = "the audit log is append-only"
SQLITE = """
CREATE TRIGGER audit_log_no_{action} BEFORE {action} ON audit_log
BEGIN SELECT RAISE(ABORT, '{text}'); END
"""
POSTGRESQL_FUNCTION = """
CREATE FUNCTION refuse_audit_log_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{text}'; END $$
"""
POSTGRESQL = """
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_log_change()
"""


def upgrade() -> None:
    """Make columns and table. Keys that are there are good for all studies, without end.

    A study that is closed may have forgotten which reports were withdrawn: it is not opened again.
    """
    op.add_column("keys", sa.Column("studies", sa.Text()))
    op.add_column("keys", sa.Column("expires", sa.Date()))
    op.add_column("keys", sa.Column("used", sa.Date()))
    op.add_column("studies", sa.Column("final", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute("UPDATE studies SET final = closed")
    op.create_table(
        "audit_log",
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("at", sa.String(17), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("study", sa.String(64)),
        sa.Column("detail", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(SQLITE.format(action=action, text=APPEND_ONLY))
    else:
        op.execute(POSTGRESQL_FUNCTION.format(text=APPEND_ONLY))
        op.execute(POSTGRESQL)


def downgrade() -> None:
    """Drop them; refused while a key is bound by what an earlier release would not know."""
    bound = sa.text("SELECT count(*) FROM keys WHERE studies IS NOT NULL OR expires IS NOT NULL")
    if op.get_bind().execute(bound).scalar_one():
        raise RuntimeError("keys have a scope or a last day")
    op.drop_table("audit_log")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_audit_log_change()")
    op.drop_column("studies", "final")
    for name in ("used", "expires", "studies"):
        op.drop_column("keys", name)
