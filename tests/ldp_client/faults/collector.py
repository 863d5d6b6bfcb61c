"""A collector that serves its studies and notes each upload and deletion before it answers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ldp_client.faults.life import ALL


class _Handler(BaseHTTPRequestHandler):
    log: Path

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size).decode()
        if len(body) < size:  # The device died while it was sending.
            return
        with self.log.open("a") as file:
            file.write(json.dumps([self.command, self.path, body]) + "\n")
        result = "stored" if self.command == "PUT" else "withdrawn"
        self._send(json.dumps({"id": self.path.rsplit("/", 1)[1], "result": result}).encode())

    do_PUT = do_DELETE = answer  # noqa: N815

    def do_GET(self) -> None:
        """Serve the version of a study that was asked for."""
        address = urlsplit(self.path)
        wanted = address.path.rsplit("/", 1)[1], int(parse_qs(address.query)["version"][0])
        self._send(next(study for study in ALL if (study.id, study.version) == wanted).canonical())

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def collector(log: Path) -> Iterator[str]:
    """A collector in a process of its own that notes each request before it answers; its URL."""
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"log": log}))
    process = os.fork()
    if process == 0:
        server.serve_forever()
    server.server_close()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
