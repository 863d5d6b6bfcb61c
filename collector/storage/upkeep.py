"""Once a day: the database's files lose the order in which the reports of the days before came."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from typing import cast

from sqlalchemy import Table, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector.bounding import log_throttled
from collector.problems import UNAVAILABLE, ProblemError
from collector.storage import queries
from collector.storage.database import Database, one_line
from collector.storage.invitations import delete_used_invitations
from collector.storage.models import UpkeepRow
from collector.storage.queries import insert_new
from collector.storage.rewriting import UnfinishedError, rewrite_files
from ldp_client.documents.errors import InputError

A_DAY = timedelta(1)
# Since the last upkeep, which comes with the first reports of a day, a clock that is right has gone so far.
MOST_BACK = timedelta(7)
MOST_AHEAD = timedelta(366)
FIRST_DAY = date(2026, 1, 1)
# After a failure; twice as long after each further one, since uploads wait meanwhile.
RETRY_SECONDS = 300.0
LOGGER = logging.getLogger("collector")
# A row's place in a PostgreSQL table, and the transaction that wrote it, tell when it came.
WRITE_AGAIN = """
WITH moved AS (DELETE FROM reports WHERE day >= :since AND (day <> :today OR :all) RETURNING *)
INSERT INTO reports SELECT * FROM moved ORDER BY study, id
"""
# What a PostgreSQL server may be set to write down, and what it says then.
TELLTALE = {
    "log_statement": ("mod", "all"),
    "log_min_duration_statement": ("0",),
    "log_min_duration_sample": ("0",),
    "track_commit_timestamp": ("on",),
}


def utc_today() -> date:
    """The server's day, in UTC."""
    return datetime.now(timezone.utc).date()


class Upkeep:
    """Looks whether a day has ended since the last time. secret: of the setting invitation_key."""

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
        """Do it unless somebody has today; a failure is logged once, and it is tried again minutes later.

        Raises ProblemError where the clock cannot be right: reports would be kept by a wrong day for good.
        """
        today = self._today()
        if self._done == today:
            return
        self._require_right_clock()
        if self._clock() < self._not_before:
            return
        try:
            if not self.run(today) and self._pause:
                # What failed may have been this last step.
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
        """Say why it failed: once a day, however often it does."""
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
        """Raises ProblemError where the clock cannot be right."""
        if doubt := doubt_of(session, self._today()):
            log_throttled(
                logging.ERROR,
                f"{doubt}: nothing is stored until the clock is right, or confirmed",
                code="clock",
            )
            raise ProblemError(UNAVAILABLE, "the collector's clock is wrong; nothing was stored")

    def run(self, today: date, even_if_done: bool = False) -> bool:
        """Delete used invitations and rewrite storage; whether there was anything to do.

        even_if_done: of all days, today's too; reports of days to come, by another clock, came today.

        Raises SQLAlchemyError and UnfinishedError, and then it is to be done again, by whoever comes next;
        and InputError that names the studies whose invitations another key has used: all else is done then.
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
            kept = "used invitations could not be deleted, while all else was done"
            raise InputError(
                "; ".join([kept, *(f"study {study}: {why}" for study, why in left_out.items())]),
                code="ticket.used_not_deleted",
            )
        return True

    def _give_back(self, today: date) -> None:
        """Let the day count as not done, also for other processes and after this one has ended."""
        yesterday = update(UpkeepRow).where(UpkeepRow.day == today).values(day=today - A_DAY)
        with suppress(SQLAlchemyError):
            self._database.act(lambda session: session.execute(yesterday))

    def _order(self, session: Session, today: date, even_if_done: bool) -> dict[str, str] | None:
        """What `run` does in one transaction: the studies that were left out, and why; None: it was done."""
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
    """The day of the last upkeep, None before the first."""
    return session.execute(select(UpkeepRow.day)).scalar()


def is_vouched_for(session: Session, today: date) -> bool:
    """Whether upkeeps of the days before say that today is right, so that the server may delete by it.

    Not where the clock jumped today, which counts as an upkeep's day with the first upload that comes.
    """
    row = session.execute(select(UpkeepRow.day, UpkeepRow.jumped)).first()
    if row is None or abs(today - row.day) > MOST_BACK:
        return False
    return row.jumped is None or today > row.jumped


def doubt_of(session: Session, today: date) -> str:
    """Why today cannot be the day, beside that of the last upkeep; "" where it can."""
    last = last_day(session)
    if last is None:
        return "" if today >= FIRST_DAY else f"the clock says {today}"
    if today >= FIRST_DAY and -MOST_BACK <= today - last <= MOST_AHEAD:
        return ""
    return f"the clock says {today}, and the last upkeep was on {last}; `ldpkit upkeep` can settle it"


def settled_day(session: Session, today: date) -> date:
    """Today, or the day of the last upkeep where today is in doubt."""
    if not doubt_of(session, today):
        return today
    return last_day(session) or FIRST_DAY


def telltale_settings(database: Database) -> list[str]:
    """The settings of a PostgreSQL server that write down which report came when."""
    if database.engine.dialect.name != "postgresql":
        return []
    with database.read() as session:
        known = {
            row.name: row.setting for row in session.execute(text("SELECT name, setting FROM pg_settings"))
        }
    database.engine.dispose()
    return [f"{name} = {known[name]}" for name, bad in TELLTALE.items() if known.get(name) in bad]


def _take_day(session: Session, today: date) -> date | None:
    """The first day whose reports may not be in order, unless today's upkeep was done; it is from now on."""
    new = insert_new(session, cast(Table, UpkeepRow.__table__), ["day"]).values(day=today, jumped=today)
    row = session.execute(select(UpkeepRow.day, UpkeepRow.jumped).with_for_update()).first()
    if row is None:
        # Of several processes one comes first.
        return None if session.execute(new.returning(UpkeepRow.day)).scalar() is None else date.min
    last, jumped = row
    if last == today:
        return None
    if today > last + MOST_BACK or (jumped is not None and jumped > today):
        # A day to come must not keep what is right by then.
        jumped = today
    if today > last + MOST_BACK:
        LOGGER.warning(
            "the last upkeep was on %s, and it is %s by this clock: see that it is right", last, today
        )
    session.execute(update(UpkeepRow).values(day=today, jumped=jumped))
    if last > today:
        # By a day it may be another machine's that is ahead of midnight. It is put right all the same: else
        # the day that really ends next would be taken for done.
        if last > today + A_DAY:
            LOGGER.warning("a clock was wrong: the last upkeep was on %s; all days are put in order", last)
        return date.min
    # One earlier: a machine whose clock is behind wrote on after midnight.
    return last - A_DAY


def _delete_used(session: Session, secret: bytes) -> dict[str, str]:
    """Delete the used invitations of every study; {study id: why} of those where it cannot be done."""
    left_out = {}
    for study_id, number in queries.study_numbers(session):
        # Uploads and withdrawals wait: none may look for a row that is being moved.
        queries.locked_study(session, study_id)
        try:
            delete_used_invitations(session, number, secret)
        except InputError as error:
            left_out[study_id] = str(error)
    return left_out
