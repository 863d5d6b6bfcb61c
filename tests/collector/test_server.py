"""The real server: a process group, a port, a database file, https, signals, and a flood."""

import fcntl
import gzip
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives import serialization

from collector.server import METRICS_PREFIX, check_certificate, listen
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from tests import studies
from tests.kit.certificates import write_certificate
from tests.kit.collectors import REPOSITORY, START_SECONDS, TOKEN, build_report, build_study, wait_for
from tests.kit.errors import raises

PATH = "/v1/studies/habits/reports"
SECONDS = 60


@pytest.mark.slow
@pytest.mark.attack(12)
def test_stopped_server_leaves_one_file_and_nothing_about_senders(start_server, study):
    """Look in all that a real server writes for a device's address, its program and the time."""
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    report, agent, client = build_report(study), "Device-Of-One-Person/7.3", "127.0.0.77"
    parts, body = urlsplit(server.url), report.to_json()
    for line, content, status in (
        (f"PUT {PATH}/{report.id} HTTP/1.1", body, b"201"),
        (f"GET /v1/nothing/{report.id} HTTP/1.1", "", b"404"),
        (f"BROKEN {report.id}", "", b"400"),
    ):
        head = f"{line}\r\nHost: x\r\nUser-Agent: {agent}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(content)}\r\n\r\n"
        with socket.create_connection((parts.hostname, parts.port), 30, (client, 0)) as connection:
            connection.sendall((head + content).encode())
            assert status in connection.recv(4096)
    output = server.read("/metrics").encode()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=SECONDS) == 0
    output += server.log.read_bytes()
    # And the lock, which nothing needs.
    left = {file.name for file in server.database.parent.glob("collector.sqlite3*")}
    assert left == {"collector.sqlite3", "collector.sqlite3-mark"}
    content = server.database.read_bytes()
    assert bytes.fromhex(report.id) in content
    assert report.id.encode() not in output
    for trace in (agent.encode(), b"User-Agent", client.encode(), socket.inet_aton(client)):
        assert trace not in content + output
    assert not re.search(rb"[0-2][0-9]:[0-5][0-9]", content + output)


@pytest.mark.slow
@pytest.mark.attack(10)
def test_worker_that_dies_is_replaced_and_none_outlives_its_master(start_server):
    """Kill a server's only worker: another one takes the requests that came meanwhile."""
    server = start_server()
    study = build_study()
    server.request("POST", "/v1/studies", study.document)
    (worker,) = server.children()
    os.kill(worker, signal.SIGKILL)
    assert server.put(build_report(study)) == 201
    workers = server.children()
    assert worker not in workers
    assert server.process.poll() is None
    server.process.kill()
    server.process.wait()

    def have_ended():
        """A process that ended may stay as a zombie."""
        states = []
        for worker in workers:
            with suppress(OSError):
                states.append(Path(f"/proc/{worker}/stat").read_text())
        return all(") Z " in state for state in states)

    wait_for(have_ended)


@pytest.mark.slow
def test_counts_of_several_processes_are_added_up(start_server, tmp_path):
    server = start_server("--workers", "2", environment={**os.environ, "TMPDIR": str(tmp_path)})
    study = build_study()

    def is_published():
        """Two processes on one SQLite file may wait too long for each other as they start."""
        try:
            return server.request("POST", "/v1/studies", study.document) in (200, 201)
        except urllib.error.HTTPError as error:
            return error.code != 503

    wait_for(is_published)
    (folder,) = tmp_path.glob(f"{METRICS_PREFIX}*")
    # Cleaners of temporary files look for the lock.
    handle = os.open(folder, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)

    def is_taken(report):
        with suppress(OSError):
            return server.put(report) in (200, 201)

    for report in [build_report(study) for _ in range(10)]:
        wait_for(partial(is_taken, report))
    assert "ldpkit_reports_accepted_total 10.0" in server.read("/metrics")
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=START_SECONDS)
    assert not folder.exists()


