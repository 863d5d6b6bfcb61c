"""A folder of pages on an origin of its own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

POLL_SECONDS = 0.02


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing, knows modules by their ending, and gives each file as it is now.

    Its base says "not modified" of what changed within the second in which the browser was given it.
    """

    extensions_map: ClassVar = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

    def send_head(self) -> Any:
        """The file's, whatever the browser has of it."""
        del self.headers["If-Modified-Since"]
        return super().send_head()

    def end_headers(self) -> None:
        """With one that keeps the answer out of caches."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder's origin, while it is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as pages:
        serving = threading.Thread(target=pages.serve_forever, args=[POLL_SECONDS])
        serving.start()
        try:
            yield f"http://127.0.0.1:{pages.server_port}"
        finally:
            pages.shutdown()
            serving.join()
