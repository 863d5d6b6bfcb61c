"""The tables of the first release, of `collector.models`. Later revisions state their changes."""

import sqlalchemy as sa
from alembic import op

from collector.models import Base, CollectorRow

revision = "0001"
down_revision = None

APPEND_ONLY = "the audit log is append-only"
# SQLite's REPLACE deletes without a deletion trigger: the third trigger detects it.
SQLITE = (
    f"""CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
    BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END""",
    f"""CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
    BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END""",
    f"""CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log
    WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END""",
)
POSTGRESQL = (
    f"""CREATE FUNCTION refuse_audit_log_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '{APPEND_ONLY}'; END $$""",
    """CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_log_change()""",
)


def upgrade() -> None:
    """Make the tables."""
    connection = op.get_bind()
    Base.metadata.create_all(connection)
    for statement in SQLITE if connection.dialect.name == "sqlite" else POSTGRESQL:
        op.execute(statement)
    connection.execute(sa.insert(CollectorRow).values(number=1))
