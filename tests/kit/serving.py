"""Applications on loopback in a thread of the test, and ports for servers that a test starts."""

import socket
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from werkzeug.serving import make_server


class LocalServer:
    """A hand-written server on loopback in a thread of the test, from `with` to its end."""

    def __init__(self, handler):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"127.0.0.1:{self.http.server_port}"
        self._thread = Thread(target=self.http.serve_forever, args=(0.01,))

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
    thread = Thread(target=server.serve_forever, args=(0.01,))
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
