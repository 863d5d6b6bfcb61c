"""Through which day a dataset goes while its study takes reports: the clock that says so may be wrong."""

from __future__ import annotations

from datetime import date, timedelta

from sqlalchemy.orm import Session

from collector.exports.keeping import Place, key_of
from collector.exports.layout import PART, Manifest, folder_of
from collector.storage import upkeep
from collector.storage.archived import stored_counts
from ldp_client.documents.errors import InputError

A_DAY = timedelta(1)


def last_day_over(session: Session, place: Place, today: date, before: Manifest | None) -> date:
    """The last day that is over by this machine's clock, and none that no server of this database has seen.

    before: of the dataset that is there. Raises InputError where the clock must be behind: an export would
    delete files of days that ended.
    """
    stored = {day for (_, day), number in stored_counts(session, place.number).items() if number}
    if stored and max(stored) > today:
        advice = "Set the clock right; where that day is wrong, `ldpkit admin upkeep` dates them today"
        raise _behind(today, f"the database has reports of {max(stored)}", advice)
    folder = folder_of(place.study)
    # Days of which the database has nothing any more may go.
    had = {key_of(path)[1] for path in place.store.paths(folder) if PART.fullmatch(path)} & stored
    if before is not None and before.through is not None:
        had.add(date.fromisoformat(before.through))
    if had and max(had) >= today:
        advice = "Set the clock right; where that day is wrong, or to have today's too, add --with-today"
        raise _behind(today, f"{place.store.shown(folder)} has {max(had)} already", advice)
    # With a clock that is ahead a day to come would be called final, and exports be refused until then.
    known = {*stored, *filter(None, [upkeep.last_day(session)])}
    return min(today - A_DAY, max(known)) if known else today - A_DAY


def _behind(today: date, but: str, advice: str) -> InputError:
    return InputError(
        f"this machine's clock says {today} (UTC), and {but}: nothing was written. {advice}",
        code="export.clock_behind",
    )
