"""A closed-loop load generator: so many connections, each with one request under way, in one thread."""

import selectors
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PATIENCE_SECONDS = 30.0


@dataclass
class Load:
    """What came back. seconds: of the whole run; answered: the numbers of requests that succeeded."""

    seconds: float = 0.0
    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    answered: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


class _Connection:
    """One connection: the request under way, and what has come of its answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = 0
        self.answer = b""

    def send(self, number: int, request: bytes) -> None:
        self.number, self.answer = number, b""
        self.socket.sendall(request)

    def receive(self) -> int | None:
        """The status once the whole answer is there; 0 if the server hung up."""
        part = self.socket.recv(65536)
        if not part:
            return 0
        self.answer += part
        head, found, body = self.answer.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return None
        return int(head[9:12])


def run_load(url: str, requests: Sequence[bytes], connections: int) -> Load:
    """Send the requests in their order, until they are through or the server hangs up."""
    parts = urlsplit(url)
    address = (str(parts.hostname), int(parts.port or 80))
    load = Load()
    remaining = iter(enumerate(requests))
    start = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        busy = 0
        for _ in range(min(connections, len(requests))):
            connection = _Connection(address)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send(*next(remaining))
            busy += 1
        while busy:
            ready = selector.select(PATIENCE_SECONDS)
            if not ready:
                raise TimeoutError(f"no answer for {PATIENCE_SECONDS} s")
            for key, _ in ready:
                busy -= not _step(key.data, selector, remaining, load)
    load.seconds = time.perf_counter() - start
    return load


def _step(connection, selector, remaining, load: Load) -> bool:  # type: ignore[no-untyped-def]
    """Read what came and send the next request; whether the connection is still of use."""
    try:
        status = connection.receive()
        if status is None:
            return True
        if status:
            load.requests += 1
            load.statuses[status] += 1
            if status < 300:
                load.answered.append(connection.number)
            following = next(remaining, None)
            if following is not None:
                connection.send(*following)
                return True
    except OSError:
        pass
    selector.unregister(connection.socket)
    connection.socket.close()
    return False


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
