"""Servers under load, each in a process group of its own, and what they use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.collector_load.bodies import load_study

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
        ticks = 0
        for fields in self._stats():
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def memory_mb(self) -> float:
        """Resident memory of the largest process."""
        pages = max(int(fields[21]) for fields in self._stats())
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def written_bytes(self) -> int:
        """What the group has sent to the disk so far."""
        total = 0
        for pid in self._pids():
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("write_bytes")).split()[1])
        return total

    def kill(self) -> None:
        """kill -9 of every process."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.process.terminate()
        self.process.wait(60)

    def _publish(self) -> None:
        request = urllib.request.Request(self.url + "/v1/studies", load_study().canonical(), method="POST")
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

    def _pids(self) -> list[int]:
        group = self.process.pid
        return [int(fields[0]) for fields in _all_stats() if int(fields[3]) == group]

    def _stats(self) -> list[list[str]]:
        group = str(self.process.pid)
        return [fields[1:] for fields in _all_stats() if fields[3] == group]


def _all_stats() -> list[list[str]]:
    """For every process its id, then the fields of /proc/PID/stat behind the name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            found.append([entry.name, *text.rpartition(")")[2].split()])
    return found
