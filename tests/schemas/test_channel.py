"""Studies may state how their reports are sent, and programs read it."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ldp_client.documents.channel import SPKI_HEAD
from ldp_client.documents.errors import StudyError
from ldp_client.explain import describe
from schemas import Study, json_schema
from tests import studies
from tests.schemas.channels import channel, spki, tokens

GOLDEN = Path(__file__).parents[1] / "golden"
BATCHES = {"batches": {"hours": 24}}
STRATUM = {"id": "region", "choices": ["north", "south"], "source": "ticket"}


def study_of(stated, **more):
    return Study(studies.document(studies.YES_NO, channel=stated, **more))


def test_batches_alone_are_a_channel():
    read = study_of(BATCHES).channel
    assert (read.hours, read.tickets) == (24, None)
    assert any("window of 24 hours" in line for line in describe(study_of(BATCHES)))


def test_channel_fields_are_read_from_the_document():
    strata = tokens({"region": "north"}, {"region": "south"}, issuer="https://issuer.example:8443/a/")
    study = study_of(channel(tickets=strata), public=[STRATUM])
    read = study.channel
    assert (read.hours, read.tickets.issuer) == (24, "https://issuer.example:8443/a")
    assert read.tickets.name == "issuer.example:8443"
    assert [key.public["region"] for key in read.tickets.keys] == ["north", "south"]
    assert read.tickets.keys[1].modulus == b"\x80" + b"\x02" * 254 + b"\x01"
    assert json.loads(study.to_json())["channel"] == study.document["channel"]


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
    with pytest.raises(StudyError) as caught:
        study_of(channel(tickets=stated))
    assert caught.value.field == "channel.tickets.keys[0].key"


SAME_KEY = {"issuer": "https://issuer.example", "keys": [{"key": spki()}, {"key": spki()}]}
NORTH, SOUTH = {"region": "north"}, {"region": "south"}


@pytest.mark.parametrize(
    ("stated", "field", "says"),
    [
        ({"tickets": tokens()}, "channel.batches", "missing"),
        ({**channel(), "oblivious": {}}, "channel.oblivious", "unknown field"),
        ({**channel(), "batches": {"hours": 169}}, "channel.batches.hours", "from 1 to 168"),
        (channel(tickets={"issuer": "https://a.example", "keys": []}), "channel.tickets.keys", "1 to 64"),
        (channel(tickets=SAME_KEY), "channel.tickets.keys[1].key", "twice"),
        (channel(tickets=tokens(NORTH)), "channel.tickets.keys[0].public.region", "no public field"),
        (channel(tickets=tokens(issuer="issuer.example")), "channel.tickets.issuer", "https://host"),
        (channel(tickets=tokens(issuer="https://Issuer.example")), "channel.tickets.issuer", "https://host"),
        (channel(tickets=tokens(issuer="https://a@b.example")), "channel.tickets.issuer", "https://host"),
        (channel(tickets=tokens(issuer="ftp://issuer.example")), "channel.tickets.issuer", "https://host"),
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


def test_translated_study_keeps_the_channel():
    stratum = {**STRATUM, "choices": [{"en": "north", "de": "Nord"}, {"en": "south", "de": "Süd"}]}
    title = {"en": "Habits", "de": "Gewohnheiten"}
    stated = channel(tickets=tokens(NORTH, SOUTH))
    study = study_of(stated, public=[stratum], languages=["en", "de"], title=title)
    shown = study.shown_in("de")
    assert (shown.title, shown.public[0].choices) == ("Gewohnheiten", ("Nord", "Süd"))
    assert shown.channel is study.channel


def test_json_schema_accepts_the_same_channels():
    schema = Draft202012Validator(json_schema.schema("study.schema.json"))
    for stated in (
        channel(),
        BATCHES,
        channel(tickets=tokens(issuer="https://issuer.example:8443/a")),
        channel(tickets=tokens(issuer="http://127.0.0.1:80/a!b")),
    ):
        schema.validate(studies.document(studies.YES_NO, channel=stated))
        assert study_of(stated).channel
    wrong = ("https://A.example", "https://a.example/?x", "https://a b.example", "a.example")
    for address in wrong:
        document = studies.document(studies.YES_NO, channel=channel(tickets=tokens(issuer=address)))
        assert not schema.is_valid(document)
