"""The parts of one running collector, as the views find them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone

from flask import current_app

from collector.database import Database
from collector.rules import RuleBook
from collector.settings import Settings

EXTENSION = "ldpkit"


def utc_today() -> date:
    """The server's day, in UTC."""
    return datetime.now(timezone.utc).date()


@dataclass(frozen=True)
class Collector:
    """One collector. today: the clock, which knows days only."""

    database: Database
    rules: RuleBook
    today: Callable[[], date]
    body_limit: int
    token_hash: bytes | None

    @classmethod
    def of(cls, settings: Settings, today: Callable[[], date]) -> Collector:
        """Open the database and make its tables. Raises InputError when that fails."""
        database = Database(settings.database, settings.busy_timeout)
        database.create_tables()
        token_hash = None if settings.token is None else hash_token(settings.token)
        return cls(database, RuleBook(database), today, settings.body_limit, token_hash)


def hash_token(token: str) -> bytes:
    """SHA-256 of a token: enough, as tokens are long and random."""
    return hashlib.sha256(token.encode()).digest()


def current_collector() -> Collector:
    """The collector of the app that handles this request."""
    collector: Collector = current_app.extensions[EXTENSION]
    return collector
