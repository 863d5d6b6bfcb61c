"""Devices whose person was asked elsewhere, a repeated question, a collector that misbehaves on demand."""

import functools
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from ldp_client import Device
from ldp_client.mechanisms.randomized_response import RandomizedResponse

consenting = functools.partial(Device, require_consent=False)


class Memoized(RandomizedResponse):
    """Its permanent answer is the quantised one and a nonce; each report repeats them and adds a byte."""

    payload_size = 10

    def permanent(self, quantised, random):
        return bytes([quantised]) + random(8)

    def instantaneous(self, permanent, random):
        return permanent + random(1)

    def randomise(self, *_):
        raise AssertionError("a device repeats its permanent answer")


class Server:
    """Answers requests with the statuses of a list, then 200; keeps what it was sent.

    requests: (method, path, body, headers). content: what GET answers. headers: sent with
    each answer. tls: an SSLContext, for https.
    """

    def __init__(self, content=b"", tls=None):
        self.statuses, self.requests, self.content, self.headers = [], [], content, {}
        self.http = HTTPServer(("127.0.0.1", 0), self._handler())
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def asked(self, method):
        return [path for verb, path, _, _ in self.requests if verb == method]

    def _handler(outer):  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append((self.command, self.path, body, dict(self.headers)))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 200)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(outer.content)

            do_GET = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *_):
                pass

        return Handler
