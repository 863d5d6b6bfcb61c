"""A PostgreSQL server of a benchmark's own: what it spends, and databases with millions of reports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from benchmarks.collector_load.bodies import load_study
from collector.db import Database
from collector.migrations import make
from collector.studies import publish
from tests.kit.postgresql import Postgresql

TICKS = os.sysconf("SC_CLK_TCK")
DAYS = 100
# As they stand after a night's upkeep: in the order of their ids, in an index without gaps.
FILL = """
INSERT INTO reports
SELECT 1, made.id, 1, DATE '2026-01-01' + (made.n * :days / :rows)::integer, :payload
FROM (SELECT n, {id} AS id FROM generate_series(0, :rows - 1) AS n ORDER BY id) AS made
"""
RANDOM_ID = "uuid_send(gen_random_uuid())"
DATED_ID = f"int2send((n * :days / :rows)::smallint) || substr({RANDOM_ID}, 3)"


@contextmanager
def cluster(*options: str) -> Iterator[Postgresql]:
    """A server that flushes its disk as PostgreSQL does unless told otherwise."""
    server = Postgresql(("fsync=on", *options))
    try:
        yield server
    finally:
        server.remove()


def cpu_seconds(server: Postgresql) -> float:
    """User and system time of every process of the server that runs, and of those that have ended."""
    ticks = 0
    master = _fields(server.pid)
    # Behind the process's own times are those of children that it has waited for.
    ticks += sum(map(int, master[11:15]))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = _fields(int(entry.name))
            except OSError:
                continue
            if int(fields[1]) == server.pid:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def stocked(url: str, rows: int, is_dated: bool, payload: bytes) -> Database:
    """A database with one study, number 1, that has so many reports. is_dated: ids begin with their day."""
    database = Database(url, 10)
    make(database)
    with database.write() as session:
        assert publish(session, load_study())
    values = {"rows": max(rows, 1), "days": DAYS, "payload": payload}
    with database.write() as session:
        if rows:
            session.execute(text(FILL.format(id=DATED_ID if is_dated else RANDOM_ID)), values)
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("VACUUM ANALYZE reports"))
    return database
