"""Publishing and closing studies, with an operator's key or on the strength of a trusted signature."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from collector.problems import (
    SIGNATURE_REFUSED,
    STUDY_CONFLICT,
    STUDY_FINISHED,
    STUDY_OUTDATED,
    STUDY_UNSIGNED,
    ProblemError,
    unknown_study,
)
from collector.storage import queries
from collector.storage.models import StudyRow
from ldp_client.core.public_keys import PublicKey
from ldp_client.device.policy import verify_study
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.documents.signed import FORMAT, Signature, SignedStudy
from schemas import Study


def publish(session: Session, study: Study) -> bool:
    """Make this version of a study the current one; whether it is new.

    A version that is current already may be published again as it is. Raises ProblemError for
    another document under that version, for an earlier version, and for a closed study.
    """
    row = queries.locked_or_new_study(session, study.id)
    if row.version == study.version:
        _require_same(session, study)
        return False
    if row.version > study.version:
        raise ProblemError(STUDY_OUTDATED, f"version {row.version} is published", "version")
    if row.closed:
        raise ProblemError(STUDY_FINISHED, "a closed study takes no new version", "version")
    queries.add_document(session, row.number, study.version, study.digest, study.canonical())
    _make_current(row, study)
    return True


def close(session: Session, study_id: str) -> int:
    """End a study for good; closing it again changes nothing. Returns its version.

    Raises ProblemError if it is unknown.
    """
    row = queries.locked_study(session, study_id)
    if row is None:
        raise unknown_study(study_id)
    row.closed = True
    return row.version


def _require_same(session: Session, study: Study) -> None:
    published = queries.find_document(session, study.id)
    if published is None or published.digest != study.digest:
        detail = f"version {study.version} is published with another digest"
        raise ProblemError(STUDY_CONFLICT, detail, "version")


def _make_current(row: StudyRow, study: Study) -> None:
    row.version = study.version
    row.opens = date.fromisoformat(study.opens) if study.opens else None
    row.closes = date.fromisoformat(study.closes) if study.closes else None
    if any(field.from_invitation for field in study.public):
        # Without an invitation a report would lack its value.
        row.invited = True


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
