"""An operator's view of a study: its state, reports by day, refusals, and warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from collector import store
from collector.retention import Kept
from collector.storage.tickets import count_unused
from collector.store import Arrivals, StudyOverview
from ldp_client.words.text import counted
from schemas import Study

# Limits of a healthy study.
QUIET_DAYS = 3
SOON_DAYS = 7
REFUSED_SHARE = 0.05


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


def listed(study: StudyOverview, document: Study, today: date) -> dict[str, Any]:
    """Return a study's entry in a list."""
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


def in_one_line(study: Mapping[str, Any]) -> str:
    """Return an entry that `listed` made, in columns."""
    is_open = study["state"] in ("open", "not open yet")
    state = f"{study['opens'] or '…'} to {study['closes'] or '…'}" if is_open else study["state"]
    return f"{study['id']}\tversion {study['version']}\t{state}\t{counted(study['reports'], 'report')}"


def key_in_one_line(key: Mapping[str, Any]) -> str:
    """Return a key's name, role, studies, last day and last use, in columns."""
    studies = "all studies" if key["studies"] is None else ", ".join(key["studies"])
    until = "no last day" if key["expires"] is None else f"until {key['expires']}"
    used = "never used" if key["used"] is None else f"used on {key['used']}"
    return "\t".join([key["name"], key["role"], studies, until, used])


def kept_in_one_line(kept: Mapping[str, Any]) -> str:
    """Return the retention of a version's reports, in columns."""
    until = f"until {kept['until']}" if kept["until"] else "after each one's day"
    stated = f"{counted(kept['days'], 'day')}, {until}"
    return "\t".join(
        [f"version {kept['version']}", stated, f"{kept['reports']} kept", f"{kept['overdue']} overdue"]
    )


def entry_in_one_line(entry: Mapping[str, Any]) -> str:
    """Return an entry of the audit log, in columns."""
    return "\t".join([entry["at"], entry["key"], entry["action"], entry["study"] or "", entry["detail"]])


def is_meant(study: Mapping[str, Any], words: str, state: str | None = None) -> bool:
    """Return True if a study is in that state, and its id or title has every word."""
    text = f"{study['id']} {study['title']}".casefold()
    return state in (None, study["state"]) and all(word in text for word in words.casefold().split())


def in_lines(status: Mapping[str, Any]) -> list[str]:
    """Return the lines of a `status_of` result for people."""
    left = status["days_left"]
    until = "" if left is None else f", {counted(left, 'day')} left with today"
    tickets = status["tickets_left"]
    refused = ", ".join(f"{name} {number}" for name, number in status["refused"].items())
    versions = ", ".join(
        f"{one['version']} ({counted(one['reports'], 'report')})" for one in status["versions"]
    )
    lines = [
        f"{status['id']}: {status['title']}",
        f"state\t{status['state']}{until}; {status['opens'] or '…'} to {status['closes'] or '…'}",
        f"reports\t{status['reports']}",
        *(f"\t{one['day']}\t{one['reports']}" for one in status["by_day"]),
        f"version\t{status['version']}, of {versions}",
        f"refused\t{refused or 'nothing'} (since the collector started)",
        *(f"retention\t{kept_in_one_line(one)}" for one in status["retention"]),
    ]
    if tickets is not None:
        lines.append(f"invited\t{counted(tickets, 'ticket')} left")
    if status.get("issuer") is not None:
        lines.append(f"tokens\tof {status['issuer']}, one a report")
    return [*lines, *(f"look after: {line}" for line in status["attention"])]


class Seen(NamedTuple):
    """The counts and facts that a status shows.

    Attributes:
        arrivals: reports of all studies, by day.
        refused: uploads of this study that were refused since the collector started.
        kept: how long its versions' reports are kept.
    """

    arrivals: Sequence[Arrivals]
    refused: Mapping[str, int]
    kept: Sequence[Kept]


