"""Blind signatures and tokens: the RFCs' own vectors, and what a signer or an attacker might send instead."""

import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ldp_client.core import tokens
from ldp_client.core.blind_rsa import blind, draw_factor, encode, finalize, inverse, is_signed
from ldp_client.documents.channel import SPKI_HEAD, SPKI_TAIL, TokenKey

RFC = Path(__file__).parents[2] / "golden" / "rfc"
BLIND = json.loads((RFC / "rfc9474.json").read_text())
ISSUED = json.loads((RFC / "rfc9578_public.json").read_text())
HEADERS = json.loads((RFC / "rfc9577_header.json").read_text())


def bytes_of(vector, name):
    return bytes.fromhex(vector[name].removeprefix("0x"))


def number(content):
    return int.from_bytes(content, "big")


NUMBERS = rsa.generate_private_key(65537, 2048).private_numbers()
N = NUMBERS.public_numbers.n
MODULUS = N.to_bytes(256, "big")


def sign(sent):
    return pow(number(sent), NUMBERS.d, N).to_bytes(256, "big")


@pytest.mark.parametrize("vector", BLIND, ids=lambda vector: vector["name"])
def test_vectors_of_rfc_9474(vector):
    modulus, message = bytes_of(vector, "n"), bytes_of(vector, "input_msg")
    factor = inverse(number(bytes_of(vector, "inv")), modulus, os.urandom)
    blinded = blind(modulus, message, bytes_of(vector, "salt"), factor)
    assert blinded == bytes_of(vector, "blinded_msg")
    if int(vector["sLen"], 16) != 48:
        assert not is_signed(modulus, message, bytes_of(vector, "sig"))
        return
    signature = finalize(modulus, message, bytes_of(vector, "blind_sig"), factor, os.urandom)
    assert signature == bytes_of(vector, "sig")
    assert is_signed(modulus, message, signature)
    assert not is_signed(modulus, message + b" ", signature)


@pytest.mark.parametrize("vector", ISSUED, ids=range(len(ISSUED)))
def test_vectors_of_rfc_9578(vector):
    key = TokenKey({"key": bytes_of(vector, "pkS"), "public": None})
    challenge = bytes_of(vector, "token_challenge")
    factor = number(bytes_of(vector, "blind"))
    asking = tokens.Asking(key, challenge, bytes_of(vector, "nonce"), bytes_of(vector, "salt"), factor)
    assert asking.body == bytes_of(vector, "token_request")
    token = asking.token(bytes_of(vector, "token_response"), os.urandom)
    assert token == bytes_of(vector, "token")
    assert tokens.token_in(tokens.header_of(token)) == token


@pytest.mark.parametrize("vector", HEADERS, ids=range(len(HEADERS)))
def test_vectors_of_rfc_9577(vector):
    challenge, spki = bytes_of(vector, "token-challenge-0"), bytes_of(vector, "token-key-0")
    assert tokens.challenge_header(challenge, spki) in vector["WWW-Authenticate"].replace("\n", "")


def test_inverse_matches_the_platforms():
    for one in (1, 2, N - 1, draw_factor(MODULUS, os.urandom)):
        assert inverse(one, MODULUS, os.urandom) == pow(one, -1, N)
    with pytest.raises(ValueError, match="256"):
        inverse(NUMBERS.p, MODULUS, os.urandom)


FACTOR = draw_factor(MODULUS, os.urandom)
SIGNED = sign(blind(MODULUS, b"message", bytes(48), FACTOR))
# What a signer that lies may answer.
LIES = {
    "nothing": b"",
    "one byte more": b"\0" + SIGNED,
    "the modulus": MODULUS,
    "the same modulo n": (number(SIGNED) + N).to_bytes(257, "big"),
    "zero": bytes(256),
    "one": bytes(255) + b"\1",
    "minus itself": (N - number(SIGNED)).to_bytes(256, "big"),
    "another message's": sign(blind(MODULUS, b"massage", bytes(48), FACTOR)),
    "the blinded message": blind(MODULUS, b"message", bytes(48), FACTOR),
    "a bit flipped": bytes([SIGNED[0], SIGNED[1] ^ 1]) + SIGNED[2:],
}


@pytest.mark.attack(10)
@pytest.mark.parametrize("answer", LIES.values(), ids=LIES)
def test_wrong_blind_signature_is_rejected(answer):
    """An issuer answers with a signature that the collector would reject."""
    assert finalize(MODULUS, b"message", SIGNED, FACTOR, os.urandom)
    assert finalize(MODULUS, b"message", answer, FACTOR, os.urandom) is None


def test_other_encodings_are_rejected():
    """One bit is changed by the holder of the private key: only the form is wrong."""
    good = encode(b"message", bytes(48), 2047)
    assert is_signed(MODULUS, b"message", sign(good))
    # The last byte, the hash, the padding, the byte before the salt, and the salt.
    for place in (255, 254, 1, 158, 206):
        wrong = bytearray(good)
        wrong[place] ^= 1
        assert not is_signed(MODULUS, b"message", sign(bytes(wrong))), place


def test_a_modulus_that_shares_a_divisor_blinds_nothing():
    assert blind(MODULUS, b"message", bytes(48), NUMBERS.p) is None
    for factor in (0, N, N + 1):
        assert blind(MODULUS, b"message", bytes(48), factor) is None
    # Every third number shares one with this modulus: of a few messages one encoding does.
    dishonest = (2**2047 + 1).to_bytes(256, "big")
    assert None in [blind(dishonest, bytes([one]), bytes(48), 2) for one in range(20)]
    key = TokenKey({"key": SPKI_HEAD + MODULUS + SPKI_TAIL, "public": None})
    with pytest.raises(ValueError, match="256"):
        tokens.Asking(key, b"challenge", bytes(32), bytes(48), NUMBERS.p)


def test_factors_are_spread_over_all_numbers_below_the_modulus():
    assert draw_factor(MODULUS, bytes) == 1
    largest = draw_factor(MODULUS, lambda size: b"\xff" * size)
    assert 0 < largest < N
    assert draw_factor(MODULUS, lambda size: (N - 2).to_bytes(size, "big")) == N - 1


def test_token_is_read_from_each_spelling_of_a_header():
    for text in ("", "token", 'token="!"', 'nonce="' + "A" * 472 + '"', 'token="' + "A" * 471 + '"'):
        assert tokens.token_in(f"PrivateToken {text}") is None
    for digits in ("A" * 473, "A" * 472 + "===", "+" * 472, "é" * 472):
        assert tokens.token_in(f'PrivateToken token="{digits}"') is None
    assert tokens.token_in("Bearer abc") is None
    token = bytes(range(256)) + bytes(98)
    text = tokens.to_base64url(token)
    for header in (
        f'PrivateToken token="{text}"',
        f"privatetoken  token={text}",
        f'PrivateToken token = "{text.rstrip("=")}"',
        tokens.header_of(token),
    ):
        assert tokens.token_in(header) == token
