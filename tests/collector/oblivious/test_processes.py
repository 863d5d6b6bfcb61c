"""Device, relay and collector as separate processes, by examples/relay.py and the servers of deploy/relay."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64decode

import pytest

from collector.settings import Settings
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, REQUEST_TYPE
from ldpkit.cli import main
from tests.kit.collectors import REPOSITORY, wait_for
from tests.kit.oblivious import Relay as Recorder
from tests.kit.oblivious import batched_study, relaying, through
from tests.kit.programs import need, which
from tests.ldp_client.devices import consenting
from tests.ports import held_port

RECIPES = REPOSITORY / "deploy" / "relay"
# Of examples/relay.py.
MOST_PLACES = 256
# Until a front that hands on at once has handed on all of these.
TRIES = 40
# By which a sender may be told from others.
TELLING = (
    "User-Agent Cookie Origin Referer Accept-Language Sec-CH-UA X-Forwarded-For Forwarded Via Authorization "
    "LDPKit-Ticket DNT ECT Expect-CT Priority X-Any"
)
# Of the relay's own.
KEPT = "host content-type content-length connection transfer-encoding accept-encoding user-agent"
# That a collector might have a browser obey as the relay's: report or resolve to itself, remember, follow.
OBEYED = (
    "NEL Report-To Reporting-Endpoints Alt-Svc Set-Cookie Strict-Transport-Security Link Clear-Site-Data "
    "Refresh Location Accept-CH Critical-CH Content-Security-Policy-Report-Only WWW-Authenticate "
    "X-Accel-Redirect Trailer Any-Other"
)
# What a relay hands back of the gateway's answer, and what it says by itself.
RETURNED = (
    "content-type content-length retry-after access-control-allow-origin access-control-expose-headers "
    "cache-control connection date server"
)


class Process:
    """A program that has started once `listens` is true.

    behind: another program that it hands requests to, and that stops with it.
    """

    def __init__(self, command, folder, listens, behind=None):
        self.log, self.behind = folder / "relay.log", behind
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        wait_for(lambda: self.process.poll() is not None or listens())
        assert self.process.poll() is None, self.log.read_text()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        ended = self.process.wait(30)
        return ended or (self.behind.stop() if self.behind else 0)


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def example_relay(folder, gateway):
    """examples/relay.py, which says where it listens."""
    log = folder / "relay.log"
    command = [sys.executable, str(REPOSITORY / "examples" / "relay.py"), gateway, "--port", "0"]
    process = Process(command, folder, lambda: "listens on" in log.read_text())
    return process, re.search(r"listens on (\S+)", log.read_text())[1] + "/ldpkit"


def nginx_settings(port, folder, address):
    """The settings of deploy/relay, without TLS."""
    block = (RECIPES / "nginx.conf").read_text(encoding="utf-8")
    block = block.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    block = block.replace("http://127.0.0.1:8080", address.removesuffix("/ldpkit"))
    block = re.sub(r"^ *ssl_\w+ .*;\n", "", block, flags=re.MULTILINE)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{name}_temp_path {folder}/{name};" for name in kinds)
    head = f"daemon off; pid {folder}/nginx.pid; error_log stderr warn; events {{}}"
    return f"{head} http {{ {places}\n{block} }}"


def caddy_settings(port, folder, address):
    """The same of Caddy, which keeps to this folder."""
    block = (RECIPES / "Caddyfile").read_text(encoding="utf-8")
    block = block.replace("relay.example.org", f"http://127.0.0.1:{port}")
    block = block.replace("127.0.0.1:8080", address.removeprefix("http://").removesuffix("/ldpkit"))
    # The recipe begins with what holds for every site.
    assert block.startswith("{\n\tlog {")
    return f"{{\nadmin off\nauto_https off\nstorage file_system {folder}{block[1:]}"


FRONTS = {
    "nginx": (nginx_settings, [which("nginx"), "-p", ".", "-c", "settings", "-e", "stderr"]),
    "caddy": (caddy_settings, ["caddy", "run", "--adapter", "caddyfile", "--config", "settings"]),
}


@contextlib.contextmanager
def relay_of(kind, folder, gateway):
    """A relay before a gateway, behind a web server unless it is the example: its process and its URL."""
    if kind == "example":
        relay, url = example_relay(folder, gateway)
    else:
        need(kind)
        settings, command = FRONTS[kind]
        behind, address = example_relay(folder, gateway)
        with held_port() as port:
            (folder / "settings").write_text(settings(port, folder, address))
            command = ["/usr/bin/env", f"HOME={folder}", *command]
            relay = Process(command, folder, lambda: listens(port), behind)
            url = f"http://127.0.0.1:{port}/ldpkit"
    try:
        yield relay, url
    finally:
        assert relay.stop() == 0


def post(url, body, media_type=REQUEST_TYPE, method="POST", **headers):
    request = urllib.request.Request(url, body, {"Content-Type": media_type, **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRONTS)
def test_report_is_sent_and_deleted_only_through_the_relay(start_server, tmp_path, keys, kind, send):
    keys.save(tmp_path / "ohttp.keys")
    environment = {"LDPKIT_OHTTP_KEYS": "ohttp.keys", "LDPKIT_REQUIRE_OHTTP": "true"}
    collector = start_server(environment=environment)
    with relay_of(kind, tmp_path, f"{collector.url}/ohttp") as (relay, url):
        study = batched_study()
        assert collector.request("POST", "/v1/studies", study.document) == 201
        device = consenting(tmp_path / "device", "9", collector.url, transport=through(url, keys))
        device.answer(device.fetch(study.id), {"ever": True})
        (queued,) = device.ledger.queued()
        assert send(device).sent == 1
        exported = collector.read(f"/v1/studies/{study.id}/export")
        assert queued.report_id in exported
        assert device.withdraw(study.id) == 1
        assert send(device).deleted == 1
        assert queued.report_id not in collector.read(f"/v1/studies/{study.id}/export")
        address = f"{collector.url}/v1/studies/{study.id}/reports/{queued.report_id}"
        assert post(address, queued.body.encode(), "application/json", "PUT")[0] == 403
        check_answers_to_browsers(url, is_announced=kind != "caddy")
        collector.kill()
        # What failed is where programs like to write whose request it was.
        assert post(url, b"\xff" * 100)[0] in (502, 504)
    said = re.sub(r"listens on \S+", "", relay.log.read_text() + collector.log.read_text())
    assert queued.report_id not in said
    for address in (url, url.rpartition("/")[0], collector.url):
        said = said.replace(address, "")
    assert "127.0.0.1" not in said


def check_answers_to_browsers(url, is_announced):
    """Preflights, requests for another key, other methods, and bodies that are too long.

    is_announced: whether a body that is too long is refused before any byte of it is sent.
    """
    status, headers, _ = post(url, None, method="OPTIONS")
    assert (status, headers["Access-Control-Allow-Origin"]) == (204, "*")
    assert headers["Access-Control-Allow-Headers"] == "Content-Type"
    status, headers, body = post(url, b"\xff" * 100)
    assert (status, headers.get_content_type()) == (400, "application/problem+json")
    assert b"#ohttp-key" in body
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert post(url, None, method="GET")[0] in (403, 404, 405, 501)
    host, port, length = "127.0.0.1", int(url.split(":")[2].split("/")[0]), 3 << 20
    with socket.create_connection((host, port), timeout=30) as connection:
        connection.sendall(head_of(host, length))
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"" if is_announced else bytes(length))
        assert int(connection.recv(64).split()[1]) in (413, 502)


def head_of(host, length):
    head = f"POST /ldpkit HTTP/1.1\r\nHost: {host}\r\nContent-Type: {REQUEST_TYPE}\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode()


@pytest.mark.slow
@pytest.mark.attack(12)
@pytest.mark.parametrize("kind", ["example", *FRONTS])
def test_relay_hands_on_no_header_of_sender_or_collector(kind, tmp_path):
    """Relay and collector tell senders apart by headers; a browser obeys the collector's NEL header."""
    with (
        Recorder() as gateway,
        relay_of(kind, tmp_path, gateway.url.replace("/ldpkit", "/ohttp")) as (_, url),
    ):
        post(url, b"any", **dict.fromkeys(TELLING.split(), "person-7"))
        ((path, headers, body),) = gateway.requests
        assert (path, body) == ("/ohttp", b"any")
        assert {name.lower() for name in headers} <= set(KEPT.split())
        assert "person-7" not in str(headers)
        assert "127.0.0.1" not in str({**headers, "Host": ""})
        for status in (200, 302, 429):
            kind_of_answer = ANSWER_TYPE if status == 200 else "application/problem+json"
            known = {"Content-Type": kind_of_answer, "Content-Length": "3", "Retry-After": "7"}
            gateway.answer = (status, {**known, **dict.fromkeys(OBEYED.split(), "/person-7")}, b"any")
            answered, headers, body = post(url, b"any")
            assert (answered, body) == ((502, b"") if status == 302 else (status, b"any"))
            assert {name.lower() for name in headers} <= set(RETURNED.split())
            assert "person-7" not in str(headers)
            assert "BaseHTTP" not in str(headers)
            assert headers["Retry-After"] == (None if status == 302 else "7")
            assert headers.get_all("Access-Control-Allow-Origin") == ["*"]


