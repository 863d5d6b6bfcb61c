"""Look up the keys of requests, with bounded work for wrong keys."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from datetime import date
from typing import Protocol, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector import audit_log
from collector.db import Database
from collector.keys import (
    TOKEN_KEY,
    Key,
    begin_session,
    end_session,
    find_key,
    hash_key,
    key_of_session,
    known_hashes,
    note_use,
)
from collector.limiter import CostBoundCache, log_throttled
from collector.metrics import Metrics
from collector.problems import TOO_MANY_KEYS, UNAUTHORIZED, ProblemError
from collector.reports.limits import TokenBucket

WRONG_A_SECOND = 5.0
# Not Basic, because browsers would ask for it themselves and keep the key until they are closed.
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ldpkit"'}
T = TypeVar("T")


class Act(Protocol):
    """Makes a change durable, and returns its result."""

    def __call__(self, change: Callable[[Session], T], /) -> T:
        """Make the change."""


class KeyChecks:
    """The keys of one process.

    A valid key is always found. Wrong keys are counted and logged without the key. Above WRONG_A_SECOND, for
    all senders together because addresses mean nothing here, keys are first compared with recently read
    hashes.

    Args:
        database: has the keys.
        token_hash: the hash of the operator's token.
        metrics: counts the wrong keys.
        today: the clock.
        act: makes a change durable.
    """

    def __init__(
        self,
        database: Database,
        token_hash: bytes | None,
        metrics: Metrics,
        today: Callable[[], date],
        act: Act,
    ) -> None:
        self._database = database
        self._token_hash = token_hash
        self._metrics = metrics
        self._today = today
        self._act = act
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
        return self._rights(hashed, lambda _session: hashed)

    def begin_session(self, key: str) -> str:
        """Sign a browser in with a valid key; return the word for its cookie."""
        return self._act(lambda session: begin_session(session, hash_key(key), self._today()))

    def find_session(self, word: str) -> Key:
        """Return the rights of the key with which a browser signed in. Raises ProblemError as `find` does."""

        def key_in(session: Session) -> bytes | None:
            return key_of_session(session, word, self._today())

        return self._rights(hash_key(word), key_in, "the session has ended: sign in again")

    def end_session(self, word: str) -> None:
        """Sign a browser out. Anyone may ask, so that a word of no session is not written down."""
        with self._database.read() as session:
            is_known = key_of_session(session, word, self._today()) is not None
        if is_known:
            self._act(lambda session: end_session(session, word))

    def _is_token(self, hashed: bytes) -> bool:
        return self._token_hash is not None and hmac.compare_digest(hashed, self._token_hash)

    def _rights(
        self,
        given: bytes,
        key_in: Callable[[Session], bytes | None],
        unknown: str = "this collector does not know the key",
    ) -> Key:
        """Return the rights of a key. given: the hash of what came. key_in: reads the hash of its key."""
        seconds = self._wrong.let_in(1)
        key = hashed = None
        if not seconds or given in self._hashes.get():
            with self._database.read() as session:
                hashed = key_in(session)
                key = None if hashed is None else find_key(session, hashed)
        if hashed is not None and self._is_token(hashed):
            return TOKEN_KEY
        if hashed is None or key is None:
            raise self._refusal(seconds, unknown)
        if key.has_expired(self._today()):
            detail = f"the key {key.name} was good until {key.expires}: have another one made"
            raise ProblemError(UNAUTHORIZED, detail, headers=CHALLENGE)
        self._note_use(key, hashed)
        return key

    def _note_use(self, key: Key, hashed: bytes) -> None:
        """Record a key's use once a day. A failure is only logged, so that reading still works."""
        today = self._today()
        if today in (key.used, self._noted.get(hashed)):
            return
        self._noted[hashed] = today
        try:
            self._act(lambda session: note_use(session, key.name, today))
        except (SQLAlchemyError, ProblemError):
            log_throttled(logging.WARNING, "a key's use cannot be written down", code="key-use-unwritten")

    def _refusal(self, seconds: float, unknown: str) -> ProblemError:
        self._metrics.count_wrong_key()
        line = "a request had a key that this collector does not know"
        log_throttled(logging.WARNING, line, code="wrong-key")
        if seconds:
            return ProblemError(TOO_MANY_KEYS, "too many wrong keys came; a right one is taken at any time")
        self._wrong.settle(1, 1)
        return ProblemError(UNAUTHORIZED, unknown, headers=CHALLENGE)

    def _read_hashes(self) -> frozenset[bytes]:
        with self._database.read() as session:
            return known_hashes(session)


class DailyLines:
    """Lines of the audit log about frequent actions, which one process writes once a day."""

    def __init__(self, act: Act, today: Callable[[], date]) -> None:
        self._act = act
        self._today = today
        self._written: dict[tuple[str, str, str], date] = {}

    def write(self, key: Key, action: str, study_id: str) -> None:
        """Record that this was done today with this key. If recording fails, the action is not undone."""
        what, today = (key.name, action, study_id), self._today()
        if self._written.get(what) == today:
            return
        try:
            self._act(lambda session: audit_log.record(session, *what))
        except (SQLAlchemyError, ProblemError):
            log_throttled(logging.ERROR, "a line of the audit log cannot be written", code="audit-unwritten")
        else:
            self._written[what] = today
