"""Reports that need an invitation: which have an unused invitation, and the public values it carries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from collector import store
from collector.limiter import log_throttled
from collector.problems import INVITATION_NEEDED, UNAVAILABLE, ProblemError
from collector.reports.rules import Rules
from collector.reports.writer import Upload
from collector.storage.invitations import Spending, carried_values, use_invitations
from collector.store import PackedReport
from ldp_client.documents.errors import InputError, ReportError

FindRules = Callable[[int], Rules]


class Invited(NamedTuple):
    """reports: new reports with the values of their invitations, which are used up now.

    refused: {id: why} of the other reports. An invitation that does not fit its report stays unused.
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
    """Return the new reports that need no invitation, or came with a valid one. find: a version's rules."""
    wanted = {report.id: report for report in fresh if find(report.version).needs_invitation(study)}
    free = [report for report in fresh if report.id not in wanted]
    missing = ProblemError(INVITATION_NEEDED, "the report has no invitation, or its invitation was used")
    refused = dict.fromkeys(wanted, missing)
    by_invitation: dict[bytes, PackedReport] = {}
    for upload in uploads:
        # Compare the whole report: another report with its id must not be stored on this invitation.
        if upload.invitation is not None and wanted.get(upload.reports[0].id) == upload.reports[0]:
            by_invitation.setdefault(upload.invitation, wanted.pop(upload.reports[0].id))
    if not by_invitation:
        return Invited(free, refused)
    try:
        spending = Spending.read(study.spending, secret)
    except InputError as error:
        log_throttled(
            logging.ERROR,
            f"no invited report of study {uploads[0].study} can be taken: {error}",
            code="invitation-key",
        )
        unknown = ProblemError(UNAVAILABLE, "invitations cannot be checked now; nothing was stored")
        return Invited(free, {**refused, **{report.id: unknown for report in by_invitation.values()}})
    if any(find(report.version).public.is_invited for report in by_invitation.values()):
        carried = carried_values(session, study.number, by_invitation)
        by_invitation, unfit = _filled(find, by_invitation, carried)
        refused.update(unfit)
    used = use_invitations(session, study.number, spending, by_invitation)
    taken = [by_invitation[invitation] for invitation in used]
    for report in taken:
        del refused[report.id]
    return Invited([*free, *taken], refused)


def _filled(
    find: FindRules, by_invitation: Mapping[bytes, PackedReport], carried: Mapping[bytes, Mapping[str, str]]
) -> tuple[dict[bytes, PackedReport], dict[bytes, ProblemError]]:
    """Return the reports with the values of their invitations, and the errors of reports that do not fit."""
    filled: dict[bytes, PackedReport] = {}
    refused: dict[bytes, ProblemError] = {}
    for invitation, report in by_invitation.items():
        # An unknown invitation is not used, and its report is rejected for that.
        if invitation not in carried:
            continue
        try:
            payloads = find(report.version).public.filled(report.payloads, carried[invitation])
        except ReportError as error:
            refused[report.id] = ProblemError(INVITATION_NEEDED, error.problem, error.field)
            continue
        filled[invitation] = report._replace(payloads=payloads)
    return filled, refused


def as_stored(find: FindRules, report: PackedReport, known: store.StoredRow) -> PackedReport:
    """Return a resent report with the values that its invitation carried when it was stored."""
    stored = PackedReport._make(known)
    if stored.withdrawn or stored.version != report.version:
        return report
    return stored if find(report.version).public.agrees(report.payloads, stored.payloads) else report
