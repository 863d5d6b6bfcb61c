"""Report intake: checks each report against its study, and stores it once or rejects it with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from collector import problems, store
from collector.db import Database
from collector.errors import is_of_all, problem_of
from collector.problems import ProblemError
from collector.reports.rules import Rules, UnknownVersionError, require_same
from collector.reports.sums import FindRules, add_reports
from collector.reports.writer import Change, Upload, Work
from collector.store import PackedReport
from collector.tickets.redeem import as_stored, checked, redeem
from ldp_client.documents.errors import ReportError
from schemas import Report

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from collector.context import Collector

TICKET = "LDPKit-Ticket"
# A device goes by its own calendar, which may be a day ahead of UTC.
EARLY = timedelta(days=1)


class Receipt(Enum):
    """How a report came to be stored."""

    STORED = "stored"
    DUPLICATE = "duplicate"


Outcome = Receipt | ProblemError
Outcomes = Sequence[Outcome]
# One upload's result: an outcome for each report, or the reason why none was stored.
UploadResult = Outcomes | ProblemError


def check(collector: Collector, study_id: str, report: Report) -> PackedReport:
    """Check a report against the version of the study that it answers.

    Raises ReportError, or ProblemError for a study or version that is not published, and with the version's
    digest for a report that does not fit it. Earlier versions are accepted too: a device answers once, and
    may send late.
    """
    if report.study != study_id:
        raise ReportError(
            "study", f"this address takes reports for {study_id!r}", code="report.other_address"
        )
    try:
        rules = collector.rules.find(study_id, report.version)
    except UnknownVersionError:
        with collector.database.read() as session:
            store.require_study(session, study_id)
        detail = f"the study has no version {report.version}"
        raise ProblemError(problems.VERSION_UNKNOWN, detail, "version") from None
    with naming(rules.study.digest):
        return rules.pack(report)


def refuse_batch(rules: Rules) -> None:
    """Raise ProblemError if reports need a token each: then devices send them one by one."""
    if rules.blind is not None:
        raise rules.blind.needed("reports to this study are sent one by one, each with its token")


@contextmanager
def naming(digest: str) -> Iterator[None]:
    """Add a study's published digest to every error of the block."""
    try:
        yield
    except Exception as error:
        raise problem_of(error).naming(digest) from error


def submit(
    collector: Collector, study_id: str, reports: Sequence[PackedReport], ticket: bytes | None = None
) -> Outcomes:
    """Store checked reports, durable on return. Return one outcome each, in their order.

    ticket: what a single report spends. Raises ProblemError for a study that is not published, and when too
    many reports arrive.
    """
    if reports:
        collector.limits.let_in(study_id, len(reports))
    outcomes: Outcomes = collector.writer.upload(Upload(study_id, reports, ticket))
    collector.limits.take(study_id, outcomes.count(Receipt.STORED))
    return outcomes


def submit_one(
    collector: Collector,
    study_id: str,
    report: PackedReport,
    ticket: str | None = None,
    authorization: str | None = None,
    nonce: bytes | None = None,
) -> Receipt:
    """Store one checked report, durable on return. Raises ProblemError with its digest if it is rejected.

    ticket, authorization: the headers sent with it. nonce: the only nonce that its token may have.
    """
    rules = collector.rules.find(study_id, report.version)
    with naming(rules.study.digest):
        report, spends = checked(rules, report, ticket, authorization, nonce)
        (outcome,) = submit(collector, study_id, [report], spends)
        if isinstance(outcome, ProblemError):
            raise outcome
    count(collector, study_id, [outcome])
    return outcome


def count(collector: Collector, study_id: str, outcomes: Outcomes) -> tuple[int, int]:
    """Return how many reports were stored now, and how many before. The metrics also count rejected ones."""
    stored, duplicates = outcomes.count(Receipt.STORED), outcomes.count(Receipt.DUPLICATE)
    rejected: list[str] = []
    if stored + duplicates < len(outcomes):
        rejected = [outcome.kind.name for outcome in outcomes if isinstance(outcome, ProblemError)]
    collector.metrics.count(stored, duplicates, rejected, study_id)
    return stored, duplicates


