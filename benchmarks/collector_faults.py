"""Whether what was acknowledged is there: `python -m benchmarks.collector_faults [--kills N --powers N …]`.

A server under load is killed (kill -9), or its disk loses power, again and again on one database; PostgreSQL
is restarted under a server's load, as after a crash or as an operator does it, and dies for good, so that its
synchronous replica takes over. In the end every acknowledged report must be in the export exactly once.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import make_url

from benchmarks.collector_load.bodies import STUDY_ID, batch_request, fresh_reports, load_study, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import TOKEN, Server, collector_command
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from schemas import Report
from tests.kit.failing_disk import FailingDisk
from tests.kit.postgresql import STANDBY, Postgresql

STUDY = load_study()
SEED = 20260615
BATCH = 100
CONNECTIONS = 16
SHORTEST, LONGEST = 0.2, 0.8
LONGEST_OUTAGE = 300.0


class Trial:
    """One database that goes through many faults. disk: None where the server is only killed."""

    def __init__(self, folder: Path, disk: FailingDisk | None, reports: int) -> None:
        self._reports = reports
        self._folder = disk.root if disk else folder
        self._disk = disk
        self._command = [*collector_command(), "--database", f"sqlite:///{self._folder / 'x.sqlite3'}"]
        self._random = random.Random(SEED)
        self.acknowledged: set[str] = set()

    def fault(self) -> None:
        """Start, load, and kill at some moment."""
        server = self._start()
        reports = list(fresh_reports(STUDY, self._reports))
        requests, members = _requests(reports)
        # Whatever else the machine does, something is acknowledged before the fault.
        first = run_load(server.url, requests[:2], 1)
        killer = threading.Timer(self._random.uniform(SHORTEST, LONGEST), server.kill)
        killer.start()
        load = run_load(server.url, requests, CONNECTIONS)
        killer.join()
        statuses = first.statuses + load.statuses
        if any(status not in (200, 201) for status in statuses):
            raise RuntimeError(f"unexpected answers: {dict(statuses)}")
        for number in (*first.answered, *load.answered):
            self.acknowledged.update(report.id for report in members[number])
        if self._disk:
            self._disk.lose_power()

    def check(self) -> tuple[int, int]:
        """How many reports are exported, and how many of the acknowledged ones are not."""
        server = self._start()
        exported = [report.id for report in fetch_reports(Client(server.url, TOKEN), STUDY_ID)]
        server.stop()
        if len(exported) != len(set(exported)):
            raise RuntimeError("a report was exported twice")
        return len(exported), len(self.acknowledged - set(exported))

    def _start(self) -> Server:
        return Server(self._folder, self._command, self._disk.environment if self._disk else {})


class PostgresqlTrial:
    """One collector of two workers on PostgreSQL, which goes through many faults and always comes back."""

    def __init__(self, folder: Path, stack: ExitStack, reports: int) -> None:
        self._reports = reports
        self._folder = folder
        self._command = [*collector_command(), "--workers", "2"]
        self._random = random.Random(SEED)
        self._stack = stack
        self._primary = self._made()
        self._name = str(make_url(self._primary.new_database()).database)
        self.acknowledged: set[str] = set()

    def restart(self, mode: str) -> None:
        """Load, and restart PostgreSQL at some moment."""
        self._load_through(self._primary, None, lambda: self._primary.restart(mode))

    def fail_over(self) -> None:
        """Load, and have a synchronous replica take over at some moment."""
        primary, standby = self._primary, self._made(self._primary)
        primary.set("synchronous_standby_names", STANDBY)

        def cut() -> None:
            primary.kill()
            standby.promote()

        self._load_through(primary, standby, cut)
        # It has the settings of the server that it was copied from, and no replica of its own yet.
        standby.set("synchronous_standby_names", "")
        self._primary = standby

    def check(self) -> tuple[int, int]:
        """As of Trial."""
        server = self._start(self._primary, None)
        exported = [report.id for report in fetch_reports(Client(server.url, TOKEN), STUDY_ID)]
        server.stop()
        if len(exported) != len(set(exported)):
            raise RuntimeError("a report was exported twice")
        return len(exported), len(self.acknowledged - set(exported))

    def _load_through(
        self, first: Postgresql, second: Postgresql | None, fault: Callable[[], object]
    ) -> None:
        server = self._start(first, second)
        requests, members = _requests(list(fresh_reports(STUDY, self._reports)))
        failing = threading.Timer(self._random.uniform(SHORTEST, LONGEST), fault)
        failing.start()
        statuses: set[int] = set()
        left = list(range(len(requests)))
        deadline = time.monotonic() + LONGEST_OUTAGE
        # What was refused comes again, as devices send it.
        while left or failing.is_alive():
            load = run_load(server.url, [requests[number] for number in left], CONNECTIONS)
            statuses |= set(load.statuses)
            taken = {left[position] for position in load.answered}
            for number in taken:
                self.acknowledged.update(report.id for report in members[number])
            left = [number for number in left if number not in taken]
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(left)} requests were never taken: {statuses}")
            time.sleep(0.1)
        failing.join()
        server.kill()
        if statuses - {200, 201, 503}:
            raise RuntimeError(f"unexpected answers: {statuses}")

    def _start(self, first: Postgresql, second: Postgresql | None) -> Server:
        hosts = ",".join(str(one.folder) for one in (first, second) if one is not None)
        url = f"postgresql://postgres@/{self._name}?host={hosts}&target_session_attrs=read-write"
        return Server(self._folder, [*self._command, "--database", url], {})

    def _made(self, primary: Postgresql | None = None) -> Postgresql:
        made = Postgresql(("fsync=on",), primary)
        self._stack.callback(made.remove)
        return made


def _requests(reports: Sequence[Report]) -> tuple[list[bytes], list[list[Report]]]:
    """Half of the requests carry one report, half a batch."""
    requests, members = [], []
    position = 0
    while position + BATCH < len(reports):
        one, batch = reports[position], list(reports[position + 1 : position + BATCH])
        requests += [put_request(one), batch_request(batch)]
        members += [[one], batch]
        position += BATCH
    return requests, members


def run_trials(name: str, faults: int, reports: int) -> int:
    """So many kills, or losses of power; how many reports were lost."""
    with tempfile.TemporaryDirectory() as folder:
        disk = FailingDisk(Path(folder)) if name == "loss of power" else None
        trial = Trial(Path(folder), disk, reports)
        start = time.perf_counter()
        for _ in range(faults):
            trial.fault()
        exported, missing = trial.check()
    show(name, faults, trial.acknowledged, exported, missing, start)
    return missing


def run_on_postgresql(name: str, faults: int, reports: int) -> int:
    """So many restarts or failovers of PostgreSQL; how many reports were lost."""
    start = time.perf_counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trial = PostgresqlTrial(folder, stack, reports)
        for _ in range(faults):
            if name == "failover":
                trial.fail_over()
            else:
                trial.restart(name.rpartition(" ")[2])
        exported, missing = trial.check()
    show(f"PostgreSQL, {name}", faults, trial.acknowledged, exported, missing, start)
    return missing


def show(name: str, faults: int, acknowledged: set[str], exported: int, missing: int, start: float) -> None:
    """One line."""
    print(
        f"{name} × {faults}: {len(acknowledged)} acknowledged, {exported} exported, "
        f"{missing} lost, {time.perf_counter() - start:.0f} s",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the faults and say what was lost; exit code 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--powers", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=10, help="of PostgreSQL, of each kind")
    parser.add_argument("--failovers", type=int, default=5, help="of PostgreSQL")
    text = "sent through each fault; more than a server takes until it is killed"
    parser.add_argument("--reports", type=int, default=20_000, help=text)
    parser.add_argument("--on-postgresql", type=int, default=6000, help="sent through each fault of it")
    arguments = parser.parse_args(argv)
    lost = 0
    for name, faults in {"kill -9": arguments.kills, "loss of power": arguments.powers}.items():
        lost += run_trials(name, faults, arguments.reports) if faults else 0
    of_postgresql = {"restart -m immediate": arguments.restarts, "restart -m fast": arguments.restarts}
    for name, faults in {**of_postgresql, "failover": arguments.failovers}.items():
        lost += run_on_postgresql(name, faults, arguments.on_postgresql) if faults else 0
    raise SystemExit(1 if lost else 0)


if __name__ == "__main__":
    main()
