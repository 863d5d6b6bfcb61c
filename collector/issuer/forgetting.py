"""Losing the order in which people asked for tokens: when an issuer starts and stops, and once a day."""

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

from collector.bounding import log_throttled
from collector.issuer.book import refuse_copy
from collector.issuer.keeping import BUSY_SECONDS
from collector.issuer.models import ISSUER, CodeRow, IssuerRow
from collector.storage.database import Database, one_line
from collector.storage.migrating import check
from collector.storage.rewriting import UnfinishedError, rewrite_files
from collector.storage.upkeep import RETRY_SECONDS, utc_today
from ldp_client.documents.errors import InputError

CODES = CodeRow.__tablename__
# A code's place in a PostgreSQL table, and the transaction that wrote it, tell when it was used. Locked: who
# asks meanwhile would not find a row that is being moved.
WRITE_AGAIN = (
    f"LOCK TABLE {CODES} IN ACCESS EXCLUSIVE MODE",
    f"WITH moved AS (DELETE FROM {CODES} RETURNING *) INSERT INTO {CODES} SELECT * FROM moved ORDER BY hash",
)


def forget_order(database: Database) -> None:
    """Have no file tell in which order codes were used up to now. Raises SQLAlchemyError, UnfinishedError."""
    database.act(write_again)
    rewrite_files(database, (IssuerRow.__tablename__, "is_copy"), lambda _: [CODES])


def write_again(session: Session) -> None:
    """Have all codes be of one transaction, in the order of their hashes."""
    # Also where nothing is written: with it an SQLite file has a log that is known to be its own.
    connection = session.connection()
    # SQLite has them in the order of their hashes; of its pages the new file is enough.
    if connection.dialect.name == "postgresql":
        for statement in WRITE_AGAIN:
            connection.execute(text(statement))


def _try(database: Database) -> bool:
    """Forget the order, or have the log say why that failed."""
    try:
        forget_order(database)
    except (SQLAlchemyError, UnfinishedError) as error:
        why = error.why if isinstance(error, UnfinishedError) else one_line(getattr(error, "orig", error))
        log_throttled(logging.WARNING, f"the database still has the order in which people asked: {why}")
        return False
    return True


class Forgetting:
    """Forgets the order of the days before, at the first request of a day."""

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
        """Do it unless it was done today; after a failure some minutes later again."""
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
    """Forget the order before an issuer serves, as it may have been killed, and after it has stopped.

    Raises InputError for a database that cannot be used.
    """
    process = os.getpid()
    _forget_at(url)
    try:
        yield
    finally:
        # A worker leaves through here too, while the issuer serves.
        if os.getpid() == process:
            try:
                _forget_at(url)
            except (InputError, SQLAlchemyError) as error:
                # Such as a file that was replaced meanwhile, which is not this issuer's to write.
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
