"""Signed studies: good signatures of two other implementations, and forgeries."""

import hashlib
import json

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from ldp_client.core.public_keys import RSA_EXPONENT, PublicKey, encoded, is_signed_by_rsa
from ldp_client.device.arguments import load_public_key
from ldp_client.device.policy import verify_study
from ldp_client.documents.errors import InputError, RefusedError, StudyError
from ldp_client.documents.signed import Signature, SignedStudy
from ldpkit import cli
from schemas import Study
from schemas.signing import sign_study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, signing_pair

OTHER = Study(studies.document(studies.YES_NO, title="Another title"))
MESSAGE = STUDY.canonical()


@pytest.fixture(scope="module")
def rsa_key():
    return serialization.load_pem_private_key(signing_pair()[0].encode(), None)


@pytest.fixture(scope="module")
def modulus(rsa_key):
    return rsa_key.public_key().public_numbers().n.to_bytes(384, "big")


def signed_by(number, study=STUDY):
    private, public = signing_pair(number)
    return sign_study(study, private.encode()), PublicKey.from_pem(public)


def test_signed_study_round_trips_and_is_verified():
    signed, key = signed_by(0)
    signed = SignedStudy.from_json(signed.to_json())
    assert signed.study == STUDY
    verify_study(signed, [signed_by(1)[1], key])
    der = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    loaded = serialization.load_pem_public_key(signing_pair(0)[1].encode())
    assert key.id == hashlib.sha256(loaded.public_bytes(*der)).hexdigest()


@pytest.mark.attack(16)
def test_altered_signatures_are_refused():
    """Someone alters a study's signature, or claims a stranger's key for it."""
    signed, key = signed_by(0)
    (good,) = signed.signatures
    altered = [good.value[:-1], good.value + b"\0", b"", b"\0" * len(good.value), b"\xff" * len(good.value)]
    altered += [bytes([good.value[0] ^ 1]) + good.value[1:], good.value[:-1] + bytes([good.value[-1] ^ 128])]
    for value in altered:
        with raises(RefusedError, "device.wrong_signature"):
            verify_study(SignedStudy(STUDY, [Signature(key.id, value)]), [key])
    stranger = signed_by(1)[1]
    claimed = SignedStudy(STUDY, [Signature(stranger.id, good.value)])
    for study, pinned in ((signed, stranger), (claimed, key)):
        with raises(RefusedError, "device.unsigned"):
            verify_study(study, [pinned])


def test_wrong_signature_of_one_key_does_not_hide_a_right_one():
    """Of two pinned keys one signed another version; the study is good under the other key."""
    (right,), key = signed_by(0)[0].signatures, signed_by(0)[1]
    (wrong,), other = signed_by(1, OTHER)[0].signatures, signed_by(1)[1]
    verify_study(SignedStudy(STUDY, [wrong, right]), [other, key])
    with raises(RefusedError, "device.wrong_signature"):
        verify_study(SignedStudy(STUDY, [wrong]), [other, key])


def raw_signature(private, block):
    numbers = private.private_numbers()
    return pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n).to_bytes(384, "big")


@pytest.mark.attack(16)
def test_other_paddings_hashes_and_blocks_are_refused(rsa_key, modulus):
    """Forgeries that lenient parsers accept: short padding with a tail, another type, no NULL."""
    assert is_signed_by_rsa(MESSAGE, rsa_key.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA256()), modulus)
    wrong = [rsa_key.sign(MESSAGE, padding.PKCS1v15(), kind) for kind in (hashes.SHA1(), hashes.SHA512())]
    wrong.append(rsa_key.sign(MESSAGE, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()))
    good = encoded(MESSAGE, 384)
    info = good[-51:]
    without_null = bytes.fromhex("302f300b0609608648016503040201" + "0420") + info[-32:]
    blocks = [
        b"\x00\x01" + b"\xff" * 8 + b"\x00" + info + b"\x00" * (384 - 11 - 51),
        b"\x00\x02" + good[2:],
        b"\x00\x01" + b"\x01" * (384 - 54) + b"\x00" + info,
        b"\x00\x01" + b"\xff" * (384 - 3 - len(without_null)) + b"\x00" + without_null,
    ]
    assert is_signed_by_rsa(MESSAGE, raw_signature(rsa_key, good), modulus)
    wrong += [raw_signature(rsa_key, block) for block in blocks]
    assert not any(is_signed_by_rsa(MESSAGE, value, modulus) for value in wrong)


def test_a_signature_above_the_modulus_is_refused(rsa_key, modulus):
    """s + n verifies too in a careless implementation: signatures would not be unique."""
    good = rsa_key.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA256())
    above = int.from_bytes(good, "big") + int.from_bytes(modulus, "big")
    if above < 1 << 3072:
        assert not is_signed_by_rsa(MESSAGE, above.to_bytes(384, "big"), modulus)
    assert not is_signed_by_rsa(MESSAGE, above.to_bytes(385, "big"), modulus)


def public_pem(key):
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


@pytest.mark.attack(16)
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: public_pem(rsa.RSAPublicNumbers(3, (1 << 3071) + 1)), "core.key_kind"),
        (lambda: public_pem(rsa.RSAPublicNumbers(RSA_EXPONENT, (1 << 2047) + 1)), "core.key_kind"),
        (lambda: public_pem(ec.generate_private_key(ec.SECP256R1())), "core.key_kind"),
        (lambda: public_pem(ed25519.Ed25519PrivateKey.generate()), "core.key_kind"),
        (lambda: signing_pair()[0], "core.key_block"),
        (lambda: signing_pair()[1] * 2, "core.key_block"),
        (lambda: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "core.key_kind"),
        (lambda: "-----BEGIN PUBLIC KEY-----", "core.key_block"),
    ],
)
def test_weak_or_invalid_keys_cannot_be_pinned(make, code):
    """An app pins a key that is easy to forge for."""
    with raises(InputError, code):
        load_public_key(make())


def test_bad_envelopes_name_their_field():
    document = json.loads(signed_by(0)[0].to_json())
    (signature,) = document["signatures"]
    for field, change in {
        "format": {"format": "ldpkit.signed-study/2"},
        "signatures": {"signatures": []},
        "study": {"study": " " + STUDY.to_json()},
        "signatures[0].algorithm": {"signatures": [{**signature, "algorithm": "ed25519"}]},
        "signatures[0].signature": {"signatures": [{**signature, "signature": "AA"}]},
        "signatures[1].key": {"signatures": [signature] * 2},
    }.items():
        with pytest.raises(StudyError) as caught:
            SignedStudy.from_json(json.dumps({**document, **change}))
        assert caught.value.field == field


def test_key_and_sign_commands_replace_no_file(tmp_path, capsys):
    study, key, signed = (tmp_path / name for name in ("study.json", "key.pem", "signed.json"))
    study.write_text(STUDY.to_json())

    def run(*words):
        return cli.main(list(map(str, words)))

    assert run("keygen", "--out", key) == 0
    assert key.stat().st_mode & 0o77 == 0
    assert run("sign", study, "--signing-key", key, "--out", signed) == 0
    public = load_public_key(tmp_path / "key.pub.pem")
    assert public.id in capsys.readouterr().out
    verify_study(SignedStudy.from_json(signed.read_text()), [public])
    assert run("sign", study, "--signing-key", key, "--out", study) == 3
    assert run("sign", study, "--signing-key", signed, "--out", tmp_path / "other.json") == 3
    assert study.read_text() == STUDY.to_json()
    key.unlink()
    # The public key is still there.
    assert run("keygen", "--out", key) == 3
    assert not key.exists()
