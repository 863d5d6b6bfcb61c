"""The database's statements, each a plain function of a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import islice
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Table,
    bindparam,
    column,
    delete,
    func,
    select,
    table,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from collector.storage.models import (
    EXPIRED,
    REVISION,
    CollectorRow,
    DocumentRow,
    ReportRow,
    SecureSumRow,
    SignatureRow,
    StudyRow,
)
from collector.storage.packing import PackedReport
from collector.storage.partitions import make_partition
from ldp_client.documents.signed import MOST_SIGNATURES, Signature

SIGNATURES = cast(Table, SignatureRow.__table__)
STUDIES = cast(Table, StudyRow.__table__)
REPORTS = cast(Table, ReportRow.__table__)
IDS_PER_STATEMENT = 500
# Built once: every commit needs the state of its studies.
STATE = select(
    STUDIES.c.number,
    STUDIES.c.closed,
    STUDIES.c.deleted,
    STUDIES.c.final,
    STUDIES.c.opens,
    STUDIES.c.closes,
    STUDIES.c.invited,
    STUDIES.c.spending,
    STUDIES.c.deletions,
    select(column("version_num")).select_from(table("alembic_version")).scalar_subquery().label("revision"),
).where(STUDIES.c.id == bindparam("study_id"))
STATE_KEPT = STATE.with_for_update(read=True)
DIGESTS = select(DocumentRow.version, DocumentRow.digest).where(DocumentRow.study == bindparam("the_study"))
NEVER_PUBLISHED = 0
# A report as it is stored: id, version, payloads, as in PackedReport.
StoredRow = tuple[bytes, int, bytes]
INSERT_INTO_SQLITE = (
    "INSERT INTO reports (study, id, version, day, payloads) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
# %b: psycopg sends the arrays in binary, which is several times faster than in text.
INSERT_INTO_POSTGRESQL = """
INSERT INTO reports (study, id, version, day, payloads)
SELECT %(study)s, new.id, new.version, %(day)s, new.payloads
FROM unnest(%(ids)b::bytea[], %(versions)b::integer[], %(payloads)b::bytea[]) AS new (id, version, payloads)
ON CONFLICT DO NOTHING RETURNING id
"""
HELD_BY_POSTGRESQL = """
SELECT id, version, payloads FROM reports WHERE study = %(study)s AND id = ANY(%(ids)b::bytea[])
"""


class OtherReleaseError(Exception):
    """The database belongs to another release now: this release would count new reports wrongly."""


class PartlyHeldError(Exception):
    """Some of the reports to insert were held before; the transaction must be rolled back."""


class StudyState(NamedTuple):
    """The state of a study that uploads need. number: its key in the reports table. final: see models.py.

    invited: whether every version's reports need an invitation. spending, deletions: see models.py.
    """

    number: int
    closed: bool
    deleted: bool
    final: bool
    opens: date | None
    closes: date | None
    invited: bool
    spending: bytes | None
    deletions: int


def identity(session: Session) -> bytes:
    """Return the identity of this database's collector."""
    return session.scalars(select(CollectorRow.identity)).one()


def study_state(session: Session, study_id: str, keep: bool = False) -> StudyState | None:
    """Return a published study's state. keep: hold its row until the transaction ends (SELECT … FOR SHARE).

    With keep, raises OtherReleaseError if another release has migrated the database.
    """
    statement = STATE_KEPT if keep else STATE
    row = session.connection().execute(statement, {"study_id": study_id}).first()
    if row is None:
        return None
    *state, revision = row
    if keep and revision != REVISION:
        raise OtherReleaseError(f"the database was migrated to {revision}: start its release")
    return StudyState(*state)


def locked_study(session: Session, study_id: str) -> StudyRow | None:
    """Return a study's row, locked until the transaction ends (SELECT … FOR UPDATE)."""
    return session.scalar(select(StudyRow).where(StudyRow.id == study_id).with_for_update())


def locked_or_new_study(session: Session, study_id: str) -> StudyRow:
    """Return a study's row as locked_study does. A missing study is made, with version NEVER_PUBLISHED."""
    values = {"id": study_id, "version": NEVER_PUBLISHED, "closed": False, "invited": False}
    new = insert_new(session, STUDIES, ["id"]).values(**values).returning(STUDIES.c.number)
    for number in session.execute(new).scalars().all():
        make_partition(session, number)
    return session.scalars(select(StudyRow).where(StudyRow.id == study_id).with_for_update()).one()


def add_document(session: Session, number: int, version: int, digest: str, canonical: bytes) -> None:
    """Store one version of a study."""
    session.add(DocumentRow(study=number, version=version, digest=digest, canonical=canonical))
    session.flush()


def find_document(session: Session, study_id: str, version: int | None = None) -> DocumentRow | None:
    """Return one version of a study; without a version, the version that devices get now."""
    wanted = StudyRow.version if version is None else version
    joined = (DocumentRow.study == StudyRow.number) & (DocumentRow.version == wanted)
    return session.scalar(select(DocumentRow).join(StudyRow, joined).where(StudyRow.id == study_id))


