"""A JavaScript device with a real collector, an issuer and a relay."""

from base64 import b64encode

import pytest

from collector.oblivious import GatewayKeys
from schemas import Study
from tests import studies
from tests.js.run import device
from tests.kit.collectors import Server
from tests.kit.issuing import Office, block_of
from tests.kit.serving import served
from tests.portable.participant import stored_at

pytestmark = pytest.mark.slow
REGION = {"id": "region", "choices": ["north", "south"], "source": "ticket"}


def answered(*code):
    return [["answer", {"ever": "yes"}, *code], ["consent"]]


def test_report_with_its_token_is_stored_once_and_withdrawn(server, tmp_path):
    """The issuer names the key of the stratum, and the collector derives the stratum from it."""
    office = Office(f"sqlite:///{tmp_path / 'issuer.sqlite3'}")
    _, code = office.codes
    sending = [["flush"], ["due"], ["flush"]]
    with served(office.app) as url:
        with office.writing() as session:
            channel = {"batches": {"hours": 24}, "tickets": block_of(session, "habits", url)}
        study = Study(studies.document(studies.YES_NO, id="habits", channel=channel, public=[REGION]))
        assert server.request("POST", "/v1/studies", study.document) == 201
        first, second = [(tmp_path / f"{name}.db", server.url, study) for name in ("first", "second")]
        *_, asked, _, sent, report = device(*first, *answered(code), *sending, ["report"])
        *_, state, other = device(*second, *answered(code), ["flush"], ["report"])
    office.close()
    assert (asked, sent) == ("queued", "sent")
    assert (state, other["reason"]) == ("ticketless", "issuer problem 409 ticket-spent")
    (stored,) = stored_at(server, study.id)
    assert "south" not in report["body"]
    assert stored.public == {"region": "south"}
    *_, left = device(*first, ["withdraw"], *sending)
    assert left == "gone"
    assert stored_at(server, study.id) == []


@pytest.fixture
def relayed(tmp_path, make_relay):
    """A collector behind a relay alone, and the options for the relay."""
    keys = GatewayKeys.generate()
    keys.save(tmp_path / "ohttp.keys")
    environment = {"LDPKIT_OHTTP_KEYS": "ohttp.keys", "LDPKIT_REQUIRE_OHTTP": "true"}
    with Server(tmp_path, environment=environment) as collector:
        relay = make_relay(f"{collector.url}/ohttp")
        options = {"relay": f"{relay}/ldpkit", "keys": b64encode(keys.keys[0].configuration).decode()}
        yield collector, options


def test_every_request_goes_through_the_relay(relayed, tmp_path):
    collector, relay = relayed
    study = Study(studies.document(studies.YES_NO))
    assert collector.request("POST", "/v1/studies", study.document) == 201
    at = tmp_path / "kept.db", "http://localhost:9", study
    sent = device(*at, ["fetched"], *answered(), ["flush"], ["report"], relay=relay)
    assert (sent[0], sent[-2]) == (study.id, "sent")
    assert sent[-1]["id"] in collector.read(f"/v1/studies/{study.id}/export")
    assert device(*at, ["withdraw"], ["flush"], relay=relay) == [1, "gone"]
    assert sent[-1]["id"] not in collector.read(f"/v1/studies/{study.id}/export")
