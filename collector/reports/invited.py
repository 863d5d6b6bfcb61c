"""Reports that need a ticket: which have an unused ticket, and the public values it carries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from collector import store
from collector.limiter import log_throttled
from collector.problems import TICKET_NEEDED, UNAVAILABLE, ProblemError
from collector.reports.rules import Rules
from collector.reports.writer import Upload
from collector.storage.tickets import Spending, carried_values, use_tickets
from collector.store import PackedReport
from ldp_client.documents.errors import InputError, ReportError

FindRules = Callable[[int], Rules]


class Invited(NamedTuple):
    """reports: new reports with the values of their tickets, which are used up now.

    refused: {id: why} of the other reports. A ticket that does not fit its report stays unused.
    """

    reports: list[PackedReport]
    refused: dict[bytes, ProblemError]


def invited_reports(
    session: Session,
    find: FindRules,
    study: store.StudyState,
    secret: bytes,
    uploads: Sequence[Upload],
    fresh: Sequence[PackedReport],
) -> Invited:
    """Return the new reports that need no ticket, or came with a valid one. find: a version's rules."""
    wanted = {report.id: report for report in fresh if find(report.version).needs_ticket(study)}
    free = [report for report in fresh if report.id not in wanted]
    missing = ProblemError(TICKET_NEEDED, "the report has no ticket, or its ticket was used")
    refused = dict.fromkeys(wanted, missing)
    by_ticket: dict[bytes, PackedReport] = {}
    for upload in uploads:
        # Compare the whole report: another report with its id must not be stored on this ticket.
        if upload.ticket is not None and wanted.get(upload.reports[0].id) == upload.reports[0]:
            by_ticket.setdefault(upload.ticket, wanted.pop(upload.reports[0].id))
    if not by_ticket:
        return Invited(free, refused)
    try:
        spending = Spending.read(study.spending, secret)
    except InputError as error:
        log_throttled(
            logging.ERROR,
            f"no invited report of study {uploads[0].study} can be taken: {error}",
            code="ticket-key",
        )
        unknown = ProblemError(UNAVAILABLE, "tickets cannot be checked now; nothing was stored")
        return Invited(free, {**refused, **{report.id: unknown for report in by_ticket.values()}})
    if any(find(report.version).public.has_ticketed for report in by_ticket.values()):
        carried = carried_values(session, study.number, by_ticket)
        by_ticket, unfit = _filled(find, by_ticket, carried)
        refused.update(unfit)
    used = use_tickets(session, study.number, spending, by_ticket)
    taken = [by_ticket[ticket] for ticket in used]
    for report in taken:
        del refused[report.id]
    return Invited([*free, *taken], refused)


def _filled(
    find: FindRules, by_ticket: Mapping[bytes, PackedReport], carried: Mapping[bytes, Mapping[str, str]]
) -> tuple[dict[bytes, PackedReport], dict[bytes, ProblemError]]:
    """Return the reports with the values of their tickets, and the errors of reports that do not fit."""
    filled: dict[bytes, PackedReport] = {}
    refused: dict[bytes, ProblemError] = {}
    for ticket, report in by_ticket.items():
        # An unknown ticket is not used, and its report is rejected for that.
        if ticket not in carried:
            continue
        try:
            payloads = find(report.version).public.filled(report.payloads, carried[ticket])
        except ReportError as error:
            refused[report.id] = ProblemError(TICKET_NEEDED, error.problem, error.field)
            continue
        filled[ticket] = report._replace(payloads=payloads)
    return filled, refused


def as_stored(find: FindRules, report: PackedReport, known: store.StoredRow) -> PackedReport:
    """Return a resent report with the values that its ticket carried when it was stored."""
    stored = PackedReport._make(known)
    if stored.withdrawn or stored.version != report.version:
        return report
    return stored if find(report.version).public.agrees(report.payloads, stored.payloads) else report
