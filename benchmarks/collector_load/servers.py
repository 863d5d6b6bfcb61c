"""Collectors and PostgreSQL servers under load, what they use, and databases with millions of reports."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from benchmarks.collector_load.bodies import STUDY
from collector.db import Database
from collector.migrations import make
from collector.studies import publish
from tests.kit.postgresql import Postgresql

REPOSITORY = Path(__file__).resolve().parents[2]
TOKEN = "token-of-the-benchmark"
START_SECONDS = 60
TICKS = os.sysconf("SC_CLK_TCK")
# The server makes its own tables where there are none. Another process would open the file beside a simulated
# disk, which then forgets what that process wrote.
SERVE = """
import os, sys
from contextlib import suppress
from ldpkit.cli import main
from collector.db import Database
from collector.migrations import make
from collector.settings import Settings
from ldp_client.documents.errors import InputError
place = sys.argv.index("--database")
_, os.environ["LDPKIT_DATABASE"] = sys.argv[place : place + 2]
del sys.argv[place : place + 2]
with suppress(InputError):
    make(Database(os.environ["LDPKIT_DATABASE"], Settings.lock_timeout))
sys.exit(main())
"""

DAYS = 100
# As they stand after a night's upkeep: in the order of their ids, in an index without gaps.
FILL = """
INSERT INTO reports
SELECT 1, made.id, 1, DATE '2026-01-01' + (made.n * :days / :rows)::integer, :payload
FROM (
    SELECT n, uuid_send(gen_random_uuid()) AS id FROM generate_series(0, :rows - 1) AS n ORDER BY id
) AS made
"""


def collector_command() -> list[str]:
    """`ldpkit serve` without what the other packages' commands load, on a database made if need be."""
    return [sys.executable, "-c", SERVE, "serve"]


class Server:
    """A collector that listens on loopback, with the study of the benchmarks published."""

    def __init__(self, folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        self.folder = folder
        self._log = folder / "server.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", "0", "--ready-file", str(ready)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY), "LDPKIT_TOKEN": TOKEN, **environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.url = self._wait_for(ready)
        self._publish()

    def cpu_seconds(self) -> float:
        """User and system time of every process of the group so far."""
        group = str(self.process.pid)
        return sum(spent for fields, spent in processes() if fields[2] == group)

    def kill(self) -> None:
        """kill -9 of every process."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.process.terminate()
        self.process.wait(60)

    def _publish(self) -> None:
        request = urllib.request.Request(self.url + "/v1/studies", STUDY.canonical(), method="POST")
        request.add_header("Authorization", f"Bearer {TOKEN}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30):
            pass

    def _wait_for(self, ready: Path) -> str:
        deadline = time.monotonic() + START_SECONDS
        # A server may have made the file and not yet written to it.
        while not ready.exists() or not ready.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self._log.read_text()[-2000:])
            time.sleep(0.02)
        return ready.read_text().strip()


@contextmanager
def serving(*options: str, database: str | None = None) -> Iterator[Server]:
    """A collector on a new SQLite file, or on a database by URL."""
    with tempfile.TemporaryDirectory() as name:
        url = database or f"sqlite:///{Path(name) / 'benchmark.sqlite3'}"
        server = Server(Path(name), [*collector_command(), *options, "--database", url], {})
        try:
            yield server
        finally:
            server.kill()


def processes() -> Iterator[tuple[list[str], float]]:
    """For every process the fields of /proc/PID/stat behind its name, and its CPU seconds so far."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            yield fields, (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def cluster(*options: str) -> Iterator[Postgresql]:
    """A server that flushes its disk as PostgreSQL does unless told otherwise."""
    server = Postgresql(("fsync=on", *options))
    try:
        yield server
    finally:
        server.remove()


def cpu_seconds(server: Postgresql) -> float:
    """CPU time of every process of the server that runs, and of those that have ended."""
    master = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    # Behind the process's own times are those of children that it has waited for.
    ended = sum(map(int, master[11:15])) / TICKS
    return ended + sum(spent for fields, spent in processes() if int(fields[1]) == server.pid)


def stocked(url: str, rows: int, payload: bytes) -> Database:
    """A database with one study, number 1, that has so many reports."""
    database = Database(url, 10)
    make(database)
    with database.write() as session:
        assert publish(session, STUDY)
        if rows:
            session.execute(text(FILL), {"rows": rows, "days": DAYS, "payload": payload})
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("VACUUM ANALYZE reports"))
    return database
