"""Reports on PostgreSQL: a partition for each study, and no foreign key. Both ways write all anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

COLUMNS = """
study integer, id bytea, version integer NOT NULL, day date NOT NULL, payloads bytea NOT NULL,
PRIMARY KEY (study, id)
"""
FOREIGN_KEY = "FOREIGN KEY (study, version) REFERENCES documents (study, version)"
PUT_ASIDE = (
    "ALTER TABLE reports RENAME TO reports_before",
    "ALTER INDEX reports_pkey RENAME TO reports_before_pkey",
)
# In the order of the keys: places would tell nothing, and the index is written from end to end.
TAKE_OVER = (
    "INSERT INTO reports SELECT study, id, version, day, payloads FROM reports_before ORDER BY study, id",
    "DROP TABLE reports_before",
)


def upgrade() -> None:
    """Give each study a table. Takes as much disk again as the reports have, until it is done."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    _run(*PUT_ASIDE, f"CREATE TABLE reports ({COLUMNS}) PARTITION BY LIST (study)")
    for number in connection.execute(sa.text("SELECT number FROM studies ORDER BY number")).scalars().all():
        _run(
            f"CREATE TABLE reports_{number} (LIKE reports INCLUDING ALL)",
            f"ALTER TABLE reports ATTACH PARTITION reports_{number} FOR VALUES IN ({number})",
        )
    _run(*TAKE_OVER)


def downgrade() -> None:
    """Put all into one table."""
    if op.get_bind().dialect.name != "postgresql":
        return
    _run(*PUT_ASIDE, f"CREATE TABLE reports ({COLUMNS}, {FOREIGN_KEY})", *TAKE_OVER)


def _run(*statements: str) -> None:
    for statement in statements:
        op.execute(statement)
