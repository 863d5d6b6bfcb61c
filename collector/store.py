"""The database's statements, each a plain function of a session."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Select,
    Table,
    Update,
    bindparam,
    column,
    delete,
    func,
    select,
    table,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from collector.db import sqlite_driver
from collector.errors import OtherReleaseError, PartlyHeldError
from collector.models import (
    EXPIRED,
    REVISION,
    DocumentRow,
    DrawingRow,
    ReportRow,
    SignatureRow,
    StudyRow,
    UpkeepRow,
)
from collector.problems import unknown_study
from ldp_client.documents.signed import MOST_SIGNATURES, Signature

T = TypeVar("T")
SIGNATURES = cast(Table, SignatureRow.__table__)
STUDIES = cast(Table, StudyRow.__table__)
REPORTS = cast(Table, ReportRow.__table__)
IDS_PER_STATEMENT = 500
NEVER_PUBLISHED = 0
# A report as it is stored: id, version, payloads, as in PackedReport.
StoredRow = tuple[bytes, int, bytes]
# OR IGNORE: a statement that could fail halfway would first copy every page that it changes.
INSERT_INTO_SQLITE = "INSERT OR IGNORE INTO reports (study, id, version, day, payloads) VALUES "
ROW = "(?, ?, ?, ?, ?)"
# Each statement gives up Python's lock and has to wait for it again behind other threads.
ROWS_PER_STATEMENT = 250
# %b: psycopg sends the arrays in binary, which is several times faster than in text.
INSERT_INTO_POSTGRESQL = """
INSERT INTO reports (study, id, version, day, payloads)
SELECT %(study)s, new.id, new.version, %(day)s, new.payloads
FROM unnest(%(ids)b::bytea[], %(versions)b::integer[], %(payloads)b::bytea[]) AS new (id, version, payloads)
ON CONFLICT DO NOTHING RETURNING id
"""
HELD = select(REPORTS.c.id, REPORTS.c.version, REPORTS.c.payloads).where(
    REPORTS.c.study == bindparam("the_study"), REPORTS.c.id.in_(bindparam("ids", expanding=True))
)


class Prepared:
    """A statement of every commit, rendered once. SQLite's own driver runs it."""

    def __init__(self, statement: Select[*tuple[Any, ...]] | Update) -> None:
        dialect = sqlite.dialect()
        compiled = statement.compile(dialect=dialect)
        columns = statement.selected_columns if isinstance(statement, Select) else ()
        self._statement = statement
        self._text, self._names = str(compiled), compiled.positiontup or []
        self._converters = [
            column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns
        ]

    def rows(self, session: Session, **values: Any) -> list[Sequence[Any]]:
        """Run the statement, and return its rows."""
        connection = session.connection()
        if connection.dialect.name != "sqlite":
            result = connection.execute(self._statement, values)
            return list(result) if result.returns_rows else []
        with sqlite_driver(connection) as driver:
            rows = driver.execute(self._text, [values[name] for name in self._names]).fetchall()
        return [
            [convert(value) if convert else value for convert, value in zip(self._converters, row)]
            for row in rows
        ]


class PackedReport(NamedTuple):
    """A report as it is stored. id: 16 bytes. Two are equal exactly if their reports are.

    A withdrawn report keeps its id, so that a late copy of it cannot come back, and loses its payloads.
    """

    id: bytes
    version: int
    payloads: bytes

    @property
    def withdrawn(self) -> bool:
        """Return True if only the id is left; every mechanism's payload has at least one byte."""
        return not self.payloads


class StudyState(NamedTuple):
    """The state of a study that uploads need. number: its key in the reports table. final: see models.py.

    needs_tickets: whether every version's reports need a ticket. spending, deletions: see models.py.
    """

    number: int
    version: int
    closed: bool
    deleted: bool
    final: bool
    opens: date | None
    closes: date | None
    needs_tickets: bool
    spending: bytes | None
    deletions: int


_STATE = select(
    *[STUDIES.c[name] for name in StudyState._fields],
    select(column("version_num")).select_from(table("alembic_version")).scalar_subquery().label("revision"),
).where(STUDIES.c.id == bindparam("study_id"))
STATE, STATE_KEPT = Prepared(_STATE), Prepared(_STATE.with_for_update(read=True))
_VERSIONS = select(DocumentRow.version, DocumentRow.digest)
DIGESTS = Prepared(_VERSIONS.where(DocumentRow.study == bindparam("the_study")))


