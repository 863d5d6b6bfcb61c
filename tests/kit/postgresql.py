"""A PostgreSQL server of the tests' own, in a temporary folder, reached through a socket there."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg

from tests.kit.collectors import wait_for
from tests.kit.programs import need, which

STANDBY = "standby"
OPTIONS = ("listen_addresses=", "max_connections=200", "log_min_messages=fatal", "deadlock_timeout=50ms")


class Postgresql:
    """A running server. It never runs as root: PostgreSQL refuses to."""

    def __init__(self, options=("fsync=off",), primary=None):
        """primary: whose replica it is, by streaming, called STANDBY there."""
        need("postgres")
        self._options = [part for option in (*OPTIONS, *options) for part in ("-c", option)]
        self.folder = Path(tempfile.mkdtemp(prefix="ldpkit-pg-"))
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        self._numbers = count(1)
        if primary is None:
            self._run("initdb", "-D", self._data, "-U", "postgres", "--no-sync", "-A", "trust", "-E", "UTF8")
        else:
            source = f"host={primary.folder} user=postgres application_name={STANDBY}"
            copy = ("pg_basebackup", "-D", self._data, "-R", "-X", "stream", "-c", "fast", "--no-sync")
            self._run(*copy, "-d", source)
        self.start()
        if primary is not None:
            wait_for(lambda: primary.query("SELECT 1 FROM pg_stat_replication"))

    def start(self):
        """Start the server and wait until it answers."""
        command = [which("postgres") or "", "-D", self._data, "-k", str(self.folder), *self._options]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                command, user=self._user, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        wait_for(lambda: self._answers() or self._server.poll() is not None)
        assert self._server.poll() is None, (self.folder / "log").read_text()

    @property
    def pid(self):
        """The process that all others of the server are children of."""
        return self._server.pid

    def restart(self, mode):
        """As `pg_ctl restart -m MODE` does it: immediate (as a crash) or fast (connections are ended)."""
        self._server.send_signal({"immediate": signal.SIGQUIT, "fast": signal.SIGINT}[mode])
        self._server.wait(timeout=60)
        self.start()

    def set(self, name, value):
        """Change a setting for all that is connected, from now on."""
        with self._connect() as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def promote(self):
        """Make a replica a server of its own that takes writes."""
        with self._connect() as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)

    def query(self, statement):
        """The rows of a statement that reads."""
        with self._connect() as connection:
            return connection.execute(statement).fetchall()

    def kill(self):
        """kill -9 of the server with every process of its own."""
        children = Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children").read_text().split()
        # Each leads a process group of its own, and would answer one more request.
        for pid in (self._server.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait()

    def remove(self):
        """Stop the server and delete its files."""
        if self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(timeout=60)
        shutil.rmtree(self.folder)

    def new_database(self):
        """The SQLAlchemy URL of an empty database."""
        name = f"collector{next(self._numbers)}"
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://postgres@/{name}?host={self.folder}"

    @property
    def _data(self):
        return str(self.folder / "data")

    def _run(self, program, *arguments):
        command = [which(program) or "", *arguments]
        subprocess.run(command, user=self._user, cwd=self.folder, check=True, capture_output=True)

    def _connect(self):
        return psycopg.connect(host=str(self.folder), user="postgres", dbname="postgres", autocommit=True)

    def _answers(self):
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True
