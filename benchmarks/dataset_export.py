"""What a report costs on its way into a dataset, beside the one stream that an export over HTTP is made of.

python -m benchmarks.dataset_export [--reports 200000] [--days 10] [--buckets 16] [--processes N]

Reports of one question with 1024 choices (128 bytes each) are put straight into an SQLite file. The stream is
written into one file; the dataset into a folder by one process, and by one for each processor. CPU is that of
all processes, their start included: compare within one run.
"""

from __future__ import annotations

import argparse
import os
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from benchmarks.collector_load.bodies import STUDY_ID, load_study
from collector.exports.dataset import Order, export_dataset
from collector.exports.formats import parquet
from collector.reports.paging import Opened, open_export
from collector.reports.rules import RuleBook
from collector.storage.database import Database
from collector.storage.migrating import make, opened
from collector.studies.publishing import close, publish

PAYLOAD = os.urandom(128)
FIRST = date(2026, 1, 1)
WAIT_SECONDS = 10.0


def fill(file: Path, reports: int, days: int) -> str:
    """A database with a closed study and so many reports; its URL."""
    url = f"sqlite:///{file}"
    database = Database(url, WAIT_SECONDS)
    make(database)
    with database.write() as session:
        publish(session, load_study())
        close(session, STUDY_ID)
    database.engine.dispose()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        rows = ((os.urandom(16), str(FIRST + timedelta(number % days)), PAYLOAD) for number in range(reports))
        connection.executemany("INSERT INTO reports VALUES (1, ?, 1, ?, ?)", sorted(rows))
        connection.commit()
    return url


def stream(url: str, file: Path) -> None:
    """The export that there was before."""
    with opened(url, WAIT_SECONDS) as database, file.open("wb") as out:
        for piece in parquet(open_export(Opened(database, RuleBook(database)), STUDY_ID)):
            out.write(piece)


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """The CPU seconds that something takes, in all its processes, and the seconds that pass."""

    def used() -> float:
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in both)

    before, began = used(), time.monotonic()
    work()
    return used() - before, time.monotonic() - began


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=200_000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--buckets", type=int, default=16)
    processors = len(os.sched_getaffinity(0))
    parser.add_argument("--processes", type=int, default=processors, help="by default one a processor")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = fill(folder / "benchmark.sqlite3", asked.reports, asked.days)

        def dataset(processes: int) -> Callable[[], object]:
            place = str(folder / f"dataset-{processes}")
            fields = {"buckets": asked.buckets, "processes": processes}
            return lambda: export_dataset(Order(url, WAIT_SECONDS, STUDY_ID, place, date.max, **fields))

        # What the packages take to load is no part of any.
        stream(url, folder / "all.parquet")
        ways = {"one stream": lambda: stream(url, folder / "all.parquet"), "dataset, 1 process": dataset(1)}
        if asked.processes > 1:
            ways[f"dataset, {asked.processes} processes"] = dataset(asked.processes)
        first = None
        for way, work in ways.items():
            cpu, seconds = spent(work)
            rate = asked.reports / cpu
            first = first or rate
            share = f"{rate / first:5.2f} of one stream"
            print(f"{way:24} {rate:12,.0f} reports a CPU second, {share}, {seconds:6.1f} s")


if __name__ == "__main__":
    main()
