"""The server's address, and its numbers of processes and threads."""

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
from typing import IO, NamedTuple, TypeVar

from collector.serving.certificates import HTTP, HTTPS, Certificate
from collector.settings import METRICS_FOLDER
from ldp_client.documents.errors import InputError

BACKLOG = 2048
POLL_SECONDS = 0.02
START_SECONDS = 60.0
SHARED_MEMORY = "/dev/shm"
METRICS_PREFIX = ".ldpkit-metrics-"


@dataclass(frozen=True)
class Place:
    """The server's address and size. port: 0 takes any free port. certificate: for https."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 64
    certificate: Certificate | None = None

    @property
    def scheme(self) -> str:
        """Return the scheme of its URL."""
        return HTTP if self.certificate is None else HTTPS


def listen(place: Place) -> socket.socket:
    """Return a listening socket. Raises InputError for an address that cannot be used."""
    host, port = place.host, place.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # `::` includes IPv4, as in granian: another server may hold that port.
        both = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error}", code="server.port_not_free"
        ) from error


class Address(NamedTuple):
    """A server's address, which its workers bind themselves. let_go: call it once they have."""

    host: str
    port: int
    url: str
    let_go: Callable[[], None]


@contextmanager
def held(place: Place) -> Iterator[Address]:
    """Yield a free address, reserved for this server until its workers listen.

    Without this, the kernel could give a free port to any program within a second. Granian's workers also
    share a port with another collector's workers: devices would be split between the two. Raises InputError
    as `listen` does.
    """
    with ExitStack() as kept:
        _keep(kept, turn(place))
        with listen(place) as listener:
            host, port = listener.getsockname()[:2]
            url, family = base_url(listener, place.scheme), listener.family
        if place.port == 0 and sys.platform == "linux":
            # This socket never listens. Its option lets granian's workers, which have it too, bind the port.
            holder = _keep(kept, socket.socket(family))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((host, port))
        yield Address(host, port, url, kept.close)


T = TypeVar("T", socket.socket, IO[bytes])


def _keep(kept: ExitStack, held: T) -> T:
    """Close a socket or file when the stack ends, and at once in workers, which would keep it."""
    os.register_at_fork(after_in_child=held.close)
    return kept.enter_context(held)


def turn(place: Place) -> IO[bytes]:
    """Take the turn to start at a port, and return a locked file; closing it ends the turn.

    One server of this user has the turn at a time; servers of two users cannot share a port. The wait for
    another server ends after START_SECONDS. Another user's file of this name gives nobody a turn.
    """
    try:
        # Services may have a folder for temporary files of their own, and share this one.
        folder = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else tempfile.gettempdir()
        path = Path(folder, f"ldpkit-{os.getuid()}-{place.port}.lock")
        taken = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "rb")
    except OSError:
        return os.fdopen(os.open(os.devnull, os.O_RDONLY), "rb")
    deadline = time.monotonic() + START_SECONDS
    is_own = os.fstat(taken.fileno()).st_uid == os.getuid()
    while place.port and is_own and time.monotonic() < deadline:
        try:
            fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            time.sleep(POLL_SECONDS)
    return taken


def base_url(listener: socket.socket, scheme: str) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@contextmanager
def shared_metrics(workers: int, database: Path | None) -> Iterator[None]:
    """Make a folder for the metrics of several processes, unless the operator has named a folder.

    database: the folder is made next to this file. None: it is made among temporary files, whose cleaners
    skip locked folders.
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
        # Workers also run this when they exit, while the other processes still count.
        if os.getpid() == master:
            os.environ.pop(METRICS_FOLDER, None)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _remove_left_over(parent: Path) -> None:
    """Remove the folders of killed servers: they hold no lock any more."""
    for folder in parent.glob(f"{METRICS_PREFIX}*"):
        with suppress(OSError):
            lock = _lock(str(folder), fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: str, kind: int) -> int:
    """Return a handle that holds a lock on a folder. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, kind)
    except OSError:
        os.close(handle)
        raise
    return handle
