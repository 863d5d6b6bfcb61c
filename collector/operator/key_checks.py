"""Telling what a request's key is for, with bounded work for wrong ones."""

from __future__ import annotations

import hmac
import logging

from collector.bounding import CostBoundCache, log_throttled
from collector.metrics import Metrics
from collector.problems import TOO_MANY_KEYS, UNAUTHORIZED, ProblemError
from collector.reports.limits import TokenBucket
from collector.storage.database import Database
from collector.storage.keys import Role, hash_key, known_hashes, role_of

WRONG_A_SECOND = 5.0


class KeyChecks:
    """The keys of one process. token_hash: of the operator's token.

    A right key is always found. Wrong ones are counted, logged without the key, and above WRONG_A_SECOND (of
    all senders together: addresses mean nothing here) told from right ones by hashes read a moment before.
    """

    def __init__(self, database: Database, token_hash: bytes | None, metrics: Metrics) -> None:
        self._database = database
        self._token_hash = token_hash
        self._metrics = metrics
        self._wrong = TokenBucket(WRONG_A_SECOND)
        self._hashes = CostBoundCache(self._read_hashes)

    def role_of(self, key: str, challenge: dict[str, str]) -> Role:
        """What a key is for. challenge: headers that ask for one. Raises ProblemError for a wrong key."""
        hashed = hash_key(key)
        if self._token_hash is not None and hmac.compare_digest(hashed, self._token_hash):
            return Role.OPERATE
        seconds = self._wrong.let_in(1)
        role = None
        if not seconds or hashed in self._hashes.get():
            with self._database.read() as session:
                role = role_of(session, key)
        if role is None:
            raise self._refusal(seconds, challenge)
        return role

    def _refusal(self, seconds: float, challenge: dict[str, str]) -> ProblemError:
        self._metrics.count_wrong_key()
        log_throttled(logging.WARNING, "a request had a key that is not one of this collector's")
        if seconds:
            return ProblemError(TOO_MANY_KEYS, "too many wrong keys came; a right one is taken at any time")
        self._wrong.settle(1, 1)
        return ProblemError(UNAUTHORIZED, "the key is not one of this collector's", headers=challenge)

    def _read_hashes(self) -> frozenset[bytes]:
        with self._database.read() as session:
            return known_hashes(session)
