"""Running the collector with gunicorn, without a word about who sends what, or when."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import ThreadWorker

from collector.problems import MEDIA_TYPE, TYPE_PREFIX
from collector.settings import METRICS_FOLDER, Settings
from schemas.canonical import canonical_json
from schemas.errors import InputError

BACKLOG = 2048
GRACE_SECONDS = 30
KEEP_ALIVE_SECONDS = 5


@dataclass(frozen=True)
class Place:
    """Where and how wide the server runs. port 0 takes any free one."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 8


def serve(settings: Settings, place: Place, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests at hand and raise SystemExit(0).

    announce: called once with the base URL when connections are taken. Raises InputError for an
    address or a database that cannot be used.
    """
    listener = _listen(place.host, place.port)
    url = _base_url(listener)
    with _shared_metrics(place.workers):
        # Not sooner: prometheus_client looks for the folder when it is imported.
        from collector.app import create_app

        app = create_app(settings)
        options = {
            "bind": f"fd://{listener.detach()}",
            "workers": place.workers,
            "threads": place.threads,
            "worker_class": PrivateWorker,
            "logger_class": PrivateLogger,
            "loglevel": "warning",
            "accesslog": None,
            "graceful_timeout": GRACE_SECONDS,
            "keepalive": KEEP_ALIVE_SECONDS,
            "control_socket_disable": True,
            "when_ready": lambda _arbiter: announce(url),
        }
        _Gunicorn(app, options).run()


@contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """A folder for the counts of several processes, unless the operator has named one."""
    if workers == 1 or METRICS_FOLDER in os.environ:
        yield
        return
    master = os.getpid()
    folder = tempfile.mkdtemp(prefix="ldpkit-metrics-")
    os.environ[METRICS_FOLDER] = folder
    try:
        yield
    finally:
        # A worker leaves through here too, while the others still count.
        if os.getpid() == master:
            shutil.rmtree(folder)


class PrivateLogger(Logger):  # type: ignore[misc]
    """Log lines without the time: a line about a request must not say when it came."""

    error_fmt = "[%(process)d] [%(levelname)s] %(message)s"


class PrivateWorker(ThreadWorker):  # type: ignore[misc]
    """A worker that refuses malformed HTTP without writing down the sender's address or request."""

    def handle_error(self, req: object, client: socket.socket, addr: object, exc: Exception) -> None:
        """Answer with a problem document and log the kind of error alone."""
        del req, addr
        if isinstance(exc, ParseException):
            self.log.warning("malformed request: %s", type(exc).__name__)
            status, title = _status_of(exc)
        else:
            self.log.error("a request failed", exc_info=exc)
            status, title = 500, "Internal Server Error"
        with suppress(OSError):
            client.sendall(_raw_problem(status, title))


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    """Gunicorn with one app and its options, and no configuration files."""

    def __init__(self, app: Flask, options: dict[str, Any]) -> None:
        self.options = options
        self.app = app
        super().__init__()

    def load_config(self) -> None:
        for name, value in self.options.items():
            # Releases before 25 have no control socket to disable.
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Flask:
        return self.app


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {host} port {port}: {error}") from error


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _status_of(error: ParseException) -> tuple[int, str]:
    if isinstance(error, LimitRequestLine):
        return 414, "URI Too Long"
    if isinstance(error, LimitRequestHeaders):
        return 431, "Request Header Fields Too Large"
    return 400, "Bad Request"


def _raw_problem(status: int, title: str) -> bytes:
    """A whole HTTP response, for requests that never reach the application."""
    kind = TYPE_PREFIX + title.lower().replace(" ", "-")
    body = canonical_json({"type": kind, "title": title, "status": status}).encode()
    head = (
        f"HTTP/1.1 {status} {title}\r\nConnection: close\r\n"
        f"Content-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
