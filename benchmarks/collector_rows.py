"""What a report costs where millions are stored: `python -m benchmarks.collector_rows [--rows 1000000 …]`.

On a PostgreSQL server of its own, with the collector's own tables and statements, in batches of 1000. CPU
is all of PostgreSQL's, for each report, without its autovacuum; also what it costs to look whether a report
is held.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from datetime import date

from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.collector_load.servers import cluster, cpu_seconds, stocked
from collector import store
from collector.db import Database
from collector.store import PackedReport
from tests.kit.postgresql import Postgresql

SIZE = 1000
PAYLOAD = os.urandom(128)
TODAY = date(2026, 6, 15)
SIZES = "SELECT pg_table_size('reports_1'), pg_indexes_size('reports_1')"


def measure(
    server: Postgresql, database: Database, work: Callable[[Session], object], batches: int
) -> tuple[float, float]:
    """Do something with SIZE reports in each transaction: µs of CPU, and bytes of log, for each report."""
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        # A page's first change after it is logged as a whole page, as most are at work.
        connection.execute(text("CHECKPOINT"))
    start, cpu = _log(database), cpu_seconds(server)
    for _ in range(batches):
        with database.write() as session:
            work(session)
    reports = SIZE * batches
    return (cpu_seconds(server) - cpu) / reports * 1e6, (_log(database) - start) / reports


def _log(database: Database) -> int:
    with database.read() as session:
        return int(session.execute(text("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")).scalar_one())


def insert(session: Session) -> None:
    """Store a batch of new reports."""
    reports = [PackedReport(os.urandom(16), 1, PAYLOAD) for _ in range(SIZE)]
    assert len(store.insert_reports(session, 1, TODAY, reports)) == SIZE


def look_up(session: Session) -> None:
    """Look for a batch of reports that are not held."""
    assert not store.held_reports(session, 1, [os.urandom(16) for _ in range(SIZE)])


def show_table(server: Postgresql, rows: int, batches: int) -> None:
    """One line: what is stored, and what one more costs."""
    database = stocked(server.new_database(), rows, PAYLOAD)
    # A connection's first statements read the catalogue.
    measure(server, database, insert, batches)
    cpu, log = measure(server, database, insert, batches)
    looking, _ = measure(server, database, look_up, batches)
    with database.read() as session:
        table, index = session.execute(text(SIZES)).one()
    held = rows + 2 * SIZE * batches
    print(
        f"{rows:>10} reports{cpu:>7.1f} µs{log:>8.0f} bytes of log"
        f"{table / held:>8.0f} + {index / held:.0f} bytes stored{looking:>7.1f} µs to look up",
        flush=True,
    )
    database.engine.dispose()


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each number of rows, of which each takes some 250 bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1_000_000])
    parser.add_argument("--batches", type=int, default=40, help=f"of {SIZE} each")
    arguments = parser.parse_args(argv)
    with cluster("max_wal_size=4GB", "autovacuum=off") as server:
        for rows in arguments.rows:
            show_table(server, rows, arguments.batches)


if __name__ == "__main__":
    main()