def study_state(session: Session, study_id: str, keep: bool = False) -> StudyState | None:
    """Return a published study's state. keep: hold its row until the transaction ends (SELECT … FOR SHARE).

    With keep, raises OtherReleaseError if another release has migrated the database.
    """
    rows = (STATE_KEPT if keep else STATE).rows(session, study_id=study_id)
    if not rows:
        return None
    *state, revision = rows[0]
    if keep and revision != REVISION:
        raise OtherReleaseError(f"the database was migrated to {revision}: start its release")
    return StudyState(*state)


def require_study(session: Session, study_id: str, keep: bool = False) -> StudyState:
    """Return a study's state, as study_state does. Raises ProblemError for an unknown study."""
    study = study_state(session, study_id, keep)
    if study is None:
        raise unknown_study(study_id)
    return study


def locked_study(session: Session, study_id: str) -> StudyRow:
    """Return a study's row, locked until the transaction ends (SELECT … FOR UPDATE).

    Raises ProblemError for an unknown study.
    """
    row = session.scalar(select(StudyRow).where(StudyRow.id == study_id).with_for_update())
    if row is None:
        raise unknown_study(study_id)
    return row


def locked_or_new_study(session: Session, study_id: str) -> StudyRow:
    """Return a study's row as locked_study does. A missing study is made, with version NEVER_PUBLISHED."""
    values = {"id": study_id, "version": NEVER_PUBLISHED, "closed": False, "needs_tickets": False}
    new = insert_new(session, STUDIES, ["id"]).values(**values).returning(STUDIES.c.number)
    for number in session.execute(new).scalars().all():
        make_partition(session.connection(), number)
    return locked_study(session, study_id)


def issuers(session: Session) -> dict[int, set[str]]:
    """Return the origins of the issuers of every study that is not deleted, by its number."""
    rows = select(DocumentRow.study, DocumentRow.issuer).join(StudyRow, DocumentRow.study == StudyRow.number)
    origins: dict[int, set[str]] = {}
    for study, issuer in session.execute(rows.where(StudyRow.deleted.is_(False), DocumentRow.issuer != "")):
        origins.setdefault(study, set()).add(issuer)
    return origins


def find_document(session: Session, study_id: str, version: int | None = None) -> DocumentRow | None:
    """Return one version of a study; without a version, the version that devices get now."""
    wanted = StudyRow.version if version is None else version
    joined = (DocumentRow.study == StudyRow.number) & (DocumentRow.version == wanted)
    return session.scalar(select(DocumentRow).join(StudyRow, joined).where(StudyRow.id == study_id))


def require_document(session: Session, study_id: str, version: int | None = None) -> DocumentRow:
    """Return one version of a study, as find_document does. Raises ProblemError if there is none."""
    document = find_document(session, study_id, version)
    if document is None:
        raise unknown_study(study_id)
    return document


def unfinished_documents(session: Session) -> list[tuple[bytes, bool]]:
    """Return (current document, is open) of each study that is open, or neither summed nor deleted."""
    joined = (DocumentRow.study == StudyRow.number) & (DocumentRow.version == StudyRow.version)
    summed = select(DrawingRow.study).where(DrawingRow.total.is_not(None))
    left = StudyRow.deleted.is_(False) & StudyRow.number.not_in(summed)
    statement = select(DocumentRow.canonical, StudyRow.closed).join(StudyRow, joined)
    rows = session.execute(statement.where(StudyRow.closed.is_(False) | left))
    return [(canonical, not closed) for canonical, closed in rows]


def document_digests(session: Session, study: int) -> dict[int, str]:
    """Return the digest of every version of a study that was ever published. study: its number."""
    return {version: digest for version, digest in DIGESTS.rows(session, the_study=study)}


def study_numbers(session: Session) -> list[tuple[str, int]]:
    """Return every study's id and number, by id as Python compares them.

    Uploads lock studies in that order; a database may sort "a-c" and "a_b" the other way round.
    """
    rows = session.execute(select(StudyRow.id, StudyRow.number))
    return sorted((study_id, number) for study_id, number in rows)


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
    connection, reports = session.connection(), sorted(reports, key=itemgetter(0))
    if connection.dialect.name == "postgresql":
        ids, versions, payloads = (list(column) for column in zip(*reports, strict=True))
        columns = {"study": study, "day": day, "ids": ids, "versions": versions, "payloads": payloads}
        return set(connection.exec_driver_sql(INSERT_INTO_POSTGRESQL, columns).scalars())
    written, stored = day.isoformat(), 0
    rows = [(study, report_id, version, written, payloads) for report_id, version, payloads in reports]
    for some in chunks(rows, ROWS_PER_STATEMENT):
        statement = INSERT_INTO_SQLITE + ", ".join([ROW] * len(some))
        with sqlite_driver(connection) as driver:
            stored += driver.execute(statement, tuple(chain.from_iterable(some))).rowcount
    if stored not in (0, len(rows)):
        raise PartlyHeldError
    return {report.id for report in reports} if stored else set()


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


