"""What storing a report costs in one table and in partitions: `python -m benchmarks.collector_layouts`.

PostgreSQL's CPU for each report, by its own process alone, with the collector's statement: one table or a
partition for each study, one or a thousand of them, with the foreign key to the version or without. All take
turns on one server, so that ratios mean something. Then what a statement about one study takes to plan.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from benchmarks.collector_load.clusters import TICKS, cluster
from collector.store import INSERT_INTO_POSTGRESQL

DAY = date(2026, 6, 15)
PAYLOAD = os.urandom(128)
COLUMNS = "study int, id bytea, version int NOT NULL, day date NOT NULL, payloads bytea NOT NULL"
KEYS = {"": "", ", foreign key": ", FOREIGN KEY (study, version) REFERENCES documents"}
PAGE = "EXPLAIN (SUMMARY) SELECT id FROM {} WHERE study = 1 AND id > '' ORDER BY id LIMIT 100"
Connection = psycopg.Connection[Any]


def make_layouts(connection: Connection, most: int) -> dict[str, str]:
    """Every layout: what it is, and its table."""
    connection.execute("CREATE TABLE documents (study int, version int, PRIMARY KEY (study, version))")
    connection.execute("INSERT INTO documents SELECT n, 1 FROM generate_series(1, %s) AS n", [most])
    found = {}
    for number, (name, key) in enumerate(KEYS.items()):
        definition = f"({COLUMNS}{key}, PRIMARY KEY (study, id))"
        connection.execute(f"CREATE TABLE whole{number} {definition}")
        found[f"one table{name}"] = f"whole{number}"
        for studies in (1, most):
            table = f"parts{number}_{studies}"
            connection.execute(f"CREATE TABLE {table} {definition} PARTITION BY LIST (study)")
            for study in range(1, studies + 1):
                connection.execute(
                    f"CREATE TABLE {table}_{study} PARTITION OF {table} FOR VALUES IN ({study})"
                )
            found[f"{studies} partition{'s' * (studies > 1)}{name}"] = table
    return found


def cost_of(connection: Connection, table: str, size: int, count: int) -> float:
    """µs for each report of so many batches."""
    statement = INSERT_INTO_POSTGRESQL.replace("INSERT INTO reports", f"INSERT INTO {table}")
    batches = [sorted(os.urandom(16) for _ in range(size)) for _ in range(count)]
    ones, payloads = [1] * size, [PAYLOAD] * size
    before = _cpu_seconds(connection)
    for ids in batches:
        values = {"study": 1, "day": DAY, "ids": ids, "versions": ones, "payloads": payloads}
        with connection.transaction():
            assert len(connection.execute(statement, values).fetchall()) == size
    return (_cpu_seconds(connection) - before) / size / count * 1e6


def _cpu_seconds(connection: Connection) -> float:
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def planning(connection: Connection, table: str) -> float:
    """Milliseconds to plan a page of a study's export, the second time."""
    for _ in range(2):
        rows = connection.execute(PAGE.format(table)).fetchall()
    (line,) = (row[0] for row in rows if row[0].startswith("Planning Time"))
    return float(line.split()[2])


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40, help="of 1000 in each round")
    arguments = parser.parse_args(argv)
    with cluster("autovacuum=off", "max_locks_per_transaction=200") as server:
        database = make_url(server.new_database()).database
        options: dict[str, Any] = {"host": str(server.folder), "user": "postgres", "dbname": database}
        with psycopg.connect(**options, autocommit=True) as connection:
            layouts = make_layouts(connection, arguments.studies)
            costs: dict[str, list[float]] = {name: [] for name in layouts}
            for _ in range(arguments.rounds):
                for name, table in layouts.items():
                    costs[name].append(cost_of(connection, table, 1000, arguments.batches))
            for name, table in layouts.items():
                middle = sorted(costs[name])[arguments.rounds // 2]
                plan = planning(connection, table)
                print(f"{name:<34}{middle:>6.1f} µs a report{plan:>8.2f} ms to plan a page", flush=True)


if __name__ == "__main__":
    main()
