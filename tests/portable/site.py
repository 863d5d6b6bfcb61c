"""A folder of pages, with the library, on an origin of its own."""

from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

from tests.kit.serving import LocalServer
from tests.portable.npm import FOLDER, JAVASCRIPT


class Site(LocalServer):
    """url: where it listens. requests: (method, path) of uploads and deletions, in order; none is taken."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.requests: list[tuple[str, str]] = []
        super().__init__(_handler(self.requests, folder))
        self.url = f"http://{self.address}"


def _handler(requests: list[tuple[str, str]], root: Path) -> type[SimpleHTTPRequestHandler]:
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
            requests.append((self.command, self.path))
            self.send_error(404)

        do_PUT = do_DELETE = refuse  # noqa: N815

        def log_message(self, *_arguments: Any) -> None:
            """Nothing."""

    return Handler
