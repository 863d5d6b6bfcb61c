"""Whether what was acknowledged is there: `python -m benchmarks.collector_faults [--kills N --powers N]`.

A server under load is killed (kill -9), or its disk loses power, again and again on one database. In
the end every acknowledged report must be in the export exactly once.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.collector_load.bodies import STUDY_ID, batch_request, fresh_reports, load_study, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import TOKEN, Server, collector_command
from collector.remote.download import fetch_reports
from schemas import Report
from tests.collector.failing_disk import FailingDisk

STUDY = load_study()
SEED = 20260615
BATCH = 100
CONNECTIONS = 16
SHORTEST, LONGEST = 0.2, 0.8


class Trial:
    """One database that goes through many faults. disk: None where the server is only killed."""

    def __init__(self, folder: Path, server: str, disk: FailingDisk | None) -> None:
        self._folder = disk.root if disk else folder
        self._disk = disk
        self._command = [*collector_command(server), "--database", f"sqlite:///{self._folder / 'x.sqlite3'}"]
        self._random = random.Random(SEED)
        self.acknowledged: set[str] = set()

    def fault(self) -> None:
        """Start, load, and kill at some moment."""
        server = self._start()
        reports = list(fresh_reports(STUDY, 20_000))
        requests, members = _requests(reports)
        killer = threading.Timer(self._random.uniform(SHORTEST, LONGEST), server.kill)
        killer.start()
        load = run_load(server.url, requests, CONNECTIONS)
        killer.join()
        if any(status not in (200, 201) for status in load.statuses):
            raise RuntimeError(f"unexpected answers: {dict(load.statuses)}")
        for number in load.answered:
            self.acknowledged.update(report.id for report in members[number])
        if self._disk:
            self._disk.lose_power()

    def check(self) -> tuple[int, int]:
        """How many reports are exported, and how many of the acknowledged ones are not."""
        server = self._start()
        exported = [report.id for report in fetch_reports(server.url, STUDY_ID, TOKEN)]
        server.stop()
        if len(exported) != len(set(exported)):
            raise RuntimeError("a report was exported twice")
        return len(exported), len(self.acknowledged - set(exported))

    def _start(self) -> Server:
        return Server(self._folder, self._command, self._disk.environment if self._disk else {})


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


def main() -> None:
    """Run the faults and say what was lost; exit code 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--powers", type=int, default=20)
    parser.add_argument("--server", choices=["gunicorn", "granian"], default="granian")
    arguments = parser.parse_args()
    lost = 0
    for name, faults in (("kill -9", arguments.kills), ("loss of power", arguments.powers)):
        with tempfile.TemporaryDirectory() as folder:
            disk = FailingDisk(Path(folder)) if name == "loss of power" else None
            trial = Trial(Path(folder), arguments.server, disk)
            start = time.perf_counter()
            for _ in range(faults):
                trial.fault()
            exported, missing = trial.check()
            lost += missing
            print(
                f"{name} × {faults}: {len(trial.acknowledged)} acknowledged, {exported} exported, "
                f"{missing} lost, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
    raise SystemExit(1 if lost else 0)


if __name__ == "__main__":
    main()
