"""Keys: long random words, shown once and stored as hashes, each with one role, for some studies or all."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from datetime import date, timedelta
from enum import Enum
from typing import NamedTuple

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.models import KeyRow, RemovedKeyRow, SessionRow
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import DocumentError, InputError
from ldp_client.documents.fields import Identifier

KEY_BYTES = 32
# A browser stays signed in until it is closed, and not after the next day.
SESSION = timedelta(days=1)
# Browsers of one key. One more signs the others out.
MOST_SESSIONS = 20


class Role(Enum):
    """The purpose of a key: publish and close studies, read exports and counts, or everything."""

    PUBLISH = "publish"
    READ = "read"
    OPERATE = "operate"

    def allows(self, needed: Role) -> bool:
        """Return True if a key of this role may do the work of role `needed`."""
        return self in (needed, Role.OPERATE)


class Key(NamedTuple):
    """The stored facts of a key. studies: its studies, None for all. expires: its last day.

    used: the day of its last use.
    """

    name: str
    role: Role
    studies: frozenset[str] | None = None
    expires: date | None = None
    used: date | None = None

    def reaches(self, study_id: str) -> bool:
        """Return True if it is for this study."""
        return self.studies is None or study_id in self.studies

    def has_expired(self, today: date) -> bool:
        """Return True if its last day is over."""
        return self.expires is not None and today > self.expires

    def document(self) -> dict[str, object]:
        """Return the key as a JSON document."""
        return {
            "name": self.name,
            "role": self.role.value,
            "studies": None if self.studies is None else sorted(self.studies),
            "expires": self.expires and self.expires.isoformat(),
            "used": self.used and self.used.isoformat(),
        }


# The key of a holder of the operator's token.
TOKEN_KEY = Key(audit_log.BY_TOKEN, Role.OPERATE)


def new_key() -> str:
    """Return a new key that cannot be guessed."""
    return new_word(KEY_BYTES)


def new_word(size: int) -> str:
    """Return random bytes as text that can follow a command-line option: it never begins with a dash."""
    while (word := secrets.token_urlsafe(size)).startswith("-"):
        pass
    return word


def hash_key(key: str) -> bytes:
    """Return the SHA-256 of a key: enough, as keys are long and random."""
    return hashlib.sha256(key.encode()).digest()


def add_key(
    session: Session,
    name: str,
    role: Role,
    studies: Iterable[str] | None = None,
    expires: date | None = None,
    by: str = audit_log.BY_TOKEN,
) -> str:
    """Make a key and return it, for the only time. by: the name of the key that makes it.

    studies: the key's studies, published or not; None for all. Raises InputError for a bad name or a name in
    use.
    """
    _require_id(name, f"key {name[:64]!r}")
    scope = None if studies is None else sorted(set(studies))
    for study in scope or ():
        _require_id(study, f"study {study[:64]!r}")
    if scope == []:
        raise InputError("a key needs at least one study", code="keys.no_study")
    if session.get(KeyRow, name):
        raise InputError(f"there is a key {name!r}; remove it first", code="keys.duplicate_name")
    key = new_key()
    kept = None if scope is None else canonical_json(scope)
    session.add(KeyRow(name=name, role=role.value, hash=hash_key(key), studies=kept, expires=expires))
    of = "all studies" if scope is None else ", ".join(scope)
    until = "" if expires is None else f", until {expires}"
    audit_log.record(session, by, "add key", detail=f"{name}: {role.value}, {of}{until}")
    return key


def unpublished(session: Session, studies: Iterable[str] | None) -> list[str]:
    """Return a sentence for each of a key's studies that is not published: it may be misspelt."""
    return [
        f"study {study} is not published here: the key is for it once it is"
        for study in sorted(set(studies or ()))
        if store.study_state(session, study) is None
    ]


def _require_id(text: str, what: str) -> None:
    try:
        Identifier().read(text, "name", DocumentError)
    except DocumentError as error:
        raise InputError(f"{what}: {error.problem}", code="keys.identifier_invalid") from None


def remove_key(session: Session, name: str, by: str = audit_log.BY_TOKEN) -> None:
    """Make a key useless from now on. by: as for `add_key`. Raises InputError if no key has that name."""
    row = session.get(KeyRow, name)
    if row is None:
        raise InputError(f"there is no key {name[:64]!r}", code="keys.unknown_name")
    session.add(RemovedKeyRow(hash=row.hash))
    session.delete(row)
    audit_log.record(session, by, "remove key", detail=name)


def was_removed(session: Session, key: str) -> bool:
    """Return True if a key existed and was removed."""
    return session.get(RemovedKeyRow, hash_key(key)) is not None


def list_keys(session: Session) -> list[Key]:
    """Return every key, by name."""
    return [_key_of(row) for row in session.scalars(select(KeyRow).order_by(KeyRow.name))]


def known_hashes(session: Session) -> frozenset[bytes]:
    """Return the hashes of all keys, and of the words of all sessions."""
    return frozenset((*session.scalars(select(KeyRow.hash)), *session.scalars(select(SessionRow.hash))))


def find_key(session: Session, given: bytes) -> Key | None:
    """Return the facts of the key with this hash, or None. Its timing reveals nothing about the keys."""
    found = None
    for row in session.scalars(select(KeyRow)):
        if hmac.compare_digest(given, row.hash):
            found = _key_of(row)
    return found


def begin_session(session: Session, key: bytes, today: date) -> str:
    """Sign a browser in with the key of this hash. Return the word for its cookie, which is not stored."""
    session.execute(delete(SessionRow).where(SessionRow.until < today))
    if (session.scalar(select(func.count()).where(SessionRow.key == key)) or 0) >= MOST_SESSIONS:
        session.execute(delete(SessionRow).where(SessionRow.key == key))
    word = new_key()
    session.add(SessionRow(hash=hash_key(word), key=key, until=today + SESSION))
    return word


def key_of_session(session: Session, word: str, today: date) -> bytes | None:
    """Return the hash of the key with which a browser signed in, or None if no session has this word."""
    row = session.get(SessionRow, hash_key(word))
    return None if row is None or row.until < today else row.key


def end_session(session: Session, word: str) -> None:
    """Sign a browser out."""
    session.execute(delete(SessionRow).where(SessionRow.hash == hash_key(word)))


def note_use(session: Session, name: str, today: date) -> None:
    """Record that a key was used today."""
    session.execute(update(KeyRow).where(KeyRow.name == name).values(used=today))


def _key_of(row: KeyRow) -> Key:
    studies = None if row.studies is None else frozenset(json.loads(row.studies))
    return Key(row.name, Role(row.role), studies, row.expires, row.used)
