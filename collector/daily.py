"""A server's daily work: retention, used tickets, and the order of arrival removed from the files."""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, Table, select, text, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from collector import store
from collector.clock import MOST_BACK, doubt_of
from collector.db import LOCK_NOT_AVAILABLE, Database, WrongSumsError, is_of_all, one_line
from collector.limiter import log_throttled
from collector.models import Base, UpkeepRow
from collector.problems import UNAVAILABLE, ProblemError
from collector.storage.tickets import delete_used_tickets
from collector.store import PARENT, insert_new, partition_names
from ldp_client.documents.errors import InputError, LdpkitError

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from collector import audit_log
from collector.retention import delete_overdue, kept_of

if TYPE_CHECKING:
    from collector.context import Collector
    from collector.retention import Kept
    from schemas import Study


A_DAY = timedelta(1)
# Delay after a failure, doubled after each further failure, since uploads wait meanwhile.
RETRY_SECONDS = 300.0
LOGGER = logging.getLogger("collector")
# A row's place in a PostgreSQL table, and the transaction that wrote it, reveal when it arrived.
WRITE_AGAIN = """
WITH moved AS (DELETE FROM reports WHERE day >= :since AND (day <> :today OR :all) RETURNING *)
INSERT INTO reports SELECT * FROM moved ORDER BY study, id
"""
# PostgreSQL settings, and values that make the server record when reports arrive.
TELLTALE = {
    "log_statement": ("mod", "all"),
    "log_min_duration_statement": ("0",),
    "log_min_duration_sample": ("0",),
    "track_commit_timestamp": ("on",),
}


class Upkeep:
    """Detects that a day has ended since the last upkeep. secret: from the setting ticket_key."""

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
        self._told: tuple[date, str] | None = None
        self._pause = 0.0
        self._not_before = clock()

    def run_if_due(self) -> None:
        """Run the upkeep unless it was done today. A failure is logged once, and retried minutes later.

        Raises ProblemError if the clock cannot be right: reports would keep a wrong day permanently.
        """
        today = self._today()
        if self._done == today:
            return
        self._require_right_clock()
        if self._clock() < self._not_before:
            return
        try:
            if not self.run(today) and self._pause:
                # The last failure may have been in this step.
                rewrite_files(self._database)
        except InputError as error:
            LOGGER.warning("the daily upkeep: %s", error)
        except (SQLAlchemyError, UnfinishedError) as error:
            self._pause = 2 * self._pause or RETRY_SECONDS
            self._not_before = self._clock() + self._pause
            self._tell(today, one_line(getattr(error, "orig", error)))
            return
        self._done, self._pause, self._told = today, 0.0, None

    def _tell(self, today: date, why: str) -> None:
        """Log why it failed, once a day for each reason."""
        if self._told != (today, why):
            line = "the daily upkeep failed, and is tried again in %d s, later less often: %s"
            LOGGER.warning(line, self._pause, why)
        self._told = today, why

    def _require_right_clock(self) -> None:
        try:
            with self._database.read(reserved=True) as session:
                self.require_right_day(session)
        except SQLAlchemyError:
            # Then nothing is stored either.
            return

    def require_right_day(self, session: Session) -> None:
        """Raise ProblemError if the clock cannot be right."""
        if doubt := doubt_of(session, self._today()):
            log_throttled(
                logging.ERROR,
                f"{doubt}: nothing is stored until the clock is right, or confirmed",
                code="clock",
            )
            raise ProblemError(UNAVAILABLE, "the collector's clock is wrong; nothing was stored")

    def run(self, today: date, even_if_done: bool = False) -> bool:
        """Delete used tickets and rewrite storage. Return True if there was anything to do.

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
            self._give_back(today)
            raise
        if left_out:
            kept = "used tickets could not be deleted, but all other upkeep was done"
            raise InputError(
                "; ".join([kept, *(f"study {study}: {why}" for study, why in left_out.items())]),
                code="ticket.used_not_deleted",
            )
        return True

    def _give_back(self, today: date) -> None:
        """Mark today's upkeep as not done, also for other processes and after this process has ended."""
        yesterday = update(UpkeepRow).where(UpkeepRow.day == today).values(day=today - A_DAY)
        with suppress(SQLAlchemyError):
            self._database.act(lambda session: session.execute(yesterday))

    def _order(self, session: Session, today: date, even_if_done: bool) -> dict[str, str] | None:
        """Do the transaction of `run`. Return the skipped studies and why; None if it was done already."""
        since = _take_day(session, today)
        if even_if_done:
            since = date.min
        elif since is None:
            return None
        left_out = _delete_used(session, self._secret)
        if even_if_done:
            store.date_back(session, today + A_DAY, today)
        if self._database.engine.dialect.name == "postgresql":
            days = {"since": since, "today": today, "all": even_if_done}
            session.execute(text(WRITE_AGAIN), days)
        return left_out


