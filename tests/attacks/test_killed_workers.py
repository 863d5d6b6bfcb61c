"""A server ends because its workers are killed, or workers survive their killed master."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from collector.serving.granian_server import ENDS_AT_ONCE, LONGEST_DELAY, respawn_delay
from tests.collector.conftest import build_report, build_study

SECONDS = 60


def wait_for_another(server, worker):
    deadline = time.monotonic() + SECONDS
    while not (children := [child for child in server.children() if child != worker]):
        assert server.process.poll() is None, server.log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return children[0]


def test_workers_that_die_repeatedly_are_replaced(start_server):
    server = start_server()
    study = build_study()
    server.request("POST", "/v1/studies", study.document)
    (worker,) = server.children()
    for _ in range(ENDS_AT_ONCE):
        os.kill(worker, signal.SIGKILL)
        worker = wait_for_another(server, worker)
    assert server.put_until_taken(build_report(study)) in (200, 201)
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=SECONDS) == 0
    assert not server.group_lives()


def ended(process):
    """Whether the process is gone, or a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_workers_end_when_their_master_is_killed(start_server):
    server = start_server()
    workers = server.children()
    assert workers
    server.process.kill()
    server.process.wait()
    deadline = time.monotonic() + SECONDS
    while not all(map(ended, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_respawn_delay_grows_with_every_early_exit():
    delays = [respawn_delay(ends) for ends in range(20)]
    assert delays[: ENDS_AT_ONCE + 1] == [0.0] * (ENDS_AT_ONCE + 1)
    assert delays == sorted(delays)
    assert delays[-1] == LONGEST_DELAY


@pytest.mark.slow
def test_shutdown_log_names_unfinished_request_not_worker_failure(start_server):
    """A body never arrives completely: the log names the wait and does not mention a killed worker."""
    server = start_server()
    address = urlsplit(server.url)
    head = b"PUT /v1/studies/x/reports/" + b"0" * 32 + b" HTTP/1.1\r\nHost: x\r\n"
    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall(head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=SECONDS) == 0
    log = server.log.read_text()
    assert "refused" not in log
    assert "still waited for a request's rest" in log