@dataclass(frozen=True)
class Intake:
    """Stores uploads, and makes changes.

    find: the rules of a version. today: the clock, which knows days only. late: how long reports are accepted
    after a study closes. secret: from the setting ticket_key.
    """

    database: Database
    find: FindRules
    today: Callable[[], date]
    late: timedelta
    secret: bytes

    def store(self, works: Sequence[Work]) -> list[Any]:
        """Store uploads in one transaction and make changes in another, durable on return.

        Each transaction locks its rows in the order (study, id). Together in one, a change would lock a lower
        id after the uploads' higher ids, and two processes could deadlock.

        Returns for each upload its outcomes, for each change its value, or the problem.
        """
        uploads = [work for work in works if isinstance(work, Upload)]
        changes = [work for work in works if isinstance(work, Change)]
        stored = iter(self._store_uploads(uploads) if uploads else ())
        made = iter(self._make_changes(changes) if changes else ())
        return [next(stored if isinstance(work, Upload) else made) for work in works]

    def _make_changes(self, changes: Sequence[Change]) -> list[Any]:
        """Return each change's value, or its exception."""

        def make(session: Session, change: Change) -> Any:
            try:
                with session.begin_nested():
                    return change.make(session)
            except Exception as error:
                if is_of_all(error):
                    raise
                return error

        order = sorted(range(len(changes)), key=lambda index: changes[index].key)
        try:
            made = self.database.act(
                lambda session: {index: make(session, changes[index]) for index in order}
            )
        except Exception as error:
            # Returned, not raised: the uploads of this call are stored by now.
            return [error] * len(changes)
        return [made[index] for index in range(len(changes))]

    def _store_uploads(self, uploads: Sequence[Upload]) -> list[UploadResult]:
        """Return each upload's outcomes, or the reason why it was not stored."""
        by_study: dict[str, list[int]] = {}
        for index, upload in enumerate(uploads):
            by_study.setdefault(upload.study, []).append(index)

        def store_all(session: Session, is_apart: bool) -> list[UploadResult]:
            store_study = self._store_apart if is_apart else self._store_study
            results: dict[int, UploadResult] = {}
            # In the order of the ids, which prevents deadlocks between processes.
            for study_id, indices in sorted(by_study.items()):
                some = [uploads[index] for index in indices]
                results.update(zip(indices, store_study(session, study_id, some), strict=True))
            return [results[index] for index in range(len(uploads))]

        try:
            return self.database.act(partial(store_all, is_apart=False))
        except Exception as error:
            if is_of_all(error):
                raise
        # Some reports were stored before, or one upload fails for all.
        return self.database.act(partial(store_all, is_apart=True))

    def _store_apart(
        self, session: Session, study_id: str, uploads: Sequence[Upload]
    ) -> Sequence[UploadResult]:
        """Store one study's uploads together, or one by one if that fails: then one is refused alone."""
        try:
            with session.begin_nested():
                return self._store_study(session, study_id, uploads, look_first=True)
        except Exception as error:
            if is_of_all(error):
                raise
            if len(uploads) == 1:
                return [problem_of(error)]
        # In the order of their ids: with another order, two processes could deadlock.
        order = sorted(
            range(len(uploads)),
            key=lambda index: min([report.id for report in uploads[index].reports], default=b""),
        )
        results = {index: self._store_apart(session, study_id, [uploads[index]])[0] for index in order}
        return [results[index] for index in range(len(uploads))]

    def _store_study(
        self, session: Session, study_id: str, uploads: Sequence[Upload], look_first: bool = False
    ) -> list[UploadResult]:
        """Store uploads for one study. Raises PartlyHeldError unless it looks first for what is stored."""
        # 1. What the study takes today.
        study = store.study_state(session, study_id, keep=True)
        if study is None:
            return [problems.unknown_study(study_id)] * len(uploads)
        reports = [report for upload in uploads for report in upload.reports]
        rules = {version: self.find(study_id, version) for version in {report.version for report in reports}}
        try:
            require_same(store.document_digests(session, study.number), rules.values())
        except ProblemError as problem:
            return [problem] * len(uploads)
        day = self.today()
        refusals = _refusals(study, rules, day, self.late)
        needs_tickets = any(version.needs_ticket(study) for version in rules.values())
        # 2. If several reports share an id, take the first acceptable one: a rejected report uses nothing up.
        first = {report.id: report for report in reversed(reports) if report.version not in refusals}
        held: dict[bytes, store.StoredRow] = {}
        if look_first or needs_tickets or refusals:
            held = store.held_reports(session, study.number, {report.id for report in reports})
        fresh = [report for report_id, report in first.items() if report_id not in held]
        ticketless: dict[bytes, ProblemError] = {}
        if needs_tickets:
            fresh, ticketless = redeem(session, rules, study, self.secret, uploads, fresh)
            first.update((report.id, report) for report in fresh)
        # 3. Store, and count in the same transaction.
        stored = store.insert_reports(session, study.number, day, fresh)
        is_whole = len(stored) == len(fresh)
        counted = fresh if is_whole else [report for report in fresh if report.id in stored]
        add_reports(session, self.find, study_id, study.number, counted)
        if is_whole and len(fresh) == len(reports):
            return [[Receipt.STORED] * len(upload.reports) for upload in uploads]
        # 4. Tell stored reports from duplicates and conflicts.
        others = {report.id for report in reports} - held.keys() - stored
        held.update(store.held_reports(session, study.number, others))
        if needs_tickets:
            reports = [
                as_stored(rules, report, held.get(report.id, first.get(report.id, report)))
                for report in reports
            ]
        held.update((report_id, first[report_id]) for report_id in stored)
        outcomes = iter(
            [
                _outcome(report, held, stored, refusals.get(report.version, ticketless.get(report.id)))
                for report in reports
            ]
        )
        return [list(islice(outcomes, len(upload.reports))) for upload in uploads]


