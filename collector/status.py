"""An operator's view: studies, their warnings, what else needs action, and measures for Prometheus."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector import audit_log, keys
from collector.models import DocumentRow
from collector.problems import ProblemError
from collector.retention import Kept, kept_everywhere, kept_of
from collector.store import REPORTS, STUDIES, count_withdrawn
from collector.tickets.codes import count_unused
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from collector.context import Collector

# Limits of a healthy study.
QUIET_DAYS = 3
SOON_DAYS = 7
REFUSED_SHARE = 0.05
# The oldest backup that is recent.
BACKUP_DAYS = 7
# How long before its last day a key should be replaced.
KEY_DAYS = 14
FREE_SHARE = 0.05
GIGABYTE = 10**9


class Arrivals(NamedTuple):
    """The number of reports of a study's version that arrived on a day, without withdrawn reports."""

    version: int
    day: date
    reports: int


class StudyOverview(NamedTuple):
    """A study in an operator's list. number: its key in other tables. versions: all that were published."""

    number: int
    id: str
    version: int
    closed: bool
    deleted: bool
    needs_tickets: bool
    opens: date | None
    closes: date | None
    versions: list[int]
    arrivals: list[Arrivals]

    @property
    def reports(self) -> int:
        """Return the number of reports of all versions."""
        return sum(count.reports for count in self.arrivals)

    @property
    def reports_now(self) -> int:
        """Return the number of reports of this version."""
        return sum(count.reports for count in self.arrivals if count.version == self.version)


def study_overviews(session: Session) -> list[StudyOverview]:
    """Return every study, by id."""
    # Versions are read last, so that they include each counted report's: one may be published meanwhile.
    keys = (REPORTS.c.study, REPORTS.c.version, REPORTS.c.day)
    counted = select(*keys, func.count()).where(REPORTS.c.payloads != b"").group_by(*keys)
    arrivals: dict[int, list[Arrivals]] = defaultdict(list)
    for study, *count in sorted(map(tuple, session.execute(counted))):
        arrivals[study].append(Arrivals(*count))
    columns = [STUDIES.c[name] for name in StudyOverview._fields if name in STUDIES.c]
    rows = session.execute(select(*columns).order_by(STUDIES.c.id)).all()
    versions: dict[int, list[int]] = defaultdict(list)
    for study, version in sorted(map(tuple, session.execute(select(DocumentRow.study, DocumentRow.version)))):
        versions[study].append(version)
    return [StudyOverview._make([*row, versions[row.number], arrivals[row.number]]) for row in rows]


