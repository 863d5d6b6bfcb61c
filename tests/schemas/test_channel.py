"""Studies may state how their reports are sent, and programs read it."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from ldp_client.documents.channel import SPKI_HEAD
from ldp_client.documents.errors import StudyError
from ldp_client.explain import describe
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.schemas.channels import channel, spki, tokens

GOLDEN = Path(__file__).parents[1] / "golden"
STRATUM = {"id": "region", "choices": ["north", "south"], "source": "ticket"}


def study_of(stated, **more):
    return Study(studies.document(studies.YES_NO, channel=stated, **more))


def test_channel_fields_are_read_from_the_document():
    strata = tokens({"region": "north"}, {"region": "south"}, issuer="https://issuer.example:8443/a/")
    study = study_of(channel(tickets=strata), public=[STRATUM], languages=["en", "de"])
    read = study.channel
    assert (read.hours, read.tickets.issuer) == (24, "https://issuer.example:8443/a")
    assert read.tickets.name == "issuer.example:8443"
    assert [key.public["region"] for key in read.tickets.keys] == ["north", "south"]
    assert read.tickets.keys[1].modulus == b"\x80" + b"\x02" * 254 + b"\x01"
    assert study.shown_in("en").channel is read
    alone = study_of({"batches": {"hours": 24}})
    assert (alone.channel.hours, alone.channel.tickets) == (24, None)
    assert any("window of 24 hours" in line for line in describe(alone))


def test_the_keys_of_the_rfcs_are_token_keys():
    for name, field in (("rfc9577_header", "token-key-0"), ("rfc9578_public", "pkS")):
        for vector in json.loads((GOLDEN / "rfc" / f"{name}.json").read_text()):
            key = b64encode(bytes.fromhex(vector[field])).decode()
            stated = {"issuer": "https://issuer.example", "keys": [{"key": key}]}
            assert study_of(channel(tickets=stated)).channel.tickets.keys[0].spki.hex() == vector[field]


WRONG_KEYS = {
    "even": spki(last=2),
    "short": spki(length=255),
    "top bit missing": spki(first=0x7F),
    "an even exponent": spki(tail=bytes.fromhex("0203010002")),
    "SHA-256": spki(head=SPKI_HEAD.replace(bytes.fromhex("040202"), bytes.fromhex("040201"))),
    "cut": spki()[:-8],
    "no base64": "?" + spki()[1:],
}


@pytest.mark.parametrize("key", WRONG_KEYS.values(), ids=WRONG_KEYS)
def test_invalid_token_key_is_rejected(key):
    stated = {"issuer": "https://issuer.example", "keys": [{"key": key}]}
    with raises(StudyError, "study.invalid", field="channel.tickets.keys[0].key"):
        study_of(channel(tickets=stated))


NORTH, SOUTH = {"region": "north"}, {"region": "south"}


@pytest.mark.parametrize(
    ("stated", "field", "says"),
    [
        ({"tickets": tokens()}, "channel.batches", "missing"),
        ({**channel(), "oblivious": {}}, "channel.oblivious", "unknown field"),
        ({**channel(), "batches": {"hours": 169}}, "channel.batches.hours", "from 1 to 168"),
        (channel(tickets={"issuer": "https://a.example", "keys": []}), "channel.tickets.keys", "1 to 64"),
        (channel(tickets={**tokens(), "keys": tokens()["keys"] * 2}), "channel.tickets.keys[1].key", "twice"),
        (channel(tickets=tokens(NORTH)), "channel.tickets.keys[0].public.region", "no public field"),
        (channel(tickets=tokens(issuer="issuer.example")), "channel.tickets.issuer", "https://host"),
        (channel(tickets=tokens(issuer="https://Issuer.example")), "channel.tickets.issuer", "https://host"),
        (channel(tickets=tokens(issuer="https://a@b.example")), "channel.tickets.issuer", "https://host"),
        (channel(tickets=tokens(issuer="https://a.example/?x")), "channel.tickets.issuer", "https://host"),
        ((), "channel.tickets.keys[0].public.region", "missing"),
        ((NORTH, NORTH), "channel.tickets.keys[1].public", "differ"),
        ((NORTH, {"region": "east"}), "channel.tickets.keys[1].public.region", "values"),
        ((NORTH, {**SOUTH, "age": "1"}), "channel.tickets.keys[1].public.age", "no public field"),
    ],
)
def test_a_wrong_channel_is_named(stated, field, says):
    """A tuple is the strata of a study that needs a key for each."""
    fields = {}
    if isinstance(stated, tuple):
        stated, fields = channel(tickets=tokens(*stated)), {"public": [STRATUM]}
    with pytest.raises(StudyError) as caught:
        study_of(stated, **fields)
    assert caught.value.field == field
    assert says in caught.value.problem
