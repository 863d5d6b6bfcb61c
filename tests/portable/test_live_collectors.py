"""A JavaScript device with real collectors, an issuer and a relay, and another library of tokens."""

from __future__ import annotations

import json
import subprocess
import threading
from base64 import b64encode

import pytest

from collector.oblivious import GatewayKeys
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from schemas import Study
from tests import studies
from tests.kit.collectors import TOKEN, Server
from tests.kit.relay_example import relaying
from tests.portable import npm
from tests.portable.issuer_server import IssuerServer
from tests.portable.platforms import JAVASCRIPT

REGION = {"id": "region", "choices": ["north", "south"], "source": "ticket"}
# Bytes of an encapsulated request or answer besides the padded content.
OVERHEAD, ANSWER_OVERHEAD = 55, 32


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    started = IssuerServer(tmp_path_factory.mktemp("issuer"))
    yield started
    started.close()


def node(*arguments):
    command = [npm.newer_node(), *map(str, arguments)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def device(collector, study, folder, *steps, relay=None):
    """Return the result of each step of a device in node. `collector`: its base URL."""
    arguments = [JAVASCRIPT / "index.js", "node", folder / "kept.db", collector, study.canonical().decode()]
    return node("channel.mjs", *arguments, json.dumps(steps), *([json.dumps(relay)] if relay else []))


def answered(*code):
    return [["answer", {"ever": "yes"}, *code], ["consent"]]


@pytest.mark.slow
def test_report_with_its_token_is_stored_once_and_withdrawn(server, issuer, tmp_path):
    """The issuer names the key of the stratum, and the collector derives the stratum from it."""
    channel = issuer.channel("strata", "region=north", "region=south")
    study = Study(studies.document(studies.YES_NO, id="strata", channel=channel, public=[REGION]))
    assert server.request("POST", "/v1/studies", study.document) == 201
    (code,) = issuer.codes(study.id, 1, "region=south")
    sending = [["flush"], ["due"], ["flush"]]
    *_, asked, _, sent, report = device(server.url, study, tmp_path, *answered(code), *sending, ["report"])
    assert (asked, sent) == ("queued", "sent")
    (stored,) = fetch_reports(Client(server.url, TOKEN), study.id)
    assert "south" not in report["body"]
    assert stored.public == {"region": "south"}
    (tmp_path / "other").mkdir()
    *_, state, other = device(server.url, study, tmp_path / "other", *answered(code), ["flush"], ["report"])
    assert (state, other["reason"]) == ("ticketless", "issuer problem 409 ticket-spent")
    *_, left = device(server.url, study, tmp_path, ["withdraw"], *sending)
    assert left == "gone"
    assert list(fetch_reports(Client(server.url, TOKEN), study.id)) == []


@pytest.mark.slow
def test_another_library_takes_and_gives_the_same_tokens(server, issuer):
    """@cloudflare/privacypass-ts: its issuer with this device, its client with `ldpkit serve --as issuer`."""
    study = Study(studies.document(studies.YES_NO, id="peer", channel=issuer.channel("peer")))
    assert server.request("POST", "/v1/studies", study.document) == 201
    given = {
        "issuer": issuer.url,
        "key": study.document["channel"]["tickets"]["keys"][0]["key"],
        "digest": study.digest,
        "ticket": issuer.codes(study.id, 1)[0],
    }
    found = node("token_peer.mjs", JAVASCRIPT / "tickets.js", json.dumps(given))
    assert [found[name] for name in ("challenge", "oursFromItsIssuer", "itsFromOurIssuer")] == [True] * 3


@pytest.fixture
def relayed(tmp_path, monkeypatch):
    """A collector behind a relay alone, the options for the relay, and the sizes of what passes it."""
    keys, sizes, plain = GatewayKeys.generate(), [], relaying.forwarded

    def forwarded(gateway, body):
        answer = plain(gateway, body)
        sizes.append((len(body), len(answer[1])))
        return answer

    monkeypatch.setattr(relaying, "forwarded", forwarded)
    keys.save(tmp_path / "ohttp.keys")
    collector = Server(
        tmp_path, environment={"LDPKIT_OHTTP_KEYS": "ohttp.keys", "LDPKIT_REQUIRE_OHTTP": "true"}
    )
    relay = relaying.Relay(f"{collector.url}/ohttp", "127.0.0.1", 0)
    thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    options = {"relay": f"{relay.url}/ldpkit", "keys": b64encode(keys.keys[0].configuration).decode()}
    yield collector, options, sizes
    relay.shutdown()
    thread.join()
    relay.server_close()
    collector.kill()


@pytest.mark.slow
def test_every_request_goes_through_the_relay(relayed, tmp_path):
    """The fetch, the report and its deletion; nothing listens at the address that the device has."""
    collector, relay, sizes = relayed
    study = Study(studies.document(studies.YES_NO))
    assert collector.request("POST", "/v1/studies", study.document) == 201
    nowhere = "http://localhost:9"
    sent = device(nowhere, study, tmp_path, ["fetched"], *answered(), ["flush"], ["report"], relay=relay)
    assert (sent[0], sent[-2]) == (study.id, "sent")
    assert sent[-1]["id"] in collector.read(f"/v1/studies/{study.id}/export")
    gone = device(nowhere, study, tmp_path, ["withdraw"], ["flush"], relay=relay)
    assert gone == [1, "gone"]
    assert sent[-1]["id"] not in collector.read(f"/v1/studies/{study.id}/export")
    # The study, the report and its deletion.
    small, fetch = (4096 + OVERHEAD, 4096 + ANSWER_OVERHEAD), (4096 + OVERHEAD, 65536 + ANSWER_OVERHEAD)
    assert sizes == [fetch, small, small]
