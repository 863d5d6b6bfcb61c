"""Device, relay and collector as separate processes, by examples/relay.py and the servers of deploy/relay."""

import contextlib
import os
import re
import socket
import sys
import urllib.error
import urllib.request
from base64 import b64decode

import pytest

from collector.settings import Settings
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, REQUEST_TYPE
from ldpkit.cli import main
from tests.kit.collectors import REPOSITORY, is_open, running
from tests.kit.oblivious import Relay as Recorder
from tests.kit.oblivious import batched_study, through
from tests.kit.programs import need, which
from tests.kit.serving import held_port
from tests.ldp_client.devices import consenting

RECIPES = REPOSITORY / "deploy" / "relay"
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
def relay_of(kind, log, gateway):
    """examples/relay.py before a gateway, behind a web server unless that is its kind: its URL."""
    command = [sys.executable, str(REPOSITORY / "examples" / "relay.py"), gateway, "--port", "0"]
    with contextlib.ExitStack() as programs:
        programs.enter_context(running(command, log, lambda: "listens on" in log.read_text()))
        url = re.search(r"listens on (\S+)", log.read_text())[1] + "/ldpkit"
        if kind != "example":
            need(kind)
            settings, command = FRONTS[kind]

            with held_port() as port:
                (log.parent / "settings").write_text(settings(port, log.parent, url))
                programs.enter_context(running(command, log, lambda: is_open(port)))
            url = f"http://127.0.0.1:{port}/ldpkit"
        yield url


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
    collector, log = start_server(environment=environment), tmp_path / "relay.log"
    with relay_of(kind, log, f"{collector.url}/ohttp") as url:
        study = batched_study()
        assert collector.request("POST", "/v1/studies", study.document) == 201
        device = consenting(tmp_path / "device", "9", collector.url, transport=through(url, keys))
        device.answer(device.fetch(study.id), {"ever": True})
        (queued,) = device.ledger.queued()
        assert send(device).sent == 1
        assert queued.report_id in collector.read(f"/v1/studies/{study.id}/export")
        assert device.withdraw(study.id) == 1
        assert send(device).deleted == 1
        assert queued.report_id not in collector.read(f"/v1/studies/{study.id}/export")
        status, headers, _ = post(url, None, method="OPTIONS")
        assert (status, headers["Access-Control-Allow-Origin"]) == (204, "*")
        assert headers["Access-Control-Allow-Headers"] == "Content-Type"
        status, headers, body = post(url, b"\xff" * 100)
        assert (status, headers.get_content_type()) == (400, "application/problem+json")
        assert b"#ohttp-key" in body
        assert post(url, None, method="GET")[0] in (403, 404, 405, 501)
        with socket.create_connection(("127.0.0.1", port_of(url)), timeout=30) as connection:
            connection.sendall(head_of(url, 3 << 20))
            with contextlib.suppress(ConnectionError):
                # The others refuse a body that is too long before any byte of it is sent.
                connection.sendall(bytes(3 << 20) if kind == "caddy" else b"")
            assert int(connection.recv(64).split()[1]) in (413, 502)
        collector.kill()
        # What failed is where programs like to write whose request it was.
        assert post(url, b"\xff" * 100)[0] in (502, 504)
    said = re.sub(r"listens on \S+", "", log.read_text() + collector.log.read_text())
    assert queued.report_id not in said
    for address in (url, url.rpartition("/")[0], collector.url):
        said = said.replace(address, "")
    assert "127.0.0.1" not in said


def port_of(url):
    return int(url.split(":")[2].split("/")[0])


def head_of(url, length):
    head = f"POST /ldpkit HTTP/1.1\r\nHost: 127.0.0.1:{port_of(url)}\r\nContent-Type: {REQUEST_TYPE}\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode()


def ohttp_of(gateway):
    return gateway.url.replace("/ldpkit", "/ohttp")


@pytest.mark.slow
@pytest.mark.attack(12)
@pytest.mark.parametrize("kind", ["example", *FRONTS])
def test_relay_hands_on_no_header_of_sender_or_collector(kind, tmp_path):
    """Relay and collector tell senders apart by headers; a browser obeys the collector's NEL header."""
    with Recorder() as gateway, relay_of(kind, tmp_path / "relay.log", ohttp_of(gateway)) as url:
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
        with (
            relay_of("nginx", tmp_path / "relay.log", ohttp_of(gateway)) as url,
            contextlib.ExitStack() as slow,
        ):
            # All places of examples/relay.py.
            for _ in range(256 + 4):
                address = ("127.0.0.1", port_of(url))
                connection = slow.enter_context(socket.create_connection(address, timeout=30))
                connection.sendall(head_of(url, 1000) + b"x")
            # A front that hands on at once has by then handed on all of these.
            assert {post(url, b"any")[0] for _ in range(40)} == {200}


def test_init_creates_gateway_keys_that_rotate_and_retire(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def ldpkit(*arguments):
        return main(list(arguments)), capsys.readouterr().out.strip()

    assert ldpkit("init", "place")[0] == 0
    monkeypatch.setenv("LDPKIT_CONFIG", str(tmp_path / "place" / "ldpkit.toml"))
    file = Settings.load().ohttp_keys
    assert file == str(tmp_path / "place" / "ohttp.keys")
    _, first = ldpkit("ohttp", file)
    status, second = ldpkit("ohttp", file, "--rotate")
    assert (status, ldpkit("ohttp", file)[1]) == (0, second)
    number, newer = b64decode(first)[0], b64decode(second)[0]
    assert number != newer
    assert ldpkit("ohttp", file, "--retire", str(newer))[0] == 3
    assert ldpkit("ohttp", file, "--retire", str(number))[0] == 0
    # Where there are none yet, the first ones.
    status, printed = ldpkit("ohttp", "other.keys", "--rotate")
    assert (status, b64decode(printed)[1:3]) == (0, b"\0\x20")
    assert [os.stat(path).st_mode & 0o777 for path in (file, "other.keys")] == [0o600] * 2
