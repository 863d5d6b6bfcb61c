"""Where a server listens, and how many processes and threads it has."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from collector.settings import METRICS_FOLDER
from ldp_client.documents.errors import InputError

BACKLOG = 2048


@dataclass(frozen=True)
class Place:
    """Where and how wide the server runs. port 0 takes any free one."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 64


def listen(place: Place) -> socket.socket:
    """A listening socket. Raises InputError for an address that cannot be used."""
    host, port = place.host, place.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {host} port {port}: {error}") from error


def base_url(listener: socket.socket) -> str:
    """The URL that a listening socket is reached at."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def shared_metrics(workers: int) -> Iterator[None]:
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