def remove_reports(
    session: Session, chosen: Chosen, after: bytes, most: int, keep_ids: bool
) -> list[PackedReport]:
    """Delete the next `most` reports by id, and return their former contents.

    after: the id to continue from, so that reports which stay are not read again. keep_ids: the ids stay, and
    withdrawn reports are skipped. The day of the others becomes EXPIRED: they were not withdrawn. The caller
    holds the study's row.
    """
    left = [REPORTS.c.payloads != b""] if keep_ids else []
    rows = select_rows(session, *chosen.conditions(), REPORTS.c.id > after, *left, limit=most)
    reports = list(map(PackedReport._make, rows))
    change = update(REPORTS).values(payloads=b"", day=EXPIRED) if keep_ids else delete(REPORTS)
    removed = REPORTS.c.id.in_([report.id for report in reports])
    session.connection().execute(change.where(REPORTS.c.study == chosen.study, removed))
    return reports


def count_reports(session: Session, chosen: Chosen) -> int:
    """Return how many reports `delete_reports` would delete in all, except withdrawn ones."""
    counted = select(func.count()).select_from(REPORTS).where(*chosen.conditions(), REPORTS.c.payloads != b"")
    return int(session.connection().execute(counted).scalar_one())


def date_back(session: Session, after: date, day: date) -> None:
    """Change the day of all reports dated after `after` to `day`."""
    session.connection().execute(update(REPORTS).where(REPORTS.c.day > after).values(day=day))


def ask_upkeep(session: Session) -> None:
    """Have the order of arrival erased at the server's next look, because a study was closed."""
    session.execute(update(UpkeepRow).values(closed=True))


def chunks(values: Iterable[T], size: int = IDS_PER_STATEMENT) -> Iterator[list[T]]:
    """Yield the values in lists of this size, by default as many as one statement takes."""
    remaining = iter(values)
    while chunk := list(islice(remaining, size)):
        yield chunk


def held_reports(session: Session, study: int, ids: Iterable[bytes]) -> dict[bytes, StoredRow]:
    """Return the stored reports among these ids, including withdrawn ones."""
    held: dict[bytes, StoredRow] = {}
    for chunk in chunks(ids):
        rows = _driver_rows(session.connection().execute(HELD, {"the_study": study, "ids": chunk}))
        held.update(zip([row[0] for row in rows], rows))
    return held


def report_page(
    session: Session, study: int, newest: int, after: bytes, limit: int, dated: bool = False
) -> list[StoredRow]:
    """Return the next reports of a study in the order of their ids, without withdrawn reports.

    newest: the last version; dated: append the day to each row.
    """
    conditions = [REPORTS.c.study == study, REPORTS.c.id > after, REPORTS.c.payloads != b""]
    conditions.append(REPORTS.c.version <= newest)
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
    with sqlite_driver(result.connection):
        rows = cast(list[StoredRow], result.cursor.fetchall())
    result.close()
    return rows


def insert_new(session: Session, table: Table, key: Sequence[str]) -> Any:
    """Return an insert that leaves rows with a known key alone. The type is the dialect's own."""
    dialects: dict[str, Any] = {"sqlite": sqlite, "postgresql": postgresql}
    insert = dialects[session.get_bind().dialect.name].insert(table)
    return insert.on_conflict_do_nothing(index_elements=key)


def count_withdrawn(session: Session, study: int) -> int:
    """Return how many reports of a study were withdrawn and still have their ids stored."""
    here = (REPORTS.c.study == study, REPORTS.c.payloads == b"", REPORTS.c.day != EXPIRED)
    return int(session.execute(select(func.count()).where(*here)).scalar_one())


# PostgreSQL has a table for each study's reports, a partition of `reports` by the study's number: the
# upkeep rewrites one after the other, so that uploads to other studies go on.
PARENT = "reports"
# An empty table is attached without the lock that would block uploads to other studies.
MAKE = (
    "CREATE TABLE reports_{number} (LIKE reports INCLUDING ALL)",
    "ALTER TABLE reports ATTACH PARTITION reports_{number} FOR VALUES IN ({number})",
)
NAMES = """
SELECT child.relname FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid WHERE inhparent = to_regclass('reports') ORDER BY child.oid
"""


def make_partition(connection: Connection, number: int) -> None:
    """Make the table for a new study's reports, if studies have separate tables."""
    if connection.dialect.name == "postgresql":
        for statement in MAKE:
            connection.execute(text(statement.format(number=int(number))))


def partition_names(connection: Connection) -> list[str]:
    """Return the tables of all studies' reports; none for a database without them, such as an issuer's."""
    return list(connection.exec_driver_sql(NAMES).scalars())
