"""The summary of each version, always exact: it changes in the transaction that changes the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from collector import store
from collector.problems import (
    SUMMARY_IMPOSSIBLE,
    SUMMARY_TOO_COSTLY,
    ProblemError,
    deleted_study,
)
from collector.reports.rules import Rules, require_same
from collector.store import add_sums, read_sums
from summaries.summary import NEEDS_REPORTS

if TYPE_CHECKING:
    from collector.context import Collector

FindRules = Callable[[str, int], Rules]


def add_reports(
    session: Session, find: FindRules, study_id: str, study: int, reports: Sequence[store.StoredRow]
) -> None:
    """Count reports that this transaction stores. study: its number."""
    for rules, payloads in _by_version(find, study_id, reports):
        add_sums(session, study, rules.study.version, rules.tally.count(payloads))


def take_back_reports(
    session: Session, find: FindRules, study_id: str, study: int, reports: Sequence[store.StoredRow]
) -> None:
    """Undo the counting of reports that this transaction deletes. Withdrawn reports no longer count."""
    for rules, payloads in _by_version(find, study_id, reports):
        require_same(store.document_digests(session, study), [rules])
        add_sums(session, study, rules.study.version, -rules.tally.count(payloads))


def summary_text(collector: Collector, study_id: str, version: int | None) -> str:
    """Return the summary of one version's reports as JSON; without a version, of the current version.

    Raises ProblemError also if no summary is kept.
    """
    with collector.database.read() as session:
        is_deleted = store.require_study(session, study_id).deleted
        document = store.require_document(session, study_id, version)
    if is_deleted:
        raise deleted_study(study_id)
    rules = collector.rules.find(study_id, document.version)
    require_same({document.version: document.digest}, [rules])
    tally = rules.tally
    if rules.study.protocol is not None:
        raise ProblemError(SUMMARY_IMPOSSIBLE, "its total comes from `ldpkit node close`", "protocol")
    for question in tally.needs_reports:
        raise ProblemError(SUMMARY_IMPOSSIBLE, NEEDS_REPORTS, f"questions.{question}")
    if not tally.is_kept:
        raise ProblemError(SUMMARY_TOO_COSTLY, "no summary is kept: it would slow down each upload")
    with collector.database.read() as session:
        sums = read_sums(session, document.study, document.version, tally.size)
    return tally.summary(sums).to_json()


def _by_version(
    find: FindRules, study_id: str, reports: Sequence[store.StoredRow]
) -> Iterator[tuple[Rules, Sequence[bytes]]]:
    """Yield each version's rules and the payloads to count, without withdrawn reports.

    Versions are in ascending order, which prevents deadlocks between processes.
    """
    for version in sorted({version for _, version, payload in reports if payload}):
        rules = find(study_id, version)
        if rules.tally.is_kept:
            yield rules, [payload for _, number, payload in reports if payload and number == version]
