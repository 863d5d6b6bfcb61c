"""A site of pages with the library, which notes each request that changes something."""

from __future__ import annotations

import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.portable.npm import PACKAGES
from tests.portable.platforms import JAVASCRIPT

PAGES = Path(__file__).parent / "pages"
POLL_SECONDS = 0.02


class Site:
    """url: where it listens. requests: (method, path) of uploads and deletions, in order; none is taken."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[POLL_SECONDS])
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(site: Site) -> type[SimpleHTTPRequestHandler]:
    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def translate_path(self, path: str) -> str:
            _, folder, *rest = path.split("?")[0].split("/")
            return str({"js": JAVASCRIPT, "npm": PACKAGES}.get(folder, PAGES).joinpath(*rest))

        def refuse(self) -> None:
            site.requests.append((self.command, self.path))
            self.send_error(404)

        do_PUT = do_DELETE = refuse  # noqa: N815

        def log_message(self, *_arguments: Any) -> None:
            """Nothing."""

    return Handler
