"""PostgreSQL's reports, in a table for each study: a partition of `reports`, by the study's number.

Deleting a study's reports is then immediate and leaves nothing: a file is deleted instead of rows. Each index
covers one study, and tables are rewritten one after the other. SQLite has one table.

There is no foreign key: looking up the version of each report again cost as much as the rest of storing it
(`python -m benchmarks.collector_layouts`). The transaction that stores reports has read their study and
versions before, which are never deleted.
"""

from __future__ import annotations

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

PARENT = "reports"
# An empty table is attached without the lock that would block uploads to other studies.
MAKE = (
    "CREATE TABLE reports_{number} (LIKE reports INCLUDING ALL)",
    "ALTER TABLE reports ATTACH PARTITION reports_{number} FOR VALUES IN ({number})",
)
NAMES = """
SELECT child.relname FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid WHERE inhparent = to_regclass('reports') ORDER BY child.oid
"""


def are_in(session: Session) -> bool:
    """Return True if this database has a separate table for the reports of each study."""
    return session.get_bind().dialect.name == "postgresql"


def make_partition(session: Session, number: int) -> None:
    """Make the table for a new study's reports, if studies have separate tables."""
    if are_in(session):
        for statement in MAKE:
            session.execute(text(statement.format(number=int(number))))


def partition_names(connection: Connection) -> list[str]:
    """Return the tables of all studies' reports; none for a database without them, such as an issuer's."""
    return list(connection.exec_driver_sql(NAMES).scalars())


def empty_partition(session: Session, number: int) -> None:
    """Delete all reports of a study, including withdrawn ones. Waits for readers of this study to end."""
    session.execute(text(f"TRUNCATE reports_{int(number)}"))
