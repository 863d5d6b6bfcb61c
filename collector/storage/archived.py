"""Reports read by ranges of their ids, which a partitioned dataset is made of."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from collector.storage.queries import REPORTS, StoredRow, select_rows


class IdRange(NamedTuple):
    """Ids above `after`, up to `last`."""

    after: bytes
    last: bytes


class Count(NamedTuple):
    """How many reports of a version came on a day."""

    version: int
    day: date
    reports: int


def range_page(
    session: Session, study: int, newest: int, ids: IdRange, through: date | None, limit: int
) -> list[StoredRow]:
    """The next reports of a range in the order of their ids, each with its day behind it, no withdrawn ones.

    newest: the last version. through: the last day of arrival, None for any.
    """
    conditions = [*_kept(study, through), REPORTS.c.version <= newest]
    conditions += [REPORTS.c.id > ids.after, REPORTS.c.id <= ids.last]
    return select_rows(session, *conditions, limit=limit, more=(REPORTS.c.day,))


def stored_counts(session: Session, study: int, through: date | None = None) -> list[Count]:
    """How many reports of each version came on each day, withdrawn ones not counted, in this order."""
    keys = (REPORTS.c.version, REPORTS.c.day)
    statement = select(*keys, func.count()).where(*_kept(study, through)).group_by(*keys).order_by(*keys)
    return [Count(*row) for row in session.execute(statement)]


def _kept(study: int, through: date | None) -> list[ColumnElement[bool]]:
    here = [REPORTS.c.study == study, REPORTS.c.payloads != b""]
    return here if through is None else [*here, REPORTS.c.day <= through]
