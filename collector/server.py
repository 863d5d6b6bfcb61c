"""The listening processes: granian, on a socket that is open before its workers start."""

import fcntl
import logging
import os
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from flask import Flask
from granian import Granian
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]

from collector.settings import METRICS_FOLDER, Settings
from ldp_client.documents.errors import InputError, UsageError

BACKLOG = 2048
STOP_SECONDS = 10
WATCH_SECONDS = 1.0
METRICS_PREFIX = "ldpkit-metrics-"
SWITCH_SECONDS = 0.0005
THREADS = 64


def serve_collector(
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
    certificate: Path | None,
    key: Path | None,
    announce: Callable[[str], None],
    create: Callable[[Settings], Flask] | None,
) -> None:
    """Serve a collector until SIGTERM or SIGINT, then finish the current requests.

    Args:
        settings: the collector's.
        host: the address to listen on.
        port: its port; 0 takes any free one.
        workers: how many processes, of THREADS threads each.
        certificate: for https, a PEM file with the server's own certificate first.
        key: its private key in PEM, not encrypted.
        announce: called once with the base URL when connections are accepted.
        create: makes another application than `create_app` does.

    Raises:
        InputError: the address or the certificate cannot be used, or the application cannot be made.
    """

    def load(master: int | None) -> Flask:
        """Make the application: in a worker of the process `master`, or before to check that this works."""
        if master is not None:
            Thread(target=_watch, args=(master,), name="watch", daemon=True).start()
        # Import here: prometheus_client looks for the processes' shared folder when it is imported.
        from collector.app import create_app
        from collector.daily import Days

        # A waiting upload gets Python's lock sooner from a thread that reads.
        sys.setswitchinterval(SWITCH_SECONDS)
        app = (create or create_app)(settings)
        collector = app.extensions["ldpkit"]
        if master is None:
            collector.close()
        else:
            Days(collector).start()
        return app

    check_certificate(certificate, key)
    # Granian warns of more threads than processors: they wait for the disk, not for Python.
    logging.getLogger("_granian").addFilter(lambda record: "Configuration allows" not in record.getMessage())
    with _metrics_folder(workers), listen(host, port) as listener:
        server = Server(
            listener,
            interface=Interfaces.WSGI,
            workers=workers,
            blocking_threads=THREADS,
            http=HTTPModes.http1,
            websockets=False,
            ssl_cert=certificate,
            ssl_key=key,
            # Some phones in use have no newer version.
            ssl_protocol_min=SSLProtocols.tls12,
            log_level=LogLevels.warning,
            log_access=False,
            respawn_failed_workers=True,
            # SIGTERM is lost while a worker starts; without a timeout we would wait forever.
            workers_kill_timeout=STOP_SECONDS,
        )
        load(None)
        announce(base_url(listener, "https" if certificate else "http"))
        server.serve(target_loader=partial(load, os.getpid()), wrap_loader=False)


class Server(Granian):  # type: ignore[misc,valid-type]
    """Granian on an open socket that its workers share, as on macOS.

    On Linux, granian's workers bind the port themselves. Another server could then share the port, and a
    connection that arrives while a worker restarts would be refused.
    """

    def __init__(self, listener: socket.socket, **options: Any) -> None:
        super().__init__("collector", **options)
        self._listener = listener

    def _init_shared_socket(self) -> None:
        # The workers' event loops need it so.
        self._listener.setblocking(False)
        # Closing a holder closes its socket.
        self._shd = SocketHolder(os.dup(self._listener.fileno()), False, BACKLOG)  # type: ignore[call-arg]
        self._ssp = self._sso = None


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises InputError for an address that cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # `::` includes IPv4.
        both = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error}", code="server.port_not_free"
        ) from error


def base_url(listener: socket.socket, scheme: str) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _watch(master: int) -> None:
    """End this process when its parent has ended: an orphan would hold the port and the database."""
    while os.getppid() == master:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


@contextmanager
def _metrics_folder(workers: int) -> Iterator[None]:
    """Make a folder for the metrics of several processes; one process needs none."""
    os.environ.pop(METRICS_FOLDER, None)
    if workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix=METRICS_PREFIX, ignore_cleanup_errors=True) as folder:
        os.environ[METRICS_FOLDER] = folder
        # Cleaners of temporary files skip locked folders.
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield
        finally:
            del os.environ[METRICS_FOLDER]
            os.close(lock)


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Check that a server's certificate and private key can be read and fit each other; None is http.

    Raises:
        UsageError: one is named without the other.
        InputError: they cannot be used.
    """
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise UsageError(
            "https needs both: --tls-certificate FILE and --tls-key FILE", code="server.certificate_and_key"
        )
    try:
        # An empty password means none: OpenSSL would ask for one.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise InputError(
            f"{certificate} and {key} must be a certificate and its key, in PEM without a password: {error}",
            code="server.certificate_not_usable",
        ) from None
