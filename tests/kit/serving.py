"""Servers on loopback in threads of the test, some of which stall or break off, and free ports."""

import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from werkzeug.serving import make_server


class LocalServer:
    """A hand-written server on loopback in a thread of the test, from `with` to its end."""

    def __init__(self, handler):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"127.0.0.1:{self.http.server_port}"
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self._thread.join()
        self.http.server_close()


class AnsweringServer(LocalServer):
    """A server whose `respond` gives each request's status, headers and content; None ends the connection."""

    def __init__(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def handle_request(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = server.respond(self.command, self.path, body, dict(self.headers))
                if answer is None:
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = do_OPTIONS = handle_request  # noqa: N815

            def log_message(self, *_):
                pass

        super().__init__(Handler)

    def respond(self, method, path, body, headers):
        raise NotImplementedError


@contextmanager
def served(app):
    """Serve a WSGI application; yield its URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def serve():
    """Return a function that serves an application in place of the one before, and returns the URL."""
    apps = []

    with served(lambda environ, start_response: apps[-1](environ, start_response)) as url:

        def instead(app):
            apps.append(app)
            return url

        yield instead


@contextmanager
def held_port():
    """A free port for a server that is to listen there, now or again, while the block lasts.

    A port that is free for a moment alone may be another server's by then: a program takes a second to start.
    """
    with socket.socket() as held:
        # As servers set it too, they may listen beside one that does not listen.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


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
    listener, answers = socket.create_server(("127.0.0.1", 0)), []

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
        sent = []

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
    over, outlasted = threading.Event(), []

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
