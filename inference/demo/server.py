"""A collector of its own for the demo, on a free loopback port, gone when the demo ends."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ldp_client.documents.errors import TransferError
from schemas import Study

START_SECONDS = 60.0
STOP_SECONDS = 20.0
LDPKIT = [sys.executable, "-m", "ldp_client.cli"]


@dataclass(frozen=True)
class Collector:
    """A running collector: its base URL and its operator's token."""

    url: str
    token: str

    def publish(self, study: Study) -> None:
        """Publish a study through the HTTP API."""
        request = urllib.request.Request(f"{self.url}/v1/studies", study.canonical(), method="POST")
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10):
            pass

    def export(self, study: Study, path: Path) -> None:
        """Fetch all reports with `ldpkit export`."""
        command = [*LDPKIT, "export", study.id, "--from", self.url, "--out", str(path)]
        done = subprocess.run(
            command, env=_environment(self.token), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TransferError(f"the export failed: {done.stderr.strip()}")


def _environment(token: str) -> dict[str, str]:
    return {**os.environ, "LDPKIT_TOKEN": token}


@contextmanager
def running_collector(folder: Path) -> Iterator[Collector]:
    """`ldpkit serve` on a SQLite file in `folder`; stopped on the way out, whatever happens."""
    token = secrets.token_urlsafe(32)
    ready = folder.absolute() / "url"
    # From inside: a folder's name may have characters that mean something in a URL.
    database = "sqlite:///collector.sqlite3"
    command = [*LDPKIT, "serve", "--new", "--port", "0", "--database", database, "--ready-file", str(ready)]
    with (folder / "collector.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=_environment(token), stdout=log, stderr=log)
        try:
            yield Collector(_wait_for(ready, server, folder / "collector.log"), token)
        finally:
            _stop(server)


def _wait_for(ready: Path, server: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise TransferError(
                f"the collector did not start: {log.read_text(errors='replace').strip()[-500:]}"
            )
        time.sleep(0.05)
    return ready.read_text().strip()


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
