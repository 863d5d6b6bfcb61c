"""Reports a second against workers and machines on PostgreSQL: `python -m benchmarks.collector_scale`.

Loopback and a PostgreSQL server of its own, reached through its socket. One worker, two and four, then two
collectors with ports of their own behind the documented nginx, in one run: compare within it. The load
generator and all else share the cores, so CPU a report says more than rates do.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.collector_load.bodies import batch_request, fresh_reports, load_study, put_request
from benchmarks.collector_load.clusters import cluster, cpu_seconds
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import Server, collector_command
from benchmarks.collector_slow_clients import proxied
from tests.kit.postgresql import Postgresql

STUDY = load_study()
CONNECTIONS, SIZE = 64, 1000
MOST = 100_000
# CPU seconds of a second, with threads that look whether anything is to be done.
IDLE = 0.05


class Cost(NamedTuple):
    """Reports a second, and µs of CPU a report: the collectors', PostgreSQL's."""

    rate: float
    collector: float
    postgresql: float


@contextmanager
def collectors(postgresql: Postgresql, workers: int, machines: int) -> Iterator[tuple[list[Server], str]]:
    """Collectors on one database, and where devices send: at the one, or at nginx before all."""
    command = [*collector_command(), "--workers", str(workers)]
    command += ["--database", postgresql.new_database()]
    with ExitStack() as stack:
        started = []
        for _ in range(machines):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            started.append(Server(folder, command, {}))
            stack.callback(started[-1].kill)
        url = started[0].url
        if machines > 1:
            front = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            # nginx's own workers are not root's.
            front.chmod(0o777)
            url = stack.enter_context(proxied(front, *(one.url for one in started)))
        yield started, url


def measure(
    postgresql: Postgresql, servers: Sequence[Server], url: str, requests: Sequence[bytes], size: int
) -> Cost:
    """Send requests of `size` reports each, and say what they cost."""
    run_load(url, [put_request(report) for report in fresh_reports(STUDY, 1000)], CONNECTIONS)
    _wait_until_idle(servers)
    before = sum(server.cpu_seconds() for server in servers), cpu_seconds(postgresql)
    load = run_load(url, requests, CONNECTIONS if size == 1 else 8)
    after = sum(server.cpu_seconds() for server in servers), cpu_seconds(postgresql)
    if set(load.statuses) - {200, 201}:
        raise RuntimeError(f"unexpected answers: {dict(load.statuses)}")
    reports = len(requests) * size
    spent = [(late - early) / reports * 1e6 for early, late in zip(before, after)]
    return Cost(load.rate * size, *spent)


def _wait_until_idle(servers: Sequence[Server]) -> None:
    """Workers load what they need after the first of them has said that it listens."""
    spent, now = -1.0, 0.0
    while now - spent > IDLE:
        spent = now
        time.sleep(1)
        now = sum(server.cpu_seconds() for server in servers)


def compare(
    postgresql: Postgresql, kind: str, requests: Sequence[bytes], size: int, workers_of_one: Sequence[int]
) -> None:
    """A line for each number of processes; each sends the same requests to a database of its own."""
    first = None
    for machines, workers in (*((1, workers) for workers in workers_of_one), (2, 1)):
        with collectors(postgresql, workers, machines) as (servers, url):
            cost = measure(postgresql, servers, url, requests, size)
        first = first or cost.rate
        name = (
            f"{workers} worker{'s' * (workers > 1)}" if machines == 1 else f"{machines} machines behind nginx"
        )
        print(
            f"{kind:<16}{name:<26}{cost.rate:>8.0f}/s  ×{cost.rate / first:.2f}{cost.collector:>9.1f} µs"
            f"{cost.postgresql:>9.1f} µs of PostgreSQL's",
            flush=True,
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=6000, help=f"one by one; at most {MOST}; 0: none")
    parser.add_argument(
        "--batches", type=int, default=40, help=f"of {SIZE} each; at most {MOST // SIZE}; 0: none"
    )
    text = "of one collector, before two of one each"
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help=text)
    arguments = parser.parse_args(argv)
    if not (0 <= arguments.reports <= MOST and 0 <= arguments.batches <= MOST // SIZE):
        parser.error("out of bounds")
    print(f"{os.cpu_count()} cores, which the load generator shares", flush=True)
    with cluster("max_wal_size=4GB") as postgresql:
        singles = [put_request(report) for report in fresh_reports(STUDY, arguments.reports)]
        batches = [batch_request(fresh_reports(STUDY, SIZE)) for _ in range(arguments.batches)]
        if singles:
            compare(postgresql, "one by one", singles, 1, arguments.workers)
        if batches:
            compare(postgresql, f"batches of {SIZE}", batches, SIZE, arguments.workers)


if __name__ == "__main__":
    main()
