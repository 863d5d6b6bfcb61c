"""Publishing and closing studies."""

from __future__ import annotations

from datetime import date

from sqlalchemy.orm import Session

from collector.problems import (
    STUDY_CONFLICT,
    STUDY_FINISHED,
    STUDY_OUTDATED,
    ProblemError,
    unknown_study,
)
from collector.storage import queries
from collector.storage.models import StudyRow
from schemas import Study


def publish(session: Session, study: Study) -> bool:
    """Make this version of a study the current one; whether it is new.

    A version that is current already may be published again as it is. Raises ProblemError for
    another document under that version, for an earlier version, and for a closed study.
    """
    row = queries.locked_or_new_study(session, study.id)
    if row.version == study.version:
        _require_same(session, study)
        return False
    if row.version > study.version:
        raise ProblemError(STUDY_OUTDATED, f"version {row.version} is published", "version")
    if row.closed:
        raise ProblemError(STUDY_FINISHED, "a closed study takes no new version", "version")
    queries.add_document(session, row.number, study.version, study.digest, study.canonical())
    _make_current(row, study)
    return True


def close(session: Session, study_id: str) -> int:
    """End a study for good; closing it again changes nothing. Returns its version.

    Raises ProblemError if it is unknown.
    """
    row = queries.locked_study(session, study_id)
    if row is None:
        raise unknown_study(study_id)
    row.closed = True
    return row.version


def _require_same(session: Session, study: Study) -> None:
    published = queries.find_document(session, study.id)
    if published is None or published.digest != study.digest:
        detail = f"version {study.version} is published with another digest"
        raise ProblemError(STUDY_CONFLICT, detail, "version")


def _make_current(row: StudyRow, study: Study) -> None:
    row.version = study.version
    row.opens = date.fromisoformat(study.opens) if study.opens else None
    row.closes = date.fromisoformat(study.closes) if study.closes else None
