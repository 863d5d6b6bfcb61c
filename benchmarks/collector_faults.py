"""Whether what was acknowledged is there: `python -m benchmarks.collector_faults [--kills N --powers N …]`.

A server under load is killed (kill -9), or its disk loses power, again and again on one database; PostgreSQL
is restarted under a server's load, as after a crash or as an operator does it, and dies for good, so that its
synchronous replica takes over. In the end every acknowledged report must be in the export exactly once.
"""

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import make_url

from benchmarks.collector_load.bodies import STUDY, batch_request, fresh_reports, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import TOKEN, Server, collector_command
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from schemas import Report
from tests.kit.failing_disk import FailingDisk
from tests.kit.postgresql import STANDBY, Postgresql

SEED = 20260615
BATCH = 100
CONNECTIONS = 16
SHORTEST, LONGEST = 0.2, 0.8
LONGEST_OUTAGE = 300.0
Fault = Callable[[Server], object]


class Trial:
    """One database, and the reports that a collector on it has acknowledged. start: starts the collector."""

    def __init__(self, start: Callable[[], Server], reports: int) -> None:
        self.start = start
        self._reports = reports
        self._random = random.Random(SEED)
        self.acknowledged: set[str] = set()

    def load_through(self, fault: Fault, is_final: bool) -> None:
        """Send reports, and let a fault happen at some moment. is_final: the server does not come back."""
        server = self.start()
        requests, members = _requests(list(fresh_reports(self._reports)))
        # Whatever else the machine does, something is acknowledged before the fault.
        loads = [run_load(server.url, requests[:2], 1)]
        failing = threading.Timer(self._random.uniform(SHORTEST, LONGEST), fault, [server])
        failing.start()
        left, deadline = list(range(len(requests))), time.monotonic() + LONGEST_OUTAGE
        # What was refused is sent again, as devices do.
        while left or failing.is_alive():
            load = run_load(server.url, [requests[number] for number in left], CONNECTIONS)
            loads.append(load)
            taken = {left[position] for position in load.answered}
            for number in (*loads[0].answered, *taken):
                self.acknowledged.update(report.id for report in members[number])
            left = [number for number in left if number not in taken]
            if is_final:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(left)} requests were never taken")
            time.sleep(0.1)
        failing.join()
        if not is_final:
            server.kill()
        statuses = {status for load in loads for status in load.statuses}
        if statuses - {200, 201, *(() if is_final else (503,))}:
            raise RuntimeError(f"unexpected answers: {statuses}")

    def check(self) -> tuple[int, int]:
        """How many reports are exported, and how many of the acknowledged ones are not."""
        server = self.start()
        exported = [report.id for report in fetch_reports(Client(server.url, TOKEN), STUDY.id)]
        server.stop()
        if len(exported) != len(set(exported)):
            raise RuntimeError("a report was exported twice")
        return len(exported), len(self.acknowledged - set(exported))


def _requests(reports: Sequence[Report]) -> tuple[list[bytes], list[list[Report]]]:
    """Half of the requests carry one report, half a batch; and the reports of each."""
    members = [
        part
        for position in range(0, len(reports) - BATCH, BATCH)
        for part in ([reports[position]], list(reports[position + 1 : position + BATCH]))
    ]
    return [put_request(part[0]) if len(part) == 1 else batch_request(part) for part in members], members


@contextmanager
def on_sqlite(loses_power: bool, reports: int) -> Iterator[tuple[Trial, Callable[[], None]]]:
    """A trial on SQLite, and what ends its server."""
    with tempfile.TemporaryDirectory() as name:
        disk = FailingDisk(Path(name)) if loses_power else None
        folder, environment = (disk.root, disk.environment) if disk else (Path(name), {})
        command = [*collector_command(), "--database", f"sqlite:///{folder / 'x.sqlite3'}"]
        trial = Trial(lambda: Server(folder, command, environment), reports)

        def fault() -> None:
            trial.load_through(Server.kill, is_final=True)
            if disk:
                disk.lose_power()

        yield trial, fault


class Replicated:
    """A PostgreSQL server with a database, which another one may take over from."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._servers = [self._made()]
        self._name = str(make_url(self._servers[0].new_database()).database)

    @property
    def url(self) -> str:
        """The address of whichever server takes writes."""
        hosts = ",".join(str(server.folder) for server in self._servers)
        return f"postgresql://postgres@/{self._name}?host={hosts}&target_session_attrs=read-write"

    def restart(self, trial: Trial, mode: str) -> None:
        """Load, and restart PostgreSQL at some moment."""
        (server,) = self._servers
        trial.load_through(lambda _collector: server.restart(mode), is_final=False)

    def fail_over(self, trial: Trial) -> None:
        """Load, and have a synchronous replica take over at some moment."""
        (primary,) = self._servers
        standby = self._made(primary)
        self._servers.append(standby)
        primary.set("synchronous_standby_names", STANDBY)

        def cut(_collector: Server) -> None:
            primary.kill()
            standby.promote()

        trial.load_through(cut, is_final=False)
        # It has the settings of the server that it was copied from, and no replica of its own yet.
        standby.set("synchronous_standby_names", "")
        self._servers = [standby]

    def _made(self, primary: Postgresql | None = None) -> Postgresql:
        made = Postgresql(("fsync=on",), primary)
        self._stack.callback(made.remove)
        return made


@contextmanager
def on_postgresql(kind: str, reports: int) -> Iterator[tuple[Trial, Callable[[], None]]]:
    """A trial with a collector of two workers on PostgreSQL, and what happens to PostgreSQL."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        replicated = Replicated(stack)
        command = [*collector_command(), "--workers", "2", "--database"]
        trial = Trial(lambda: Server(folder, [*command, replicated.url], {}), reports)
        if kind == "failover":
            yield trial, partial(replicated.fail_over, trial)
        else:
            yield trial, partial(replicated.restart, trial, kind.rpartition(" ")[2])


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
    given = parser.parse_args(argv)
    trials = {
        "kill -9": (given.kills, partial(on_sqlite, False, given.reports)),
        "loss of power": (given.powers, partial(on_sqlite, True, given.reports)),
    }
    for kind, faults in {
        "restart -m immediate": given.restarts,
        "restart -m fast": given.restarts,
        "failover": given.failovers,
    }.items():
        trials[f"PostgreSQL, {kind}"] = (faults, partial(on_postgresql, kind, given.on_postgresql))
    lost = 0
    for name, (faults, make) in trials.items():
        if faults:
            start = time.perf_counter()
            with make() as (trial, fault):
                for _ in range(faults):
                    fault()
                exported, missing = trial.check()
            lost += missing
            acknowledged, seconds = len(trial.acknowledged), time.perf_counter() - start
            print(f"{name} × {faults}: {acknowledged} acknowledged, {exported} exported, ", end="")
            print(f"{missing} lost, {seconds:.0f} s", flush=True)
    raise SystemExit(1 if lost else 0)


if __name__ == "__main__":
    main()
