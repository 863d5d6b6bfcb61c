"""A PostgreSQL server of a benchmark's own: what it spends, and databases with millions of reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from benchmarks.collector_load.bodies import load_study
from benchmarks.collector_load.servers import TICKS, processes
from collector.db import Database
from collector.migrations import make
from collector.studies import publish
from tests.kit.postgresql import Postgresql

DAYS = 100
# As they stand after a night's upkeep: in the order of their ids, in an index without gaps.
FILL = """
INSERT INTO reports
SELECT 1, made.id, 1, DATE '2026-01-01' + (made.n * :days / :rows)::integer, :payload
FROM (
    SELECT n, uuid_send(gen_random_uuid()) AS id FROM generate_series(0, :rows - 1) AS n ORDER BY id
) AS made
"""


@contextmanager
def cluster(*options: str) -> Iterator[Postgresql]:
    """A server that flushes its disk as PostgreSQL does unless told otherwise."""
    server = Postgresql(("fsync=on", *options))
    try:
        yield server
    finally:
        server.remove()


def cpu_seconds(server: Postgresql) -> float:
    """CPU time of every process of the server that runs, and of those that have ended."""
    master = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    # Behind the process's own times are those of children that it has waited for.
    ended = sum(map(int, master[11:15])) / TICKS
    return ended + sum(spent for fields, spent in processes() if int(fields[1]) == server.pid)


def stocked(url: str, rows: int, payload: bytes) -> Database:
    """A database with one study, number 1, that has so many reports."""
    database = Database(url, 10)
    make(database)
    with database.write() as session:
        assert publish(session, load_study())
        if rows:
            session.execute(text(FILL), {"rows": rows, "days": DAYS, "payload": payload})
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("VACUUM ANALYZE reports"))
    return database
