"""All requests use the device's transport: a spy at the sockets sees no other host.

A device with a relay connects to the relay alone: for the study, the report and its deletion. A device
without one connects to its collector, and to the issuer for a ticket. A redirect, a proxy variable or a
waking service worker adds no other host.
"""

import json
import socket
import subprocess
from base64 import b64encode
from contextlib import suppress
from functools import partial
from types import SimpleNamespace as World

import pytest

from collector.oblivious import GatewayKeys
from ldp_client import Device, Direct, Oblivious
from ldp_client.device import outbox
from ldp_client.documents.errors import LdpkitError
from ldp_client.oblivious.encapsulation import REQUEST_TYPE
from schemas import Study
from tests import studies
from tests.kit.collectors import REPOSITORY
from tests.kit.oblivious import Relay, batched_study
from tests.ldp_client.devices import YES, Server
from tests.ldp_client.issuers import Issuer, channel_of
from tests.portable import npm

NOON = 20_000 * 86_400 + 12 * 3600
STEP = 1800


def address_of(url):
    host, port = url.split("/")[2].split(":")
    return host, int(port)


@pytest.fixture
def connected(monkeypatch):
    """Each name that is looked up, and each address that is connected to, from now on."""
    seen = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def spied_connect(self, address):
        seen.append(address[:2])
        connect(self, address)

    def spied_look_up(host, port, *more, **options):
        seen.append((host, port))
        return look_up(host, port, *more, **options)

    monkeypatch.setattr(socket.socket, "connect", spied_connect)
    monkeypatch.setattr(socket, "getaddrinfo", spied_look_up)
    return seen


@pytest.fixture
def world(make_harness, tmp_path, monkeypatch):
    """A collector, its relay, an issuer, a host that nobody named, and a study."""
    keys = GatewayKeys.generate()
    keys.save(tmp_path / "ohttp.keys")
    study = batched_study()
    harness = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"), published=[study])

    def hand_on(body):
        """Ask the collector in this process, by no socket."""
        response = harness.app.test_client().post("/ohttp", data=body, content_type=REQUEST_TYPE)
        return response.status_code, {"Content-Type": response.headers["Content-Type"]}, response.data

    with Server() as collector, Relay() as relay, Issuer() as issuer, Server() as elsewhere:
        relay.answer = hand_on
        transport = Oblivious(relay.url, b64encode(keys.keys[0].configuration).decode())
        device = Device(tmp_path / "device", "9", collector.url, require_consent=False, transport=transport)
        world = World(collector=collector, relay=relay, issuer=issuer, elsewhere=elsewhere)
        world.study, world.device, world.now = study, device, NOON
        monkeypatch.setattr(outbox, "now", lambda: float(world.now))
        yield world


def flush(world, hours):
    """What comes of a flush every half hour for so many hours."""
    moments = [world.now + STEP * number for number in range(1, 1 + hours * 3600 // STEP)]
    return [(setattr(world, "now", moment), world.device.flush(1))[1] for moment in moments]


def hosts_asked(world, connected, is_reachable=True):
    """Whom a device asks that fetches a study, answers and withdraws; all arrives where it can."""
    connected.clear()
    with suppress(LdpkitError):
        assert world.device.fetch(world.study.id) == world.study
        assert is_reachable
    world.device.answer(world.study, YES, "CODE")
    sent = sum(flushed.sent for flushed in flush(world, 3))
    world.device.withdraw(world.study.id)
    deleted = sum(flushed.deleted for flushed in flush(world, 3))
    assert (sent, deleted) == (is_reachable, is_reachable)
    return set(connected)


def test_fetching_answering_and_withdrawing_connect_to_the_relay_alone(world, connected):
    assert hosts_asked(world, connected) == {address_of(world.relay.url)}


@pytest.mark.parametrize("planted", ["GET", "DELETE"])
def test_a_request_that_goes_directly_is_found(world, connected, monkeypatch, planted):
    oblivious = Oblivious.exchange

    def plain_exchange(self, request, most=0):
        exchange = Direct().exchange if request.get_method() == planted else partial(oblivious, self)
        return exchange(request, most)

    world.collector.content = world.study.to_json().encode()
    monkeypatch.setattr(Oblivious, "exchange", plain_exchange)
    assert address_of(world.collector.url) in hosts_asked(world, connected)


def test_a_direct_device_connects_to_collector_and_issuer_alone(world, connected, tmp_path):
    study = Study(studies.document(studies.YES_NO, channel=channel_of(world.issuer.url, hours=1)))
    world.collector.content = study.to_json().encode()
    world.device = Device(tmp_path / "direct", "9", world.collector.url, require_consent=False)
    connected.clear()
    world.device.answer(world.device.fetch(study.id), YES, "CODE")
    assert sum(flushed.sent for flushed in flush(world, 4)) == 1
    assert {*connected} == {address_of(world.collector.url), address_of(world.issuer.url)}


@pytest.mark.parametrize("status", [302, 307])
def test_no_redirect_leads_to_another_host(world, connected, status):
    world.relay.answer = status, {"Location": world.elsewhere.url}, b""
    assert hosts_asked(world, connected, is_reachable=False) == {address_of(world.relay.url)}


def test_proxy_variables_change_nothing_on_this_machine(world, connected, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, world.elsewhere.url)
    assert hosts_asked(world, connected) == {address_of(world.relay.url)}


def woken(worker):
    """Return the requests of the participant's page's service worker when it wakes and reports are due."""
    command = [*map(str, (npm.newer_node(), "worker_wakes.mjs", worker))]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.needs("node")
def test_the_service_worker_asks_the_collector_alone(tmp_path):
    worker = REPOSITORY / "collector" / "pages" / "assets" / "worker.js"
    sent = ["PUT collector.example", "PUT collector.example", "unregistered"]
    assert woken(worker) == sent
    # A planted fault: the worker asks another host when it starts.
    faulty = tmp_path / "worker.mjs"
    look = 'fetch("https://elsewhere.example/",{method:"GET"});'
    faulty.write_text(look + worker.read_text(encoding="utf-8"), encoding="utf-8")
    assert woken(faulty) == ["GET elsewhere.example", *sent]
