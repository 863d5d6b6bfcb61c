"""Running the collector with gunicorn, without a word about who sends what, or when."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flask import Flask
from gunicorn import util
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import ThreadWorker

from collector.bounding import log_throttled
from collector.problems import MEDIA_TYPE, TYPE_PREFIX
from collector.serving.place import Place, base_url, listen, shared_metrics, turn
from collector.settings import Settings
from collector.storage.database import sqlite_file
from ldp_client.documents.canonical import canonical_json

GRACE_SECONDS = 30
KEEP_ALIVE_SECONDS = 5


def serve(settings: Settings, place: Place, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests at hand and raise SystemExit(0).

    announce: called once with the base URL when connections are taken. Raises InputError for an
    address or a database that cannot be used.
    """
    with turn(place):
        listener = listen(place)
    url = base_url(listener, place.scheme)
    with shared_metrics(place.workers, sqlite_file(settings.database)):
        # Not sooner: prometheus_client looks for the folder when it is imported.
        from collector.app import create_app
        from collector.operator.days import Days

        app = create_app(settings)
        days = Days(app.extensions["ldpkit"])
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
            "post_worker_init": lambda _worker: days.start(),
            "when_ready": lambda _arbiter: announce(url),
        }
        if place.certificate is not None:
            options |= {"certfile": str(place.certificate.chain), "keyfile": str(place.certificate.key)}
        _Gunicorn(app, options).run()


class PrivateLogger(Logger):  # type: ignore[misc]
    """Log lines without the time: a line about a request must not say when it came."""

    error_fmt = "[%(process)d] [%(levelname)s] %(message)s"


class PrivateWorker(ThreadWorker):  # type: ignore[misc]
    """A worker that refuses malformed HTTP without writing down the sender's address or request."""

    def handle(self, conn: Any) -> Any:
        """Answer one request; whether the connection stays open.

        Where it does not, it is closed here. Releases with close_graceful close it in the one thread
        that serves every connection, and wait up to 2 s for the client to close its end: a few
        clients that do not would stop all others.
        """
        stays_open = super().handle(conn)
        if not stays_open and hasattr(util, "close_graceful"):
            # What the release does later finds the socket closed and returns at once.
            conn.close(graceful=True)
        return stays_open

    def handle_error(self, req: object, client: socket.socket, addr: object, exc: Exception) -> None:
        """Answer with a problem document and log the kind of error alone."""
        del req, addr
        if isinstance(exc, ParseException):
            log_throttled(
                logging.WARNING, f"malformed request: {type(exc).__name__}", code="malformed-request"
            )
            status, title = _status_of(exc)
        else:
            log_throttled(logging.ERROR, "a request failed", exc, "request-failed")
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
