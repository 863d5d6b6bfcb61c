"""The real server: one process group, a port, a database file, signals."""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from granian.net import SocketSpec

from collector.logs import refuse_ready, write_ready
from collector.remote.download import fetch_reports
from collector.serving.place import Place, held, listen, turn
from ldp_client.documents.errors import InputError
from tests.collector.conftest import REPOSITORY, START_SECONDS, TOKEN
from tests.kit.errors import raises

AGENT = "Device-Of-One-Person/7.3"
CLIENT_ADDRESS = "127.0.0.77"


def connect(server, source=None):
    parts = urlsplit(server.url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=30, source_address=source)


def raw(server, request, source=None):
    """The first bytes that the server answers to a request written by hand."""
    parts = urlsplit(server.url)
    address = (parts.hostname, parts.port)
    with socket.create_connection(address, timeout=30, source_address=source) as connection:
        connection.sendall(request)
        return connection.recv(4096)


@pytest.mark.slow
def test_kill_9_after_acknowledgement_loses_nothing(start_server, study, make_report, token):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    reports = [make_report(study) for _ in range(60)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(server.put, reports)) == {201}
    server.kill()
    again = start_server()
    found = list(fetch_reports(again.url, "habits", token))
    assert found == sorted(reports, key=lambda report: report.id)
    assert [again.put(report) for report in reports[:5]] == [200] * 5


@pytest.mark.slow
def test_sigterm_stops_every_process(start_server, study, make_report):
    server = start_server("--workers", "2", "--threads", "2")
    server.request("POST", "/v1/studies", study.document)
    assert server.put(make_report(study)) == 201
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=60) == 0
    assert not server.group_lives()


@pytest.mark.slow
def test_stopped_server_leaves_one_database_file(start_server, study, make_report):
    """Moved alone it has every acknowledged report, and nothing of a withdrawn one."""
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    payloads = {"hours": b"\x11\x5a\xc3\x77", "fruit": b"\5", "ever": b"\1"}
    kept, gone = make_report(study), make_report(study, payloads=payloads)
    assert [server.put(report) for report in (kept, gone)] == [201, 201]
    assert server.request("DELETE", f"/v1/studies/habits/reports/{gone.id}") == 200
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=60) == 0
    # And the lock, which nothing needs.
    left = {file.name for file in server.database.parent.glob("collector.sqlite3*")}
    assert left == {"collector.sqlite3", "collector.sqlite3-mark"}
    content = server.database.read_bytes()
    assert bytes.fromhex(kept.id) in content
    assert payloads["hours"] not in content


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_loses_nothing(start_server, study, make_report, token):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    before, after = make_report(study), make_report(study)
    assert server.put(before) == 201
    (worker,) = server.children()
    os.kill(worker, signal.SIGKILL)
    assert server.put_until_taken(after) in (200, 201)
    assert server.children() != [worker]
    assert {report.id for report in fetch_reports(server.url, "habits", token)} == {before.id, after.id}


@pytest.mark.slow
def test_ready_file_and_output_name_the_address(start_server):
    server = start_server("--port", "0")
    assert server.request("GET", "/healthz") == 200
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9][0-9]*", server.url)
    assert server.log.read_text() == f"ldpkit collector listens on {server.url}\n"


def test_unwritable_ready_file_is_rejected_before_listening(tmp_path):
    """The server used to run on after a traceback, and a program that waited for the file waited forever."""
    settings = tmp_path / "ldpkit.toml"
    settings.write_text("# of the collector\n")
    absent = tmp_path / "absent"
    for path, code in (
        (settings, ("files.is_other", str(settings))),
        (absent / "ready", ("server.ready_file_folder_missing", str(absent))),
    ):
        with raises(InputError, code):
            refuse_ready(str(path))
    for path in (None, str(tmp_path / "ready"), "ready"):
        refuse_ready(path)
    write_ready(str(tmp_path / "ready"), "http://127.0.0.1:1")
    refuse_ready(str(tmp_path / "ready"))


@pytest.mark.slow
def test_nothing_that_identifies_a_sender_is_kept(start_server, study, make_report):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    reports = [make_report(study) for _ in range(20)]
    client = connect(server, (CLIENT_ADDRESS, 0))
    for report in reports:
        path = f"/v1/studies/habits/reports/{report.id}"
        headers = {"User-Agent": AGENT, "Content-Type": "application/json"}
        client.request("PUT", path, report.to_json(), headers)
        response = client.getresponse()
        response.read()
        assert response.status == 201
    client.request("GET", f"/v1/nothing/{reports[0].id}", headers={"User-Agent": AGENT})
    client.getresponse().read()
    client.close()
    broken = f"BROKEN {reports[0].id}\r\nUser-Agent: {AGENT}\r\n\r\n".encode()
    assert b"400" in raw(server, broken, (CLIENT_ADDRESS, 0))
    metrics = server.read("/metrics").encode()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=30)
    output = server.log.read_bytes() + metrics
    files = [file.read_bytes() for file in server.database.parent.glob("collector.sqlite3*")]
    assert files
    for trace in (AGENT.encode(), b"User-Agent", CLIENT_ADDRESS.encode(), socket.inet_aton(CLIENT_ADDRESS)):
        assert not any(trace in content for content in (output, *files))
    assert not any(re.search(rb"[0-2][0-9]:[0-5][0-9]", content) for content in (output, *files))
    assert reports[0].id.encode() not in output


