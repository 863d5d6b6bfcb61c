"""Servers that stall or break off, and how long an exchange waits for them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from ldp_client.device import http

# Ends a test that hangs.
LONGEST_SECONDS = 60
# What a server that stalls sends at once, and then again and again.
JSON_HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STALLS = {
    "silent": (b"", b""),
    "dripping headers": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "dripping body": (JSON_HEADERS + b"Content-Length: 100000\r\n\r\n", b" "),
}


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the URL of a server that calls `answer` with each connection, in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer_quietly, args=(connection,), daemon=True).start()

    def answer_quietly(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


@contextmanager
def stalling_server(start: bytes, piece: bytes) -> Iterator[str]:
    """Yield the URL of a server that stalls in this block. Waiting for its end fails."""
    over, outlasted = threading.Event(), []

    def answer(connection: socket.socket) -> None:
        connection.sendall(start)
        for _ in range(LONGEST_SECONDS * 20):
            if over.wait(0.05) or outlasted:
                return
            connection.sendall(piece)
        outlasted.append(start)

    with raw_server(answer) as url:
        try:
            yield url
        finally:
            over.set()
    assert outlasted == []


class Waits:
    """The waits for exchanges: the seconds of each, and `wait`, which a test may replace."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        self.wait: Callable[[threading.Thread, float], None] = threading.Thread.join
        found = self

        class Exchange(threading.Thread):
            def join(self, timeout: float | None = None) -> None:
                assert timeout is not None
                found.seconds.append(timeout)
                found.wait(self, timeout)

        monkeypatch.setattr(http, "threading", SimpleNamespace(Thread=Exchange, Lock=threading.Lock))
