"""Signed studies: published on the strength of a signature, and served for devices that demand one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from collector.problems import SIGNATURE_REFUSED, STUDY_UNSIGNED, ProblemError, unknown_study
from collector.storage import queries
from collector.studies.publishing import publish
from ldp_client.core.public_keys import PublicKey
from ldp_client.device.signatures import verify_study
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.documents.signed import FORMAT, Signature, SignedStudy
from schemas import Study

PEM = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


def load_keys(path: str | None) -> tuple[PublicKey, ...]:
    """The public keys in a file of PEM blocks, none without a path. Raises InputError."""
    if path is None:
        return ()
    try:
        text = Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"setting signing_keys: cannot read {path}: {error}") from None
    keys = tuple(PublicKey.from_pem(block) for block in PEM.findall(text))
    if not keys:
        raise InputError(f"setting signing_keys: {path} has no public key in PEM")
    return keys


def is_signed(document: Any) -> bool:
    """Whether a parsed body is meant as a signed study."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def signed_by(signed: SignedStudy, keys: Sequence[PublicKey]) -> SignedStudy:
    """The study with the signatures of these keys alone. Raises ProblemError if one of them is wrong.

    Nobody here can tell whether another signature is one: kept on a stranger's word, it would stand in
    the way of the true one, and of devices that know its key.
    """
    ids = {key.id for key in keys}
    theirs = [signature for signature in signed.signatures if signature.key in ids]
    for signature in theirs:
        try:
            verify_study(SignedStudy(signed.study, [signature]), keys)
        except RefusedError as error:
            raise ProblemError(SIGNATURE_REFUSED, str(error), "signatures") from None
    return SignedStudy(signed.study, theirs)


def publish_signed(
    session: Session, signed: SignedStudy, publish: Callable[[Session, Study], bool] = publish
) -> bool:
    """Publish a study and keep its signatures beside those it has; whether its version is new.

    Raises ProblemError as `publish` does: an earlier version, however well signed, is refused.
    """
    is_new = publish(session, signed.study)
    document = queries.find_document(session, signed.study.id)
    assert document is not None
    for signature in signed.signatures:
        queries.add_signature(session, document, signature)
    return is_new


def fetch_signed(session: Session, study_id: str, version: int | None) -> SignedStudy:
    """One version with its signatures, the current one without a version.

    Raises ProblemError for a study that is not published, or not signed.
    """
    document = queries.find_document(session, study_id, version)
    if document is None:
        raise unknown_study(study_id)
    rows = queries.signatures(session, document)
    if not rows:
        raise ProblemError(STUDY_UNSIGNED, f"version {document.version} was published without a signature")
    signatures = [Signature(row.algorithm, row.key, row.signature) for row in rows]
    return SignedStudy(Study.from_json(document.canonical), signatures)
