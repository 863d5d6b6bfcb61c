"""A real collector, started with the command that an operator types."""

import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from collector.db import Database
from collector.migrations import make
from collector.settings import Settings

TOKEN = "operators-token-for-tests"
LDPKIT = [sys.executable, "-m", "ldpkit"]


def ldpkit(*arguments, **options):
    """Run the command line and capture what it prints."""
    command = [*LDPKIT, *map(str, arguments)]
    environment = {**os.environ, "LDPKIT_TOKEN": TOKEN}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **options)


def started(ready, *words, **options):
    """Start a server with the command of these words, and return (its process, its base URL)."""
    ready.unlink(missing_ok=True)
    command = [*LDPKIT, *words, "--ready-file", str(ready)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, **options)
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    return process, ready.read_text().strip()


class Collector:
    """A running collector on a SQLite file; `restart` kills it and starts it again on the same port."""

    def __init__(self, folder, port):
        self.folder = folder
        self.port = port
        self.start()

    def start(self):
        file = self.folder / "collector.sqlite3"
        url = f"sqlite:///{file}"
        if not file.exists():
            make(Database(url, Settings.lock_timeout))
        environment = {**os.environ, "LDPKIT_TOKEN": TOKEN, "LDPKIT_DATABASE": url}
        words = ["serve", "--port", str(self.port)]
        self.process, self.url = started(self.folder / "url", *words, env=environment)

    def kill(self):
        """End it at once, its workers with it: one that ends first would be replaced."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def publish(self, study):
        request = urllib.request.Request(f"{self.url}/v1/studies", study.canonical(), method="POST")
        request.add_header("Authorization", f"Bearer {TOKEN}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status


@pytest.fixture
def collector(tmp_path, port):
    folder = tmp_path / "collector"
    folder.mkdir()
    collector = Collector(folder, port)
    yield collector
    collector.stop()
