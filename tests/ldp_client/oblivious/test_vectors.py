"""The bytes of the RFCs: HPKE with its exporter, and oblivious HTTP from its key to its answer."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey, KEMKeyPair

from ldp_client.documents.errors import UsageError
from ldp_client.oblivious import encapsulation
from ldp_client.oblivious.binary_http import Answer, BinaryError, Request, number
from ldp_client.oblivious.encapsulation import (
    EncapsulationError,
    decapsulate,
    encapsulate,
    read_configuration,
)
from tests.kit.errors import raises

FOLDER = Path(__file__).parents[2] / "golden" / "rfc"


def read(name):
    """A file of vectors, its hexadecimal digits as bytes."""
    found = json.loads((FOLDER / name).read_text())
    return {key: bytes.fromhex(text) for key, text in found.items() if key != "source"}


APPENDIX = read("rfc9458_appendix_a.json")


def ephemeral():
    private = X25519PrivateKey.from_private_bytes(APPENDIX["ephemeral_secret_key"])
    keys = (private, X25519PublicKey.from_public_bytes(APPENDIX["ephemeral_public_key"]))
    return KEMKeyPair(*[KEMKey.from_pyca_cryptography_key(key) for key in keys])


def gateway_key():
    return X25519PrivateKey.from_private_bytes(APPENDIX["gateway_secret_key"])


def asked():
    number, public_key = read_configuration(b64encode(APPENDIX["key_config"]).decode())
    return encapsulate(number, public_key, APPENDIX["request_bhttp"], ephemeral())


def test_hpke_library_matches_rfc_9180_vectors():
    vector = json.loads((FOLDER / "rfc9180_exporter.json").read_text())
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["skRm"]))
    parts = [bytes.fromhex(vector[name]) for name in ("enc", "info")]
    recipient = KEMKey.from_pyca_cryptography_key(key)
    context = suite.create_recipient_context(parts[0], recipient, info=parts[1])
    for one in vector["encryptions"]:
        opened = context.open(bytes.fromhex(one["ct"]), bytes.fromhex(one["aad"]))
        assert opened.hex() == one["pt"]
    assert len(vector["exports"]) == 3
    for one in vector["exports"]:
        exported = context.export(bytes.fromhex(one["exporter_context"]), one["L"])
        assert exported.hex() == one["exported_value"]


def test_request_matches_the_rfc_appendix():
    assert asked().message == APPENDIX["encapsulated_request"]


def test_gateway_answer_matches_the_rfc_appendix():
    received = decapsulate(gateway_key(), APPENDIX["encapsulated_request"])
    assert received.content == APPENDIX["request_bhttp"]
    nonce = APPENDIX["salt"][-16:]
    answer = received.answer(APPENDIX["response_bhttp"], nonce)
    assert answer == APPENDIX["encapsulated_response"]
    assert asked().open(answer) == APPENDIX["response_bhttp"]


def test_key_configuration_starts_with_the_stated_key():
    raw = gateway_key().public_key().public_bytes_raw()
    # The appendix's gateway offers ChaCha20-Poly1305 too.
    assert encapsulation.configuration(1, raw)[:35] == APPENDIX["key_config"][:35]
    assert read_configuration(b64encode(encapsulation.configuration(7, raw)).decode()) == (7, raw)


POINT = "ab" * 32
WRONG_CONFIGURATIONS = {
    "another KEM": f"010021{POINT}000400010001",
    "another suite": f"010020{POINT}000400010002",
    "suites longer than stated": f"010020{POINT}00040001000100010001",
    "suites shorter than stated": f"010020{POINT}000800010001",
    "half a suite": f"010020{POINT}0006000100010001",
    "the suite across two suites": f"010020{POINT}0008000000010001ffff",
    "no suite": f"010020{POINT}0000",
    "two configurations": f"010020{POINT}000400010001" * 2,
    "cut": "010020ffff",
    "empty": "",
}


@pytest.mark.parametrize("digits", WRONG_CONFIGURATIONS.values(), ids=WRONG_CONFIGURATIONS)
def test_wrong_key_configurations_are_rejected(digits):
    with raises(UsageError, "device.relay_configuration"):
        read_configuration(b64encode(bytes.fromhex(digits)).decode())


def test_binary_http_messages_match_the_rfc_appendix():
    """The appendix's request omits the empty last parts, which the RFC allows."""
    request = Request.decode(APPENDIX["request_bhttp"])
    assert (request.method, request.authority, request.path) == ("GET", "example.com", "/")
    assert request.encode().rstrip(b"\0") == APPENDIX["request_bhttp"].rstrip(b"\0")
    answer = Answer.decode(APPENDIX["response_bhttp"])
    assert (answer.status, answer.fields, answer.content) == (200, [], b"")
    assert answer.encode()[:3] == APPENDIX["response_bhttp"]


@pytest.mark.parametrize("place", [0, 3, 20, 39, -1])
def test_message_with_a_changed_bit_is_not_opened(place):
    changed = bytearray(APPENDIX["encapsulated_request"])
    changed[place] ^= 1
    with pytest.raises(EncapsulationError):
        decapsulate(gateway_key(), bytes(changed))
    answer = bytearray(APPENDIX["encapsulated_response"])
    answer[place % len(answer)] ^= 1
    with pytest.raises(EncapsulationError):
        asked().open(bytes(answer))


@pytest.mark.parametrize("length", [0, 7, 39, 70])
def test_truncated_message_is_not_opened(length):
    with pytest.raises(EncapsulationError):
        decapsulate(gateway_key(), APPENDIX["encapsulated_request"][:length])
    with pytest.raises(EncapsulationError):
        asked().open(APPENDIX["encapsulated_response"][: length % 35])


def test_low_order_point_is_rejected():
    message = APPENDIX["encapsulated_request"]
    with pytest.raises(EncapsulationError):
        decapsulate(gateway_key(), message[:7] + bytes(32) + message[39:])


@pytest.mark.parametrize(
    ("value", "length"), [(63, 1), (64, 2), (16383, 2), (16384, 4), ((1 << 30) - 1, 4), (1 << 30, 8)]
)
def test_numbers_are_encoded_as_quic_integers(value, length):
    assert len(number(value)) == length
    with pytest.raises(BinaryError):
        number(1 << 62)
