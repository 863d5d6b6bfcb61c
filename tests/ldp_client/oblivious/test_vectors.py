"""The bytes of the RFCs: oblivious HTTP from its key to its answer."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from pyhpke import KEMKey, KEMKeyPair

from ldp_client.documents.errors import UsageError
from ldp_client.oblivious import encapsulation
from ldp_client.oblivious.binary_http import Answer, BinaryError, Request, number
from ldp_client.oblivious.encapsulation import decapsulate, encapsulate, read_configuration
from tests.kit.errors import raises

VECTORS = json.loads((Path(__file__).parents[2] / "golden" / "rfc" / "rfc9458_appendix_a.json").read_text())
APPENDIX = {name: bytes.fromhex(digits) for name, digits in VECTORS.items() if name != "source"}


def gateway_key():
    return X25519PrivateKey.from_private_bytes(APPENDIX["gateway_secret_key"])


def asked():
    private = X25519PrivateKey.from_private_bytes(APPENDIX["ephemeral_secret_key"])
    keys = (private, X25519PublicKey.from_public_bytes(APPENDIX["ephemeral_public_key"]))
    ephemeral = KEMKeyPair(*[KEMKey.from_pyca_cryptography_key(key) for key in keys])
    number, public_key = read_configuration(b64encode(APPENDIX["key_config"]).decode())
    return encapsulate(number, public_key, APPENDIX["request_bhttp"], ephemeral)


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
    "the suite across two suites": f"010020{POINT}0008000000010001ffff",
    "two configurations": f"010020{POINT}000400010001" * 2,
    "cut": "010020ffff",
}


@pytest.mark.parametrize("digits", WRONG_CONFIGURATIONS.values(), ids=WRONG_CONFIGURATIONS)
def test_wrong_key_configurations_are_rejected(digits):
    with raises(UsageError, "device.relay_configuration"):
        read_configuration(b64encode(bytes.fromhex(digits)).decode())
    with raises(UsageError, "device.relay_configuration"):
        read_configuration("A")


def test_binary_http_messages_match_the_rfc_appendix():
    """The appendix's request omits the empty last parts, which the RFC allows."""
    request = Request.decode(APPENDIX["request_bhttp"])
    assert (request.method, request.authority, request.path) == ("GET", "example.com", "/")
    assert request.encode().rstrip(b"\0") == APPENDIX["request_bhttp"].rstrip(b"\0")
    answer = Answer.decode(APPENDIX["response_bhttp"])
    assert (answer.status, answer.fields, answer.content) == (200, [], b"")
    assert answer.encode()[:3] == APPENDIX["response_bhttp"]


def flipped(message, place):
    return message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :]


REQUEST, ANSWER = APPENDIX["encapsulated_request"], APPENDIX["encapsulated_response"]
LOW_ORDER = REQUEST[:7] + bytes(32) + REQUEST[39:]


def test_changed_or_truncated_message_is_not_opened():
    for request in (flipped(REQUEST, 3), flipped(REQUEST, 39), REQUEST[:70], b"", LOW_ORDER):
        with pytest.raises(encapsulation.EncapsulationError):
            decapsulate(gateway_key(), request)
    for answer in (flipped(ANSWER, 0), flipped(ANSWER, len(ANSWER) - 1), ANSWER[:31], b""):
        with pytest.raises(encapsulation.EncapsulationError):
            asked().open(answer)


@pytest.mark.parametrize(
    ("value", "length"), [(63, 1), (64, 2), (16383, 2), (16384, 4), ((1 << 30) - 1, 4), (1 << 30, 8)]
)
def test_numbers_are_encoded_as_quic_integers(value, length):
    assert len(number(value)) == length
    with pytest.raises(BinaryError):
        number(1 << 62)
