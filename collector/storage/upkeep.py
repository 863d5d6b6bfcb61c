"""Daily upkeep: remove the order of arrival of earlier days' reports from the database's files."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import cast

from sqlalchemy import Table, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector.limiter import log_throttled
from collector.problems import UNAVAILABLE, ProblemError
from collector.storage import queries
from collector.storage.database import Database, one_line
from collector.storage.invitations import delete_used_invitations
from collector.storage.models import UpkeepRow
from collector.storage.queries import insert_new
from collector.storage.rewriting import UnfinishedError, rewrite_files
from ldp_client.documents.errors import InputError

A_DAY = timedelta(1)
# How far a correct clock may be from the last upkeep, which runs with the first reports of a day.
MOST_BACK = timedelta(7)
MOST_AHEAD = timedelta(366)
FIRST_DAY = date(2026, 1, 1)
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


def utc_today() -> date:
    """Return the server's day, in UTC."""
    return datetime.now(UTC).date()


class Upkeep:
    """Detects that a day has ended since the last upkeep. secret: from the setting invitation_key."""

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
        """Delete used invitations and rewrite storage. Return True if there was anything to do.

        even_if_done: process all days, including today. Future days, from another clock, become today.

        Raises SQLAlchemyError and UnfinishedError: the next caller must do it again then. Raises InputError
        with the studies whose invitations were used with another key: all other work is done then.
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
            kept = "used invitations could not be deleted, but all other upkeep was done"
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
            queries.date_back(session, today + A_DAY, today)
        if self._database.engine.dialect.name == "postgresql":
            days = {"since": since, "today": today, "all": even_if_done}
            session.execute(text(WRITE_AGAIN), days)
        return left_out


def last_day(session: Session) -> date | None:
    """Return the day of the last upkeep, None before the first."""
    return session.execute(select(UpkeepRow.day)).scalar()


def is_vouched_for(session: Session, today: date) -> bool:
    """Return True if earlier upkeeps confirm today's date, so that the server may delete by it.

    False if the clock jumped today: that day counts as an upkeep's day from the first upload on.
    """
    row = session.execute(select(UpkeepRow.day, UpkeepRow.jumped)).first()
    if row is None or abs(today - row.day) > MOST_BACK:
        return False
    return row.jumped is None or today > row.jumped


def doubt_of(session: Session, today: date) -> str:
    """Return why today cannot be the day, given the day of the last upkeep, or "" if it can."""
    last = last_day(session)
    if last is None:
        return "" if today >= FIRST_DAY else f"the clock says {today}"
    if today >= FIRST_DAY and -MOST_BACK <= today - last <= MOST_AHEAD:
        return ""
    return f"the clock says {today}, and the last upkeep was on {last}; `ldpkit upkeep` can settle it"


def settled_day(session: Session, today: date) -> date:
    """Return today, or the day of the last upkeep if today is in doubt."""
    if not doubt_of(session, today):
        return today
    return last_day(session) or FIRST_DAY


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
    """Delete the used invitations of every study. Return {study id: why} for studies where it failed."""
    left_out = {}
    for study_id, number in queries.study_numbers(session):
        # Uploads and withdrawals wait: they must not look for a row while it is moved.
        queries.locked_study(session, study_id)
        try:
            delete_used_invitations(session, number, secret)
        except InputError as error:
            left_out[study_id] = str(error)
    return left_out
