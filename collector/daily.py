"""A server's daily work: retention, used tickets, and the order of arrival removed from the files.

A database forgets a row long before it overwrites it. SQLite's log has every change since it was last
emptied. A page of PostgreSQL keeps the bytes of rows that VACUUM has freed, each with the number of the
transaction that wrote it.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import date, timedelta
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, Table, select, text, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from collector import store
from collector.clock import doubt_of
from collector.db import LOCK_NOT_AVAILABLE, Database
from collector.errors import code_of, is_of_all, one_line
from collector.limiter import log_throttled
from collector.models import Base, UpkeepRow
from collector.problems import UNAVAILABLE, ProblemError
from collector.retention import delete_overdue, kept_everywhere
from collector.store import PARENT, insert_new, partition_names
from collector.tickets import codes
from ldp_client.documents.errors import InputError, LdpkitError

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

    from collector.context import Collector

LOGGER = logging.getLogger("collector")
A_DAY = timedelta(1)
LOOK_SECONDS = 60.0
# Long, since uploads wait while the upkeep runs.
RETRY_SECONDS = 3600.0
# Time for transactions that began before the rows were moved; a server's take milliseconds.
WAIT_SECONDS = 2.0
TRY_SECONDS = 0.1
# While a table's new file waits for a reader of the old one, all later requests wait too.
LOCK_MILLISECONDS = 500
STILL_READ = "another program, such as a backup, still reads old rows; wait for it to end"
NOT_OURS = "this role may not vacuum every table; tables have to belong to it"
# A row's place in a PostgreSQL table, and the transaction that wrote it, reveal when it arrived.
WRITE_AGAIN = """
WITH moved AS (DELETE FROM reports WHERE day >= :since AND (day <> :today OR :all) RETURNING *)
INSERT INTO reports SELECT * FROM moved ORDER BY study, id
"""


class UnfinishedError(LdpkitError):
    """Moved or deleted rows can still be read in the database's files."""

    code = "database.order_in_files"

    def __init__(self, why: str) -> None:
        super().__init__(f"the files still have the order in which reports came: {why}")


