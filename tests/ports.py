"""Ports of loopback for servers that a test starts, and that nobody else is given meanwhile."""

import socket
from contextlib import contextmanager


@contextmanager
def held_port(port=0):
    """A port for a server that is to listen there, now or again, while the block lasts; 0 takes a free one.

    One that is free for a moment alone may be another server's by then: a program takes a second to start.
    """
    with socket.socket() as held:
        # As servers set it too, they may listen beside one that does not listen.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", port))
        taken = held.getsockname()[1]
        yield taken
