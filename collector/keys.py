"""Keys: long random words, shown once and stored as hashes, each with one role, for some studies or all.

A server looks up the keys of requests, with bounded work for wrong keys.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Iterable
from datetime import date, timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.limiter import CostBoundCache, TokenBucket, log_throttled
from collector.models import KeyRow, RemovedKeyRow, SessionRow
from collector.problems import TOO_MANY_KEYS, UNAUTHORIZED, ProblemError
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from collector.context import Collector

KEY_BYTES = 32
# A browser stays signed in until it is closed, and not after the next day.
SESSION = timedelta(days=1)
# Browsers of one key. One more signs the others out.
MOST_SESSIONS = 20
WRONG_A_SECOND = 5.0
# Not Basic, because browsers would ask for it themselves and keep the key until they are closed.
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ldpkit"'}


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

    name, studies: identifiers. studies: published or not; None for all. Raises InputError for a name in use.
    """
    if session.get(KeyRow, name):
        raise InputError(f"there is a key {name!r}; remove it first", code="keys.duplicate_name")
    scope, key = None if studies is None else sorted(set(studies)), new_word(KEY_BYTES)
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


def remove_key(session: Session, name: str, by: str = audit_log.BY_TOKEN) -> None:
    """Make a key useless from now on. by: as for `add_key`. Raises InputError if no key has that name."""
    row = session.get(KeyRow, name)
    if row is None:
        raise InputError(f"there is no key {name[:64]!r}", code="keys.unknown_name")
    session.add(RemovedKeyRow(hash=row.hash))
    session.delete(row)
    audit_log.record(session, by, "remove key", detail=name)


def list_keys(session: Session) -> list[Key]:
    """Return every key, by name."""
    return [_key_of(row) for row in session.scalars(select(KeyRow).order_by(KeyRow.name))]


def find_key(session: Session, given: bytes) -> Key | None:
    """Return the facts of the key with this hash, or None. The hash of a guess reveals no other hash."""
    row = session.scalar(select(KeyRow).where(KeyRow.hash == given))
    return None if row is None else _key_of(row)


def _key_of(row: KeyRow) -> Key:
    studies = None if row.studies is None else frozenset(json.loads(row.studies))
    return Key(row.name, Role(row.role), studies, row.expires, row.used)


class KeyChecks:
    """The keys of one process.

    A valid key is always found. Wrong keys are counted and logged without the key. Above WRONG_A_SECOND, for
    all senders together because addresses mean nothing here, keys are first compared with recently read
    hashes.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        token = collector.settings.token
        self._token_hash = None if token is None else hash_key(token)
        # Keyed by hash, because another key may get the same name. The value is the day of the last attempt
        # to record its use.
        self._noted: dict[bytes, date] = {}
        self._wrong = TokenBucket(WRONG_A_SECOND)
        self._hashes = CostBoundCache(self._read_hashes)

    def find(self, key: str) -> Key:
        """Return a valid key's rights. Raises ProblemError for a wrong key."""
        hashed = hash_key(key)
        # Wrong keys of others never refuse the operator's token.
        if self._is_token(hashed):
            return TOKEN_KEY
        return self._rights(hashed)

    def begin_session(self, key: str) -> str:
        """Sign a browser in with a valid key; return the word for its cookie, which is not stored."""
        word, hashed, today = new_word(KEY_BYTES), hash_key(key), self._collector.today()

        def begin(session: Session) -> None:
            session.execute(delete(SessionRow).where(SessionRow.until < today))
            of_key = SessionRow.key == hashed
            if session.scalars(select(func.count()).where(of_key)).one() >= MOST_SESSIONS:
                session.execute(delete(SessionRow).where(of_key))
            session.add(SessionRow(hash=hash_key(word), key=hashed, until=today + SESSION))

        self._collector.writer.act(begin)
        return word

    def find_session(self, word: str) -> Key:
        """Return the rights of the key with which a browser signed in. Raises ProblemError as `find` does."""
        return self._rights(hash_key(word), is_session=True)

    def end_session(self, word: str) -> None:
        """Sign a browser out. Anyone may ask, so that a word of no session is not written down."""
        given = hash_key(word)
        with self._collector.database.read() as session:
            is_known = self._key_of_session(session, given) is not None
        if is_known:
            end = delete(SessionRow).where(SessionRow.hash == given)
            self._collector.writer.act(lambda session: session.execute(end))

    def _key_of_session(self, session: Session, given: bytes) -> bytes | None:
        """Return the hash of the key with which a browser signed in, or None if there is no such session."""
        row = session.get(SessionRow, given)
        return None if row is None or row.until < self._collector.today() else row.key

    def _is_token(self, hashed: bytes) -> bool:
        return self._token_hash is not None and hmac.compare_digest(hashed, self._token_hash)

    def _rights(self, given: bytes, is_session: bool = False) -> Key:
        """Return the rights of a key, or of the key of a session. given: the hash of what came."""
        seconds = self._wrong.let_in(1)
        key = hashed = None
        if not seconds or given in self._hashes.get():
            with self._collector.database.read() as session:
                hashed = self._key_of_session(session, given) if is_session else given
                key = None if hashed is None else find_key(session, hashed)
        if hashed is not None and self._is_token(hashed):
            return TOKEN_KEY
        if hashed is None or key is None:
            self._collector.metrics.count_wrong_key()
            log_throttled(logging.WARNING, "a request had a key that this collector does not know")
            if seconds:
                detail = "too many wrong keys came; a right one is taken at any time"
                raise ProblemError(TOO_MANY_KEYS, detail)
            self._wrong.take()
            unknown = "this collector does not know the key"
            detail = "the session has ended: sign in again" if is_session else unknown
            raise ProblemError(UNAUTHORIZED, detail, headers=CHALLENGE)
        if key.has_expired(self._collector.today()):
            detail = f"the key {key.name} was good until {key.expires}: have another one made"
            raise ProblemError(UNAUTHORIZED, detail, headers=CHALLENGE)
        self._note_use(key, hashed)
        return key

    def _note_use(self, key: Key, hashed: bytes) -> None:
        """Record a key's use once a day. A failure is only logged, so that reading still works."""
        today = self._collector.today()
        if today in (key.used, self._noted.get(hashed)):
            return
        self._noted[hashed] = today
        try:
            statement = update(KeyRow).where(KeyRow.name == key.name).values(used=today)
            self._collector.writer.act(lambda session: session.execute(statement))
        except (SQLAlchemyError, ProblemError):
            log_throttled(logging.WARNING, "a key's use cannot be written down")

    def _read_hashes(self) -> frozenset[bytes]:
        with self._collector.database.read() as session:
            words = (*session.scalars(select(KeyRow.hash)), *session.scalars(select(SessionRow.hash)))
            return frozenset(words)
