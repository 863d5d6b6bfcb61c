"""What an upload costs: `python -m benchmarks.collector [--rows 1000000 | --minutes 10] [--share 1]`.

Loopback only, generator and server on one machine, a few minutes. Rates move with the machine and its
other work: compare within one run. CPU is the server's user and system time for each stored report.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.collector_bare import show_bare
from benchmarks.collector_load.bodies import STUDY_ID, batch_request, fresh_reports, load_study, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import TOKEN, Server, collector_command
from tests.kit.failing_disk import FailingDisk
from tests.kit.postgresql import Postgresql

STUDY = load_study()
ORDINARY = [sys.executable, "-m", "benchmarks.collector_baselines.ordinary_flask"]
GRANIAN = collector_command()
CONNECTIONS = 64
TURNS = 5
PAYLOAD = os.urandom(128)


@contextmanager
def serving(
    command: Sequence[str], database: str | None = None, disk: FailingDisk | None = None, rows: int = 0
) -> Iterator[Server]:
    """A server on a new SQLite file, or on a database by URL."""
    with tempfile.TemporaryDirectory() as name:
        folder = disk.root if disk else Path(name)
        file = folder / "benchmark.sqlite3"
        url = database or f"sqlite:///{file}"
        server = Server(folder, [*command, "--database", url], disk.environment if disk else {})
        if rows:
            server.stop()
            fill(file, rows)
            server = Server(folder, [*command, "--database", url], {})
        try:
            run_load(server.url, [put_request(report) for report in fresh_reports(STUDY, 100)], 8)
            yield server
        finally:
            server.kill()


def fill(file: Path, rows: int) -> None:
    """Put stored reports straight into the collector's table, in large transactions."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for start in range(0, rows, 100_000):
            ids = sorted(os.urandom(16) for _ in range(min(100_000, rows - start)))
            connection.execute("BEGIN")
            values = ((report_id, PAYLOAD) for report_id in ids)
            connection.executemany("INSERT INTO reports VALUES (1, ?, 1, '2026-01-01', ?)", values)
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def measure(server: Server, requests: Sequence[bytes], connections: int, size: int = 1) -> dict[str, float]:
    """Send requests of `size` reports each and say what they cost."""
    cpu, written = server.cpu_seconds(), server.written_bytes()
    load = run_load(server.url, requests, connections)
    reports = len(requests) * size
    if set(load.statuses) - {200, 201}:
        raise RuntimeError(f"unexpected answers: {dict(load.statuses)}")
    return {
        "rate": load.rate * size,
        "cpu": (server.cpu_seconds() - cpu) / reports * 1e6,
        "p99": load.quantile(0.99),
        "kb": (server.written_bytes() - written) / reports / 1024,
    }


def show(name: str, found: dict[str, float]) -> None:
    """One line of the table."""
    print(
        f"{name:<58}{found['rate']:>10.0f}/s{found['cpu']:>9.1f} µs{found['p99']:>9.1f} ms p99"
        f"{found['kb']:>9.2f} KB",
        flush=True,
    )


def one_by_one(count: int) -> list[bytes]:
    """So many uploads of one report."""
    return [put_request(report) for report in fresh_reports(STUDY, count)]


def in_batches(size: int, count: int, prefix: bytes = b"") -> list[bytes]:
    """So many uploads of `size` reports, whose ids begin with a prefix; of 1 report, not as batches."""
    if size == 1:
        return one_by_one(count)
    return [batch_request(fresh_reports(STUDY, size, prefix)) for _ in range(count)]


def part_of(count: int, share: float) -> int:
    """That share of so many uploads, one at least."""
    return max(1, round(count * share))


def singles_and_batches(share: float) -> None:
    """The first rows: reports one by one and in batches, in turns with an ordinary server, then duplicates.

    The ratio is the median of the turns' ratios of CPU.
    """
    with serving(ORDINARY) as ordinary, serving(GRANIAN) as granian:
        for size, count in ((1, 1000), (100, 50), (1000, 10)):
            name = "one report a request" if size == 1 else f"batches of {size}"
            connections = CONNECTIONS if size == 1 else 4
            turns: list[tuple[dict[str, float], dict[str, float]]] = []
            for _ in range(TURNS):
                uploads = [in_batches(size, part_of(count, share)) for _ in range(2)]
                theirs, ours = (
                    measure(server, requests, connections, size)
                    for server, requests in zip((ordinary, granian), uploads)
                )
                turns.append((theirs, ours))
            for server, costs in zip(("ordinary Flask", "granian"), zip(*turns)):
                show(
                    f"{server}: {name}",
                    {key: statistics.median(cost[key] for cost in costs) for key in costs[0]},
                )
            ratio = statistics.median(theirs["cpu"] / max(ours["cpu"], 0.01) for theirs, ours in turns)
            print(f"ordinary Flask takes {ratio:.1f} times the CPU", flush=True)
            again = measure(granian, uploads[1], connections, size)
            show("granian: the last turn again, all duplicates", again)


