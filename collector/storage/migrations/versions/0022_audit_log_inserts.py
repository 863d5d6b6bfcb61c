"""No line of the audit log is put in another's place: SQLite's REPLACE deletes without a trigger."""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"

TRIGGER = "audit_log_no_replace"
SQLITE = f"""
CREATE TRIGGER {TRIGGER} BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""


def upgrade() -> None:
    """Make the trigger. PostgreSQL's, of changes, sees an insertion that would change a line."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(SQLITE)


def downgrade() -> None:
    """Drop it."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"DROP TRIGGER {TRIGGER}")
