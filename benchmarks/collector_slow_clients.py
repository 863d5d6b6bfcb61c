"""Slow clients behind nginx: `python -m benchmarks.collector_slow_clients [--clients 300] [--uploads 8000]`.

nginx runs with the directives of docs/operate.md, without TLS. So many clients send a byte of a body
now and then, while others upload as usual; these must be served as if the slow ones were not there.
"""

from __future__ import annotations

import argparse
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.collector_load.bodies import fresh_reports, load_study, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import REPOSITORY, Server, collector_command

STUDY = load_study()
DRIP_SECONDS = 0.5
CONNECTIONS = 16
START_SECONDS = 20
TLS = re.compile(r"\s*(ssl_certificate|listen|server_name|error_log)")


def nginx_configuration(folder: Path, port: int, collectors: Sequence[str]) -> str:
    """The documented server block, on loopback and with files in a folder. collectors: one, or several."""
    (collector, upstream) = (collectors[0], "") if len(collectors) == 1 else _upstream(collectors)
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")
    block = text.split("```nginx\n")[1].split("```")[0].replace("http://127.0.0.1:8000", collector)
    lines = [line for line in block.splitlines() if not TLS.match(line)]
    lines.insert(1, f"    listen 127.0.0.1:{port};")
    temporary = "\n".join(
        f"{kind}_temp_path {folder / kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"daemon off;\nerror_log {folder / 'errors'} crit;\npid {folder / 'pid'};\n"
    return (
        f"{head}events {{ worker_connections 4096; }}\nhttp {{\n{temporary}\n{upstream}"
        + "\n".join(lines)
        + "\n}\n"
    )


def _upstream(collectors: Sequence[str]) -> tuple[str, str]:
    """What stands for several collectors, as documented, and the block that says so."""
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")
    block = text.split("```nginx\nupstream")[1].split("```")[0]
    servers = "\n".join(f"    server {urlsplit(url).netloc};" for url in collectors)
    lines = [line for line in block.splitlines() if "server " not in line]
    return "http://collectors", "\n".join([f"upstream{lines[0]}", servers, *lines[1:], ""])


@contextmanager
def proxied(folder: Path, *collectors: str) -> Iterator[str]:
    """nginx in front of collectors; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    configuration = folder / "nginx.conf"
    configuration.write_text(nginx_configuration(folder, port, collectors))
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        raise SystemExit("this benchmark needs nginx")
    process = subprocess.Popen([program, "-c", str(configuration), "-p", str(folder)])
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("nginx did not start")


@contextmanager
def slow_clients(url: str, count: int) -> Iterator[None]:
    """Clients that promise a large body and send it byte by byte."""
    parts = urlsplit(url)
    head = (
        b"POST /v1/studies/load/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100000\r\n\r\n"
    )
    connections = [socket.create_connection((parts.hostname, parts.port)) for _ in range(count)]
    for connection in connections:
        connection.sendall(head)
    done = threading.Event()

    def drip() -> None:
        while not done.wait(DRIP_SECONDS):
            for connection in connections:
                try:
                    connection.send(b" ")
                except OSError:
                    continue

    dripper = threading.Thread(target=drip)
    dripper.start()
    try:
        yield
    finally:
        done.set()
        dripper.join()
        for connection in connections:
            connection.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Upload with and without slow clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=300)
    parser.add_argument("--uploads", type=int, default=8000)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [*collector_command(), "--database", f"sqlite:///{folder / 'x.sqlite3'}"]
        server = Server(folder, command, {})
        try:
            with proxied(folder, server.url) as url:
                for clients in (0, arguments.clients):
                    with slow_clients(url, clients):
                        requests = [put_request(report) for report in fresh_reports(STUDY, arguments.uploads)]
                        load = run_load(url, requests, CONNECTIONS)
                    print(
                        f"{clients} slow clients: {len(load.answered)} of {arguments.uploads} served, "
                        f"p99 {load.quantile(0.99):.0f} ms, worst {load.quantile(1):.0f} ms",
                        flush=True,
                    )
        finally:
            server.kill()


if __name__ == "__main__":
    main()
