"""One running collector: the only place where its parts are joined; views find them here."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Any

from flask import current_app

from collector.daily import Upkeep
from collector.db import Database
from collector.keys import KeyChecks, find_key, hash_key
from collector.limiter import CostBoundCache, Limiter, TokenBucket, UploadLimits
from collector.metrics import Metrics
from collector.migrations import check
from collector.models import RemovedKeyRow
from collector.problems import OVERLOADED, ProblemError
from collector.reports.intake import Intake
from collector.reports.rules import RuleBook
from collector.reports.writer import Change, Work, Writer
from collector.settings import TOKEN_VARIABLE, Settings, server_settings
from collector.status import StudyOverview, study_overviews
from collector.studies import CurrentStudies
from ldp_client.documents.errors import InputError

EXTENSION = "ldpkit"
# Bodies of the largest size, in all threads together: a body becomes objects of up to forty times its bytes.
BODIES_IN_PARSING = 2
PARSING_PATIENCE = 5.0
# Reports that may wait to be written in a process.
MOST_QUEUED = 100_000
MOST_EXPORTS = 8
# Deletions a second that one process makes for devices. Deletions of reports that are not stored get a share
# of it: an attacker can draw secrets, and each deletion leaves a row.
DELETION_RATE = 100.0
UNKNOWN_SHARE = 0.1


class Collector:
    """One collector, node or issuer.

    Args:
        config: as `create_app` takes it.
        today: the clock, which only knows days.

    Attributes:
        parsing: room for the bytes of bodies that are being inflated, parsed and checked.
        exports: room for streams, each of which occupies a thread as long as its reader takes.
        upkeep: room for one upkeep that an operator has asked for.

    Raises:
        InputError: a setting is wrong, the database does not exist with this release's tables, or the token
            is also a key.
    """

    def __init__(self, config: Settings | Mapping[str, object] | None, today: Callable[[], date]) -> None:
        # 1. The database.
        if config is None:
            settings = server_settings()
        else:
            settings = config if isinstance(config, Settings) else Settings.from_mapping(config)
        self.settings, self.today = settings, today
        self.database = Database(settings.database, settings.lock_timeout, settings.patience)
        check(self.database)
        _check_token(settings.token, self.database)
        self._upkeep = Upkeep(self.database, today, settings.ticket_secret)
        self.database.require_more = self._upkeep.require_right_day
        # Logs a warning if the clock cannot be right. Requests that need no day are still answered.
        with suppress(ProblemError), self.database.read() as session:
            self._upkeep.require_right_day(session)
        # 2. What is read, and what is written.
        self.metrics = Metrics()
        self.rules = RuleBook(self.database)
        self.current = CurrentStudies(self.database)
        self.studies = CostBoundCache(self._read_studies)
        find, late = partial(self.rules.find, reserved=True), timedelta(days=settings.grace_days)
        self._intake = Intake(self.database, find, today, late, settings.ticket_secret)
        observe = self.metrics.observe_commit
        self.writer = Writer(self._write, self.database.act, MOST_QUEUED, observe, settings.patience)
        # 3. Who may do it, and how often.
        self.keys = KeyChecks(self)
        self.limits = UploadLimits(settings.upload_rate)
        self.deletions = TokenBucket(DELETION_RATE)
        self.unknown_deletions = TokenBucket(UNKNOWN_SHARE * DELETION_RATE)
        most = BODIES_IN_PARSING * settings.body_limit
        self.parsing = _room(most, PARSING_PATIENCE, "too much is being read")
        self.exports = _room(MOST_EXPORTS, 0.0, f"{MOST_EXPORTS} exports are being read")
        self.upkeep_room = _room(1, 0.0, "the upkeep is under way")

    def _read_studies(self) -> list[StudyOverview]:
        with self.database.read() as session:
            return study_overviews(session)

    def _write(self, works: Sequence[Work]) -> Sequence[Any]:
        try:
            # Before the first reports of a day, the upkeep erases the order of earlier reports.
            self._upkeep.run_if_due()
        except ProblemError as problem:
            # A report needs a day; a withdrawal needs none.
            changes = [work for work in works if isinstance(work, Change)]
            made = iter(self._intake.store(changes))
            return [next(made) if isinstance(work, Change) else problem for work in works]
        return self._intake.store(works)

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
        self.database.engine.dispose()


def _room(capacity: float, patience: float, detail: str) -> Limiter:
    return Limiter(capacity, patience, lambda: ProblemError(OVERLOADED, detail))


def _check_token(token: str | None, database: Database) -> None:
    """Raise InputError if the operator's token is also a key, which would then have all rights."""
    if token is None:
        return
    with database.read() as session:
        hashed = hash_key(token)
        key, removed = find_key(session, hashed), session.get(RemovedKeyRow, hashed)
    if key is not None or removed is not None:
        what = "that was removed" if key is None else f"for {key.role.value}"
        raise InputError(
            f"setting token: is a key {what}, and would be for everything: "
            f"unset {TOKEN_VARIABLE}, or name another token",
            code="settings.token_is_a_key",
        )


def current_collector() -> Collector:
    """Return the collector of the app that handles this request."""
    collector: Collector = current_app.extensions[EXTENSION]
    return collector
