"""Publishing and closing studies, and a cache of the current versions.

Publishing needs an operator's key or a trusted signature. The cache reads each study at most once a second,
however many devices request it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from collector import store
from collector.db import Database
from collector.models import StudyRow
from collector.problems import (
    SIGNATURE_REFUSED,
    STUDY_CONFLICT,
    STUDY_FINISHED,
    STUDY_OUTDATED,
    STUDY_UNSIGNED,
    ProblemError,
    deleted_study,
    unknown_study,
)
from collector.storage.tickets import count_unused
from collector.store import StudyState
from collector.studies.memoized import refuse_changed_questions
from collector.studies.origins import require_room
from collector.studies.ticket_keys import refuse_keys_of_others
from ldp_client.core.public_keys import PublicKey
from ldp_client.device.policy import verify_study
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.documents.signed import FORMAT, Signature, signed_json
from schemas import Study
from schemas.study import SignedStudy

# Seconds until another process's publishing or closing is seen here. Devices may keep a document for 60.
LIFETIME = 1.0
# Most studies in the cache: as many as one collector serves in a second.
MOST = 256
# Versions of one study, which exports and summaries read one by one.
MOST_VERSIONS = 50


class Published(NamedTuple):
    """The current version of a study: its canonical bytes, their digest, and whether it accepts reports."""

    version: int
    digest: str
    canonical: bytes
    state: StudyState


class CurrentStudies:
    """A cache of the current version of every requested study."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, tuple[float, Published]] = {}
        self._lock = Lock()

    def find(self, study_id: str) -> Published | None:
        """Return the study as of at most LIFETIME ago, or None if it is not published."""
        kept = self._kept.get(study_id)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        read_at = time.monotonic()
        published = self._read(study_id)
        if published is not None:
            with self._lock:
                if len(self._kept) >= MOST:
                    self._kept.clear()
                self._kept[study_id] = (read_at + LIFETIME, published)
        return published

    def knows(self, study_id: str) -> bool:
        """Return True if an earlier call found the study."""
        return study_id in self._kept

    def forget(self, study_id: str) -> None:
        """Drop the study from the cache, because this process has changed it."""
        with self._lock:
            self._kept.pop(study_id, None)

    def _read(self, study_id: str) -> Published | None:
        with self._database.read() as session:
            document = store.find_document(session, study_id)
            state = store.study_state(session, study_id)
            if document is None or state is None:
                return None
            return Published(document.version, document.digest, document.canonical, state)


def publish(session: Session, study: Study) -> bool:
    """Make this version of a study the current version. Return True if it is new.

    A version that is current already may be published again unchanged. Raises ProblemError for
    another document under that version, for an earlier version, for a closed or deleted study, for a changed
    memoized question, and if the header of all pages has no room for its issuer; StudyError for a token key
    of another study.
    """
    row = store.locked_or_new_study(session, study.id)
    if row.deleted:
        raise deleted_study(study.id)
    if row.version == study.version:
        _require_same(session, study)
        return False
    if row.version > study.version:
        raise ProblemError(STUDY_OUTDATED, f"version {row.version} is published", "version")
    if row.closed:
        raise ProblemError(
            STUDY_FINISHED,
            "a closed study takes no new version; open it first, if it can be opened",
            "version",
        )
    if len(store.published_versions(session, study.id)) >= MOST_VERSIONS:
        detail = f"a study has at most {MOST_VERSIONS} versions: publish under another id"
        raise ProblemError(STUDY_CONFLICT, detail, "version")
    _refuse_both(session, row, study)
    refuse_changed_questions(session, study)
    refuse_keys_of_others(session, row.number, study)
    require_room(session, row.number, study.channel)
    store.add_document(session, row.number, study.version, study.digest, study.canonical())
    _make_current(row, study)
    return True


def _refuse_both(session: Session, row: StudyRow, study: Study) -> None:
    """Raise ProblemError for blind tickets beside direct ones, which would link people and reports."""
    takes_tokens = study.channel is not None and study.channel.tickets is not None
    if takes_tokens and (row.invited or count_unused(session, row.number)):
        detail = "this study has direct tickets, so it cannot name an issuer: use another id for that"
        raise ProblemError(STUDY_CONFLICT, detail, "channel.tickets")


