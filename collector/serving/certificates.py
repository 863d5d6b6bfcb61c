"""A server's own certificate, checked before the server listens."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import read_bytes

HTTP, HTTPS = "http", "https"


@dataclass(frozen=True)
class Certificate:
    """chain: a PEM file, the server's own certificate first. key: its private key in PEM, not encrypted."""

    chain: Path
    key: Path


def certificate_of(chain: str | None, key: str | None) -> Certificate | None:
    """Check and return the certificate in these files. Return None if neither is named.

    Raises:
        UsageError: one is named without the other.
        InputError: they cannot be read, do not fit each other, or are not valid now.
    """
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        raise UsageError(
            "https needs both: --tls-certificate FILE and --tls-key FILE", code="server.certificate_and_key"
        )
    found = Certificate(Path(chain), Path(key))
    _check(found, datetime.now(UTC))
    return found


def _check(certificate: Certificate, now: datetime) -> None:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    try:
        own = load_pem_x509_certificates(read_bytes(certificate.chain))[0]
    except ValueError:
        raise InputError(
            f"{certificate.chain} is no certificate in PEM", code="server.not_a_certificate"
        ) from None
    try:
        key = load_pem_private_key(read_bytes(certificate.key), None)
    except (ValueError, TypeError):
        raise InputError(
            f"{certificate.key} is no private key in PEM without a password", code="server.not_a_private_key"
        ) from None
    if key.public_key() != own.public_key():
        raise InputError(
            f"{certificate.key} is not the key of the first certificate in {certificate.chain}",
            code="server.key_not_of_certificate",
        )
    if not own.not_valid_before_utc <= now <= own.not_valid_after_utc:
        valid = f"{own.not_valid_before_utc:%Y-%m-%d} to {own.not_valid_after_utc:%Y-%m-%d}"
        raise InputError(
            f"{certificate.chain} is valid from {valid}, not now: browsers and devices refuse it",
            code="server.certificate_not_valid_now",
        )
    if certificate.key.stat().st_mode & stat.S_IRWXO:
        raise InputError(
            f"all users can read {certificate.key}. Run chmod o= on it, or get a new key if one did",
            code="server.key_readable_by_all",
        )
