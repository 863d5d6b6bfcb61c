"""Studies that are published on the strength of a signature, and served with it."""

from __future__ import annotations

import json

import pytest

from ldp_client.device.arguments import load_public_key
from ldp_client.device.policy import verify_study
from ldp_client.documents.errors import InputError
from ldp_client.documents.signed import MOST_SIGNATURES, Signature
from ldp_client.files.signing import new_key, sign_study
from schemas import Study
from schemas.study import SignedStudy
from tests.collector.answered import refusal
from tests.kit.errors import raises


@pytest.fixture(scope="module")
def pairs():
    return {name: new_key() for name in ("first", "second")}


@pytest.fixture
def trusting(make_harness, pairs, tmp_path):
    """A collector that trusts two keys."""
    file = tmp_path / "keys.pem"
    file.write_text("A comment.\n".join(public for _, public in pairs.values()))
    return make_harness("trusting.sqlite3", signing_keys=str(file))


def post(harness, signed, **headers):
    text = signed if isinstance(signed, str) else signed.to_json()
    return harness.client.post("/v1/studies", data=text, content_type="application/json", headers=headers)


def fetched(harness, **query):
    response = harness.client.get("/v1/studies/habits/signed", query_string=query)
    assert response.status_code == 200
    return SignedStudy.from_json(response.data)


@pytest.mark.parametrize("name", ["first", "second"])
def test_trusted_signature_publishes_a_study_without_a_key(trusting, study, pairs, name):
    private, public = pairs[name]
    signed = sign_study(study, private.encode())
    assert post(trusting, signed).status_code == 201
    assert post(trusting, signed).status_code == 200
    served = fetched(trusting)
    assert served.to_json() == signed.to_json()
    key = load_public_key(public)
    assert verify_study(served, [key]) == [key]
    assert trusting.client.get("/v1/studies/habits").data == study.canonical()


def test_old_versions_are_not_published_again(trusting, make_study, pairs):
    private = pairs["second"][0].encode()
    old, new = (sign_study(make_study(version), private) for version in (1, 2))
    for signed in (old, new):
        assert post(trusting, signed).status_code == 201
    assert refusal(post(trusting, old)) == ("study-outdated", "version")
    other = sign_study(make_study(2, title="Other"), private)
    assert refusal(post(trusting, other)) == ("study-conflict", "version")
    assert fetched(trusting).to_json() == new.to_json()
    assert fetched(trusting, version=1).to_json() == old.to_json()


def test_other_signatures_need_a_key(trusting, habits, study, pairs):
    stranger = sign_study(study, new_key()[0].encode())
    assert refusal(post(trusting, stranger))[0] == "unauthorized"
    assert trusting.client.get("/v1/studies/habits").status_code == 404
    assert post(trusting, stranger, **trusting.operator).status_code == 201
    assert fetched(trusting).to_json() == stranger.to_json()
    assert refusal(post(habits, sign_study(study, pairs["first"][0].encode())))[0] == "unauthorized"
    assert refusal(post(trusting, stranger, Authorization="Bearer wrong"))[0] == "unauthorized"


def test_wrong_signature_is_rejected_even_from_an_operator(trusting, make_study, pairs):
    good = sign_study(make_study(), pairs["first"][0].encode())
    forged = SignedStudy(make_study(title="Worse"), good.signatures)
    for headers in ({}, trusting.operator):
        assert refusal(post(trusting, forged, **headers)) == ("signature-refused", "signatures")
    assert trusting.client.get("/v1/studies/habits").status_code == 404


def test_signatures_accumulate_and_are_never_replaced(trusting, study, pairs):
    first, second = (sign_study(study, private.encode()) for private, _ in pairs.values())
    post(trusting, first)
    post(trusting, second)
    keys = sorted(signature.key for signature in (*first.signatures, *second.signatures))
    assert [signature.key for signature in fetched(trusting).signatures] == keys
    junk = [Signature(f"{number:064x}", b"x") for number in range(MOST_SIGNATURES)]
    post(trusting, SignedStudy(study, junk), **trusting.operator)
    assert len(fetched(trusting).signatures) == MOST_SIGNATURES
    spoilt = SignedStudy(study, [Signature(keys[0], b"x")])
    assert post(trusting, spoilt, **trusting.operator).status_code == 403
    assert verify_study(fetched(trusting), [load_public_key(public) for _, public in pairs.values()])


def test_strangers_signatures_are_not_kept(trusting, study, pairs):
    """Otherwise a stranger's junk could use up the places of signatures, or pose as a known key's."""
    signed = sign_study(study, pairs["first"][0].encode())
    junk = [Signature(f"{number:064x}", b"x") for number in range(MOST_SIGNATURES - 1)]
    assert post(trusting, SignedStudy(study, [*signed.signatures, *junk])).status_code == 201
    assert fetched(trusting).to_json() == signed.to_json()


def test_every_signature_of_a_trusted_key_is_verified(trusting, study, pairs):
    signed, other = (sign_study(study, pairs[name][0].encode()) for name in ("first", "second"))
    post(trusting, signed)
    spoilt = Signature(other.signatures[0].key, b"x")
    for headers in ({}, trusting.operator):
        response = post(trusting, SignedStudy(study, [*signed.signatures, spoilt]), **headers)
        assert refusal(response) == ("signature-refused", "signatures")
    assert post(trusting, other).status_code == 200
    assert verify_study(fetched(trusting), [load_public_key(pairs["second"][1])])


def test_signed_form_of_unsigned_study_is_study_unsigned(trusting, study):
    assert refusal(trusting.client.get("/v1/studies/habits/signed"))[0] == "study-unknown"
    trusting.publish(study)
    assert refusal(trusting.client.get("/v1/studies/habits/signed"))[0] == "study-unsigned"
    assert refusal(trusting.client.get("/v1/studies/habits/signed?version=x"))[0] == "parameter-invalid"


def test_a_malformed_envelope_names_its_field(trusting, study, pairs):
    document = json.loads(sign_study(study, pairs["first"][0].encode()).to_json())
    document["signatures"][0]["key"] = "x"
    assert refusal(post(trusting, json.dumps(document))) == ("study-invalid", "signatures[0].key")
    document = json.loads(sign_study(study, pairs["first"][0].encode()).to_json())
    document["study"] = document["study"].replace('"version":1', '"version":0')
    assert refusal(post(trusting, json.dumps(document)))[0] == "study-invalid"
    unsigned = Study.from_json(study.to_json())
    assert refusal(post(trusting, unsigned.to_json()))[0] == "unauthorized"


@pytest.mark.parametrize("text", ["", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "é"])
def test_a_file_without_keys_is_refused(make_harness, tmp_path, text):
    file = tmp_path / "keys.pem"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        make_harness(signing_keys=str(file))
    with raises(InputError, "keys.signing_keys_not_readable"):
        make_harness(signing_keys=str(tmp_path / "nosuch"))
