"""`ldpkit serve --as issuer` as an operator runs it, on a port of loopback."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kit.collectors import REPOSITORY, RUN_COMMAND, START_SECONDS
from tests.ports import held_port


class IssuerServer:
    """url: where it listens. folder: its place, and that of its lists of codes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Its keys state its address, so that it has one before it listens.
        with held_port() as port:
            self.url = f"http://127.0.0.1:{port}"
            self._run("init", "--as", "issuer", str(folder))
            self._token = self._run("token").strip()
            self._start(port)

    def _start(self, port: int) -> None:
        """Run it until it listens."""
        self._log = (self.folder / "issuer.log").open("ab")
        ready = self.folder / "ready"
        command = [sys.executable, "-c", RUN_COMMAND, "serve", "--as", "issuer", "--port", str(port)]
        self._process = subprocess.Popen(
            [*command, "--ready-file", str(ready)],
            cwd=self.folder,
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
        )
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            assert self._process.poll() is None, (self.folder / "issuer.log").read_text()
            assert time.monotonic() < deadline, "the issuer did not start"
            time.sleep(0.02)

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LDPKIT_")}
        return {**kept, "PYTHONPATH": str(REPOSITORY)}

    def _operate(self, *arguments: str) -> str:
        return self._run(*arguments, "--collector", self.url, LDPKIT_TOKEN=self._token)

    def _run(self, *arguments: str, **variables: str) -> str:
        command = [sys.executable, "-c", RUN_COMMAND, *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**self._environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def channel(self, study: str, *strata: str, hours: int = 24) -> dict[str, Any]:
        """A new key for a study, or one for each FIELD=VALUE, as its document states them."""
        for stratum in strata or ("",):
            made = self._operate("tickets", "key", study, *(["--public", stratum] if stratum else []))
        return {"batches": {"hours": hours}, **json.loads(made)}

    def codes(self, study: str, count: int, stratum: str = "") -> list[str]:
        """New codes, each for one token."""
        public = ["--public", stratum] if stratum else []
        out = self.folder / f"{study}-{stratum.partition('=')[2]}.csv"
        self._operate("invite", study, "--count", str(count), *public, "--out", str(out))
        return [row["ticket"] for row in csv.DictReader(out.open())]

    def status(self, study: str) -> str:
        return self._operate("tickets", "status", study)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()