class Upkeep:
    """Erases the order of arrival once a day has ended, or a study was closed.

    secret: from the setting ticket_key.
    """

    def __init__(
        self,
        database: Database,
        today: Callable[[], date],
        secret: bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._today = today
        self._secret = secret
        self._clock = clock
        self._done: date | None = None
        self._not_before = self._retry = clock()

    def run_if_due(self) -> None:
        """Run the upkeep if it is due; look for that once a minute. A failure is retried an hour later.

        Raises ProblemError if the clock cannot be right: reports would keep a wrong day permanently.
        """
        today = self._today()
        if self._done == today and self._clock() < self._not_before:
            return
        # If the database is away, nothing is stored either.
        with suppress(SQLAlchemyError), self._database.read(reserved=True) as session:
            self.require_right_day(session)
        if self._clock() < self._retry:
            return
        try:
            self.run(today)
        except InputError as error:
            LOGGER.warning("the daily upkeep: %s", error)
        except (SQLAlchemyError, UnfinishedError) as error:
            self._retry = self._clock() + RETRY_SECONDS
            why = one_line(getattr(error, "orig", error))
            LOGGER.warning("the daily upkeep failed, and is tried again in an hour: %s", why)
            return
        self._done, self._not_before = today, self._clock() + LOOK_SECONDS

    def require_right_day(self, session: Session) -> None:
        """Raise ProblemError if the clock cannot be right."""
        if doubt := doubt_of(session, self._today()):
            log_throttled(logging.ERROR, f"{doubt}: nothing is stored until the clock is right, or confirmed")
            raise ProblemError(UNAVAILABLE, "the collector's clock is wrong; nothing was stored")

    def run(self, today: date, even_if_done: bool = False) -> bool:
        """Delete used tickets and rewrite the files. Return True if there was anything to do.

        even_if_done: process all days, including today. Future days, from another clock, become today.

        Raises SQLAlchemyError and UnfinishedError: the next caller must do it again then. Raises InputError
        with the studies whose tickets were used with another key: all other work is done then.
        """
        left_out = self._database.act(lambda session: self._order(session, today, even_if_done))
        if left_out is None:
            return False
        try:
            rewrite_files(self._database)
        except (SQLAlchemyError, UnfinishedError):
            # Other processes, and this one after a restart, find it not done.
            undone = update(UpkeepRow).where(UpkeepRow.day == today).values(day=today - A_DAY, closed=True)
            with suppress(SQLAlchemyError):
                self._database.act(lambda session: session.execute(undone))
            raise
        if left_out:
            kept = "used tickets could not be deleted, but all other upkeep was done"
            raise InputError(
                "; ".join([kept, *(f"study {study}: {why}" for study, why in left_out.items())]),
                code="ticket.used_not_deleted",
            )
        return True

    def _order(self, session: Session, today: date, even_if_done: bool) -> dict[str, str] | None:
        """Do the transaction of `run`. Return the skipped studies and why; None if it was done already."""
        # 1. Take the day, unless another process has.
        since, with_today = _take_day(session, today)
        if even_if_done:
            since, with_today = date.min, True
        if since is None:
            return None
        # 2. Delete used tickets.
        left_out = {}
        for study_id, number in store.study_numbers(session):
            # Uploads and withdrawals wait: they must not look for a row while it is moved.
            store.locked_study(session, study_id)
            try:
                codes.delete_used_tickets(session, number, self._secret)
            except InputError as error:
                left_out[study_id] = str(error)
        # 3. Write the reports in the order of their ids.
        if even_if_done:
            store.date_back(session, today + A_DAY, today)
        # SQLite keeps tickets and reports in the order of their keys.
        if self._database.file is None:
            codes.write_again(session)
            session.execute(text(WRITE_AGAIN), {"since": since, "today": today, "all": with_today})
        return left_out


def _take_day(session: Session, today: date) -> tuple[date | None, bool]:
    """Mark today's upkeep as done.

    Returns the first day that may be out of order, None if it was done; and whether today's reports are to be
    put in order too, because a study was closed.
    """
    new = insert_new(session, cast(Table, UpkeepRow.__table__), ["day"]).values(day=today)
    row = session.execute(select(UpkeepRow.day, UpkeepRow.closed).with_for_update()).first()
    if row is None:
        # If several processes try, only one inserts the row.
        is_first = session.execute(new.returning(UpkeepRow.day)).scalar() is not None
        return date.min if is_first else None, False
    last, closed = row
    if last == today and not closed:
        return None, False
    session.execute(update(UpkeepRow).values(day=today, closed=False))
    if last > today:
        # One day ahead may be another machine's clock after midnight. Correct it anyway: otherwise the next
        # day to end would count as done.
        if last > today + A_DAY:
            LOGGER.warning("a clock was wrong: the last upkeep was on %s; all days are put in order", last)
        return date.min, closed
    # One day earlier: a machine with a slow clock may have written after midnight.
    return last - A_DAY, closed


def rewrite_files(database: Database) -> None:
    """Rewrite the files, without any rows that were moved, changed or deleted up to now.

    Raises UnfinishedError if a reader keeps the old rows visible or the files cannot be written, and
    SQLAlchemyError.
    """
    if database.file is None:
        with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            # Each study's reports have their own file and statement.
            whole = [name for name in Base.metadata.tables if name != PARENT]
            _rewrite_tables(connection, [*whole, *partition_names(connection)])
        return
    # A separate connection: the engine's connections begin transactions, which rule out VACUUM.
    # The target of a link: SQLite writes the new file's pages next to it.
    uri = f"{database.file.resolve().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, database.lock_timeout, uri=True)) as connection:
            try:
                connection.execute("VACUUM")
            finally:
                # Also after a failure: uploads need the room that a half-written file takes in the log.
                busy, _frames, _moved = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        database.note(error)
        raise UnfinishedError(one_line(error)) from error
    if busy:
        raise UnfinishedError(STILL_READ)


def _rewrite_tables(connection: Connection, tables: Sequence[str]) -> None:
    """Rewrite each table, until no transaction sees old versions of its rows, which would be copied."""
    connection.exec_driver_sql(f"SET lock_timeout = {LOCK_MILLISECONDS}")
    try:
        for name in tables:
            last = None
            while _rewrite_table(connection, name):
                # After the first rewriting, which takes minutes for a large table.
                last = last or time.monotonic() + WAIT_SECONDS
                if time.monotonic() > last:
                    raise UnfinishedError(STILL_READ)
                time.sleep(TRY_SECONDS)
    except OperationalError as error:
        if code_of(error) == LOCK_NOT_AVAILABLE:
            raise UnfinishedError(STILL_READ) from error
        raise
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("RESET lock_timeout")


def _rewrite_table(connection: Connection, name: str) -> int:
    """Rewrite a table. Return how many deleted rows were copied because a transaction still sees them."""
    kept: list[int] = []

    def hear(notice: Diagnostic) -> None:
        # In every language, the number of dead rows that could not be removed comes first.
        if number := re.search(r"\d+", notice.message_detail or ""):
            kept.append(int(number[0]))

    driver = connection.connection.driver_connection
    assert driver is not None
    driver.add_notice_handler(hear)
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, VERBOSE) {name}")
    finally:
        driver.remove_notice_handler(hear)
    if not kept:
        # PostgreSQL only warns, and continues.
        raise UnfinishedError(NOT_OURS)
    return sum(kept)


class Days:
    """Deletes reports whose retention is over, and has the upkeep run, also while no reports arrive."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._seen: date | None = None

    def start(self) -> None:
        """Check periodically, in a thread of the serving process, because threads do not survive a fork."""
        Thread(target=self._watch, name="days", daemon=True).start()

    def look(self) -> None:
        """Do the work that is due. A failure is logged and retried at a later check."""
        # Deletions first, so that the upkeep removes the deleted reports from the files.
        for name, work in (("retention", self._keep_retention), ("upkeep", self._keep_up)):
            try:
                work()
            except Exception as error:
                _warn(name, error)

    def _keep_retention(self) -> None:
        collector, today, is_all_done = self._collector, self._collector.today(), True
        if self._seen == today:
            return
        for kept in kept_everywhere(collector):
            find = partial(collector.rules.find, reserved=True)
            try:
                deleted = delete_overdue(collector.writer.act, find, kept, today)
            except Exception as error:
                if is_of_all(error) or isinstance(error, (InputError, ProblemError)):
                    raise
                # A failure of one study must not stop the deletions of others.
                _warn(f"retention of {kept.study}", error)
                is_all_done = False
            else:
                if deleted:
                    collector.metrics.count_deletion("retention", deleted)
                    collector.has_changed(kept.study)
        if is_all_done:
            self._seen = today

    def _keep_up(self) -> None:
        self._collector.writer.change(("", b""), lambda _session: None)

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(LOOK_SECONDS)


def _warn(what: str, error: Exception) -> None:
    """Log that part of the day's work failed."""
    why = one_line(getattr(error, "orig", error))
    log_throttled(logging.WARNING, f"the day's {what} failed, and is tried again: {why}")