def is_closed(session: Session, study_id: str) -> bool:
    """Return True if a study is closed. That cannot change until the transaction ends."""
    row = store.locked_study(session, study_id)
    return row is not None and row.closed


def close(session: Session, study_id: str, deleted: bool = False, final: bool = False) -> int:
    """Stop accepting reports for a study, and return its version. Closing it again changes nothing.

    deleted: also delete its reports. final: never allow reopening, as for a deleted study.
    Raises ProblemError if it is unknown.
    """
    row = store.locked_study(session, study_id)
    if row is None:
        raise unknown_study(study_id)
    row.closed = True
    row.deleted = row.deleted or deleted
    row.final = row.final or deleted or final
    return row.version


def reopen(session: Session, study_id: str) -> int:
    """Reopen a closed study and return its version. Raises ProblemError if it cannot be reopened."""
    row = store.locked_study(session, study_id)
    if row is None:
        raise unknown_study(study_id)
    if row.deleted:
        raise deleted_study(study_id)
    if row.closed and row.final:
        raise ProblemError(STUDY_FINISHED, f"study {study_id} stays closed: it is a secure sum")
    row.closed = False
    return row.version


def _require_same(session: Session, study: Study) -> None:
    published = store.find_document(session, study.id)
    if published is None or published.digest != study.digest:
        detail = f"version {study.version} is published with another digest"
        raise ProblemError(STUDY_CONFLICT, detail, "version")


def _make_current(row: StudyRow, study: Study) -> None:
    row.version = study.version
    row.opens = date.fromisoformat(study.opens) if study.opens else None
    row.closes = date.fromisoformat(study.closes) if study.closes else None


PEM = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


def load_keys(path: str | None) -> tuple[PublicKey, ...]:
    """Return the public keys in a file of PEM blocks, none without a path. Raises InputError."""
    if path is None:
        return ()
    try:
        text = Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"setting signing_keys: cannot read {path}: {error}", code="keys.signing_keys_not_readable"
        ) from None
    keys = tuple(PublicKey.from_pem(block) for block in PEM.findall(text))
    if not keys:
        raise InputError(
            f"setting signing_keys: {path} has no public key in PEM", code="keys.no_public_key_in_file"
        )
    return keys


def is_signed(document: Any) -> bool:
    """Return True if a parsed body is meant as a signed study."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def signed_by(signed: SignedStudy, keys: Sequence[PublicKey]) -> SignedStudy:
    """Return the study with only the signatures of these keys. Raises ProblemError if any is wrong.

    The collector cannot verify other signatures. If it kept a false one, that would block the true signature,
    and devices that know its key.
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
    """Publish a study, add its signatures to the stored ones, and return True if its version is new.

    Raises ProblemError as `publish` does: an earlier version is rejected even if it is signed.
    """
    is_new = publish(session, signed.study)
    document = store.find_document(session, signed.study.id)
    assert document is not None
    for signature in signed.signatures:
        store.add_signature(session, document, signature)
    return is_new


def is_published(session: Session, signed: SignedStudy) -> bool:
    """Return True if the study's current version is this one, with all these signatures.

    Raises ProblemError for an earlier version, and for a deleted study.
    """
    study = signed.study
    document, state = store.find_document(session, study.id), store.study_state(session, study.id)
    if state is None or document is None:
        return False
    if state.deleted:
        raise deleted_study(study.id)
    if document.version > study.version:
        raise ProblemError(STUDY_OUTDATED, f"version {document.version} is published", "version")
    if (document.version, document.digest) != (study.version, study.digest):
        return False
    # A stored signature is never replaced.
    signers = {row.key for row in store.signatures(session, document)}
    return all(signature.key in signers for signature in signed.signatures)


def fetch_signed(session: Session, study_id: str, version: int | None) -> str:
    """Return the JSON of a version with its signatures. Without a version, return the current version.

    Raises ProblemError for a study that is not published, or not signed.
    """
    document = store.find_document(session, study_id, version)
    if document is None:
        raise unknown_study(study_id)
    rows = store.signatures(session, document)
    if not rows:
        raise ProblemError(STUDY_UNSIGNED, f"version {document.version} was published without a signature")
    signatures = [Signature(row.key, row.signature) for row in rows]
    # Return the published text: parsing a long document takes 0.2 s, and anyone may request it.
    return signed_json(document.canonical.decode(), signatures)
