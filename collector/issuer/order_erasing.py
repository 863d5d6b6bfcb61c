"""Erase the order in which people asked for tokens: when an issuer starts and stops, and once a day."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from threading import Lock

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector.clock import utc_today
from collector.daily import RETRY_SECONDS, UnfinishedError, rewrite_files
from collector.db import Database, one_line
from collector.issuer.maintenance import BUSY_SECONDS
from collector.issuer.models import ISSUER, CodeRow
from collector.issuer.store import refuse_copy
from collector.limiter import log_throttled
from collector.migrations import check
from ldp_client.documents.errors import InputError

CODES = CodeRow.__tablename__
# In PostgreSQL, a code's position in the table and the transaction that wrote it show when it was used. The
# lock is needed: a concurrent request would not find a row that is being moved.
WRITE_AGAIN = (
    f"LOCK TABLE {CODES} IN ACCESS EXCLUSIVE MODE",
    f"WITH moved AS (DELETE FROM {CODES} RETURNING *) INSERT INTO {CODES} SELECT * FROM moved ORDER BY hash",
)


def forget_order(database: Database) -> None:
    """Erase from all files the order in which codes were used. Raises SQLAlchemyError, UnfinishedError."""
    database.act(write_again)
    rewrite_files(database, [CODES])


def write_again(session: Session) -> None:
    """Rewrite all codes in one transaction, in the order of their hashes."""
    # Connect even if nothing is written: then the issuer knows that an SQLite file's log belongs to it.
    connection = session.connection()
    # SQLite stores codes in the order of their hashes; the new file is enough for its pages.
    if connection.dialect.name == "postgresql":
        for statement in WRITE_AGAIN:
            connection.execute(text(statement))


def _try(database: Database) -> bool:
    """Erase the order; on failure log why and return False."""
    try:
        forget_order(database)
    except (SQLAlchemyError, UnfinishedError) as error:
        why = error.why if isinstance(error, UnfinishedError) else one_line(getattr(error, "orig", error))
        log_throttled(logging.WARNING, f"the database still has the order in which people asked: {why}")
        return False
    return True


class Forgetting:
    """Erases the order of the previous days, at the first request of a day."""

    def __init__(
        self,
        database: Database,
        today: Callable[[], date] = utc_today,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._today, self._clock = today, clock
        self._done, self._not_before = today(), clock()
        self._lock = Lock()

    def run_if_due(self) -> None:
        """Erase the order unless that was done today; retry a failure after RETRY_SECONDS."""
        if self._done == self._today() or self._clock() < self._not_before:
            return
        if not self._lock.acquire(blocking=False):
            return
        try:
            today = self._today()
            if self._done != today and _try(self._database):
                self._done = today
            self._not_before = self._clock() + (0.0 if self._done == today else RETRY_SECONDS)
        finally:
            self._lock.release()


@contextmanager
def forgetting(url: str) -> Iterator[None]:
    """Erase the order before an issuer serves, because it may have been killed, and after it has stopped.

    Raises InputError if the database cannot be used.
    """
    process = os.getpid()
    _forget_at(url)
    try:
        yield
    finally:
        # A worker also leaves through here, while the issuer serves.
        if os.getpid() == process:
            try:
                _forget_at(url)
            except (InputError, SQLAlchemyError) as error:
                # For example the file was replaced meanwhile: this issuer must not write to the new one.
                log_throttled(logging.WARNING, one_line(error))


def _forget_at(url: str) -> None:
    database = Database(url, BUSY_SECONDS)
    check(database, schema=ISSUER)
    try:
        with database.read() as session:
            refuse_copy(session)
        _try(database)
    finally:
        database.engine.dispose()
