"""A port of loopback for a server that is told its port, kept for it from all others until it listens."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """A free port. While it is held the system gives it to nobody who takes any port.

    Who asks for this very one, and reuses addresses as servers do, listens on it all the same: it is bound
    here, and not listened on.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        yield port
