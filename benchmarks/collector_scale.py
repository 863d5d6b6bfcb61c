"""Reports a second against workers on PostgreSQL: `python -m benchmarks.collector_scale`.

Loopback and a PostgreSQL server of its own, reached through its socket. One worker, two and four in one run:
compare within it. The load generator and all else share the cores, so CPU a report says more than rates do.
"""

import argparse
import os
import time
from collections.abc import Sequence

from benchmarks.collector_load.bodies import batch_request, fresh_reports, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import Server, cluster, cpu_seconds, serving
from tests.kit.postgresql import Postgresql

CONNECTIONS, SIZE = 64, 1000
# CPU seconds of a second, with threads that look whether anything is to be done.
IDLE = 0.05


def measure(
    postgresql: Postgresql, server: Server, requests: Sequence[bytes], size: int
) -> tuple[float, float, float]:
    """Send requests of `size` reports each: reports a second, µs of CPU a report here and in PostgreSQL."""
    run_load(server.url, [put_request(report) for report in fresh_reports(1000)], CONNECTIONS)
    _wait_until_idle(server)
    before = server.cpu_seconds(), cpu_seconds(postgresql)
    load = run_load(server.url, requests, CONNECTIONS if size == 1 else 8)
    after = server.cpu_seconds(), cpu_seconds(postgresql)
    if set(load.statuses) - {200, 201}:
        raise RuntimeError(f"unexpected answers: {dict(load.statuses)}")
    here, there = (
        (late - early) / len(requests) / size * 1e6 for early, late in zip(before, after, strict=True)
    )
    return load.rate * size, here, there


def _wait_until_idle(server: Server) -> None:
    """Workers load what they need after the first of them has said that it listens."""
    spent, now = -1.0, 0.0
    while now - spent > IDLE:
        spent = now
        time.sleep(1)
        now = server.cpu_seconds()


def compare(postgresql: Postgresql, kind: str, requests: Sequence[bytes], size: int, most: int) -> None:
    """A line for each number of workers, which doubles; each gets the same requests and a new database."""
    first, workers = 0.0, 1
    while workers <= most:
        with serving("--workers", str(workers), database=postgresql.new_database()) as server:
            rate, here, there = measure(postgresql, server, requests, size)
        first = first or rate
        name = f"{workers} worker{'s' * (workers > 1)}"
        costs = f"{here:>9.1f} µs{there:>9.1f} µs of PostgreSQL's"
        print(f"{kind:<16}{name:<12}{rate:>8.0f}/s  ×{rate / first:.2f}{costs}", flush=True)
        workers *= 2


def main(argv: Sequence[str] | None = None) -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=6000, help="one by one; 0: none")
    parser.add_argument("--batches", type=int, default=40, help=f"of {SIZE} each; 0: none")
    parser.add_argument("--workers", type=int, default=4, help="at most")
    arguments = parser.parse_args(argv)
    print(f"{os.cpu_count()} cores, which the load generator shares", flush=True)
    singles = [put_request(report) for report in fresh_reports(arguments.reports)]
    batches = [batch_request(fresh_reports(SIZE)) for _ in range(arguments.batches)]
    with cluster("max_wal_size=4GB") as postgresql:
        if singles:
            compare(postgresql, "one by one", singles, 1, arguments.workers)
        if batches:
            compare(postgresql, f"batches of {SIZE}", batches, SIZE, arguments.workers)


if __name__ == "__main__":
    main()
