"""The summary of each version, always exact: it changes in the transaction that changes the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy.orm import Session

from collector import store
from collector.db import WrongSumsError, problem_of
from collector.limiter import Limiter
from collector.problems import (
    REPORTS_DELETED,
    SUMMARY_IMPOSSIBLE,
    SUMMARY_TOO_COSTLY,
    UNAVAILABLE,
    ProblemError,
    deleted_study,
    unknown_study,
)
from collector.reports.paging import Export, open_export, page_limit
from collector.reports.rules import Rules, require_same
from collector.store import Sums, add_sums, forget_sums, read_sums
from schemas import Study
from summaries.summary import NEEDS_REPORTS

if TYPE_CHECKING:
    from collector.context import Collector

# Most work for one request: about ten seconds, at 11 µs for a question's part of a cell.
MOST_HASHES = 1 << 28
MOST_PARTS = 1 << 20
# Most numbers in a summary, with or without reports; no single question has so many. Writing them takes a
# second, and some hundred MB.
MOST_VALUES = 1 << 21

FindRules = Callable[[str, int], Rules]


def add_reports(
    session: Session, find: FindRules, study_id: str, study: int, reports: Iterable[store.StoredRow]
) -> None:
    """Count reports that this transaction stores. study: its number."""
    for rules, payloads in _by_version(find, study_id, reports):
        add_sums(session, study, rules.study.version, rules.tally.count(payloads))


def take_back_reports(
    session: Session, find: FindRules, study_id: str, study: int, reports: Iterable[store.StoredRow]
) -> None:
    """Undo the counting of reports that this transaction deletes. Withdrawn reports no longer count."""
    for rules, payloads in _by_version(find, study_id, reports):
        require_same(store.document_digests(session, study), [rules])
        add_sums(session, study, rules.study.version, -rules.tally.count(payloads))


def summary_text(collector: Collector, study_id: str, version: int | None, counting: Limiter) -> str:
    """Return the summary of one version's reports as JSON; without a version, of the current version.

    counting: room for summaries that are not kept, held until the document is written: its text takes more
    memory than all else. Raises ProblemError also if there is no summary.
    """
    # 1. Find the version, and whether it has a summary at all.
    with collector.database.read() as session:
        document = store.find_document(session, study_id, version)
        if document is None:
            raise unknown_study(study_id)
        state = store.study_state(session, study_id)
    if state is not None and state.deleted:
        raise deleted_study(study_id)
    rules = collector.rules.find(study_id, document.version)
    require_same({document.version: document.digest}, [rules])
    if rules.study.protocol is not None:
        raise ProblemError(SUMMARY_IMPOSSIBLE, "its total comes from `ldpkit node close`", "protocol")
    tally = rules.tally
    for question in tally.needs_reports:
        raise ProblemError(SUMMARY_IMPOSSIBLE, NEEDS_REPORTS, f"questions.{question}")
    if tally.size > MOST_VALUES:
        detail = f"it is {tally.size} numbers long, and at most {MOST_VALUES} are counted here"
        raise ProblemError(SUMMARY_TOO_COSTLY, detail)
    # 2. Small sums are kept.
    if tally.is_kept:
        try:
            with collector.database.read() as session:
                sums = read_sums(session, document.study, document.version, tally.size)
        except WrongSumsError as error:
            raise problem_of(error) from None
        return tally.summary(sums).to_json()
    # 3. Count others outside a transaction: SQLite's write-ahead log grows while a transaction lasts.
    with counting.hold():
        try:
            sums = _count_export(open_export(collector, study_id), document.version)
        except ProblemError as problem:
            if problem.kind is not REPORTS_DELETED:
                raise
            raise ProblemError(UNAVAILABLE, "reports were deleted while they were counted") from None
        return tally.summary(sums).to_json()


def require_sums(session: Session, study_id: str, study: int) -> None:
    """Raise WrongSumsError if a version's sums are damaged: none of its reports can be taken back."""
    for version, rules in _rules_of(session, study_id).items():
        if rules.tally.is_kept:
            read_sums(session, study, version, rules.tally.size)


def recount(session: Session) -> list[tuple[str, int]]:
    """Rebuild the sums, blocking uploads until the transaction ends. Return the versions that were wrong."""
    studies = store.study_numbers(session)
    for study_id, _ in studies:
        store.locked_study(session, study_id)
    wrong = []
    for study_id, number in studies:
        rules = _rules_of(session, study_id)
        before = _kept_sums(session, number, rules)
        forget_sums(session, [number])
        _count_stored(session, study_id, number, rules)
        counted = _kept_sums(session, number, rules)
        wrong += [(study_id, version) for version in counted if counted[version] != before[version]]
    return wrong


def _kept_sums(session: Session, number: int, rules: Mapping[int, Rules]) -> dict[int, bytes]:
    """Return the kept sums of each version, or nothing for one with another version's length."""
    kept: dict[int, bytes] = {}
    for version, one in rules.items():
        if one.tally.is_kept:
            try:
                kept[version] = read_sums(session, number, version, one.tally.size).tobytes()
            except WrongSumsError:
                kept[version] = b""
    return kept


def _rules_of(session: Session, study_id: str) -> dict[int, Rules]:
    """Return every version's rules."""
    found = {}
    for version in store.published_versions(session, study_id):
        canonical = store.canonical_bytes(session, study_id, version)
        found[version] = Rules.of(Study.from_json(canonical or b""))
    return found


def _count_stored(session: Session, study_id: str, number: int, rules: Mapping[int, Rules]) -> None:
    after, limit = b"", page_limit(rules.values())
    while page := store.report_page(session, number, max(rules), after, None, limit):
        add_reports(session, lambda _, version: rules[version], study_id, number, page)
        after = page[-1][0]


def _count_export(export: Export, version: int) -> Sums:
    tally = export.rules[version].tally
    sums = np.zeros(tally.size, dtype=np.int64)
    hashed = parts = 0
    for page in export.pages:
        payloads = [payload for _, answered, payload in page if answered == version]
        hashed += len(payloads) * tally.hashes
        if hashed > MOST_HASHES:
            raise ProblemError(SUMMARY_TOO_COSTLY, "every report is hashed once for each choice")
        parts += tally.parts(payloads) if payloads else 0
        if parts > MOST_PARTS:
            raise ProblemError(SUMMARY_TOO_COSTLY, "each question is counted in each of many cells")
        sums += tally.count(payloads)
    return sums


def _by_version(
    find: FindRules, study_id: str, reports: Iterable[store.StoredRow]
) -> Iterator[tuple[Rules, Sequence[bytes]]]:
    """Yield each version's rules and the payloads to count, without withdrawn reports.

    Versions are in ascending order, which prevents deadlocks between processes.
    """
    payloads: dict[int, list[bytes]] = {}
    for _, version, payload in reports:
        if payload:
            payloads.setdefault(version, []).append(payload)
    for version in sorted(payloads):
        rules = find(study_id, version)
        if rules.tally.is_kept:
            yield rules, payloads[version]