def telltale_settings(database: Database) -> list[str]:
    """Return the settings of a PostgreSQL server that record when each report arrived."""
    if database.engine.dialect.name != "postgresql":
        return []
    with database.read() as session:
        known = {
            row.name: row.setting for row in session.execute(text("SELECT name, setting FROM pg_settings"))
        }
    database.engine.dispose()
    return [f"{name} = {known[name]}" for name, bad in TELLTALE.items() if known.get(name) in bad]


def _take_day(session: Session, today: date) -> date | None:
    """Mark today's upkeep as done. Return the first day that may be out of order, or None if it was done."""
    new = insert_new(session, cast(Table, UpkeepRow.__table__), ["day"]).values(day=today, jumped=today)
    row = session.execute(select(UpkeepRow.day, UpkeepRow.jumped).with_for_update()).first()
    if row is None:
        # If several processes try, only one inserts the row.
        return None if session.execute(new.returning(UpkeepRow.day)).scalar() is None else date.min
    last, jumped = row
    if last == today:
        return None
    if today > last + MOST_BACK or (jumped is not None and jumped > today):
        # A future day in `jumped` must not cast doubt on days that are right by then.
        jumped = today
    if today > last + MOST_BACK:
        LOGGER.warning(
            "the last upkeep was on %s, and it is %s by this clock: see that it is right", last, today
        )
    session.execute(update(UpkeepRow).values(day=today, jumped=jumped))
    if last > today:
        # One day ahead may be another machine's clock after midnight. Correct it anyway: otherwise the next
        # day to end would count as done.
        if last > today + A_DAY:
            LOGGER.warning("a clock was wrong: the last upkeep was on %s; all days are put in order", last)
        return date.min
    # One day earlier: a machine with a slow clock may have written after midnight.
    return last - A_DAY


def _delete_used(session: Session, secret: bytes) -> dict[str, str]:
    """Delete the used tickets of every study. Return {study id: why} for studies where it failed."""
    left_out = {}
    for study_id, number in store.study_numbers(session):
        # Uploads and withdrawals wait: they must not look for a row while it is moved.
        store.locked_study(session, study_id)
        try:
            delete_used_tickets(session, number, secret)
        except InputError as error:
            left_out[study_id] = str(error)
    return left_out


