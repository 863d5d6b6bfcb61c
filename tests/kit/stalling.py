"""Servers that stall or break off, and how long an exchange waits for them."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

Answer = Callable[[socket.socket], None]
# Ends a test that hangs.
LONGEST_SECONDS = 60
# What a server that stalls sends at once, and then again and again.
JSON_HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STALLS = {
    "silent": (b"", b""),
    "dripping headers": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "dripping body": (JSON_HEADERS + b"Content-Length: 100000\r\n\r\n", b" "),
}


@pytest.fixture
def raw_server():
    """Return a function that has a server answer each connection so, in a thread, and returns its URL."""
    listener, answers = socket.create_server(("127.0.0.1", 0)), list[Answer]()

    def listen():
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer_quietly, args=(connection,), daemon=True).start()

    def answer_quietly(connection):
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            answers[-1](connection)

    def instead(answer):
        answers.append(answer)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    threading.Thread(target=listen, daemon=True).start()
    yield instead
    listener.close()


@pytest.fixture
def endless_server(raw_server):
    """Return a function that has a server repeat a byte after a head: its URL, and the sizes that it sent."""

    def endless(head, byte):
        sent = list[int]()

        def answer(connection):
            connection.sendall(head)
            for _ in range(3000):
                connection.sendall(byte * (1 << 16))
                sent.append(1 << 16)

        return raw_server(answer), sent

    return endless


@pytest.fixture
def stalling_server(raw_server):
    """Return a function that has a server stall, and returns its URL. Waiting for its end fails."""
    over, outlasted = threading.Event(), list[bytes]()

    def stall(start, piece):
        def answer(connection):
            connection.sendall(start)
            for _ in range(LONGEST_SECONDS * 20):
                if over.wait(0.05) or outlasted:
                    return
                connection.sendall(piece)
            outlasted.append(start)

        return raw_server(answer)

    yield stall
    over.set()
    assert outlasted == []
