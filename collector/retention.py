"""Delete reports permanently: on request, or when the days are over for which their study keeps them."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy.orm import Session

from collector import audit_log, store, studies
from collector.audit_log import Act
from collector.clock import doubt_of
from collector.reports import sums
from collector.reports.paging import page_limit
from collector.reports.rules import kept_until
from collector.reports.sums import FindRules, take_back_reports
from collector.store import PackedReport
from collector.tickets import codes
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.context import Collector
    from collector.status import StudyOverview

# Small enough that uploads hardly wait.
REPORTS_AT_ONCE = 2000


def delete_chosen(
    act: Act, find: FindRules, study_id: str, chosen: store.Chosen, most: int | None, is_past: bool = False
) -> int:
    """Delete reports of a study, or at most about `most`; return how many, without withdrawn reports.

    Their ids stay as long as a copy might be accepted, which a relay or a backup may have: until the study is
    closed permanently, or the last day of all these reports is over.
    """
    versions = [chosen.version or 0]
    if chosen.version is None:
        versions = act(lambda session: list(store.document_digests(session, chosen.study)))
    at_once = min(REPORTS_AT_ONCE, page_limit([find(study_id, version) for version in versions]))

    def delete_page(session: Session, after: bytes) -> list[PackedReport]:
        # The lock keeps uploads out: an upload that found a report here must not lose it before it commits.
        row = store.locked_study(session, study_id)
        keep_ids = not row.final and not is_past
        deleted = store.remove_reports(session, chosen, after, at_once, keep_ids)
        if deleted and not row.deleted:
            take_back_reports(session, find, study_id, row.number, deleted)
        if not deleted and row.final and (after or not is_past):
            # An upkeep may have run since the study was closed: the next one takes these reports out of the
            # files. A server's look that found nothing to delete asks for none.
            store.ask_upkeep(session)
        if not all(report.withdrawn for report in deleted):
            # A running export would lack these reports and yet look complete.
            row.deletions += 1
        return deleted

    total, after = 0, b""
    while most is None or total < most:
        deleted = act(partial(delete_page, after=after))
        if not deleted:
            break
        total += sum(not report.withdrawn for report in deleted)
        after = max(report.id for report in deleted)
    return total


def delete_reports(
    act: Act, find: FindRules, study_id: str, before: date | None, by: str, most: int | None = None
) -> int:
    """Delete the reports from before a day (UTC), or all, as `delete_chosen` does; return how many.

    by: the name of a key. Raises ProblemError for an unknown study.
    """

    def begin(session: Session) -> int:
        number = store.locked_study(session, study_id).number
        if before is not None:
            # One command may send several requests until all reports are deleted.
            audit_log.record_once(session, by, "expire", study_id, f"reports from before {before}")
        return number

    return delete_chosen(act, find, study_id, store.Chosen(act(begin), before), most)


def delete_study(act: Act, find: FindRules, study_id: str, by: str, most: int | None = None) -> int:
    """Close a study permanently and delete its reports and tickets; return how many reports.

    The document stays, so that its id cannot get another meaning. Devices get it only by its version, and use
    it to check that the study's collector deletes their report. Raises as `delete_reports` does.
    """

    def end(session: Session) -> None:
        row = store.locked_study(session, study_id)
        if not row.deleted:
            audit_log.record(session, by, "delete study", study_id)
        studies.close(session, study_id, deleted=True)
        # Its summary goes at once, so that a damaged one does not keep the reports.
        sums.forget(session, row.number)
        codes.forget(session, row.number)

    act(end)
    return delete_reports(act, find, study_id, None, by, most)


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
    def chosen(self) -> store.Chosen:
        """Return the overdue reports."""
        return store.Chosen(self.number, self.before, self.version)

    @property
    def is_past(self) -> bool:
        """Return True if the last day of all the version's reports is over."""
        return self.until is not None and self.before == date.max


def kept_of(find: FindRules, study: StudyOverview, today: date) -> list[Kept]:
    """Return the retention of each version of a study that states one."""
    retained = []
    for version in study.versions:
        document = find(study.id, version).study
        days, until = document.retention_days, kept_until(document)
        if days is None:
            continue
        if until is not None:
            before = date.max if today > until else date.min
        else:
            before = today - timedelta(days) if days < today.toordinal() else date.min
        counts = [count for count in study.arrivals if count.version == version]
        overdue = sum(count.reports for count in counts if count.day < before)
        reports = sum(count.reports for count in counts)
        retained.append(Kept(study.id, study.number, version, days, until, before, reports, overdue))
    return retained


def kept_everywhere(collector: Collector) -> list[Kept]:
    """Return the retention of every version of every study that states one."""
    find, today = collector.rules.find, collector.today()
    return [kept for study in collector.studies.get() for kept in kept_of(find, study, today)]


def delete_overdue(act: Act, find: FindRules, kept: Kept, today: date) -> int:
    """Delete a version's overdue reports; return how many.

    Raises InputError if today's date is in doubt, so that a wrong clock deletes nothing.
    """

    def begin(session: Session) -> bool:
        """Write the line of the audit log; return True if there are reports or ids to delete."""
        if doubt := doubt_of(session, today):
            raise InputError(f"{doubt}: nothing was deleted", code="admin.retention_clock_in_doubt")
        store.locked_study(session, kept.study)
        number = store.count_reports(session, kept.chosen)
        if not number:
            # Once a version's last day is over, the ids of its expired reports go too.
            return kept.is_past
        what = f"version {kept.version}, kept for {counted(kept.days, 'day')}: "
        # Several of a server's processes may delete a part each.
        by, how_many = audit_log.BY_SERVER, counted(number, "report")
        audit_log.record_once(session, by, "retention", kept.study, what, how_many)
        return True

    return delete_chosen(act, find, kept.study, kept.chosen, None, kept.is_past) if act(begin) else 0