def status_of(
    session: Session, study: StudyOverview, document: Study, seen: Seen, today: date
) -> dict[str, Any]:
    """Return everything known about one study."""
    by_day: dict[date, int] = defaultdict(int)
    by_version: dict[int, int] = dict.fromkeys(store.published_versions(session, study.id), 0)
    for one in seen.arrivals:
        if one.study == study.number:
            by_day[one.day] += one.reports
            by_version[one.version] = by_version.get(one.version, 0) + one.reports
    # As `Rules.needs_ticket`: if tickets carry values, they are needed even if none were made yet.
    tickets = document.channel.tickets if document.channel else None
    needs_tickets = tickets is None and (study.invited or bool(document.carried))
    status = {
        **listed(study, document, today),
        "by_day": [{"day": day.isoformat(), "reports": number} for day, number in sorted(by_day.items())],
        "versions": [{"version": one, "reports": number} for one, number in sorted(by_version.items())],
        "tickets_left": count_unused(session, study.number) if needs_tickets else None,
        "issuer": None if tickets is None else tickets.issuer,
        "refused": dict(sorted(seen.refused.items())),
        "retention": [one.document() for one in seen.kept],
    }
    return {**status, "attention": _attention(status, seen, today)}


def _attention(status: Mapping[str, Any], seen: Seen, today: date) -> list[str]:
    """Return warnings for the operator, in sentences; none for a healthy study."""
    said = [_refusals(status)]
    if status["state"] == "open":
        said += [_silence(status["by_day"], today), _ending(status["days_left"])]
        if status["tickets_left"] == 0:
            said.append("no ticket is left: no other person can take part")
    said += [_keeping(one, seen.arrivals, today) for one in seen.kept]
    return [line for line in said if line]


def _keeping(kept: Kept, arrivals: Sequence[Arrivals], today: date) -> str:
    """Return a warning about the retention of a version's reports, or ""."""
    if kept.overdue:
        are = "report is" if kept.overdue == 1 else "reports are"
        return f"{kept.overdue} {are} kept for longer than version {kept.version} states"
    if kept.until is None:
        return _keeping_each(kept, arrivals, today)
    if (kept.until - today).days > SOON_DAYS or not kept.reports:
        return ""
    which = f"{counted(kept.reports, 'report')} of version {kept.version}"
    return f"{which} are kept until {kept.until} and no longer, nor is the summary: export them"


def _keeping_each(kept: Kept, arrivals: Sequence[Arrivals], today: date) -> str:
    """Return the warning if each day's reports are kept for the same number of days."""
    here = [one for one in arrivals if (one.study, one.version) == (kept.number, kept.version)]
    first = min(here, key=lambda one: one.day, default=None)
    # Compare in days: a study may state so many that the last day is beyond the calendar.
    left = None if first is None else kept.days - (today - first.day).days
    if first is None or left is None or left > SOON_DAYS:
        return ""
    which = f"{counted(first.reports, 'report')} of version {kept.version}, the first to go,"
    until = today + timedelta(left)
    return f"{which} are kept until {until} and no longer, nor in the summary: export them"


def _refusals(status: Mapping[str, Any]) -> str:
    refused = sum(status["refused"].values())
    if refused <= REFUSED_SHARE * (refused + status["reports"]):
        return ""
    reason = max(status["refused"], key=lambda name: (status["refused"][name], name))
    return f"{counted(refused, 'upload')} refused since the collector started, most of them as {reason}"


def _silence(by_day: Sequence[Mapping[str, Any]], today: date) -> str:
    if not by_day:
        # A report may have arrived and been withdrawn or deleted.
        return "it has no report"
    silent = (today - date.fromisoformat(by_day[-1]["day"])).days
    return f"no report came for {silent} days" if silent > QUIET_DAYS else ""


def _ending(days_left: int | None) -> str:
    if days_left is None or days_left > SOON_DAYS:
        return ""
    return "today is its last day" if days_left == 1 else f"it ends in {counted(days_left - 1, 'day')}"
