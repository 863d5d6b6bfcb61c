"""Parts of a study beside its questions: how its reports are sent, and the public fields that they have."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from ldp_client.documents.channel import SPKI_HEAD
from ldp_client.documents.errors import AnswerError, StudyError
from ldp_client.explain import describe
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.schemas.channels import channel, spki, tokens

GOLDEN = Path(__file__).parents[1] / "golden"
REGION = {"id": "region", "choices": ["north", "south"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "1"}
OFFSET = {"id": "offset", "bounds": ["-0.75", "1.50"], "step": "25e-2"}
STRATUM = {**REGION, "id": "stratum", "source": "ticket"}
STATED = {**REGION, "source": "ticket"}
VALUES = {"region": "north", "age": "42", "stratum": "south"}


def study_of(*fields, questions=(studies.YES_NO,), **more):
    return Study(studies.document(*questions, public=list(fields), **more))


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ([], "public", "1 to 16 entries"),
        ([REGION, REGION], "public[1].id", "twice"),
        ([{**REGION, "id": "ever"}], "public[0].id", "private question"),
        ([{**REGION, "id": "rating.rate"}], "public[0].id", "private question"),
        ([{**REGION, "choices": ["one", "one"]}], "public[0].choices[1]", "twice"),
        ([{**REGION, "choices": {"count": 5}}], "public[0].choices", "list"),
        ([{**REGION, "source": "collector"}], "public[0].source", "ticket"),
        ([{**REGION, "bounds": ["0", "1"], "step": "1"}], "public[0].choices", "unknown field"),
        ([{**AGE, "bounds": ["18", "1e60"]}], "public[0].bounds[1]", "decimals"),
        ([{**AGE, "bounds": ["18", "18"]}], "public[0].bounds", "below"),
        ([{**AGE, "step": "0"}], "public[0].step", "above 0"),
        ([{**AGE, "step": "2"}], "public[0].step", "whole number of steps"),
        ([{**AGE, "step": "1e-7"}], "public[0].step", "at most 1000000 values"),
        ([{"id": "age", "bounds": ["18", "99"]}], "public[0].step", "missing"),
    ],
)
def test_a_bad_field_is_named(fields, field, says):
    with pytest.raises(StudyError) as caught:
        study_of(*fields, questions=(studies.YES_NO, studies.LINEAR))
    assert caught.value.field == field
    assert says in caught.value.problem


def test_data_holders_and_secure_sums_reject_fields_for_people():
    holder = studies.document(studies.TABLE, public=[REGION], **studies.HOLDER)
    nodes = [f"https://{name}.example#{name[-1] * 128}" for name in ("node-a", "node-b")]
    protocol = {"name": "secure_sum", "nodes": nodes, "devices": 20, "max_faulty": 5}
    summed = {**studies.YES_NO, "mechanism": {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}}
    for document, code in (
        (holder, "study.not_for_holders"),
        (studies.document(summed, public=[REGION], protocol=protocol), "study.not_for_secure_sums"),
    ):
        with raises(StudyError, code, field="public"):
            Study(document)
    with raises(StudyError, "study.not_for_holders", field="channel"):
        Study(studies.document(studies.TABLE, channel=channel(), **studies.HOLDER))
    assert Study(studies.document(summed, protocol=protocol, channel=channel())).channel.tickets


def test_numbers_have_one_spelling_on_their_grid():
    (field,) = study_of(OFFSET).public
    values = [field.value(place) for place in range(field.size)]
    assert values == ["-0.75", "-0.5", "-0.25", "0", "0.25", "0.5", "0.75", "1", "1.25", "1.5"]
    assert [field.place(value) for value in values] == list(range(10))
    for other in ("1.0", "-0", "+1", "01", "1e0", " 1", "1.6", "1.75", "-1", "", "NaN"):
        assert field.place(other) is None
    assert [field.value_of(answer) for answer in (1, 1.0, "1.00", -0.5, "-5e-1")] == ["1"] * 3 + ["-0.5"] * 2


@pytest.mark.parametrize(
    ("field", "code", "answers"),
    [
        (OFFSET, "core.public_number", [None, True, "", " 1", float("nan"), 1.1, "2", -1, [1], "1_0"]),
        (REGION, "core.public_choice", [None, True, 0, "", "North", "north ", "secret"]),
    ],
)
def test_invalid_public_answer_is_rejected_without_repeating_it(field, code, answers):
    (read,) = study_of(field).public
    for answer in answers:
        with raises(AnswerError, code, field=field["id"]) as caught:
            read.value_of(answer)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (VALUES, None),
        ({}, "region"),
        ({**VALUES, "age": "42.0"}, "age"),
        ({**VALUES, "age": "17"}, "age"),
        ({**VALUES, "region": "east"}, "region"),
        ({**VALUES, "ever": "yes"}, "ever"),
        ({"region": "north", "age": "42"}, "stratum"),
    ],
)
def test_report_must_have_exactly_the_listed_public_values(values, wrong):
    study = study_of(REGION, AGE, STRATUM)
    found = study.wrong_public(values)
    assert (found and found[0]) == wrong
    # A ticket adds its values, and no others.
    found = study.wrong_public(values, invited=True)
    assert (found and found[0]) == (None if wrong == "stratum" else wrong)


def sent_by(stated, **more):
    return Study(studies.document(studies.YES_NO, channel=stated, **more))


def test_channel_fields_are_read_from_the_document():
    strata = tokens({"region": "north"}, {"region": "south"}, issuer="https://issuer.example:8443/a/")
    study = sent_by(channel(tickets=strata), public=[STATED], languages=["en", "de"])
    read = study.channel
    assert (read.hours, read.tickets.issuer) == (24, "https://issuer.example:8443/a")
    assert read.tickets.name == "issuer.example:8443"
    assert [key.public["region"] for key in read.tickets.keys] == ["north", "south"]
    assert read.tickets.keys[1].modulus == b"\x80" + b"\x02" * 254 + b"\x01"
    assert study.shown_in("en").channel is read
    alone = sent_by({"batches": {"hours": 24}})
    assert (alone.channel.hours, alone.channel.tickets) == (24, None)
    assert any("window of 24 hours" in line for line in describe(alone))


def test_the_keys_of_the_rfcs_are_token_keys():
    for name, field in (("rfc9577_header", "token-key-0"), ("rfc9578_public", "pkS")):
        for vector in json.loads((GOLDEN / "rfc" / f"{name}.json").read_text()):
            key = b64encode(bytes.fromhex(vector[field])).decode()
            stated = {"issuer": "https://issuer.example", "keys": [{"key": key}]}
            assert sent_by(channel(tickets=stated)).channel.tickets.keys[0].spki.hex() == vector[field]


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
        sent_by(channel(tickets=stated))


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
        stated, fields = channel(tickets=tokens(*stated)), {"public": [STATED]}
    with pytest.raises(StudyError) as caught:
        sent_by(stated, **fields)
    assert caught.value.field == field
    assert says in caught.value.problem
