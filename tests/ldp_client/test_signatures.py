"""Signed studies: good signatures of two other implementations, and forgeries."""

import hashlib
import json
import subprocess

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from ldp_client.core.public_keys import RSA_EXPONENT, PublicKey, encoded, is_signed_by_rsa
from ldp_client.device.arguments import load_public_key
from ldp_client.device.policy import verify_study
from ldp_client.documents.errors import InputError, RefusedError, StudyError
from ldp_client.documents.signed import Signature, SignedStudy
from ldp_client.files.signing import new_key, sign_study
from ldpkit import cli
from schemas import Study
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))
OTHER = Study(studies.document(studies.YES_NO, title="Another title"))


@pytest.fixture(scope="module")
def pair():
    return new_key()


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(RSA_EXPONENT, 3072)


def public_pem(private):
    return (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def value_of(private):
    return private.public_key().public_numbers().n.to_bytes(private.key_size // 8, "big")


def test_signed_study_round_trips_and_is_verified(pair):
    private, public = pair
    signed = SignedStudy.from_json(sign_study(STUDY, private.encode()).to_json())
    key = PublicKey.from_pem(public)
    assert signed.study == STUDY
    assert verify_study(signed, [PublicKey.from_pem(new_key()[1]), key]) == [key]


@pytest.mark.needs("openssl")
def test_a_key_id_is_the_digest_of_its_der(pair, tmp_path):
    (tmp_path / "public.pem").write_text(pair[1])
    command = ["openssl", "pkey", "-pubin", "-in", str(tmp_path / "public.pem"), "-outform", "DER"]
    der = subprocess.run(command, check=True, capture_output=True).stdout
    assert load_public_key(tmp_path / "public.pem").id == hashlib.sha256(der).hexdigest()


@pytest.mark.needs("openssl")
def test_openssl_signature_is_verified(tmp_path):
    (tmp_path / "study.json").write_bytes(STUDY.canonical())

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=tmp_path, capture_output=True)

    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072", "-out", "key.pem")
    openssl("pkey", "-in", "key.pem", "-pubout", "-out", "public.pem")
    openssl("dgst", "-sha256", "-sign", "key.pem", "-out", "signature", "study.json")
    key = load_public_key(str(tmp_path / "public.pem"))
    signature = Signature(key.id, (tmp_path / "signature").read_bytes())
    assert verify_study(SignedStudy(STUDY, [signature]), [key]) == [key]
    with raises(RefusedError, "device.wrong_signature"):
        verify_study(SignedStudy(OTHER, [signature]), [key])


def test_altered_signatures_are_refused(pair):
    private, public = pair
    key = PublicKey.from_pem(public)
    (good,) = sign_study(STUDY, private.encode()).signatures
    altered = [good.value[:-1], good.value + b"\0", b"", b"\0" * len(good.value), b"\xff" * len(good.value)]
    altered += [bytes([good.value[0] ^ 1]) + good.value[1:], good.value[:-1] + bytes([good.value[-1] ^ 128])]
    for value in altered:
        with raises(RefusedError, "device.wrong_signature"):
            verify_study(SignedStudy(STUDY, [Signature(key.id, value)]), [key])


def test_wrong_signature_of_one_key_does_not_hide_a_right_one(pair):
    """Of two pinned keys one signed another version; the study is good under the other key."""
    private, public = pair
    other_private, other_public = new_key()
    wrong = Signature(
        PublicKey.from_pem(other_public).id, sign_study(OTHER, other_private.encode()).signatures[0].value
    )
    signed = SignedStudy(STUDY, [wrong, *sign_study(STUDY, private.encode()).signatures])
    keys = [PublicKey.from_pem(other_public), PublicKey.from_pem(public)]
    assert verify_study(signed, keys) == keys[1:]
    with raises(RefusedError, "device.wrong_signature"):
        verify_study(SignedStudy(STUDY, [wrong]), keys)


def test_a_strangers_signature_does_not_count(pair):
    signed = sign_study(STUDY, pair[0].encode())
    with raises(RefusedError, "device.unsigned"):
        verify_study(signed, [PublicKey.from_pem(new_key()[1])])
    claimed = Signature(PublicKey.from_pem(new_key()[1]).id, signed.signatures[0].value)
    with raises(RefusedError, "device.unsigned"):
        verify_study(SignedStudy(STUDY, [claimed]), [PublicKey.from_pem(pair[1])])


def test_other_paddings_and_hashes_are_refused(rsa_key):
    modulus, message = value_of(rsa_key), STUDY.canonical()
    good = rsa_key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    assert is_signed_by_rsa(message, good, modulus)
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    wrong = [rsa_key.sign(message, padding.PKCS1v15(), kind) for kind in (hashes.SHA1(), hashes.SHA512())]
    wrong.append(rsa_key.sign(message, pss, hashes.SHA256()))
    assert not any(is_signed_by_rsa(message, value, modulus) for value in wrong)


def raw_signature(private, block):
    numbers = private.private_numbers()
    return pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n).to_bytes(384, "big")


