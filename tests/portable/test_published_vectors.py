"""Vectors of others against what devices use: hostile signatures, sealing, canonical JSON."""

import hashlib
import hmac
import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from ldp_client.core.public_keys import PublicKey, is_signed_by_rsa
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import DocumentError
from ldp_client.secure_sum.messages import seal
from tests.portable.platforms import JAVASCRIPT, run_micropython

GOLDEN = Path(__file__).parents[1] / "golden"
WYCHEPROOF = GOLDEN / "wycheproof"
ON_MICROPYTHON = """
import json
from binascii import unhexlify
from ldp_client.core.public_keys import PublicKey, is_signed_by_rsa

for group in json.load(open("/data/rsa_pkcs1_3072_sha256.json"))["groups"]:
    key = PublicKey.from_pem(group["pem"])
    for number, message, signature, result in group["tests"]:
        if is_signed_by_rsa(unhexlify(message), unhexlify(signature), key.value):
            print(number)
"""


def groups(name):
    return json.loads((WYCHEPROOF / f"{name}.json").read_text())["groups"]


def taken_and_valid(name, is_signed):
    """Return the tests whose signature is accepted, the valid tests, and the number of tests."""
    taken, valid, count = [], [], 0
    for group in groups(name):
        key = PublicKey.from_pem(group["pem"])
        for number, message, signature, result in group["tests"]:
            count += 1
            valid += [number] if result == "valid" else []
            if is_signed(bytes.fromhex(message), bytes.fromhex(signature), key.value):
                taken.append(number)
    return taken, valid, count


def test_rsa_accepts_only_valid_signatures():
    """One of the 258 is "acceptable", an encoding without its NULL: it is rejected too."""
    taken, valid, count = taken_and_valid("rsa_pkcs1_3072_sha256", is_signed_by_rsa)
    assert taken == valid
    assert count == 258
    assert 0 < len(valid) < count


def test_verification_of_the_end_only_is_detected():
    """The fault of 2006: padding that is not read as a whole lets a forged signature in."""

    def careless(message, signature, modulus):
        power = pow(int.from_bytes(signature, "big"), 65537, int.from_bytes(modulus, "big"))
        return power.to_bytes(len(modulus), "big").endswith(hashlib.sha256(message).digest())

    taken, valid, _ = taken_and_valid("rsa_pkcs1_3072_sha256", careless)
    assert set(valid) < set(taken)


def test_micropython_takes_the_same_rsa_signatures():
    taken = run_micropython(WYCHEPROOF, ON_MICROPYTHON)
    assert [int(number) for number in taken.split()] == [
        number
        for group in groups("rsa_pkcs1_3072_sha256")
        for number, _, _, result in group["tests"]
        if result == "valid"
    ]


def labeled_extract(suite, salt, label, key):
    return hmac.digest(salt, b"HPKE-v1" + suite + label + key, "sha256")


def labeled_expand(suite, secret, label, info, size):
    labeled = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(secret, labeled + b"\1", "sha256")[:size]


def opened(secret_key, info, sealed, aad):
    """RFC 9180, sections 4.1 and 5.1, in mode base with the suite of shares: the first message."""
    private, sent = X25519PrivateKey.from_private_bytes(secret_key), sealed[:32]
    shared = private.exchange(X25519PublicKey.from_public_bytes(sent))
    kem = b"KEM" + bytes.fromhex("0020")
    key = labeled_extract(kem, b"", b"eae_prk", shared)
    both = sent + private.public_key().public_bytes_raw()
    shared = labeled_expand(kem, key, b"shared_secret", both, 32)
    suite = b"HPKE" + bytes.fromhex("002000010003")
    context = b"\0" + labeled_extract(suite, b"", b"psk_id_hash", b"")
    context += labeled_extract(suite, b"", b"info_hash", info)
    secret = labeled_extract(suite, shared, b"secret", b"")
    cipher = ChaCha20Poly1305(labeled_expand(suite, secret, b"key", context, 32))
    return cipher.decrypt(labeled_expand(suite, secret, b"base_nonce", context, 12), sealed[32:], aad)


def test_shares_are_sealed_by_rfc_9180():
    """The code that opens the RFC's message opens a share, and only with the right context."""
    vector = json.loads((GOLDEN / "rfc" / "hpke.json").read_text())
    info, sent, public, secret, plain, aad, cipher = (
        bytes.fromhex(vector[name]) for name in ("info", "enc", "pkRm", "skRm", "pt", "aad", "ct")
    )
    assert opened(secret, info, sent + cipher, aad) == plain
    sealed = seal(public, info, plain)
    assert opened(secret, info, sealed, b"") == plain
    with pytest.raises(InvalidTag):
        opened(secret, info + b"\0", sealed, b"")


# RFC 8785, section 3.2.2: the string of its example, and what becomes of it.
WRITTEN = r'{"string":"\u20ac$\u000F\u000aA' + "'" + r'\u0042\u0022\u005c\\\"\/","literals":[true,false]}'
CANONICAL = r'{"literals":[true,false],"string":"€$\u000f\nA' + "'" + r'B\"\\\\\"/"}'


def test_canonical_json_of_rfc_8785():
    assert canonical_json(parse_json(WRITTEN, DocumentError, 1000)) == CANONICAL


def test_javascript_writes_the_same_canonical_json(tmp_path):
    from tests.portable import npm

    script = tmp_path / "canonical.mjs"
    script.write_text(
        f'import {{ canonicalJson, parseJson }} from "{(JAVASCRIPT / "json.js").as_uri()}";\n'
        "process.stdout.write(canonicalJson(parseJson(process.argv[2])));\n"
    )
    assert npm.node(script, WRITTEN) == CANONICAL
