"""The parts of one running collector, as the views find them; app.py joins them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from flask import current_app

from collector.db import Database
from collector.keys import KeyChecks
from collector.limiter import CostBoundCache, Deletions, Limiter, UploadLimits
from collector.metrics import Metrics
from collector.problems import ProblemError
from collector.reports.rules import RuleBook
from collector.reports.writer import Writer
from collector.settings import Settings
from collector.status import StudyOverview
from collector.studies import CurrentStudies

EXTENSION = "ldpkit"


@dataclass(frozen=True, kw_only=True)
class Collector:
    """One collector.

    Attributes:
        today: the clock, which only knows days.
        parsing: room for the bytes of bodies that are being inflated, parsed and checked.
        exports: room for streams, each of which occupies a thread as long as its reader takes.
        upkeep: room for one upkeep that an operator has asked for.
    """

    settings: Settings
    today: Callable[[], date]
    database: Database
    metrics: Metrics
    rules: RuleBook
    current: CurrentStudies
    writer: Writer
    limits: UploadLimits
    deletions: Deletions
    studies: CostBoundCache[list[StudyOverview]]
    parsing: Limiter
    exports: Limiter
    upkeep: Limiter
    keys: KeyChecks

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


def current_collector() -> Collector:
    """Return the collector of the app that handles this request."""
    collector: Collector = current_app.extensions[EXTENSION]
    return collector