def _outcome(
    report: PackedReport,
    held: Mapping[bytes, store.StoredRow],
    unclaimed: set[bytes],
    refusal: ProblemError | None,
) -> Outcome:
    """Return the outcome of a report.

    refusal: the error for a report that is not stored yet. unclaimed: ids stored by this transaction whose
    first report has not had its outcome yet.
    """
    if refusal is not None and (report.id not in held or report.id in unclaimed):
        return refusal
    if PackedReport._make(held[report.id]).withdrawn:
        detail = "the report with this id was withdrawn, or its time is over"
        return ProblemError(problems.REPORT_WITHDRAWN, detail, "id")
    if held[report.id] != report:
        return ProblemError(
            problems.REPORT_CONFLICT, "a report with this id and other contents is stored", "id"
        )
    if report.id in unclaimed:
        unclaimed.remove(report.id)
        return Receipt.STORED
    return Receipt.DUPLICATE


def _refusals(
    study: store.StudyState, rules: Mapping[int, Rules], day: date, late: timedelta
) -> dict[int, ProblemError]:
    """Return why the study accepts no new report today, for each rejected version.

    While the current version is open, all versions are accepted. Otherwise a version's own dates decide: a
    participant who answered in time must not wait for a later version to open. No version is accepted after
    its `retention`.
    """
    if study.closed:
        detail = "the study was deleted by its operator" if study.deleted else "the study was closed"
        # The device can then report that waiting is useless.
        more = {"final": True} if study.final else {}
        return dict.fromkeys(rules, ProblemError(problems.STUDY_CLOSED, detail, more=more))
    # Later reports would be kept for longer than their participants were told, or deleted at once.
    refusals = {
        version: ProblemError(
            problems.STUDY_CLOSED,
            f"its reports were kept until {one.until}, and no longer",
            more={"final": True},
        )
        for version, one in rules.items()
        if one.until is not None and day > one.until
    }
    refusal = _shut(study.opens, study.closes, day, late)
    if refusal is None:
        return refusals
    for version, one in rules.items():
        if _shut(one.opens, one.closes, day, late):
            refusals.setdefault(version, refusal)
    return refusals


def _shut(opens: date | None, closes: date | None, day: date, late: timedelta) -> ProblemError | None:
    """Return the reason why no new report is accepted on this day, or None."""
    if closes is not None and day - closes > late:
        return ProblemError(problems.STUDY_CLOSED, f"the study closed on {closes}")
    if opens is not None and opens - day > EARLY:
        return ProblemError(problems.STUDY_NOT_OPEN, f"the study opens on {opens}")
    return None