def unfinished_documents(session: Session) -> list[tuple[bytes, bool]]:
    """Return (current document, is open) of each study that is open, or neither summed nor deleted."""
    joined = (DocumentRow.study == StudyRow.number) & (DocumentRow.version == StudyRow.version)
    summed = select(SecureSumRow.study).where(SecureSumRow.total.is_not(None))
    left = StudyRow.deleted.is_(False) & StudyRow.number.not_in(summed)
    statement = select(DocumentRow.canonical, StudyRow.closed).join(StudyRow, joined)
    rows = session.execute(statement.where(StudyRow.closed.is_(False) | left))
    return [(canonical, not closed) for canonical, closed in rows]


def all_versions(session: Session, deleted: bool = False) -> list[tuple[int, int, str]]:
    """Return (number, version, digest) of every version, in order. deleted: include deleted studies."""
    columns = (DocumentRow.study, DocumentRow.version, DocumentRow.digest)
    joined = select(*columns).join(StudyRow, DocumentRow.study == StudyRow.number)
    chosen = joined if deleted else joined.where(StudyRow.deleted.is_(False))
    rows = session.execute(chosen.order_by(*columns[:2]))
    return [(study, version, digest) for study, version, digest in rows]


def canonical_bytes(session: Session, study_id: str, version: int) -> bytes | None:
    """Return the canonical document of one version of a study, current or not."""
    statement = select(DocumentRow.canonical).join(StudyRow, DocumentRow.study == StudyRow.number)
    return session.scalar(statement.where(StudyRow.id == study_id, DocumentRow.version == version))


def document_digests(session: Session, study: int) -> dict[int, str]:
    """Return the digest of every version of a study that was ever published. study: its number."""
    rows = session.execute(DIGESTS, {"the_study": study})
    return {version: digest for version, digest in rows}


def study_numbers(session: Session) -> list[tuple[str, int]]:
    """Return every study's id and number, by id as Python compares them.

    Uploads lock studies in that order; a database may sort "a-c" and "a_b" the other way round.
    """
    rows = session.execute(select(StudyRow.id, StudyRow.number))
    return sorted((study_id, number) for study_id, number in rows)


def published_versions(session: Session, study_id: str) -> list[int]:
    """Return every version of a study that was ever published, the first version first."""
    statement = select(DocumentRow.version).join(StudyRow, DocumentRow.study == StudyRow.number)
    return list(session.scalars(statement.where(StudyRow.id == study_id).order_by(DocumentRow.version)))


def every_version(session: Session) -> list[tuple[str, int, int]]:
    """Return every version of every study: the study's id, its number, and the version, in this order."""
    columns = (StudyRow.id, StudyRow.number, DocumentRow.version)
    statement = select(*columns).join(DocumentRow, DocumentRow.study == StudyRow.number)
    return sorted((study_id, number, version) for study_id, number, version in session.execute(statement))


def add_signature(session: Session, document: DocumentRow, signature: Signature) -> None:
    """Store a signature of a version, unless its key has one or there are as many as a device reads."""
    row = {"study": document.study, "version": document.version, "key": signature.key}
    row_count = select(func.count()).select_from(SIGNATURES).where(*_signed(document))
    if session.execute(row_count).scalar_one() < MOST_SIGNATURES:
        session.execute(insert_new(session, SIGNATURES, list(row)).values(**row, signature=signature.value))


def signatures(session: Session, document: DocumentRow) -> list[SignatureRow]:
    """Return every signature of a version, by key."""
    return list(session.scalars(select(SignatureRow).where(*_signed(document)).order_by(SignatureRow.key)))


def _signed(document: DocumentRow) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return SIGNATURES.c.study == document.study, SIGNATURES.c.version == document.version


def insert_reports(session: Session, study: int, day: date, reports: Sequence[PackedReport]) -> set[bytes]:
    """Store the reports whose ids are new, and return those ids.

    Reports are sorted by id, so that two batches with the same reports cannot deadlock.
    Raises PartlyHeldError if the database stored only some and cannot tell which.
    """
    if not reports:
        return set()
    connection = session.connection()
    insert = {"sqlite": _insert_into_sqlite, "postgresql": _insert_into_postgresql}[connection.dialect.name]
    return insert(connection, study, day, sorted(reports))


def _insert_into_sqlite(
    connection: Connection, study: int, day: date, reports: Sequence[PackedReport]
) -> set[bytes]:
    written = day.isoformat()
    rows = [(study, report.id, report.version, written, report.payloads) for report in reports]
    stored = connection.exec_driver_sql(INSERT_INTO_SQLITE, rows).rowcount
    if stored not in (0, len(rows)):
        raise PartlyHeldError
    return {report.id for report in reports} if stored else set()


def _insert_into_postgresql(
    connection: Connection, study: int, day: date, reports: Sequence[PackedReport]
) -> set[bytes]:
    ids, versions, payloads = (list(column) for column in zip(*reports, strict=True))
    columns = {"study": study, "day": day, "ids": ids, "versions": versions, "payloads": payloads}
    return set(connection.exec_driver_sql(INSERT_INTO_POSTGRESQL, columns).scalars())


