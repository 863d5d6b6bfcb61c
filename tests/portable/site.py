"""A small web server: the JavaScript port, npm packages, test pages, and a collector that does as told."""

from __future__ import annotations

import json
import threading
from email.message import Message
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.portable.npm import PACKAGES
from tests.portable.platforms import JAVASCRIPT

PAGES = Path(__file__).parent / "pages"
STORED, FETCHED, EMPTY = 201, 200, 204
IDENTITY = "0123456789abcdef" * 2
POLL_SECONDS = 0.02


class Site:
    """url: where it listens. requests: (method, path, body) that reached the collector, in order.

    statuses: what uploads and deletions are answered next, then 201. refusals: {status:
    (media type, text)}, else HTML. study: what it has published, asked: the addresses that asked for it.
    invitations: of the uploads, None without; tokens: their headers Authorization. secrets: of the deletions.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str]] = []
        self.statuses: list[int] = []
        self.invitations: list[str | None] = []
        self.tokens: list[str | None] = []
        self.refusals: dict[int, tuple[str, str]] = {}
        self.identity = IDENTITY
        self.study = ""
        self.asked: list[str] = []
        self.secrets: list[str | None] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[POLL_SECONDS])
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def note(self, method: str, headers: Message) -> None:
        """Keep what came beside the body."""
        if method == "PUT":
            self.invitations.append(headers.get("LDPKit-Invitation"))
            self.tokens.append(headers.get("Authorization"))
        else:
            self.secrets.append(headers.get("LDPKit-Withdrawal"))

    def content_of(self, method: str, path: str, status: int) -> tuple[str, str]:
        """The study, a receipt, a refusal in the collector's words, or what a proxy sends."""
        if method == "GET":
            return "application/json", self.study
        if status in self.refusals:
            return self.refusals[status]
        if status != STORED:
            return "text/html", "" if status == EMPTY else "<html>"
        result = "stored" if method == "PUT" else "withdrawn"
        return "application/json", json.dumps({"id": path.rsplit("/", 1)[1], "result": result})

    def bodies(self) -> list[str]:
        """The bodies of the uploads."""
        return [body for method, _, body in self.requests if method == "PUT"]


def _handler(site: Site) -> type[SimpleHTTPRequestHandler]:
    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def translate_path(self, path: str) -> str:
            _, folder, *rest = path.split("?")[0].split("/")
            return str({"js": JAVASCRIPT, "npm": PACKAGES}.get(folder, PAGES).joinpath(*rest))

        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            site.requests.append((self.command, self.path, body))
            site.note(self.command, self.headers)
            self.answer(site.statuses.pop(0) if site.statuses else STORED)

        def answer(self, status: int) -> None:
            media_type, text = site.content_of(self.command, self.path, status)
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("LDPKit-Collector", site.identity)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_PUT = do_DELETE = take  # noqa: N815

        def do_GET(self) -> None:
            if not self.path.startswith("/v1/"):
                return super().do_GET()
            site.asked.append(self.path)
            return self.answer(FETCHED)

        def log_message(self, *_arguments: Any) -> None:
            """Nothing."""

    return Handler
