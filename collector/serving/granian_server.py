"""Running the collector with granian, whose HTTP implementation is not written in Python."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

from flask import Flask
from granian import Granian
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.log import LogLevels

from collector.logs import CONFIGURATION, write_logs
from collector.serving.place import BACKLOG, POLL_SECONDS, START_SECONDS, Address, Place, held, shared_metrics
from collector.settings import JSON_LINES, Settings
from collector.storage.database import sqlite_file

STOP_SECONDS = 10
WATCH_SECONDS = 1.0
# Up to ENDS_AT_ONCE exits in RECENT_SECONDS, workers restart at once. Each further exit doubles the delay.
RECENT_SECONDS = 60.0
ENDS_AT_ONCE = 3
ENDS_REMEMBERED = 16
FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0


def serve(
    settings: Settings, place: Place, announce: Callable[[str], None], node_key: str | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the current requests.

    node_key: as for `create_app`. announce: called once with the base URL when connections are accepted.
    Raises InputError for an address or a database that cannot be used.
    """
    with held(place) as address, shared_metrics(place.workers, sqlite_file(settings.database)):
        server, start = _server(place, address, announce, settings.log_format)
        # Load here too, not only in the workers, so that a wrong database is one clear line.
        load_app(settings, node_key).extensions["ldpkit"].close()
        start()
        load = partial(_load_in_worker, settings, node_key, os.getpid())
        server.serve(target_loader=load, wrap_loader=False)


def serve_plain(load: Callable[[], Flask], place: Place, announce: Callable[[str], None], log: str) -> None:
    """Serve another application than the collector, as `serve` does. load: makes it, in each worker."""
    with held(place) as address:
        server, start = _server(place, address, announce, log)
        # Load here too, as above.
        load()
        start()
        server.serve(target_loader=partial(_load_plain, load, log, os.getpid()), wrap_loader=False)


def _load_plain(load: Callable[[], Flask], log: str, master: int) -> Flask:
    end_with(master)
    write_logs(log)
    app = load()
    _end_if_orphan(master)
    return app


def _server(
    place: Place, address: Address, announce: Callable[[str], None], log: str
) -> tuple[Respawning, Callable[[], None]]:
    """Return a server whose workers bind the port, and a function that starts announcing its URL."""
    logging.getLogger("_granian").addFilter(_is_news)
    server = Respawning(
        "collector",
        address=address.host,
        port=address.port,
        interface=Interfaces.WSGI,
        workers=place.workers,
        blocking_threads=place.threads,
        backlog=BACKLOG,
        http=HTTPModes.http1,
        websockets=False,
        ssl_cert=place.certificate and place.certificate.chain,
        ssl_key=place.certificate and place.certificate.key,
        # Some phones in use have no newer version.
        ssl_protocol_min=SSLProtocols.tls12,
        log_level=LogLevels.warning,
        log_access=False,
        log_dictconfig=CONFIGURATION if log == JSON_LINES else None,
        respawn_failed_workers=True,
        # SIGTERM is lost while a worker starts; without a timeout we would wait forever.
        workers_kill_timeout=STOP_SECONDS,
    )
    waiting = Thread(target=_announce_when_ready, args=(address, announce), daemon=True)
    return server, waiting.start


class Respawning(Granian):  # type: ignore[misc,valid-type]
    """Granian that always restarts a worker that ends, with growing delays.

    Granian itself ends the server when a worker ends twice within 5.5 s: one cause could end all workers.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ends: deque[float] = deque(maxlen=ENDS_REMEMBERED)

    def _respawn_workers(self, workers: Any, *arguments: Any, **options: Any) -> None:
        self._ends.append(time.monotonic())
        recent = sum(1 for end in self._ends if end > self._ends[-1] - RECENT_SECONDS)
        # A stop signal sets this event and so cuts the delay short.
        self.main_loop_interrupt.wait(respawn_delay(recent))
        if not self.interrupt_signal:
            super()._respawn_workers(workers, *arguments, **options)
        # Granian detects a crash loop by this record.
        self.respawned_wrks.clear()


def respawn_delay(recent: int) -> float:
    """Return the seconds until a worker restarts, after `recent` exits within RECENT_SECONDS."""
    repeated = recent - ENDS_AT_ONCE
    return 0.0 if repeated <= 0 else min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** (repeated - 1))


def _load_in_worker(settings: Settings, node_key: str | None, master: int) -> Flask:
    end_with(master)
    app = load_app(settings, node_key)
    # Import here: its imports need the shared folder.
    from collector.operator.daily import Days

    Days(app.extensions["ldpkit"]).start()
    _end_if_orphan(master)
    return app


def end_with(master: int) -> None:
    """End this process when its parent has ended: an orphaned worker would hold the port and the database."""

    def watch() -> None:
        while os.getppid() == master:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        os._exit(1)

    Thread(target=watch, name="watch", daemon=True).start()


def _end_if_orphan(master: int) -> None:
    """Exit if the parent was killed meanwhile: the port may belong to another server by now."""
    if os.getppid() != master:
        os._exit(1)


def _is_news(record: logging.LogRecord) -> bool:
    """Silence the warning about more threads than processors: they wait for the disk, not for Python.

    Reword the warning that a worker refuses to stop: it waits for a client, or was starting at the signal.
    """
    message = record.getMessage()
    if message.startswith("Killing worker"):
        seconds = f"{STOP_SECONDS} s"
        record.msg = f"killed a worker that still waited for a request's rest, or started, after {seconds}"
        record.args = ()
    return "Configuration allows spawning" not in message


def load_app(settings: Settings, node_key: str | None = None) -> Flask:
    """Make the application, in each worker."""
    # Import here: prometheus_client looks for the shared folder when it is imported.
    from collector.app import create_app

    write_logs(settings.log_format)
    return create_app(settings, node_key=node_key)


def _announce_when_ready(address: Address, announce: Callable[[str], None]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(address[:2], timeout=1).close()
        except OSError:
            time.sleep(POLL_SECONDS)
        else:
            announce(address.url)
            break
    address.let_go()
