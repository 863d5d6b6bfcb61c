"""PostgreSQL's reports, in a table for each study: a partition of `reports`, by the study's number.

A study's reports then go at once and leave nothing, as a file is deleted in place of rows; an index is of one
study; and tables are rewritten one after the other. SQLite has one table.

There is no foreign key: to look for the version of each report again cost as much as all else of storing it
(`python -m benchmarks.collector_layouts`), and the transaction that stores reports has read their study and
versions before, which are never deleted.
"""

from __future__ import annotations

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

PARENT = "reports"
# An empty table is attached without the lock that would keep uploads to other studies waiting.
MAKE = (
    "CREATE TABLE reports_{number} (LIKE reports INCLUDING ALL)",
    "ALTER TABLE reports ATTACH PARTITION reports_{number} FOR VALUES IN ({number})",
)
NAMES = """
SELECT child.relname FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid WHERE inhparent = to_regclass('reports') ORDER BY child.oid
"""


def are_in(session: Session) -> bool:
    """Whether this database keeps the reports of each study apart."""
    return session.get_bind().dialect.name == "postgresql"


def make_partition(session: Session, number: int) -> None:
    """Make the place for a new study's reports, where studies are kept apart."""
    if are_in(session):
        for statement in MAKE:
            session.execute(text(statement.format(number=int(number))))


def partition_names(connection: Connection) -> list[str]:
    """The tables of all studies' reports; none of a database without, such as an issuer's."""
    return list(connection.exec_driver_sql(NAMES).scalars())


def empty_partition(session: Session, number: int) -> None:
    """Delete all reports of a study, withdrawn ones too. Readers of this study must end first."""
    session.execute(text(f"TRUNCATE reports_{int(number)}"))
