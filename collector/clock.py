"""The server's day, and whether earlier upkeeps confirm it."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from collector.models import UpkeepRow

# How far a correct clock may be from the last upkeep, which runs with the first reports of a day.
MOST_BACK = timedelta(7)
MOST_AHEAD = timedelta(31)
FIRST_DAY = date(2026, 1, 1)


def utc_today() -> date:
    """Return the server's day, in UTC."""
    return datetime.now(UTC).date()


def last_day(session: Session) -> date | None:
    """Return the day of the last upkeep, None before the first."""
    return session.execute(select(UpkeepRow.day)).scalar()


def doubt_of(session: Session, today: date) -> str:
    """Return why today cannot be the day, given the day of the last upkeep, or "" if it can."""
    last = last_day(session)
    if last is None:
        return "" if today >= FIRST_DAY else f"the clock says {today}"
    if today >= FIRST_DAY and -MOST_BACK <= today - last <= MOST_AHEAD:
        return ""
    return f"the clock says {today}, and the last upkeep was on {last}: set it right, or POST to /v1/upkeep"


def settled_day(session: Session, today: date) -> date:
    """Return today, or the day of the last upkeep if today is in doubt."""
    if not doubt_of(session, today):
        return today
    return last_day(session) or FIRST_DAY
