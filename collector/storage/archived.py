"""Reports read by ranges of their ids; and studies whose reports lie in an archive: operator/archiving.py.

Of an archived study the database keeps how many reports of each version came on each day, and the ids of
those whose deletion from the archive was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

from sqlalchemy import ColumnElement, Table, delete, func, select, update
from sqlalchemy.orm import Session

from collector.storage.models import EXPIRED, ArchivedRow, StudyRow, WaitingRow
from collector.storage.queries import REPORTS, STUDIES, StoredRow, insert_new, select_rows

ARCHIVED = cast(Table, ArchivedRow.__table__)
WAITING = cast(Table, WaitingRow.__table__)
KEY = ("study", "version", "day")
# Of (version, day).
Counts = Mapping[tuple[int, date], int]


class IdRange(NamedTuple):
    """Ids above `after`, up to `last`."""

    after: bytes
    last: bytes


def range_page(
    session: Session, study: int, newest: int, ids: IdRange, through: date | None, limit: int
) -> list[StoredRow]:
    """The next reports of a range in the order of their ids, each with its day behind it, no withdrawn ones.

    newest: the last version. through: the last day of arrival, None for any.
    """
    conditions = [*_kept(study, through), REPORTS.c.version <= newest]
    conditions += [REPORTS.c.id > ids.after, REPORTS.c.id <= ids.last]
    return select_rows(session, *conditions, limit=limit, more=(REPORTS.c.day,))


def stored_counts(session: Session, study: int, through: date | None = None) -> Counts:
    """How many reports of each version came on each day, withdrawn ones and archived ones not counted."""
    keys = (REPORTS.c.version, REPORTS.c.day)
    statement = select(*keys, func.count()).where(*_kept(study, through)).group_by(*keys)
    return {(version, day): reports for version, day, reports in session.execute(statement)}


def withdrawn_counts(session: Session, study: int) -> Counts:
    """The same of withdrawn reports; one that was withdrawn before it came, or after it expired, counts for
    that day."""
    keys = (REPORTS.c.version, REPORTS.c.day)
    here = (REPORTS.c.study == study, REPORTS.c.payloads == b"", REPORTS.c.day != EXPIRED)
    statement = select(*keys, func.count()).where(*here).group_by(*keys)
    return {(version, day): reports for version, day, reports in session.execute(statement)}


def archived_counts(session: Session, study: int) -> Counts:
    """How many reports of each version that came on each day are in the archive alone."""
    statement = select(ARCHIVED.c.version, ARCHIVED.c.day, ARCHIVED.c.reports).where(
        ARCHIVED.c.study == study
    )
    return {(version, day): reports for version, day, reports in session.execute(statement)}


def add_archived(session: Session, study: int, change: Counts) -> None:
    """Count reports that this transaction moves into the archive, or out of it."""
    for (version, day), reports in sorted(change.items()):
        row = {"study": study, "version": version, "day": day}
        session.execute(insert_new(session, ARCHIVED, KEY).values(**row, reports=0))
        here = (ARCHIVED.c.study == study, ARCHIVED.c.version == version, ARCHIVED.c.day == day)
        session.execute(update(ARCHIVED).where(*here).values(reports=ARCHIVED.c.reports + reports))


def set_archived(session: Session, study: int, counts: Counts) -> None:
    """Have an archive's reports be counted as these, and nothing of what waits be counted out of them."""
    session.execute(delete(ARCHIVED).where(ARCHIVED.c.study == study))
    add_archived(session, study, counts)
    session.execute(update(WAITING).where(WAITING.c.study == study).values(taken=False))


def withdrawn_ids(session: Session, study: int) -> set[bytes]:
    """The ids of the reports that are withdrawn and acknowledged."""
    here = (REPORTS.c.study == study, REPORTS.c.payloads == b"")
    return set(map(bytes, session.execute(select(REPORTS.c.id).where(*here)).scalars()))


def drop_reports(session: Session, study: int, most: int) -> int:
    """Delete the next reports that are in the archive, and count them as such; how many.

    Their part of the running summary stays, and so do the ids of withdrawn ones.
    """
    ids = select(REPORTS.c.id).where(*_kept(study, None)).order_by(REPORTS.c.id).limit(most)
    statement = delete(REPORTS).where(REPORTS.c.study == study, REPORTS.c.id.in_(ids))
    deleted = session.execute(statement.returning(REPORTS.c.version, REPORTS.c.day)).all()
    add_archived(session, study, Counter((version, day) for version, day in deleted))
    return len(deleted)


def wait_for_archive(session: Session, study: int, report_id: bytes) -> bool:
    """Keep that a report is to be deleted from the archive; whether nobody had asked for it yet."""
    row = insert_new(session, WAITING, ["study", "id"]).values(study=study, id=report_id)
    return session.execute(row.returning(WAITING.c.id)).first() is not None


def waiting_withdrawals(session: Session, study: int) -> dict[bytes, bool]:
    """The ids of the reports that are to be deleted from the archive, and whether each is counted no more."""
    rows = session.execute(select(WAITING.c.id, WAITING.c.taken).where(WAITING.c.study == study))
    return {bytes(report_id): taken for report_id, taken in rows}


def count_waiting(session: Session, study: int) -> int:
    """How many reports are to be deleted from the archive."""
    counted = select(func.count()).select_from(WAITING).where(WAITING.c.study == study)
    return int(session.execute(counted).scalar_one())


def mark_taken(session: Session, study: int, ids: Sequence[bytes]) -> set[bytes]:
    """Note that these, which wait, are counted no more; those that were until now."""
    here = (WAITING.c.study == study, WAITING.c.id.in_(ids), WAITING.c.taken.is_(False))
    statement = update(WAITING).where(*here).values(taken=True).returning(WAITING.c.id)
    return set(map(bytes, session.execute(statement).scalars()))


def end_waiting(session: Session, study: int, day: date, ids: Sequence[bytes]) -> None:
    """Keep of these, which waited, that they are withdrawn. day: on which that is."""
    version = session.scalars(select(StudyRow.version).where(StudyRow.number == study)).one()
    row = {"study": study, "version": version, "day": day, "payloads": b""}
    new = insert_new(session, REPORTS, ["study", "id"])
    session.execute(new, [{**row, "id": report_id} for report_id in ids])
    session.execute(delete(WAITING).where(WAITING.c.study == study, WAITING.c.id.in_(ids)))


def archived_studies(session: Session) -> set[int]:
    """The numbers of the studies that are archived."""
    return set(session.scalars(select(STUDIES.c.number).where(STUDIES.c.archived.is_not(None))))


def forget_archive(session: Session, study: int) -> None:
    """Have a study be none that is archived: its archive is deleted."""
    for rows in (WAITING, ARCHIVED):
        session.execute(delete(rows).where(rows.c.study == study))
    session.execute(update(STUDIES).where(STUDIES.c.number == study).values(archived=None))


def _kept(study: int, through: date | None) -> list[ColumnElement[bool]]:
    here = [REPORTS.c.study == study, REPORTS.c.payloads != b""]
    return here if through is None else [*here, REPORTS.c.day <= through]
