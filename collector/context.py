"""The parts of one running collector, as the views find them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any, TypeVar

from flask import current_app
from sqlalchemy.orm import Session

from collector import store
from collector.daily import Upkeep
from collector.db import Bounds, Database
from collector.key_checks import DailyLines, KeyChecks
from collector.keys import find_key, hash_key, was_removed
from collector.limiter import CostBoundCache, Limiter
from collector.metrics import Metrics
from collector.migrations import check
from collector.problems import OVERLOADED, ProblemError
from collector.reports import intake, withdraw
from collector.reports.limits import UploadLimits
from collector.reports.rules import RuleBook, Rules
from collector.reports.withdraw import Deletions
from collector.reports.writer import Change, Work, Writer
from collector.settings import TOKEN_VARIABLE, Settings
from collector.store import Arrivals, StudyOverview
from collector.studies import CurrentStudies, load_keys
from ldp_client.core.public_keys import PublicKey
from ldp_client.documents.errors import InputError
from schemas import Study

EXTENSION = "ldpkit"
T = TypeVar("T")
# Bodies of the largest size, in all threads together: a body becomes objects of up to forty times its bytes.
BODIES_IN_PARSING = 2
PARSING_PATIENCE = 5.0
# Database connections with which a process reads; it has two more, for writing and for /readyz.
READERS = 4
# Reports that may wait to be written in a process.
MOST_QUEUED = 100_000
MOST_EXPORTS = 8


@dataclass(frozen=True)
class Collector:
    """One collector.

    Attributes:
        today: the clock, which only knows days.
        signers: keys whose signature allows publishing.
        identity: identifies this collector. A device drops a report only if the collector that it answers
            refuses it.
        parsing: room for the bytes of bodies that are being inflated, parsed and checked.
        exports: room for streams, each of which occupies a thread as long as its reader takes.
        counting: room for one summary that is counted on request.
        daily: lines of the audit log without a time.
    """

    settings: Settings
    database: Database
    rules: RuleBook
    writer: Writer
    limits: UploadLimits
    deletions: Deletions
    metrics: Metrics
    studies: CostBoundCache[list[StudyOverview]]
    arrivals: CostBoundCache[list[Arrivals]]
    current: CurrentStudies
    today: Callable[[], date]
    signers: tuple[PublicKey, ...]
    identity: bytes
    parsing: Limiter
    exports: Limiter
    counting: Limiter
    keys: KeyChecks
    daily: DailyLines

    @classmethod
    def of(cls, settings: Settings, today: Callable[[], date]) -> Collector:
        """Open the database.

        Raises InputError unless the database exists with this release's tables, and if the token is also a
        key.
        """
        bounds = Bounds(READERS, settings.patience)
        database = Database(settings.database, settings.lock_timeout, bounds)
        check(database)
        _check_token(settings.token, database)
        with database.read() as session:
            identity = store.identity(session)
        secret = settings.ticket_secret
        admission = intake.Admission(today, timedelta(days=settings.grace_days), secret)
        rules = RuleBook(database)
        upkeep = Upkeep(database, today, secret)
        database.require_more = upkeep.require_right_day
        _warn_of_doubt(upkeep, database)

        def write(works: Sequence[Work]) -> Sequence[Any]:
            # Before the first reports of a day, the upkeep erases the order of earlier reports.
            find = partial(rules.find, reserved=True)
            try:
                upkeep.run_if_due()
            except ProblemError as problem:
                # A report needs a day; a withdrawal needs none.
                changes = [work for work in works if isinstance(work, Change)]
                made = iter(intake.store_works(database, find, admission, changes))
                return [next(made) if isinstance(work, Change) else problem for work in works]
            return intake.store_works(database, find, admission, works)

        metrics = Metrics()
        writer = Writer(write, database.act, MOST_QUEUED, metrics.observe_commit, settings.patience)
        limits = UploadLimits(settings.upload_rate)
        deletions = Deletions(withdraw.DELETION_RATE, metrics)
        token_hash = None if settings.token is None else hash_key(settings.token)
        counts = _cached(database, store.study_overviews), _cached(database, store.arrivals)
        signers = load_keys(settings.signing_keys)
        counting = (limits, deletions, metrics, *counts, CurrentStudies(database))
        held = (settings, database, rules, writer, *counting, today)
        keys = KeyChecks(database, token_hash, metrics, today, writer.act)
        lines = DailyLines(writer.act, today)
        return cls(*held, signers, identity, *_rooms(settings.body_limit), keys, lines)

    def has_changed(self, study_id: str) -> None:
        """Read a study again after this process has changed it."""
        self.current.forget(study_id)
        self.studies.forget()

    def count_refusal(self, problem: ProblemError, study_id: str) -> None:
        """Count a refused upload, for its study only if this process knows the study.

        Otherwise senders could create arbitrary labels.
        """
        known = study_id if self.rules.knows(study_id) or self.current.knows(study_id) else None
        self.metrics.count(0, 0, [problem.kind.name], known)

    def close(self) -> None:
        """Write the queued work and close the database."""
        self.writer.close()
        self.deletions.close()
        self.database.engine.dispose()


def _rooms(body_limit: int) -> tuple[Limiter, Limiter, Limiter]:
    """Return the rooms for bodies in parsing, for exports, and for counted summaries.

    A request beyond them gets the error of an overloaded server.
    """

    def full(detail: str) -> Callable[[], ProblemError]:
        return lambda: ProblemError(OVERLOADED, detail)

    return (
        Limiter(BODIES_IN_PARSING * body_limit, PARSING_PATIENCE, full("too much is being read")),
        Limiter(MOST_EXPORTS, 0.0, full(f"{MOST_EXPORTS} exports are being read")),
        Limiter(1, 0.0, full("another summary is being counted, or the upkeep is under way")),
    )


def _cached(database: Database, read: Callable[[Session], T]) -> CostBoundCache[T]:
    def compute() -> T:
        with database.read() as session:
            return read(session)

    return CostBoundCache(compute)


def _warn_of_doubt(upkeep: Upkeep, database: Database) -> None:
    """Log a warning if the clock cannot be right. The server starts and takes requests that need no day."""
    with database.read() as session, suppress(ProblemError):
        upkeep.require_right_day(session)


def _check_token(token: str | None, database: Database) -> None:
    """Raise InputError if the operator's token is also a key, which would then have all rights."""
    if token is None:
        return
    with database.read() as session:
        found = find_key(session, hash_key(token))
        removed = was_removed(session, token)
    if found is not None:
        what = f"for {found.role.value}"
    elif removed:
        what = "that was removed"
    else:
        return
    raise InputError(
        f"setting token: is a key {what}, and would be for everything: "
        f"unset {TOKEN_VARIABLE}, or name another token",
        code="settings.token_is_a_key",
    )


