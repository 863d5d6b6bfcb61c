"""Where a server listens, and how many processes and threads it has."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from collector.serving.certificates import HTTP, HTTPS, Certificate
from collector.settings import METRICS_FOLDER
from ldp_client.documents.errors import InputError

BACKLOG = 2048
POLL_SECONDS = 0.02
START_SECONDS = 60.0
METRICS_PREFIX = ".ldpkit-metrics-"


@dataclass(frozen=True)
class Place:
    """Where and how wide the server runs. port 0 takes any free one. certificate: for https."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 64
    certificate: Certificate | None = None

    @property
    def scheme(self) -> str:
        """What its URL begins with."""
        return HTTP if self.certificate is None else HTTPS


def listen(place: Place) -> socket.socket:
    """A listening socket. Raises InputError for an address that cannot be used."""
    host, port = place.host, place.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # Of `::` with IPv4, as granian has it: another server's may be taken.
        both = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error}", code="server.port_not_free"
        ) from error


class Address(NamedTuple):
    """Where a server is to listen, whose workers bind by themselves. let_go: for when they have."""

    host: str
    port: int
    url: str
    let_go: Callable[[], None]


@contextmanager
def held(place: Place) -> Iterator[Address]:
    """An address that was found free, and goes to no other server until this one's workers listen.

    A second after that the kernel would give a free port to any program, and granian's workers share one with
    those of another collector: devices would be dealt between the two. Raises InputError as `listen` does.
    """
    with ExitStack() as kept:
        _keep(kept, turn(place))
        with listen(place) as listener:
            host, port = listener.getsockname()[:2]
            url, family = base_url(listener, place.scheme), listener.family
        if place.port == 0 and sys.platform == "linux":
            # It listens to nothing, and stands back for sockets of its kind, as granian's workers have there.
            holder = _keep(kept, socket.socket(family))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((host, port))
        yield Address(host, port, url, kept.close)


def _keep(kept: ExitStack, held: socket.socket) -> socket.socket:
    """Close it at the end; in workers at once, which would keep it for as long as they live."""
    os.register_at_fork(after_in_child=held.close)
    return kept.enter_context(held)


def turn(place: Place) -> socket.socket:
    """The turn of starting at a port, which one server of this machine has at a time; closed, it is over.

    Whoever has it for longer than a start takes is no server that starts, and is waited for no more.
    """
    taken, deadline = socket.socket(socket.AF_UNIX), time.monotonic() + START_SECONDS
    # Such a name is no file: it is gone with its process, and the network namespace's, as ports are.
    while place.port and sys.platform == "linux" and time.monotonic() < deadline:
        try:
            taken.bind(f"\0ldpkit starts at port {place.port}")
            break
        except OSError:
            time.sleep(POLL_SECONDS)
    return taken


def base_url(listener: socket.socket, scheme: str) -> str:
    """The URL that a listening socket is reached at."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@contextmanager
def shared_metrics(workers: int, database: Path | None) -> Iterator[None]:
    """A folder for the counts of several processes, unless the operator has named one.

    database: the file beside which it is made; with None among temporary files, whose cleaners pass by a
    folder that is locked.
    """
    if workers == 1 or METRICS_FOLDER in os.environ:
        yield
        return
    master = os.getpid()
    parent = Path(tempfile.gettempdir()) if database is None else database.absolute().parent
    _remove_left_over(parent)
    folder = tempfile.mkdtemp(prefix=METRICS_PREFIX, dir=parent)
    os.environ[METRICS_FOLDER] = folder
    lock = _lock(folder, fcntl.LOCK_SH)
    try:
        yield
    finally:
        # A worker leaves through here too, while the others still count.
        if os.getpid() == master:
            os.environ.pop(METRICS_FOLDER, None)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _remove_left_over(parent: Path) -> None:
    """Remove the folders of servers that were killed: nobody locks those any more."""
    for folder in parent.glob(f"{METRICS_PREFIX}*"):
        with suppress(OSError):
            lock = _lock(str(folder), fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: str, kind: int) -> int:
    """A handle that holds a lock on a folder. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, kind)
    except OSError:
        os.close(handle)
        raise
    return handle
