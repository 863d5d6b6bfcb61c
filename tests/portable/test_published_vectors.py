"""Vectors of others against what devices use: hostile signatures, sealing, canonical JSON."""

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
from ldp_client.secure_sum import seal

GOLDEN = Path(__file__).parents[1] / "golden"
WYCHEPROOF = GOLDEN / "wycheproof"


def groups(name):
    return json.loads((WYCHEPROOF / f"{name}.json").read_text())["groups"]


def test_rsa_accepts_only_valid_signatures():
    """One of the 258 is "acceptable", an encoding without its NULL: it is rejected too."""
    count = 0
    for group in groups("rsa_pkcs1_3072_sha256"):
        key = PublicKey.from_pem(group["pem"])
        for number, message, signature, result in group["tests"]:
            count += 1
            taken = is_signed_by_rsa(bytes.fromhex(message), bytes.fromhex(signature), key.value)
            assert taken == (result == "valid"), number
    assert count == 258


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