@pytest.mark.slow
def test_port_used_on_ipv4_is_not_shared_by_a_dual_stack_server():
    """Otherwise each device would reach one server or the other, depending on how it resolves the name."""
    with socket.create_server(("127.0.0.1", 0)) as other, raises(InputError, "server.port_not_free", "::"):
        listen("::", other.getsockname()[1])


@pytest.mark.attack(15)
@pytest.mark.slow
def test_honest_devices_get_through(start_server, study):
    """Keep honest devices out of a running server with idle and slow connections and a flood of bombs."""
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    parts, over = urlsplit(server.url), threading.Event()
    address = (parts.hostname, parts.port)
    packed = gzip.compress(b'{"reports":[' + b"{}," * 99_998 + b"{}]}")
    put = f"PUT {PATH}/{'0' * 32} HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{{"
    bomb = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(packed)}\r\n"
    bomb += "Content-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n"

    def flood():
        with socket.create_connection(address, timeout=SECONDS) as connection:
            while not over.is_set():
                connection.sendall(bomb.encode() + packed)
                response = http.client.HTTPResponse(connection)
                response.begin()
                assert len(response.read()) < 40_000

    with ExitStack() as held, ThreadPoolExecutor(2) as pool:
        held.callback(over.set)
        for begun in ["GET /healthz HTTP/1.1\r\nHost:"] * 150 + [put] * 40:
            connection = held.enter_context(socket.create_connection(address, timeout=SECONDS))
            connection.sendall(begun.encode())
        floods = [pool.submit(flood) for _ in range(2)]
        assert [server.put(build_report(study)) for _ in range(20)] == [201] * 20
        assert server.read("/v1/studies/habits/export").count("payloads") == 20
        over.set()
        for flooding in floods:
            flooding.result(SECONDS)


@pytest.mark.slow
def test_device_that_trusts_the_certificate_answers_over_https(start_server, tmp_path):
    """And the collector's health tells that the certificate ends soon."""
    chain, key = write_certificate(tmp_path)
    server = start_server("--tls-certificate", str(chain), "--tls-key", str(key))
    operator = {"PYTHONPATH": str(REPOSITORY), "LDPKIT_TOKEN": TOKEN}
    (tmp_path / "study.json").write_text(Study(studies.document(studies.YES_NO)).to_json())
    there = ["--collector", server.url]
    answer = ["answer", "--max-epsilon", "8", f"{server.url}/v1/studies/survey", "--set", "ever=yes", "--yes"]
    trusting = {"SSL_CERT_FILE": str(chain)}
    for words, environment, code, said in (
        (["publish", "study.json", *there], trusting, 0, "survey"),
        ([*answer, "--folder", "trusting"], trusting, 0, "1 report sent"),
        ([*answer, "--folder", "other"], {}, 5, ""),
        (["status", "survey", *there], trusting, 0, "1 report"),
        (["status", "--health", *there], trusting, 1, "ACT\tcertificate\t0 days left: renew it"),
    ):
        command = [sys.executable, "-m", "ldpkit", *words]
        told = {**os.environ, **operator, **environment}
        done = subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert said in done.stdout + done.stderr
    assert "without https" not in server.log.read_text()


def test_bad_certificate_is_rejected_before_listening(tmp_path):
    chain, key = write_certificate(tmp_path)
    check_certificate(None, None)
    check_certificate(chain, key)
    other, none = write_certificate(tmp_path, "other")[1], tmp_path / "none"
    lock = serialization.BestAvailableEncryption(b"password")
    locked = write_certificate(tmp_path, "locked", lock=lock)
    for files in ((chain, other), locked, (chain, none)):
        with raises(InputError, "server.certificate_not_usable", str(files[1])):
            check_certificate(*files)
    with raises(UsageError, "server.certificate_and_key", "--tls-certificate", "--tls-key"):
        check_certificate(chain, None)
