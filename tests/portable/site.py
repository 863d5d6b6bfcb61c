"""A folder of pages, with the library, on an origin of its own."""

from __future__ import annotations

import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.portable.npm import FOLDER
from tests.portable.platforms import JAVASCRIPT

POLL_SECONDS = 0.02


class Site:
    """url: where it listens. requests: (method, path) of uploads and deletions, in order; none is taken."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, folder))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[POLL_SECONDS])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(site: Site, root: Path) -> type[SimpleHTTPRequestHandler]:
    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        extensions_map: ClassVar = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

        def translate_path(self, path: str) -> str:
            _, first, *rest = path.split("?")[0].split("/")
            return str(JAVASCRIPT.joinpath(*rest) if first == "js" else root.joinpath(first, *rest))

        def send_head(self) -> Any:
            # The base says "not modified" of what changed within a second.
            del self.headers["If-Modified-Since"]
            return super().send_head()

        def end_headers(self) -> None:
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        def refuse(self) -> None:
            site.requests.append((self.command, self.path))
            self.send_error(404)

        do_PUT = do_DELETE = refuse  # noqa: N815

        def log_message(self, *_arguments: Any) -> None:
            """Nothing."""

    return Handler
