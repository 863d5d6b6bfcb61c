"""What was last fitted to each study, as the operator's page shows it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from collector.storage.models import PosteriorRow

SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Fitted:
    """One fit of a version. day: when, since 1970; no finer, as it follows the arrival of reports.

    questions: the entries of posterior.json, by question. failure: why there are none, if so.
    summary: SHA-256 of the summary that was fitted.
    """

    day: int
    questions: dict[str, Any]
    failure: str | None = None
    summary: str = ""

    @property
    def days_ago(self) -> int:
        """How old it is."""
        return max(0, this_day() - self.day)


def this_day() -> int:
    """The day of the clock, in UTC, since 1970."""
    return int(time.time()) // SECONDS_A_DAY


def keep_fitted(session: Session, study: int, version: int, fitted: Fitted) -> None:
    """Put a fit in the place of the one before, of whatever version."""
    forget_fitted(session, study)
    said = {"questions": fitted.questions, "failure": fitted.failure, "summary": fitted.summary}
    session.add(PosteriorRow(study=study, version=version, day=fitted.day, fitted=json.dumps(said)))


def forget_fitted(session: Session, study: int) -> None:
    """Delete what was fitted to a study's reports."""
    session.execute(delete(PosteriorRow).where(PosteriorRow.study == study))


def last_fitted(session: Session, study: int, version: int) -> Fitted | None:
    """The last fit of a version, if there was one."""
    row = session.get(PosteriorRow, (study, version))
    return None if row is None else Fitted(row.day, **json.loads(row.fitted))