def test_blocks_that_lenient_parsers_take_are_refused(rsa_key):
    """Made with the private key: short padding with a tail, another type, no NULL, zeros for ones."""
    message, modulus = STUDY.canonical(), value_of(rsa_key)
    good = encoded(message, 384)
    info = good[-51:]
    without_null = bytes.fromhex("302f300b0609608648016503040201" + "0420") + info[-32:]
    blocks = [
        b"\x00\x01" + b"\xff" * 8 + b"\x00" + info + b"\x00" * (384 - 11 - 51),
        b"\x00\x02" + good[2:],
        b"\x00\x01" + b"\x01" * (384 - 54) + b"\x00" + info,
        b"\x00\x01" + b"\xff" * (384 - 3 - len(without_null)) + b"\x00" + without_null,
    ]
    assert is_signed_by_rsa(message, raw_signature(rsa_key, good), modulus)
    for block in blocks:
        assert len(block) == 384
        assert not is_signed_by_rsa(message, raw_signature(rsa_key, block), modulus)


def cube_root_above(number):
    low, high = 0, 1 << (number.bit_length() // 3 + 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**3 < number else (low, middle)
    return low


def test_cube_root_forgery_is_rejected(rsa_key):
    """Bleichenbacher 2006: with exponent 3 and a parser that ignores the tail, no key is needed."""
    message = STUDY.canonical()
    start = b"\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\x00" + encoded(message, 384)[-51:]
    forged = cube_root_above(int.from_bytes(start + b"\x00" * (384 - len(start)), "big"))
    assert (forged**3).to_bytes(384, "big").startswith(start)
    assert not is_signed_by_rsa(message, forged.to_bytes(384, "big"), value_of(rsa_key))


def test_a_signature_above_the_modulus_is_refused(rsa_key):
    """s + n verifies too in a careless implementation: signatures would not be unique."""
    message, modulus = STUDY.canonical(), value_of(rsa_key)
    good = rsa_key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    above = int.from_bytes(good, "big") + int.from_bytes(modulus, "big")
    if above < 1 << 3072:
        assert not is_signed_by_rsa(message, above.to_bytes(384, "big"), modulus)
    assert not is_signed_by_rsa(message, above.to_bytes(385, "big"), modulus)


@pytest.mark.parametrize(
    "make",
    [
        lambda: public_pem(rsa.generate_private_key(3, 3072)),
        lambda: public_pem(rsa.generate_private_key(65537, 2048)),
        lambda: public_pem(ec.generate_private_key(ec.SECP256R1())),
        lambda: public_pem(ed25519.Ed25519PrivateKey.generate()),
        lambda: new_key()[0],
        lambda: new_key()[1] * 2,
        lambda: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        lambda: "-----BEGIN PUBLIC KEY-----",
        lambda: "no-such-file.pem",
    ],
)
def test_weak_or_invalid_keys_cannot_be_pinned(make):
    with pytest.raises(InputError):
        load_public_key(make())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"format": "ldpkit.signed-study/2"}, "format"),
        ({"signatures": []}, "signatures"),
        ({"study": " " + STUDY.to_json()}, "study"),
        ({"study": "{}"}, "format"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_envelopes_name_their_field(change, field):
    document = json.loads(sign_study(STUDY, new_key()[0].encode()).to_json())
    with pytest.raises(StudyError) as caught:
        SignedStudy.from_json(json.dumps({**document, **change}))
    assert caught.value.field == field
    other = {**document["signatures"][0], "algorithm": "ed25519"}
    with raises(StudyError, "study.invalid", field="signatures[0].algorithm"):
        SignedStudy.from_json(json.dumps({**document, "signatures": [other]}))
    bad = {**document["signatures"][0], "signature": "AA"}
    with raises(StudyError, "study.invalid", "base64", field="signatures[0].signature"):
        SignedStudy.from_json(json.dumps({**document, "signatures": [bad]}))
    with raises(StudyError, "study.invalid", bad["key"], field="signatures[1].key"):
        SignedStudy.from_json(json.dumps({**document, "signatures": document["signatures"] * 2}))


def test_key_and_sign_commands_work(tmp_path, capsys):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    key, signed = str(tmp_path / "key.pem"), str(tmp_path / "signed.json")
    assert cli.main(["keygen", "--out", key]) == 0
    assert (tmp_path / "key.pem").stat().st_mode & 0o77 == 0
    assert cli.main(["sign", str(tmp_path / "study.json"), "--signing-key", key, "--out", signed]) == 0
    public = load_public_key(tmp_path / "key.pub.pem")
    assert public.id in capsys.readouterr().out
    verify_study(SignedStudy.from_json((tmp_path / "signed.json").read_text()), [public])
    assert cli.main(["keygen", "--out", key]) == 3
    assert "exists" in capsys.readouterr().err.lower()
    (tmp_path / "key.pem").unlink()
    assert cli.main(["keygen", "--out", key]) == 3
    assert "exists" in capsys.readouterr().err.lower()
    assert not (tmp_path / "key.pem").exists()
    study = str(tmp_path / "study.json")
    assert cli.main(["sign", study, "--signing-key", signed, "--out", signed]) == 3
    (tmp_path / "linked.json").symlink_to(study)
    key = str(tmp_path / "other.pem")
    assert cli.main(["keygen", "--out", key]) == 0
    for out in (study, str(tmp_path / "linked.json")):
        assert cli.main(["sign", study, "--signing-key", key, "--out", out]) == 3
        assert "would replace" in capsys.readouterr().err
    assert (tmp_path / "study.json").read_text() == STUDY.to_json()
