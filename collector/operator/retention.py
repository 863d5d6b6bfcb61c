"""Deleting reports for good: those that came before a day, those of a version, or all of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from collector.reports.paging import page_limit
from collector.reports.rules import Rules
from collector.reports.running_summary import FindRules, require_sums, take_back_reports
from collector.storage import audit_log, partitions, queries
from collector.storage.emptying import empty_reports
from collector.storage.invitations import lift_invitations
from collector.storage.models import StudyRow
from collector.storage.overviews import count_whole
from collector.storage.packing import PackedReport
from collector.storage.rewriting import LOCK_NOT_AVAILABLE
from collector.storage.spent_tokens import forget_tokens
from collector.storage.sums import forget_sums
from collector.studies import publishing
from ldp_client.documents.errors import InputError

# Few enough that uploads hardly wait.
REPORTS_AT_ONCE = 2000
# Runs a function of a session in a transaction of its own, durable on return.
Act = Callable[[Callable[[Session], Any]], Any]


@dataclass(frozen=True)
class Doomed:
    """Reports of a study that are to go. number: the study's key. at_once: how many in one transaction.

    before: those that came before that day, None for all. version: those of one version, None for all.
    is_stated: whether as their study states, by itself: that ends no study that was closed for a time.
    is_relayed: whether a relay may have kept their bytes: their ids stay while the study may be opened.
    """

    study: str
    number: int
    before: date | None = None
    version: int | None = None
    at_once: int = REPORTS_AT_ONCE
    is_stated: bool = False
    is_relayed: bool = False


def delete_doomed(act: Act, find: FindRules, doomed: Doomed, most: int | None = None) -> int:
    """Delete them, or no more than about `most`; how many, withdrawn ones not counted.

    Their ids go too, so a device that sent one may send it again while the study takes reports; those of
    withdrawn ones stay until it is closed, with stated retention or a relay until that is for good, and with
    a relay the others' stay as long. Raises WrongSumsError where nothing can be deleted until all were
    counted again.
    """
    is_all = doomed.before is None and doomed.version is None
    if (most is None or is_all) and (whole := _delete_whole(act, doomed)) is not None:
        return whole
    total, after = 0, b""
    while most is None or total < most:
        deleted = act(partial(_delete_page, find=find, doomed=doomed, after=after))
        if not deleted:
            break
        total += sum(not report.withdrawn for report in deleted)
        after = max(report.id for report in deleted)
    return total


def _delete_whole(act: Act, doomed: Doomed) -> int | None:
    """Delete all that a study has at once, if that is what is doomed; how many. None where it is not, where
    reports are not kept apart by study, and while somebody such as pg_dump reads them: then page by page.
    """
    try:
        deleted: int | None = act(partial(_empty_if_whole, doomed=doomed))
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        return None
    return deleted


def _empty_if_whole(session: Session, doomed: Doomed) -> int | None:
    study = queries.study_state(session, doomed.study)
    if study is None or not partitions.are_in(session) or not _is_over(study, doomed):
        return None
    # Before the lock: nothing comes any more, and no upload may wait for the counting.
    found = count_whole(session, queries.Chosen(doomed.number, doomed.before, doomed.version))
    row = queries.locked_study(session, doomed.study)
    if found.others or row is None or not _is_over(row, doomed):
        return None
    partitions.empty_partition(session, doomed.number)
    forget_sums(session, [doomed.number])
    row.final = row.final or found.withdrawn > 0
    row.withdrawn_exported -= found.withdrawn
    row.deletions += found.reports > 0
    return found.reports


def _is_over(study: StudyRow | queries.StudyState, doomed: Doomed) -> bool:
    """Whether ids of withdrawn reports may go too: nothing is taken that could be a late copy of one."""
    may_open = doomed.is_stated or doomed.is_relayed
    return study.final or study.deleted or (study.closed and not may_open)


def _delete_page(session: Session, find: FindRules, doomed: Doomed, after: bytes) -> list[PackedReport]:
    """Delete the next ones, by id; what they were."""
    # Keeps uploads out: one that found a report here must not miss it before it ends.
    row = queries.locked_study(session, doomed.study)
    is_over = row is not None and _is_over(row, doomed)
    chosen = queries.Chosen(doomed.number, doomed.before, doomed.version)
    if doomed.is_relayed and not is_over:
        deleted = empty_reports(session, chosen, after, doomed.at_once)
    else:
        deleted = queries.delete_reports(session, chosen, after, doomed.at_once, withdrawn=is_over)
    if deleted:
        take_back_reports(session, find, doomed.study, doomed.number, deleted)
    if row is not None and not all(report.withdrawn for report in deleted):
        # An export under way would lack them, and pass for whole.
        row.deletions += 1
    if row is not None and is_over and any(report.withdrawn for report in deleted):
        # Late copies of them would be taken, were it opened again.
        row.final = True
        # Their ids are counted no more: what the next export says stays as it was.
        row.withdrawn_exported -= sum(report.withdrawn for report in deleted)
    return deleted


def delete_reports(
    act: Act, find: FindRules, study_id: str, before: date | None, by: str, most: int | None = None
) -> int:
    """Delete the reports that came before a day (UTC), or all, as `delete_doomed` does; how many.

    by: a key's name. Raises InputError for an unknown study.
    """
    number, versions = act(partial(_begin, study_id=study_id, before=before, by=by))
    rules = [find(study_id, version) for version in versions]
    at_once = min(REPORTS_AT_ONCE, page_limit(rules))
    doomed = Doomed(study_id, number, before, at_once=at_once, is_relayed=any(map(is_relayed, rules)))
    return delete_doomed(act, find, doomed, most)


def _begin(session: Session, study_id: str, before: date | None, by: str) -> tuple[int, list[int]]:
    """Write the line of the audit log; the study's number and versions."""
    number = _number(session, study_id)
    # Before anything is deleted.
    require_sums(session, study_id, number)
    line = f"reports from before {before}"
    # One command may ask several times until all is deleted.
    if before is not None and not audit_log.is_said_today(session, by, "expire", study_id, line):
        audit_log.record(session, by, "expire", study_id, line)
    return number, queries.published_versions(session, study_id)


def is_relayed(rules: Rules) -> bool:
    """Whether reports of a version come through a relay, which can bring them again: no token is spent."""
    channel = rules.study.channel
    return channel is not None and channel.oblivious is not None and rules.tokens is None


def delete_study(act: Act, find: FindRules, study_id: str, by: str, most: int | None = None) -> int:
    """Close a study for good and delete all its reports and invitations; how many reports. Raises as
    `delete_reports` does, and then nothing was done.

    Its document stays, so that its id cannot come to mean something else; devices get it by its version only,
    with which they make sure who deletes their report.
    """

    def end(session: Session) -> None:
        number = _number(session, study_id)
        row = queries.locked_study(session, study_id)
        assert row is not None
        # Before the study is closed.
        require_sums(session, study_id, number)
        if not row.deleted:
            audit_log.record(session, by, "delete study", study_id)
        publishing.close(session, study_id, deleted=True)
        lift_invitations(session, number)
        forget_tokens(session, number)

    act(end)
    return delete_reports(act, find, study_id, None, by, most)


def _number(session: Session, study_id: str) -> int:
    study = queries.study_state(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}", code="study.unknown")
    return study.number