def raw_sqlite(share: float) -> None:
    """The limit: executemany of sorted rows, 1000 a transaction, nothing else."""
    count = part_of(25, share)
    batches = [
        sorted((1, os.urandom(16), 1, "2026-01-01", PAYLOAD) for _ in range(1000)) for _ in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/raw")) as connection:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "CREATE TABLE r (s INT, id BLOB, v INT, d TEXT, p BLOB, PRIMARY KEY (s, id)) WITHOUT ROWID"
        )
        cpu, wall = time.process_time(), time.perf_counter()
        for rows in batches:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    reports = 1000 * count
    found = {"rate": reports / wall, "cpu": cpu / reports * 1e6, "p99": 0.0, "kb": 0.0}
    show("limit: sqlite3.executemany, 1000 a transaction", found)


def with_rows(rows: int, share: float) -> None:
    """Uploads and an export where much is stored already."""
    with serving(GRANIAN, rows=rows) as server:
        count = part_of(40, share)
        batches = in_batches(1000, count)
        show(f"granian: batches of 1000 onto {rows} rows", measure(server, batches, 4, 1000))
        batches = in_batches(1000, count, prefix=os.urandom(2))
        show("the same where ids begin with their day", measure(server, batches, 4, 1000))
        export(server)


def export(server: Server) -> None:
    """Read a whole export and count its bytes."""
    url = f"{server.url}/v1/studies/{STUDY_ID}/export"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    cpu, start, size, reports = server.cpu_seconds(), time.perf_counter(), 0, server_rows(server)
    with urllib.request.urlopen(request) as response:
        while part := response.read(1 << 20):
            size += len(part)
    seconds = time.perf_counter() - start
    cpu = (server.cpu_seconds() - cpu) / reports * 1e6
    print(
        f"export of {reports} reports: {reports / seconds:.0f}/s, {cpu:.2f} µs, "
        f"{size / 1e6:.0f} MB, server {server.memory_mb():.0f} MB",
        flush=True,
    )


def memory_over(minutes: float, share: float) -> None:
    """Whether the memory of a server under load stays flat: ten readings."""
    with serving(GRANIAN) as server:
        for reading in range(1, 11):
            end = time.monotonic() + 6 * minutes
            while time.monotonic() < end:
                measure(server, one_by_one(part_of(1000, share)), CONNECTIONS)
                measure(server, in_batches(100, part_of(20, share)), 4, 100)
            print(
                f"memory after {reading * minutes / 10:.1f} min: {server.memory_mb():.0f} MB, "
                f"{server_rows(server)} reports",
                flush=True,
            )


def server_rows(server: Server) -> int:
    """How many reports an SQLite server holds."""
    with closing(sqlite3.connect(server.folder / "benchmark.sqlite3")) as connection:
        count: int = connection.execute("SELECT count(*) FROM reports").fetchone()[0]
        return count


def postgresql(share: float) -> None:
    """Batches onto PostgreSQL; its own processes' time is not the collector's."""
    cluster = Postgresql(("fsync=on",))
    try:
        with serving(GRANIAN, database=cluster.new_database()) as server:
            singles = one_by_one(part_of(4000, share))
            show("granian, PostgreSQL: one report a request", measure(server, singles, CONNECTIONS))
            batches = in_batches(1000, part_of(25, share))
            show("granian, PostgreSQL: batches of 1000", measure(server, batches, 4, 1000))
    finally:
        cluster.remove()


def slow_flush(share: float) -> None:
    """The gain of group commit where each flush takes 5 ms more."""
    rates = {}
    for name, command, count in (("ordinary Flask", ORDINARY, 400), ("granian", GRANIAN, 6000)):
        with tempfile.TemporaryDirectory() as folder:
            disk = FailingDisk(Path(folder), delay_us=5000, loses_power=False)
            with serving(command, disk=disk) as server:
                found = measure(server, one_by_one(part_of(count, share)), CONNECTIONS)
                show(f"{name}: one report a request, flushes 5 ms slower", found)
                rates[name] = found["rate"]
    print(f"gain with flushes 5 ms slower: {rates['granian'] / rates['ordinary Flask']:.1f}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="stored before the large runs")
    parser.add_argument("--minutes", type=float, default=0, help="only watch the memory for so long")
    parser.add_argument("--share", type=float, default=1, help="of each row's uploads")
    parser.add_argument("--bare", action="store_true", help="only CPU of an upload beside a bare Flask route")
    arguments = parser.parse_args(argv)
    share = arguments.share
    if arguments.bare:
        show_bare(share)
        return
    if arguments.minutes:
        memory_over(arguments.minutes, share)
        return
    raw_sqlite(share)
    singles_and_batches(share)
    slow_flush(share)
    postgresql(share)
    with_rows(arguments.rows, share)


if __name__ == "__main__":
    main()
