"""Make keys and signatures. Needs the package `cryptography`. Devices only verify."""

from ldp_client.core.public_keys import RSA_BITS, RSA_EXPONENT, PublicKey
from ldp_client.documents.errors import InputError, MissingExtraError
from ldp_client.documents.signed import Signature, SignedStudy

try:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256
except ModuleNotFoundError:
    raise MissingExtraError("signing", "cryptography") from None

from ldp_client.documents.study import Study


def new_key() -> tuple[str, str]:
    """Return a fresh RSA key pair: (private PEM as unencrypted PKCS#8, public PEM)."""
    return _pems(rsa.generate_private_key(RSA_EXPONENT, RSA_BITS))


def sign_study(study: Study, private_pem: bytes) -> SignedStudy:
    """Sign a study with a private key in PEM. Raises InputError for a key of another kind."""
    try:
        private = serialization.load_pem_private_key(private_pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(
            "the signing key is not a private key in PEM without a password", code="files.signing_key"
        ) from None
    if not isinstance(private, rsa.RSAPrivateKey):
        raise InputError("the signing key must be RSA", code="files.signing_key_kind")
    key = PublicKey.from_pem(_pems(private)[1])
    value = private.sign(study.canonical(), padding.PKCS1v15(), SHA256())
    return SignedStudy(study, [Signature(key.id, value)])


def _pems(private: rsa.RSAPrivateKey) -> tuple[str, str]:
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return secret.decode(), public.decode()
