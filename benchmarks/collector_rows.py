"""What a report costs where millions are stored: `python -m benchmarks.collector_rows [--rows 1000000 …]`.

On a PostgreSQL server of its own, with the collector's own tables and statements, in batches of 1000. CPU
is all of PostgreSQL's, for each report, without its autovacuum. Everything is printed for ids as they are,
random throughout, and for ids that would begin with the day on which their device answered; also what it
costs to look whether a report is held. Then the study with all its reports is deleted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.collector_load.bodies import STUDY_ID
from benchmarks.collector_load.clusters import DAYS, cluster, cpu_seconds, stocked
from collector import store
from collector.audit_log import BY_TOKEN
from collector.db import Database
from collector.reports.rules import RuleBook
from collector.retention import delete_study
from collector.store import PackedReport
from tests.kit.postgresql import Postgresql

SIZE = 1000
PAYLOAD = os.urandom(128)
TODAY = date(2026, 6, 15)
SIZES = "SELECT pg_table_size('reports_1'), pg_indexes_size('reports_1')"


class Cost(NamedTuple):
    """Of one report: µs of PostgreSQL's CPU, and bytes of its write-ahead log."""

    cpu: float
    log: float


def measure(server: Postgresql, database: Database, work: Callable[[Session], object], batches: int) -> Cost:
    """Do something of SIZE reports in one transaction after the other."""
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        # What is changed for the first time after it is logged as a whole page, as most is at work.
        connection.execute(text("CHECKPOINT"))
    start, cpu = _log(database), cpu_seconds(server)
    for _ in range(batches):
        with database.write() as session:
            work(session)
    spent, reports = cpu_seconds(server) - cpu, SIZE * batches
    return Cost(spent / reports * 1e6, (_log(database) - start) / reports)


def _log(database: Database) -> int:
    with database.read() as session:
        return int(session.execute(text("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")).scalar_one())


def fresh(prefix: bytes) -> Callable[[Session], object]:
    """Stores a batch of reports that nobody has sent before."""

    def insert(session: Session) -> None:
        ids = [prefix + os.urandom(16 - len(prefix)) for _ in range(SIZE)]
        reports = [PackedReport(report_id, 1, PAYLOAD) for report_id in ids]
        assert len(store.insert_reports(session, 1, TODAY, reports)) == SIZE

    return insert


def look_up(session: Session) -> None:
    """Looks for a batch of reports that are not held."""
    assert not store.held_reports(session, 1, [os.urandom(16) for _ in range(SIZE)])


def show_table(server: Postgresql, rows: int, is_dated: bool, batches: int) -> None:
    """One line: what is stored, and what one more costs. Then deletes the study."""
    name = "day, then random" if is_dated else "random"
    database = stocked(server.new_database(), rows, is_dated, PAYLOAD)
    prefix = DAYS.to_bytes(2, "big") if is_dated else b""
    # A connection's first statements read the catalogue.
    measure(server, database, fresh(prefix), batches)
    cost = measure(server, database, fresh(prefix), batches)
    looking = measure(server, database, look_up, batches)
    with database.read() as session:
        table, index = session.execute(text(SIZES)).one()
    held = rows + 2 * SIZE * batches
    print(
        f"{rows:>10} reports, ids {name:<17}{cost.cpu:>7.1f} µs{cost.log:>8.0f} bytes of log"
        f"{table / held:>8.0f} + {index / held:.0f} bytes stored{looking.cpu:>7.1f} µs to look up",
        flush=True,
    )
    _show_deletion(database, held)
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("CHECKPOINT"))
    database.engine.dispose()


def _show_deletion(database: Database, held: int) -> None:
    """Delete the study as an operator does."""
    start = time.perf_counter()
    with database.read() as session:
        assert store.count_reports(session, store.Chosen(1)) == held
    counting = time.perf_counter() - start
    start = time.perf_counter()
    assert delete_study(database.act, RuleBook(database).find, STUDY_ID, BY_TOKEN) == held
    whole = time.perf_counter() - start
    print(
        f"{'':>10} deleting the study: {whole:.2f} s (counting alone {counting:.2f} s)",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1_000_000])
    parser.add_argument("--batches", type=int, default=40, help=f"of {SIZE} each")
    parser.add_argument("--most", type=int, default=20_000_000, help="more than so many are refused")
    arguments = parser.parse_args(argv)
    if max(arguments.rows) > arguments.most:
        parser.error(f"--rows {max(arguments.rows)}: takes some 250 bytes each; raise --most to have it")
    with cluster("max_wal_size=4GB", "autovacuum=off") as server:
        for rows in arguments.rows:
            for is_dated in (False, True):
                show_table(server, rows, is_dated, arguments.batches)


if __name__ == "__main__":
    main()
