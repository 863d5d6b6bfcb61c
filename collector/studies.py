"""Published studies: publishing, versions, signatures, and what devices are served."""

import json
import time
from base64 import b64encode
from datetime import date
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import Session

from collector import problems, store
from collector.db import Database
from collector.models import DocumentRow, StudyRow
from collector.problems import ProblemError
from collector.tickets.codes import has_tickets, is_issuers
from ldp_client.documents.errors import StudyError
from ldp_client.documents.signed import Signature, signed_json
from schemas import Study

# Seconds until another process's publishing or closing is seen here. Devices may keep a document for 60.
LIFETIME = 1.0
# The size of all documents that are ready to be served.
MOST_BYTES = 1 << 25
# Versions of one study, which exports and summaries read one by one.
MOST_VERSIONS = 50
# Characters of all issuers' origins, which each page names in a header: half of nginx's 4 kB for all headers.
MOST_ORIGINS = 2048
# The length of the issuers of one study, whose key leaves room for the others: two origins of any length.
MOST_ORIGINS_OF_STUDY = 600
MEMOIZED = "memoized"
Document = dict[str, Any]


class Published(NamedTuple):
    """The current version of a study: its canonical bytes, their digest, and whether it accepts reports."""

    version: int
    digest: str
    canonical: bytes
    state: store.StudyState


class CurrentStudies:
    """A cache of the current versions: each is read once in LIFETIME, however many devices request it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, tuple[float, Published]] = {}
        self._lock = Lock()

    def require(self, study_id: str) -> Published:
        """Return the study as of at most LIFETIME ago. Raises ProblemError if it is not published."""
        kept = self._kept.get(study_id)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        read_at = time.monotonic()
        with self._database.read() as session:
            document = store.require_document(session, study_id)
            state = store.require_study(session, study_id)
            published = Published(document.version, document.digest, document.canonical, state)
        with self._lock:
            self._kept[study_id] = (read_at + LIFETIME, published)
            if sum(len(kept.canonical) for _, kept in self._kept.values()) > MOST_BYTES:
                self._kept = {study_id: self._kept[study_id]}
        return published

    def knows(self, study_id: str) -> bool:
        """Return True if an earlier call found the study."""
        return study_id in self._kept

    def forget(self, study_id: str) -> None:
        """Drop the study from the cache, because this process has changed it."""
        with self._lock:
            self._kept.pop(study_id, None)


def publish(session: Session, study: Study) -> bool:
    """Make this version of a study the current version.

    A version that is current already may be published again unchanged.

    Returns:
        True if it is new.

    Raises:
        ProblemError: another document has that version, a later one is published, the study is closed or
            deleted, a memoized question changed, the header of all pages has no room for its issuer, or the
            database is an issuer's.
        StudyError: a token key is another study's.
    """
    if is_issuers(session):
        raise ProblemError(
            problems.STUDY_CONFLICT, "an issuer began to use this database: use another one", "id"
        )
    row = store.locked_or_new_study(session, study.id)
    if row.deleted:
        raise problems.deleted_study(study.id)
    if row.version == study.version:
        published = store.find_document(session, study.id)
        if published is None or published.digest != study.digest:
            detail = f"version {study.version} is published with another digest"
            raise ProblemError(problems.STUDY_CONFLICT, detail, "version")
        return False
    if row.version > study.version:
        raise ProblemError(problems.STUDY_OUTDATED, f"version {row.version} is published", "version")
    if row.closed:
        detail = "a closed study takes no new version; open it first, if it can be opened"
        raise ProblemError(problems.STUDY_FINISHED, detail, "version")
    if len(store.document_digests(session, row.number)) >= MOST_VERSIONS:
        detail = f"a study has at most {MOST_VERSIONS} versions: publish under another id"
        raise ProblemError(problems.STUDY_CONFLICT, detail, "version")
    issuer = issuer_of(study)
    # Both kinds of tickets together would link people and reports, and their marks are in one table.
    if issuer and (row.needs_tickets or row.spending or has_tickets(session, row.number)):
        detail = "this study has direct tickets, so it cannot name an issuer: use another id for that"
        raise ProblemError(problems.STUDY_CONFLICT, detail, "channel.tickets")
    current = store.find_document(session, study.id)
    if current is not None and current.issuer and not issuer:
        detail = "the version before has blind tickets: name an issuer too, or use another id"
        raise ProblemError(problems.STUDY_CONFLICT, detail, "channel.tickets")
    _refuse_changed_questions(session, row.number, study)
    _refuse_keys_of_others(session, row.number, study, issuer)
    _require_header_room(session, row.number, issuer)
    here = {"study": row.number, "version": study.version}
    session.add(DocumentRow(**here, digest=study.digest, canonical=study.canonical(), issuer=issuer))
    session.flush()
    row.version = study.version
    row.opens = date.fromisoformat(study.opens) if study.opens else None
    row.closes = date.fromisoformat(study.closes) if study.closes else None
    return True


def close(session: Session, study_id: str, deleted: bool = False, final: bool = False) -> int:
    """Stop accepting reports for a study, and return its version. Closing it again changes nothing.

    deleted: also delete its reports. final: never allow reopening, as for a deleted study.
    Raises ProblemError if it is unknown.
    """
    row = store.locked_study(session, study_id)
    row.closed = True
    store.ask_upkeep(session)
    row.deleted = row.deleted or deleted
    row.final = row.final or deleted or final
    return row.version


def reopen(session: Session, study_id: str) -> int:
    """Reopen a closed study and return its version. Raises ProblemError if it cannot be reopened."""
    row = store.locked_study(session, study_id)
    if row.deleted:
        raise problems.deleted_study(study_id)
    row.closed = False
    return row.version


def fetch_signed(session: Session, study_id: str, version: int | None) -> str:
    """Return the JSON of a version with its signatures. Without a version, return the current version.

    Raises ProblemError for a study that is not published, or not signed.
    """
    document = store.require_document(session, study_id, version)
    rows = store.signatures(session, document)
    if not rows:
        raise ProblemError(
            problems.STUDY_UNSIGNED, f"version {document.version} was published without a signature"
        )
    signatures = [Signature(row.key, row.signature) for row in rows]
    # Return the published text: parsing a long document takes 0.2 s, and anyone may request it.
    return signed_json(document.canonical.decode(), signatures)


def issuer_of(study: Study) -> str:
    """Return the origin of a study's issuer of tickets, which devices contact too, or ""."""
    if study.channel is None or study.channel.tickets is None:
        return ""
    parts = urlsplit(study.channel.tickets.issuer)
    return f"{parts.scheme}://{parts.netloc}"


