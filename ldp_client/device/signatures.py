"""Whether a study is signed by a key that the device trusts."""

from ldp_client.core.public_keys import PublicKey, is_signed_by_rsa
from ldp_client.documents.errors import InputError, MissingExtraError, RefusedError
from ldp_client.documents.signed import RSA

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ldp_client.documents.signed import Signature, SignedStudy


def load_public_key(text_or_path: "str | os.PathLike[str]") -> PublicKey:
    """A key from its PEM text, or from a file that holds it. Raises InputError."""
    if isinstance(text_or_path, str) and "-----BEGIN" in text_or_path:
        return PublicKey.from_pem(text_or_path)
    try:
        with open(text_or_path, encoding="ascii") as file:
            return PublicKey.from_pem(file.read())
    except OSError as error:
        raise InputError(f"cannot read the key {text_or_path}: {error.strerror}") from None
    except UnicodeError:
        raise InputError(f"the key {text_or_path} is not PEM text") from None


def verify_study(signed: "SignedStudy", keys: "Sequence[PublicKey]") -> PublicKey:
    """One of the keys whose signature the study carries, once that was verified.

    Signatures of other keys do not count; RSA's are looked at first, since they need no package.
    Raises RefusedError where there is none or it is wrong, MissingExtraError where only an Ed25519
    signature is there and the package `cryptography` is not.
    """
    trusted = {key.id: key for key in keys}
    for signature in sorted(signed.signatures, key=lambda one: one.algorithm != RSA):
        if signature.key in trusted:
            return _verified(signed, signature, trusted[signature.key])
    raise RefusedError(f"study {signed.study.id} is not signed by a key that this device trusts")


def _verified(signed: "SignedStudy", signature: "Signature", key: PublicKey) -> PublicKey:
    verify = is_signed_by_rsa if key.algorithm == RSA else is_signed_by_ed25519
    good = signature.algorithm == key.algorithm and verify(
        signed.study.canonical(), signature.value, key.value
    )
    if not good:
        raise RefusedError(f"study {signed.study.id}: the signature of key {key.id[:16]} is wrong")
    return key


def is_signed_by_ed25519(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether an Ed25519 key (RFC 8032) signed the message. Raises MissingExtraError."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ModuleNotFoundError:
        raise MissingExtraError("signing", "cryptography") from None
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True