@pytest.mark.slow
@pytest.mark.attack(15)
def test_stalled_bodies_do_not_block_the_relay(tmp_path):
    """Some hundred incomplete bodies use up all connections of the relay behind a web server."""
    with Recorder() as gateway:
        gateway.answer = (200, {"Content-Type": ANSWER_TYPE, "Content-Length": "3"}, b"any")
        address = gateway.url.replace("/ldpkit", "/ohttp")
        with relay_of("nginx", tmp_path, address) as (_, url), contextlib.ExitStack() as slow:
            port = int(url.split(":")[2].split("/")[0])
            for _ in range(MOST_PLACES + 4):
                connection = slow.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
                connection.sendall(head_of(f"127.0.0.1:{port}", 1000) + b"x")
            assert {post(url, b"any")[0] for _ in range(TRIES)} == {200}


def test_init_creates_gateway_keys_that_rotate_and_retire(tmp_path, monkeypatch, capsys):
    """Run the operator's commands: init, show, rotate and retire."""
    monkeypatch.chdir(tmp_path)

    def ldpkit(*arguments):
        status = main(list(arguments))
        return status, *[text.strip() for text in capsys.readouterr()]

    assert ldpkit("init", "place")[0] == 0
    file = tmp_path / "place" / "ohttp.keys"
    assert file.stat().st_mode & 0o777 == 0o600
    assert 'ohttp_keys = "ohttp.keys"' in (tmp_path / "place" / "ldpkit.toml").read_text()
    monkeypatch.setenv("LDPKIT_CONFIG", str(tmp_path / "place" / "ldpkit.toml"))
    assert Settings.load().ohttp_keys == str(file)
    _, first, _ = ldpkit("ohttp", str(file))
    status, second, said = ldpkit("ohttp", str(file), "--rotate")
    assert (status, ldpkit("ohttp", str(file))[1]) == (0, second)
    number, newer = b64decode(first)[0], b64decode(second)[0]
    assert f"key {newer} is the newest, {number} stay valid" in said
    assert first != second
    assert ldpkit("ohttp", str(file), "--retire", str(newer))[0] == 3
    assert ldpkit("ohttp", str(file), "--retire", str(number))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    # Where there are none yet, the first ones.
    status, printed, _ = ldpkit("ohttp", "other.keys", "--rotate")
    assert (status, b64decode(printed)[1:3]) == (0, b"\0\x20")
    assert (tmp_path / "other.keys").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("gateway", "said"),
    [
        ("https://collector.example:8443/", "a collector's ends in /ohttp"),
        ("http://collector.example/ohttp", "must be https://"),
    ],
)
def test_a_wrong_gateway_is_a_usage_error(gateway, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["relay.py", gateway])
    with pytest.raises(SystemExit) as ended:
        relaying.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
