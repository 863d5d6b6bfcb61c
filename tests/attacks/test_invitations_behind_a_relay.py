"""A collector that invited by name links invitation and report, although a relay hides the address.

Defence: Known limit: an operator who keeps names with codes can link the two. The page and `ldpkit
answer` tell each person, `ldpkit publish` and `ldpkit invite` tell the operator; tokens prevent it.
"""

import pytest

from collector.oblivious import gateway
from collector.operator.inviting import warnings_of_invitations
from ldp_client.commands.channel_warnings import invitation_notes
from ldp_client.explain import describe
from schemas import Study
from tests import studies
from tests.attacks.test_joining_people_and_reports import COLLECTOR, World
from tests.attacks.test_joining_with_a_relay import RelayedWorld
from tests.ldp_client.devices import consenting

OPERATOR = {"Authorization": "Bearer operators-token-for-tests"}
SAID = "Your invitation travels together with your report."


@pytest.fixture
def world(tmp_path, monkeypatch):
    plain = World.__init__

    def inviting(self, *given, **settings):
        plain(self, *given, invitation_key="a-secret-of-32-characters-for-us", **settings)

    monkeypatch.setattr(World, "__init__", inviting)
    made = RelayedWorld(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def named(world):
    """A study with the same relay, without tokens."""
    channel = {name: value for name, value in world.study.document["channel"].items() if name != "tokens"}
    study = Study(studies.document(studies.YES_NO, channel=channel, id="named"))
    client = world.collector.test_client()
    assert client.post("/v1/studies", json=study.document, headers=OPERATOR).status_code == 201
    return study


def test_invitation_links_person_to_report_and_page_says_so(world, named, tmp_path, monkeypatch):
    client = world.collector.test_client()
    assert SAID not in client.get("/s/named").get_data(as_text=True)
    made = client.post("/v1/studies/named/invitations", json={"count": 1}, headers=OPERATOR).get_json()
    (word,) = made["invitations"]
    assert made["warnings"] == invitation_notes(named)
    seen, inner = [], gateway._asked

    def asked(target, environ):
        seen.append(environ.get("HTTP_LDPKIT_INVITATION"))
        return inner(target, environ)

    monkeypatch.setattr(gateway, "_asked", asked)
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    device.answer(named, {"ever": True}, word)
    world.now = float(device.ledger.queued()[0].due)
    assert device.flush().sent == 1
    # The known limit: with its list of names the collector needs no address.
    assert word in seen
    assert SAID in client.get("/s/named").get_data(as_text=True)
    assert [line for line in describe(named) if "the person's invitation" in line]


def test_no_invitation_warning_if_the_study_uses_tokens(world):
    page = world.collector.test_client().get(f"/s/{world.study.id}").get_data(as_text=True)
    assert SAID not in page
    assert not [line for line in describe(world.study) if "the person's invitation" in line]
    assert not invitation_notes(world.study)


def test_database_command_also_warns_the_operator(world, named):
    with world.collector.extensions["ldpkit"].database.read() as session:
        assert warnings_of_invitations(session, named.id) == invitation_notes(named)
        assert not warnings_of_invitations(session, world.study.id)
