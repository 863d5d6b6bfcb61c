"""A relay for oblivious HTTP (RFC 9458).

    python relay.py https://collector.example.org/ohttp --port 8080

It forwards each encapsulated request to one gateway from its own address, and logs nothing. It hides senders
only if its operator is not the collector's. Put a server with TLS in front of it: see
docs/anonymous-transport.md.
"""

import argparse
import signal
import socket
import sys
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from urllib.error import HTTPError
from urllib.parse import urlsplit

REQUEST, ANSWER, PROBLEM = "message/ohttp-req", "message/ohttp-res", "application/problem+json"
MOST_BYTES, MOST_CONNECTIONS = 2 << 20, 256
CONNECTION_SECONDS, GATEWAY_SECONDS, SILENCE_SECONDS = 30, 15, 10
# A page in a browser sends from another origin, after a preflight request.
ALWAYS = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
ALWAYS |= {"Cache-Control": "no-store", "Connection": "close"}
ASKED_FIRST = {"Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Headers": "Content-Type"}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        """Ignore redirects: the gateway must not choose another host."""


# No proxy: environment variables must not choose another host either.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)


class Relay(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 512

    def __init__(self, gateway, host, port):
        self.gateway, self.room = gateway, BoundedSemaphore(MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server_address[1]}"

    def process_request(self, request, client_address):
        """Close a connection at once if there are too many."""
        if self.room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        """End a connection after CONNECTION_SECONDS, even if it is still sending."""
        cut = Timer(CONNECTION_SECONDS, end, [request])
        cut.daemon = True
        cut.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut.cancel()
            self.room.release()

    def handle_error(self, *_):
        """Log nothing: the line would have an address and a time."""


def end(connection):
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    timeout = SILENCE_SECONDS

    def log_message(self, *_):
        """Log nothing: a relay exists to hide senders and times."""

    def do_OPTIONS(self):
        self.say(204, headers=ASKED_FIRST)

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != REQUEST:
            self.say(415)
        elif not (length.isascii() and length.isdecimal()):
            self.say(411)
        elif len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            self.say(413)
        elif len(body := self.rfile.read(int(length))) == int(length):
            self.say(*forwarded(self.server.gateway, body))

    def say(self, status, body=b"", headers=()):
        self.send_response_only(status)
        for name, value in {**dict(headers), **ALWAYS, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def forwarded(gateway, body):
    """Return the gateway's encapsulated answer or its error; for any other outcome, return 502."""
    asked = urllib.request.Request(gateway, body, {"Content-Type": REQUEST, "User-Agent": "relay"})
    try:
        try:
            answer = OPENER.open(asked, timeout=GATEWAY_SECONDS)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            status, kind, content = (
                answer.status,
                answer.headers.get_content_type(),
                answer.read(MOST_BYTES + 1),
            )
    except (OSError, ValueError):
        return (502,)
    is_known = (status == 200 and kind == ANSWER) or (status >= 400 and kind == PROBLEM)
    if not is_known or len(content) > MOST_BYTES:
        return (502,)
    # Forward no other header of the collector: a browser would treat it as the relay's.
    retry = answer.headers.get("Retry-After", "")
    return status, content, {"Content-Type": kind, **({"Retry-After": retry} if retry.isdecimal() else {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gateway", help="such as https://collector.example.org/ohttp")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args()
    gateway = urlsplit(given.gateway)
    if gateway.scheme != "https" and gateway.hostname not in ("127.0.0.1", "::1", "localhost"):
        parser.error("the gateway must be https://, or http:// on this machine")
    if gateway.path in ("", "/"):
        parser.error(f"{given.gateway} is not a gateway's address; a collector's ends in /ohttp")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Relay(given.gateway, given.host, given.port) as relay, suppress(KeyboardInterrupt):
        print(f"the relay listens on {relay.url}", file=sys.stderr, flush=True)
        relay.serve_forever()


if __name__ == "__main__":
    main()