@pytest.mark.slow
def test_a_chunked_body_is_read_and_limited(start_server, study, make_report):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    report = make_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    client = connect(server)
    body = report.to_json().encode()
    headers = {"Content-Type": "application/json"}
    client.request("PUT", path, iter([body[:10], body[10:]]), headers, encode_chunked=True)
    assert client.getresponse().status == 201
    client.close()
    client = connect(server)
    chunks = iter([b" " * 65536] * 17)
    client.request("PUT", path, chunks, headers, encode_chunked=True)
    assert client.getresponse().status == 413
    client.close()


@pytest.mark.slow
def test_clients_that_keep_connections_open_block_no_others(start_server):
    """Each client keeps its end open after an answer that closes the connection."""
    server = start_server()
    parts = urlsplit(server.url)
    with ExitStack() as held:
        for _ in range(20):
            client = held.enter_context(socket.create_connection((parts.hostname, parts.port)))
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        # Until the server is about to close them all.
        time.sleep(0.5)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in other.recv(4096)


@pytest.mark.slow
def test_sigterm_under_load_acknowledges_only_stored_reports(start_server, study, make_report, token):
    """Requests under way get an answer or a closed connection; what was acknowledged is there, once."""
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    acknowledged, statuses, sent = [], set(), []

    def send_until_closed(_):
        client = connect(server)
        for _ in range(1000):
            report = make_report(study)
            sent.append(report.id)
            try:
                client.request(
                    "PUT",
                    f"/v1/studies/habits/reports/{report.id}",
                    report.to_json(),
                    {"Content-Type": "application/json"},
                )
                response = client.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                return
            statuses.add(response.status)
            if response.status == 201:
                acknowledged.append(report.id)

    with ThreadPoolExecutor(16) as pool:
        clients = [pool.submit(send_until_closed, number) for number in range(16)]
        while len(acknowledged) < 100:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0
        for client in clients:
            client.result(timeout=60)
    assert statuses <= {201, 503}
    assert not server.group_lives()
    found = [report.id for report in fetch_reports(start_server().url, "habits", token)]
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found) <= set(sent)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere granian's master binds")
def test_free_port_is_held_until_the_workers_bind():
    """Workers load the application first: meanwhile another program could get the port and answer on it."""
    with held(Place(port=0)) as (host, port, url, _):
        assert url == f"http://{host}:{port}"
        with pytest.raises(OSError, match="in use"):
            socket.create_server((host, port))
        SocketSpec(host, port, 1).build()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere granian's master binds")
def test_second_server_on_the_same_port_exits(tmp_path, port):
    """Both servers used to share the port, which split devices between two databases."""
    servers = []
    for name in ("one", "other"):
        command = [sys.executable, "-m", "ldpkit.cli", "serve", "--new", "--port", str(port)]
        command += ["--database", f"sqlite:///{tmp_path / name}.sqlite3"]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LDPKIT_TOKEN": TOKEN}
        servers.append(
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while all(server.poll() is None for server in servers):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refused, listens = sorted(servers, key=lambda server: server.poll() is None)
        assert f"cannot listen on 127.0.0.1 port {port}: " in refused.stderr.read()
        assert refused.wait() == 3
        assert listens.stderr.readline() == f"ldpkit collector listens on http://127.0.0.1:{port}\n"
    finally:
        for server in servers:
            server.terminate()
            server.wait(timeout=60)
            server.stderr.close()


@pytest.mark.attack(15)
def test_another_users_lock_delays_no_start(tmp_path, monkeypatch):
    """A user of the machine makes and locks the file with which servers take turns at a port."""
    monkeypatch.setattr("collector.serving.place.tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("collector.serving.place.os.getuid", lambda: os.geteuid() + 1)
    monkeypatch.setattr("collector.serving.place.time.sleep", lambda _seconds: pytest.fail("it waits"))
    with (tmp_path / f"ldpkit-{os.geteuid() + 1}-8000.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        turn(Place(port=8000)).close()


def test_port_used_on_ipv4_is_not_shared_by_a_dual_stack_server():
    """Otherwise each device would reach one server or the other, depending on how it resolves the name."""
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        raises(InputError, "server.port_not_free", "::"),
    ):
        listen(Place(host="::", port=other.getsockname()[1]))