def database_bytes(session: Session) -> int:
    """Return the size of the database on its disk; for SQLite without its log."""
    if session.get_bind().dialect.name == "postgresql":
        return int(session.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages, size = (
        session.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("page_count", "page_size")
    )
    return int(pages) * int(size)


def state_of(study: StudyOverview, today: date) -> str:
    """Return the study's state in one to three words."""
    if study.deleted:
        return "deleted"
    if study.closed:
        return "closed"
    if study.closes is not None and today > study.closes:
        return "ended"
    return "not open yet" if study.opens is not None and today < study.opens else "open"


def days_left(study: StudyOverview, today: date) -> int | None:
    """Return the days until the study's last day is over, including today.

    None if it names no last day, or takes no reports.
    """
    if study.closes is None or state_of(study, today) not in ("open", "not open yet"):
        return None
    return (study.closes - today).days + 1


def listed(collector: Collector, study: StudyOverview) -> dict[str, Any]:
    """Return a study's entry in a list."""
    document, today = collector.rules.find(study.id, study.version).study, collector.today()
    return {
        "id": study.id,
        "version": study.version,
        "title": document.title,
        "state": state_of(study, today),
        "opens": study.opens and study.opens.isoformat(),
        "closes": study.closes and study.closes.isoformat(),
        "days_left": days_left(study, today),
        "reports": study.reports,
        "reports_now": study.reports_now,
        "summed": document.protocol is not None,
    }


def status_of(
    collector: Collector, study: StudyOverview, refusals: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return everything known about one study. refusals: of the uploads to all studies."""
    document, today = collector.rules.find(study.id, study.version).study, collector.today()
    kept = kept_of(collector.rules.find, study, today)
    by_day: dict[date, int] = defaultdict(int)
    by_version = dict.fromkeys(study.versions, 0)
    for count in study.arrivals:
        by_day[count.day] += count.reports
        by_version[count.version] += count.reports
    # As `Rules.needs_ticket`: if tickets carry values, they are needed even if none were made yet.
    tickets = document.channel.tickets if document.channel else None
    left = None
    if tickets is None and (study.needs_tickets or document.carried):
        with collector.database.read() as session:
            left = count_unused(session, study.number)
    status = {
        **listed(collector, study),
        "by_day": [{"day": day.isoformat(), "reports": number} for day, number in sorted(by_day.items())],
        "versions": [
            {"version": version, "reports": number} for version, number in sorted(by_version.items())
        ],
        "tickets_left": left,
        "issuer": None if tickets is None else tickets.issuer,
        "refused": dict(sorted(refusals.get(study.id, {}).items())),
        "retention": [
            {
                "study": study.id,
                "version": version.version,
                "days": version.days,
                "until": version.until and version.until.isoformat(),
                "reports": version.reports,
                "overdue": version.overdue,
            }
            for version in kept
        ],
    }
    return {**status, "attention": _attention(status, study, kept, today)}


def _attention(
    status: Mapping[str, Any], study: StudyOverview, kept: Sequence[Kept], today: date
) -> list[str]:
    """Return warnings for the operator, in sentences; none for a healthy study."""
    warnings, refused = [], sum(status["refused"].values())
    if refused > REFUSED_SHARE * (refused + status["reports"]):
        reason = max(status["refused"], key=lambda name: (status["refused"][name], name))
        uploads = counted(refused, "upload")
        warnings.append(f"{uploads} refused since the collector started, most of them as {reason}")
    if status["state"] == "open":
        days, left = [count["day"] for count in status["by_day"]], status["days_left"]
        silent = (today - date.fromisoformat(days[-1])).days if days else 0
        if not days:
            # A report may have arrived and been withdrawn or deleted.
            warnings.append("it has no report")
        elif silent > QUIET_DAYS:
            warnings.append(f"no report came for {silent} days")
        if left == 1:
            warnings.append("today is its last day")
        elif left is not None and left <= SOON_DAYS:
            warnings.append(f"it ends in {counted(left - 1, 'day')}")
        if status["tickets_left"] == 0:
            warnings.append("no ticket is left: no other person can take part")
    return warnings + [line for version in kept if (line := _keeping(version, study, today))]


def _keeping(kept: Kept, study: StudyOverview, today: date) -> str:
    """Return a warning about the retention of a version's reports, or ""."""
    if kept.overdue:
        are = "report is" if kept.overdue == 1 else "reports are"
        return f"{kept.overdue} {are} kept for longer than version {kept.version} states"
    if kept.until is not None:
        reports, left, which, summary = kept.reports, (kept.until - today).days, "", "nor is the summary"
    else:
        # Each day's reports are kept for the same number of days.
        days = {count.day: count.reports for count in study.arrivals if count.version == kept.version}
        first = min(days, default=today)
        reports, which, summary = days.get(first, 0), ", the first to go,", "nor in the summary"
        # In days: a study may state so many that the last day is beyond the calendar.
        left = kept.days - (today - first).days
    if left > SOON_DAYS or not reports:
        return ""
    reports_of = f"{counted(reports, 'report')} of version {kept.version}{which}"
    return f"{reports_of} are kept until {today + timedelta(left)} and no longer, {summary}: export them"


def measures_of(collector: Collector) -> list[Metric]:
    """Return the measures; if the database fails, only that is reported."""
    size = _gauge("database_bytes", "What the database takes on its disk")
    reports = _gauge("study_reports", "Reports of a study, withdrawn ones not counted", "study")
    is_open = _gauge("study_open", "Whether a study is open today", "study")
    text = "Days until a study's last day is over, for studies that name one"
    left = _gauge("study_days_left", text, "study")
    text = "Reports that are kept for longer than their study states"
    overdue = _gauge("study_reports_overdue", text, "study")
    today, late = collector.today(), Counter[str]()
    try:
        with collector.database.read() as session:
            size.add_metric([], database_bytes(session))
        for kept in kept_everywhere(collector):
            late[kept.study] += kept.overdue
        studies = collector.studies.get()
    except (SQLAlchemyError, ProblemError):
        return [database_up(False)]
    for study in studies:
        reports.add_metric([study.id], study.reports)
        overdue.add_metric([study.id], late[study.id])
        is_open.add_metric([study.id], state_of(study, today) == "open")
        remaining = days_left(study, today)
        if remaining is not None:
            left.add_metric([study.id], remaining)
    return [database_up(True), size, reports, is_open, left, overdue]


def database_up(answers: bool) -> Metric:
    """Return the measure that tells whether the database answers."""
    is_up = _gauge("database_up", "Whether the database answers")
    is_up.add_metric([], int(answers))
    return is_up


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ldpkit_{name}", text, labels=labels)


def checks_of(collector: Collector) -> list[dict[str, Any]]:
    """Return what the collector knows of its health, at least one entry for each subject.

    ok: whether nothing needs action. detail: what is found, and what to do.
    """
    today, studies, file = collector.today(), collector.studies.get(), collector.database.file
    with collector.database.read() as session:
        last, made, size = audit_log.last_backup(session), keys.list_keys(session), database_bytes(session)
        exported = audit_log.last_exports(session)
        withdrawn = {
            study.id: count_withdrawn(session, study.number)
            for study in studies
            if study.id in exported and not study.deleted
        }
    # 1. A recent backup.
    age, stale = "", ["none was made by `ldpkit backup`"]
    if last is not None:
        days = (today - last).days
        age = f"the last one is {counted(days, 'day')} old"
        stale = [f"{age}: let a timer run `ldpkit backup`"] if days > BACKUP_DAYS else []
    # 2. Keys that expire.
    soon = today + timedelta(KEY_DAYS)
    ending = [
        f"{key.name} expires on {key.expires}: make a new one, and revoke it"
        for key in made
        if key.expires is not None and key.expires < soon
    ]
    # 3. Room: the daily upkeep writes the database a second time.
    taken = f"the database takes {size / GIGABYTE:.1f} GB"
    room, is_full = f"{taken}; look at PostgreSQL's disk yourself", False
    if file is not None:
        disk = shutil.disk_usage(file.parent)
        room = f"{disk.free / GIGABYTE:.1f} GB free, {taken}"
        is_full = disk.free <= max(size, FREE_SHARE * disk.total)
    full = [f"{room}: make room, the daily upkeep needs as much again"] if is_full else []
    # 4. Studies that are open although late reports are not taken either.
    grace = timedelta(collector.settings.grace_days)
    ended = [
        f"{study.id} ended on {study.closes}: run `ldpkit close {study.id}`, then export it"
        for study in studies
        if study.closes is not None and state_of(study, today) == "ended" and study.closes + grace < today
    ]
    # 5. Exports with withdrawn reports. Their ids are forgotten in time: a smaller count may hide new ones.
    old = [
        f"reports of {study_id} were withdrawn since its last export on {exported[study_id][0]}: export "
        "again, and delete older copies"
        for study_id, count in withdrawn.items()
        if count != exported[study_id][1]
    ]
    return [
        {"name": name, "ok": not problems, "detail": detail}
        for name, problems, fine in (
            ("backup", stale, age),
            ("keys", ending, f"none expires before {soon}"),
            ("disk", full, room),
            ("studies", ended, "none is open after its last day"),
            ("exports", old, "none has reports that were withdrawn since"),
        )
        for detail in problems or [fine]
    ]