class Chosen(NamedTuple):
    """Some reports of a study, by its number: from before a day, or of any day; of one version, or of all."""

    study: int
    before: date | None = None
    version: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions that select these reports."""
        here = [REPORTS.c.study == self.study]
        if self.before is not None:
            here.append(REPORTS.c.day < self.before)
        return here if self.version is None else [*here, REPORTS.c.version == self.version]


class Deleted(NamedTuple):
    """Deleted reports, and how many of them had been withdrawn."""

    reports: list[PackedReport]
    withdrawn: int


def delete_reports(session: Session, chosen: Chosen, after: bytes, most: int) -> Deleted:
    """Delete the next `most` reports by id with their ids, and return their former contents.

    after: the id to continue from, so that reports which stay are not read again.
    """
    ids = select(REPORTS.c.id).where(*chosen.conditions(), REPORTS.c.id > after)
    ids = ids.order_by(REPORTS.c.id).limit(most)
    deleted = delete(REPORTS).where(REPORTS.c.study == chosen.study, REPORTS.c.id.in_(ids))
    statement = deleted.returning(REPORTS.c.id, REPORTS.c.version, REPORTS.c.payloads, REPORTS.c.day)
    rows = session.connection().execute(statement).all()
    withdrawn = sum(not row.payloads and row.day != EXPIRED for row in rows)
    return Deleted([PackedReport(*row[:3]) for row in rows], withdrawn)


def count_reports(session: Session, chosen: Chosen) -> int:
    """Return how many reports `delete_reports` would delete in all, except withdrawn ones."""
    counted = select(func.count()).select_from(REPORTS).where(*chosen.conditions(), REPORTS.c.payloads != b"")
    return int(session.connection().execute(counted).scalar_one())


def date_back(session: Session, after: date, day: date) -> None:
    """Change the day of all reports dated after `after` to `day`."""
    session.connection().execute(update(REPORTS).where(REPORTS.c.day > after).values(day=day))


def held_reports(session: Session, study: int, ids: Iterable[bytes]) -> dict[bytes, StoredRow]:
    """Return the stored reports among these ids, including withdrawn ones."""
    held: dict[bytes, StoredRow] = {}
    connection = session.connection()
    select_held = {"sqlite": _held_by_sqlite, "postgresql": _held_by_postgresql}[connection.dialect.name]
    remaining = iter(ids)
    while chunk := list(islice(remaining, IDS_PER_STATEMENT)):
        rows = select_held(connection, study, chunk)
        held.update(zip([row[0] for row in rows], rows))
    return held


def _held_by_sqlite(connection: Connection, study: int, ids: Sequence[bytes]) -> list[StoredRow]:
    marks = ",".join("?" * len(ids))
    statement = f"SELECT id, version, payloads FROM reports WHERE study = ? AND id IN ({marks})"
    return _driver_rows(connection.exec_driver_sql(statement, (study, *ids)))


def _held_by_postgresql(connection: Connection, study: int, ids: Sequence[bytes]) -> list[StoredRow]:
    return _driver_rows(connection.exec_driver_sql(HELD_BY_POSTGRESQL, {"study": study, "ids": ids}))


def report_page(
    session: Session,
    study: int,
    newest: int,
    after: bytes,
    through: date | None,
    limit: int,
    dated: bool = False,
) -> list[StoredRow]:
    """Return the next reports of a study in the order of their ids, without withdrawn reports.

    newest: the last version; through: the last day of arrival; dated: append the day to each row.
    """
    conditions = [REPORTS.c.study == study, REPORTS.c.id > after, REPORTS.c.payloads != b""]
    conditions.append(REPORTS.c.version <= newest)
    if through is not None:
        conditions.append(REPORTS.c.day <= through)
    return select_rows(session, *conditions, limit=limit, more=(REPORTS.c.day,) if dated else ())


def select_rows(
    session: Session,
    *conditions: ColumnElement[bool],
    limit: int | None = None,
    more: Sequence[ColumnElement[Any]] = (),
) -> list[StoredRow]:
    statement = select(REPORTS.c.id, REPORTS.c.version, REPORTS.c.payloads, *more).where(*conditions)
    result = session.connection().execute(statement.order_by(REPORTS.c.id).limit(limit))
    return _driver_rows(result)


def _driver_rows(result: CursorResult[Any]) -> list[StoredRow]:
    """Return the driver's own tuples: an object for each row would cost as much as reading it."""
    assert result.cursor is not None
    try:
        rows = cast(list[StoredRow], result.cursor.fetchall())
    except sqlite3.Error as error:
        # Raise the error that SQLAlchemy's own rows would raise.
        raise DatabaseError("SELECT", None, error) from error
    result.close()
    return rows


def insert_new(session: Session, table: Table, key: Sequence[str]) -> Any:
    """Return an insert that leaves rows with a known key alone. The type is the dialect's own."""
    dialects: dict[str, Any] = {"sqlite": sqlite, "postgresql": postgresql}
    insert = dialects[session.get_bind().dialect.name].insert(table)
    return insert.on_conflict_do_nothing(index_elements=key)
