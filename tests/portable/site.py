"""A small web server: the JavaScript port at /js, test pages, and a collector that does as it is told."""

from __future__ import annotations

import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.portable.platforms import JAVASCRIPT

PAGES = Path(__file__).parent / "pages"
STORED = 201
POLL_SECONDS = 0.02


class Site:
    """url: where it listens. requests: (method, path, body) that reached the collector, in order.

    statuses: what it answers next; when there is none left, 201. invitations: of the uploads, None without.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str]] = []
        self.statuses: list[int] = []
        self.invitations: list[str | None] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[POLL_SECONDS])
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def bodies(self) -> list[str]:
        """The bodies of the uploads."""
        return [body for method, _, body in self.requests if method == "PUT"]


def _handler(site: Site) -> type[SimpleHTTPRequestHandler]:
    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def translate_path(self, path: str) -> str:
            _, folder, *rest = path.split("?")[0].split("/")
            return str((JAVASCRIPT if folder == "js" else PAGES).joinpath(*rest))

        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            site.requests.append((self.command, self.path, body))
            if self.command == "PUT":
                site.invitations.append(self.headers.get("LDPKit-Invitation"))
            self.send_response(site.statuses.pop(0) if site.statuses else STORED)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PUT = do_DELETE = take  # noqa: N815

        def log_message(self, *_arguments: Any) -> None:
            """Nothing."""

    return Handler
