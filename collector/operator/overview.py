"""What the operator's page says, in words and numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from collector.operator.posterior_view import posterior_view
from collector.operator.posteriors import Fitted, last_fitted
from collector.reports.rules import Rules
from collector.storage import queries
from collector.storage.queries import StudyOverview
from ldp_client.words.studies import odds_of
from summaries.influence import FALSE_SHARE, influence_in_words

if TYPE_CHECKING:
    from collector.context import Collector
    from collector.storage.database import Database

T = TypeVar("T")
# Counting millions of reports takes a while; a page may take a twentieth of the time for it.
REST = 20.0
ASKS = {
    "number": "A number.",
    "choice": "One of {} choices.",
    "yes_no": "Yes or no.",
    "record": "A record.",
    "table": "A table of many records.",
}


class Recent(Generic[T]):
    """A value that is computed again once REST times as long has passed as the computation took."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._lock = Lock()
        self._due = 0.0
        self._value: T

    def get(self) -> T:
        """The value; another thread's if one computes it now."""
        with self._lock:
            start = time.monotonic()
            if start >= self._due:
                self._value = self._compute()
                end = time.monotonic()
                self._due = end + REST * (end - start)
            return self._value


def recent_studies(database: Database) -> Recent[list[StudyOverview]]:
    """The studies with their counts."""

    def compute() -> list[StudyOverview]:
        with database.read() as session:
            return queries.study_overviews(session)

    return Recent(compute)


def page_contents(collector: Collector) -> dict[str, Any]:
    """What the template shows."""
    studies = [_study(collector, study) for study in collector.studies.get()]
    return {"counts": collector.metrics.totals(), "waiting": collector.writer.depth, "studies": studies}


def _study(collector: Collector, overview: StudyOverview) -> dict[str, Any]:
    rules = collector.rules.find(overview.id, overview.version)
    epsilon = float(rules.study.epsilon)
    with collector.database.read() as session:
        fitted = last_fitted(session, overview.number, overview.version)
    return {
        "id": overview.id,
        "version": overview.version,
        "title": rules.study.title,
        "purpose": rules.study.purpose,
        "state": _state(overview),
        "reports": overview.reports,
        "epsilon": f"{epsilon:g}",
        "ask_one": rules.study.ask_one,
        "repeats": any(question.repeats for question in rules.study.questions),
        "odds": odds_of(rules.study, epsilon, float(rules.study.delta)),
        "unit": rules.study.unit,
        "questions": _questions(rules, fitted, overview.reports),
    }


def _state(study: StudyOverview) -> str:
    if study.closed:
        return "closed"
    return f"open from {study.opens or 'its publication'} to {study.closes or 'its closing by an operator'}"


def _questions(rules: Rules, fitted: Fitted | None, reports: int) -> list[dict[str, Any]]:
    return [
        {
            "id": question.id,
            "text": question.text or ASKS[question.ask].format(len(question.choices)),
            "words": rules.mechanisms[question.id].in_words(),
            "epsilon": f"{float(rules.mechanisms[question.id].privacy.epsilon):.6g}",
            "influence": influence_in_words(rules.mechanisms[question.id], FALSE_SHARE),
            "posterior": posterior_view(fitted, question.id, reports),
        }
        for question in rules.study.questions
    ]
