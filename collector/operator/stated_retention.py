"""Stated retention: delete reports when the days are over for which their study keeps them.

Each version states the retention of its own reports: a number of days after its `closes`, or, without
`closes`, after the day on which each report arrived. Their part of the running summary is deleted too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from collector.operator.retention import REPORTS_AT_ONCE, Act, Doomed, delete_doomed
from collector.reports.paging import page_limit
from collector.reports.rules import kept_until
from collector.reports.sums import FindRules, require_sums
from collector.storage import audit_log, queries
from collector.storage.overviews import Arrivals
from collector.storage.upkeep import doubt_of, is_vouched_for
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted
from schemas import Study

ACTION = "retention"
LOGGER = logging.getLogger("collector")


class Kept(NamedTuple):
    """The retention of a version's reports.

    Attributes:
        days: the number of days that the version states.
        until: the last day for all its reports, or None if it depends on the day of arrival.
        before: reports from before this day are overdue.
        reports: how many reports are stored.
        overdue: how many of these are overdue.
    """

    study: str
    number: int
    version: int
    days: int
    until: date | None
    before: date
    reports: int
    overdue: int

    @property
    def is_past(self) -> bool:
        """Return True if the last day of all the version's reports is over."""
        return self.until is not None and self.before == date.max

    def document(self) -> dict[str, Any]:
        """Return the members for programs."""
        until = self.until and self.until.isoformat()
        own = {"study": self.study, "version": self.version, "days": self.days, "until": until}
        return {**own, "reports": self.reports, "overdue": self.overdue}


def kept_of(
    study_id: str, number: int, versions: Iterable[Study], arrivals: Sequence[Arrivals], today: date
) -> list[Kept]:
    """Return the retention of each version of a study that states one. arrivals: of all studies."""
    found = []
    for study in versions:
        days = study.retention_days
        if days is None:
            continue
        until, before = kept_until(study), _first_kept(study, days, today)
        here = [one for one in arrivals if (one.study, one.version) == (number, study.version)]
        overdue = sum(one.reports for one in here if one.day < before)
        reports = sum(one.reports for one in here)
        found.append(Kept(study_id, number, study.version, days, until, before, reports, overdue))
    return found


def _first_kept(study: Study, days: int, today: date) -> date:
    """Return the day such that reports of the version from before it are overdue."""
    until = kept_until(study)
    if until is not None:
        return date.max if today > until else date.min
    return today - timedelta(days) if days < today.toordinal() else date.min


def delete_overdue(
    act: Act, find: FindRules, kept: Kept, today: date, by: str, most: int | None = None
) -> int:
    """Delete a version's overdue reports, or at most about `most`; return how many.

    The server waits until an upkeep of the last days has confirmed today's date.

    by: the name of a key, or BY_SERVER. Raises InputError if today's date is in doubt, so that a wrong clock
    deletes nothing.
    """
    if not act(lambda session: _begin(session, kept, today, by)):
        return 0
    at_once = min(REPORTS_AT_ONCE, page_limit([find(kept.study, kept.version)]))
    doomed = Doomed(kept.study, kept.number, kept.before, kept.version, at_once, kept.is_past)
    return delete_doomed(act, find, doomed, most)


def _begin(session: Session, kept: Kept, today: date, by: str) -> bool:
    """Write the line of the audit log; return True if there are reports or ids to delete."""
    if doubt := doubt_of(session, today):
        raise InputError(f"{doubt}: nothing was deleted", code="admin.retention_clock_in_doubt")
    queries.locked_study(session, kept.study)
    require_sums(session, kept.study, kept.number)
    number = queries.count_reports(session, queries.Chosen(kept.number, kept.before, kept.version))
    is_right = by != audit_log.BY_SERVER or is_vouched_for(session, today)
    if not number:
        # Once a version's last day is over, the ids of its expired reports go too.
        return kept.is_past and is_right
    if not is_right:
        LOGGER.warning(
            "%s of %s were kept for long enough; they are deleted tomorrow, as no upkeep of the last days "
            "says that today is right, or at once with `ldpkit expire`",
            counted(number, "report"),
            kept.study,
        )
        return False
    what = f"version {kept.version}, kept for {counted(kept.days, 'day')}: "
    # Deletion in several parts, as by a server's processes, logs the total at the first part.
    if not audit_log.is_said_today(session, by, ACTION, kept.study, what):
        audit_log.record(session, by, ACTION, kept.study, what + counted(number, "report"))
    return True