# Time for transactions that began before the rows were moved; a server's take milliseconds.
WAIT_SECONDS = 2.0
TRY_SECONDS = 0.1
# While a table's new file waits for a reader of the old one, all later requests wait too.
LOCK_MILLISECONDS = 500
# The kind in an SQLite error code, and the kinds for files that cannot be made or written, or have no room.
KIND, OF_FILES = 0xFF, (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
STILL_READ = "another program, such as a backup, still reads old rows; wait for it to end"
NOT_OURS = "this role may not vacuum every table; tables have to belong to it"


class UnfinishedError(LdpkitError):
    """Moved or deleted rows can still be read in the database's files."""

    code = "database.order_in_files"

    def __init__(self, why: str) -> None:
        super().__init__(f"the files still have the order in which reports came: {why}")
        self.why = why


def _tables(connection: Connection) -> list[str]:
    """Return every table that has a file. Each study's reports have their own file and statement."""
    whole = [name for name in Base.metadata.tables if name != PARENT]
    return [*whole, *partition_names(connection)]


def rewrite_files(
    database: Database,
    probe: tuple[str, str] = (UpkeepRow.__tablename__, "day"),
    tables: Callable[[Connection], Sequence[str]] = _tables,
) -> None:
    """Rewrite the files, without any rows that were moved, changed or deleted up to now.

    probe: a small PostgreSQL table, and its column to update. tables: the tables to rewrite; SQLite has one
    file.
    Raises UnfinishedError if a reader keeps the old rows visible or the files cannot be written, and
    SQLAlchemyError.
    """
    if database.engine.dialect.name == "postgresql":
        with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            _rewrite_tables(connection, probe, tables(connection))
        return
    # A separate connection: the engine's connections begin transactions, which rule out VACUUM.
    # The target of a link: SQLite writes the new file's pages next to it.
    file = Path(str(database.url.database)).resolve()
    try:
        with closing(
            sqlite3.connect(f"{file.as_uri()}?mode=rw", database.lock_timeout, uri=True)
        ) as connection:
            _write_file(connection, file)
    except (sqlite3.Error, OSError) as error:
        database.note(error)
        raise UnfinishedError(one_line(error)) from error


def _write_file(connection: sqlite3.Connection, file: Path) -> None:
    """Rewrite SQLite's file. Raises UnfinishedError if there is no room."""
    try:
        # Otherwise pages in the log would take room in addition to the new pages; readers may stay.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        connection.execute("VACUUM")
    except sqlite3.Error as error:
        # Uploads need the room that a new, half-written file takes in the log.
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if getattr(error, "sqlite_errorcode", 0) & KIND in OF_FILES:
            advice = (
                f"make room in {file.parent} and in its temporary folder, or name another as SQLITE_TMPDIR"
            )
            raise UnfinishedError(f"SQLite cannot write its new file ({error}): {advice}") from error
        raise
    _empty_log(connection)


def _empty_log(connection: sqlite3.Connection) -> None:
    """Empty the log. Each try waits for readers as long as a write would for a lock."""
    for _ in range(2):
        (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
    raise UnfinishedError(STILL_READ)


def _rewrite_tables(connection: Connection, probe: tuple[str, str], tables: Sequence[str]) -> None:
    """Rewrite the tables once no transaction sees the moved rows' old versions, which would be copied."""
    connection.exec_driver_sql(f"SET lock_timeout = {LOCK_MILLISECONDS}")
    try:
        _wait_for_readers(connection, *probe)
        for name in tables:
            _rewrite_table(connection, name)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            raise UnfinishedError(STILL_READ) from error
        raise
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("RESET lock_timeout")


def _wait_for_readers(connection: Connection, probe: str, column: str) -> None:
    """Raise UnfinishedError if a transaction still sees rows that were moved before now."""
    # Make one more old row, in a small table: once it can be removed, so can all older rows.
    connection.exec_driver_sql(f"UPDATE {probe} SET {column} = {column}")
    last = time.monotonic() + WAIT_SECONDS
    while _rewrite_table(connection, probe):
        if time.monotonic() > last:
            raise UnfinishedError(STILL_READ)
        time.sleep(TRY_SECONDS)


def _rewrite_table(connection: Connection, name: str) -> int:
    """Rewrite a table. Return how many deleted rows were copied because a transaction still sees them."""
    kept: list[int] = []

    def hear(said: Diagnostic) -> None:
        # In every language, the number of dead rows that could not be removed comes first.
        if number := re.search(r"\d+", said.message_detail or ""):
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


LOOK_SECONDS = 60.0


class Days:
    """Logs each day's counts, deletes reports whose retention is over, and has the files rewritten."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._seen: date | None = None
        # (study's number, version): the day on which its retention was last done.
        self._kept: dict[tuple[int, int], date] = {}

    def start(self) -> None:
        """Check periodically, in a thread of the serving process, because threads do not survive a fork."""
        Thread(target=self._watch, name="days", daemon=True).start()

    def look(self) -> None:
        """Do the work that is due. A failure is logged and retried at a later check."""
        today = self._collector.today()
        # Deletions first, so that the upkeep removes the deleted reports from the files.
        for name, work in (("retention", self._keep_retention), ("upkeep", self._keep_up)):
            try:
                work(today)
            except Exception as error:
                _tell(name, error)

    def _keep_retention(self, today: date) -> None:
        if self._seen == today:
            return
        all_done = True
        for kept in kept_everywhere(self._collector):
            place = (kept.number, kept.version)
            if self._kept.get(place) == today:
                continue
            try:
                self._delete_overdue(kept, today)
            except Exception as error:
                if is_of_all(error) or isinstance(error, (InputError, ProblemError)):
                    raise
                # A failure of one study must not stop the deletions of others.
                _tell(f"retention of {kept.study}", error)
                all_done = False
            else:
                self._kept[place] = today
        if all_done:
            self._seen = today

    def _delete_overdue(self, kept: Kept, today: date) -> None:
        collector = self._collector
        find = partial(collector.rules.find, reserved=True)
        deleted = delete_overdue(collector.writer.act, find, kept, today, audit_log.BY_SERVER)
        note_deleted(collector, kept, deleted)

    def _keep_up(self, _today: date) -> None:
        """Run the upkeep that the first reports of a day trigger, in case none arrive."""
        self._collector.writer.change(("", b""), lambda _session: None)

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(LOOK_SECONDS)


def _tell(what: str, error: Exception) -> None:
    """Log that part of the day's work failed."""
    why = one_line(getattr(error, "orig", error))
    if isinstance(error, WrongSumsError):
        why = f"a running summary is damaged ({why}): run `ldpkit upkeep --recount`"
    line = f"the day's {what} failed, and is tried again: {why}"
    log_throttled(logging.WARNING, line, code="day-failed")


def kept_everywhere(collector: Collector) -> list[Kept]:
    """Return the retention of every version of every study that states one."""
    arrivals, today = collector.arrivals.get(), collector.today()
    with collector.database.read() as session:
        # One query for all studies: a server may have a thousand, and metrics are read four times a minute.
        versions = store.every_version(session)
    documents = [(one, number, collector.rules.find(one, version).study) for one, number, version in versions]
    return [
        kept
        for study_id, number, study in documents
        for kept in kept_of(study_id, number, [study], arrivals, today)
    ]


def documents_of(collector: Collector, study_id: str) -> list[Study]:
    """Return every version of a study."""
    with collector.database.read() as session:
        versions = store.published_versions(session, study_id)
    return [collector.rules.find(study_id, version).study for version in versions]


def note_deleted(collector: Collector, kept: Kept, deleted: int) -> None:
    """Add reports that retention deleted to the counts."""
    if deleted:
        collector.metrics.count_deletion("retention", deleted)
        collector.has_changed(kept.study)
        collector.arrivals.forget()