def unfinished_studies(database: Database) -> list[tuple[Study, bool]]:
    """Return the studies that are open or secure sums, and whether they are open."""
    with database.read() as session:
        unfinished = store.unfinished_documents(session)
    # A connection must not cross the fork that starts a worker.
    database.engine.dispose()
    # Of closed studies only secure sums matter, and these have a protocol: skip the others.
    read = [(document, is_open) for document, is_open in unfinished if is_open or b'"protocol"' in document]
    studies = [(Study.from_json(document), is_open) for document, is_open in read]
    return [(study, is_open) for study, is_open in studies if is_open or study.protocol is not None]


def check_studies(database: Database, body_limit: int) -> None:
    """Raise InputError unless this server can take the reports of each open study.

    Otherwise it would refuse the reports permanently, and devices drop such reports.
    """
    sizes = {}
    for study, _ in unfinished_studies(database):
        if study.protocol is not None:
            raise InputError(
                f"study {study.id} of this database is a secure sum: start a node with its keys (`ldpkit "
                "node serve`), or name another database. If the keys are lost, its shares are unreadable",
                code="settings.node_key_missing",
            )
        sizes[study.id] = Rules.of(study).form.size
    largest = max(sizes, key=lambda name: sizes[name], default=None)
    if largest is not None and sizes[largest] > body_limit:
        raise InputError(
            f"setting body_limit: study {largest} of this database makes reports of {sizes[largest]} bytes: "
            f"raise it to {sizes[largest]}",
            code="settings.body_limit_too_small",
        )


def current_collector() -> Collector:
    """Return the collector of the app that handles this request."""
    collector: Collector = current_app.extensions[EXTENSION]
    return collector