def _refuse_keys_of_others(session: Session, number: int, study: Study, issuer: str) -> None:
    """Reject a version with another study's token keys: its issuer signs nothing with them for this study."""
    tickets = study.channel.tickets if study.channel is not None else None
    keys = [] if tickets is None else [b'"key":"%b"' % b64encode(key.spki) for key in tickets.keys]
    others = select(StudyRow.id, DocumentRow.canonical).join(StudyRow, StudyRow.number == DocumentRow.study)
    others = others.where(DocumentRow.issuer == issuer, DocumentRow.study != number)
    for other, canonical in session.execute(others) if keys else ():
        if any(key in canonical for key in keys):
            problem = (
                f"have a token key of study {other}, good for no other one: state what "
                f"`ldpkit tickets key {study.id}` prints"
            )
            raise StudyError("channel.tickets.keys", problem, code="study.ticket_key_of_other_study")


def _require_header_room(session: Session, number: int, issuer: str) -> None:
    """Raise ProblemError if a study's new issuer would make the headers of all pages too long."""
    issuers = store.issuers(session)
    mine, all_issuers = issuers.get(number, set()), set().union(*issuers.values())
    is_long = (
        _length({*mine, issuer}) > MOST_ORIGINS_OF_STUDY or _length({*all_issuers, issuer}) > MOST_ORIGINS
    )
    if issuer and issuer not in mine and is_long:
        detail = (
            f"every page names all issuers: at most {MOST_ORIGINS_OF_STUDY} characters for all versions "
            f"of a study, {MOST_ORIGINS} for all studies; use shorter names, or names of another study here"
        )
        raise ProblemError(problems.STUDY_INVALID, detail, "channel")


def _length(origins: set[str]) -> int:
    return sum(len(origin) + 1 for origin in origins)


def _refuse_changed_questions(session: Session, number: int, study: Study) -> None:
    """Reject a version that changes what a memoized question of an earlier version asks.

    Devices keep one answer to its id, and a device may have answered any earlier version.
    """
    document = study.document
    now = {question["id"]: (index, question) for index, question in enumerate(document["questions"])}
    for version in sorted(store.document_digests(session, number)):
        published = store.find_document(session, study.id, version)
        canonical = b"" if published is None else published.canonical
        if f'"name":"{MEMOIZED}"'.encode() not in canonical:
            continue
        # Parsed without validation: that takes 0.2 s, and uploads wait for this transaction.
        earlier = json.loads(canonical)
        for before in earlier["questions"]:
            if before["mechanism"]["name"] != MEMOIZED or before["id"] not in now:
                continue
            index, question = now[before["id"]]
            part = _changed_part(earlier, before, document, question)
            if part:
                detail = (
                    f"memoized question {before['id']} differs from version {version} in its {part}: "
                    "give it a new id, because devices keep one answer to each id"
                )
                raise ProblemError(problems.STUDY_CONFLICT, detail, f"questions[{index}]")


def _changed_part(earlier: Document, before: Document, document: Document, question: Document) -> str:
    """Return what differs between a question of an earlier document and of a document, or "" if nothing does.

    Texts are compared in the languages that both documents state. If a document states none, its language is
    unknown: its texts must be those of the other document in one language.
    """
    if before["ask"] != question["ask"]:
        return "type"
    if before["mechanism"] != question["mechanism"]:
        return "mechanism"
    texts, others = _texts(earlier, before), _texts(document, question)
    shared = texts.keys() & others.keys()
    if shared or "" not in {*texts, *others}:
        is_same = all(texts[language] == others[language] for language in shared)
    else:
        is_same = any(text in others.values() for text in texts.values())
    return "" if is_same else "text or choices"


def _texts(document: Document, question: Document) -> dict[str, list[Any]]:
    """Return {language: texts and choices}, with the language "" if the document states none.

    A question without text asks the title that is shown above it.
    """
    choices = question.get("choices")
    labels = choices if isinstance(choices, list) else [choices]
    # People know a question without text by the title of its section, or of the study.
    sections = [part["title"] for part in document.get("sections", []) if question["id"] in part["questions"]]
    texts = [question.get("text") or [*sections, document["title"]][0], *labels]
    # A number of choices, {"count": 40}, is no text.
    return {
        language: [text[language] if isinstance(text, dict) and language in text else text for text in texts]
        for language in document.get("languages", [""])
    }
