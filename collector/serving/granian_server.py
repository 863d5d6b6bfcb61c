"""Running the collector with granian, whose HTTP is not written in Python."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from functools import partial
from threading import Thread

from flask import Flask
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels

from collector.serving.place import BACKLOG, Place, base_url, listen, shared_metrics
from collector.settings import Settings

POLL_SECONDS = 0.02
START_SECONDS = 60.0
STOP_SECONDS = 10


def serve(settings: Settings, place: Place, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests at hand.

    announce: called once with the base URL when connections are taken. Raises InputError for an
    address or a database that cannot be used.
    """
    logging.getLogger("_granian").addFilter(_is_news)
    with listen(place) as listener:
        # Granian's workers bind for themselves; this finds a free port and refuses one in use.
        host, port = listener.getsockname()[:2]
        url = base_url(listener)
    server = Granian(
        "collector",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        workers=place.workers,
        blocking_threads=place.threads,
        backlog=BACKLOG,
        http=HTTPModes.http1,
        websockets=False,
        log_level=LogLevels.warning,
        log_access=False,
        respawn_failed_workers=True,
        # A worker told to stop while it starts does not hear it, and would be waited for without end.
        workers_kill_timeout=STOP_SECONDS,
    )
    with shared_metrics(place.workers):
        # Here too, not in the workers alone, so that a wrong database is one clear line.
        load_app(settings).extensions["ldpkit"].close()
        Thread(target=_announce_when_ready, args=(host, port, url, announce), daemon=True).start()
        server.serve(target_loader=partial(load_app, settings), wrap_loader=False)


def _is_news(record: logging.LogRecord) -> bool:
    """Not that there are more threads than processors: they wait for the disk, not for Python."""
    return "Configuration allows spawning" not in record.getMessage()


def load_app(settings: Settings) -> Flask:
    """The application, made in each worker."""
    # Not sooner: prometheus_client looks for the shared folder when it is imported.
    from collector.app import create_app

    return create_app(settings)


def _announce_when_ready(host: str, port: int, url: str, announce: Callable[[str], None]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            time.sleep(POLL_SECONDS)
        else:
            announce(url)
            return
