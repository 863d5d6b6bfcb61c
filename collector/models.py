"""The tables. A report row has a day and nothing else that could link it to a person."""

from datetime import date
from pathlib import Path
from typing import cast

from sqlalchemy import ForeignKey, ForeignKeyConstraint, LargeBinary, String, Table, Text, false, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# The newest of the migrations: they are numbered.
VERSIONS = Path(__file__).parent / "migrations" / "versions"
REVISION = max(file.name[:4] for file in VERSIONS.glob("[0-9]*.py"))
# The day of a report that lost all but its id because its time was over: not a day of arrival.
EXPIRED = date.min


class Base(DeclarativeBase):
    """All tables of the collector."""


class StudyRow(Base):
    """A study's state. version: the version that devices get now; opens, closes: that version's days.

    deleted: whether its reports were deleted; devices no longer get the study. final: whether it stays closed
    permanently. needs_tickets: whether a report needs a ticket. spending: see tickets/codes.py. deletions:
    how many transactions deleted reports that were not withdrawn.
    """

    __tablename__ = "studies"

    number: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    version: Mapped[int]
    opens: Mapped[date | None]
    closes: Mapped[date | None]
    closed: Mapped[bool]
    deleted: Mapped[bool] = mapped_column(server_default=false())
    final: Mapped[bool] = mapped_column(server_default=false())
    needs_tickets: Mapped[bool] = mapped_column(server_default=false())
    spending: Mapped[bytes | None] = mapped_column(LargeBinary)
    deletions: Mapped[int] = mapped_column(server_default=text("0"))


class CollectorRow(Base):
    """The only row.

    is_copy: whether the database is a backup, which lacks later tokens: see issuer/issue.py.
    """

    __tablename__ = "collector"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    is_copy: Mapped[bool] = mapped_column(server_default=false())


class DocumentRow(Base):
    """One published version of a study; never changed. issuer: the origin of its issuer of tickets, or ""."""

    __tablename__ = "documents"

    study: Mapped[int] = mapped_column(ForeignKey("studies.number"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str] = mapped_column(String(64))
    canonical: Mapped[bytes] = mapped_column(LargeBinary)
    issuer: Mapped[str] = mapped_column(String(300))


class SignatureRow(Base):
    """A signature of a version: see ldp_client/documents/signed.py."""

    __tablename__ = "signatures"
    __table_args__ = (ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),)

    study: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    signature: Mapped[bytes] = mapped_column(LargeBinary)


class KeyRow(Base):
    """A key for people or programs. hash: SHA-256; the key itself is not stored.

    studies: canonical JSON of the key's studies, NULL for all. expires: its last day. used: the day of its
    last use.
    """

    __tablename__ = "keys"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    role: Mapped[str] = mapped_column(String(16))
    hash: Mapped[bytes] = mapped_column(LargeBinary(32))
    studies: Mapped[str | None] = mapped_column(Text)
    expires: Mapped[date | None]
    used: Mapped[date | None]


class RemovedKeyRow(Base):
    """A removed key: no server may accept it as the operator's token."""

    __tablename__ = "removed_keys"

    hash: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)


class SessionRow(Base):
    """A browser in which an operator signed in. hash: of the word in its cookie. key: the hash of the key."""

    __tablename__ = "sessions"

    hash: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(32))
    until: Mapped[date]


class AuditRow(Base):
    """One action of an operator: see audit_log.py. Triggers prevent changes and deletions."""

    __tablename__ = "audit_log"
    # No order of arrival: within a day the order of actions is unknown.
    __table_args__ = ({"sqlite_with_rowid": False},)

    id: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    at: Mapped[str] = mapped_column(String(17))
    key: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(32))
    study: Mapped[str | None] = mapped_column(String(64))
    detail: Mapped[str] = mapped_column(Text)


class ReportRow(Base):
    """One report. id: its 16 bytes. day: of arrival, UTC.

    payloads: see reports/packing.py; empty once it is deleted.

    EXPIRED is the day of a deleted report whose time was over and which was not withdrawn.
    No foreign key leads to its document, which is never deleted: the check cost as much as the rest of
    storing a report. For PostgreSQL's partitions see store.py.
    """

    __tablename__ = "reports"
    # Without rowid: SQLite's hidden row numbers would keep the order of arrival.
    __table_args__ = ({"sqlite_with_rowid": False, "postgresql_partition_by": "LIST (study)"},)

    study: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    id: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    version: Mapped[int]
    day: Mapped[date]
    payloads: Mapped[bytes] = mapped_column(LargeBinary)


# A copy of a database needs the study's row first: its partition is made with it.
cast(Table, ReportRow.__table__).add_is_dependent_on(cast(Table, StudyRow.__table__))


class SumsRow(Base):
    """A share of a version's running summary: see reports/sums.py."""

    __tablename__ = "sums"
    __table_args__ = (ForeignKeyConstraint(["study", "version"], ["documents.study", "documents.version"]),)

    study: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    sums: Mapped[bytes] = mapped_column(LargeBinary)


class DrawingRow(Base):
    """A node's part in the drawing of a set: see nodes/drawing.py.

    commitment: the signed statement. shown_for: SHA-256 of the commitments for which the nonce was shown.
    drawing: the drawing whose set binds the node. ids: that set, the only one that the node will ever sum.
    total: the sum once it was requested.
    """

    __tablename__ = "drawings"

    study: Mapped[int] = mapped_column(ForeignKey("studies.number"), primary_key=True)
    nonce: Mapped[bytes] = mapped_column(LargeBinary(32))
    commitment: Mapped[str] = mapped_column(Text)
    shown_for: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    drawing: Mapped[bytes | None] = mapped_column(LargeBinary)
    ids: Mapped[bytes | None] = mapped_column(LargeBinary)
    total: Mapped[bytes | None] = mapped_column(LargeBinary)


class TicketRow(Base):
    """A ticket: a direct ticket lets a report in, and an issuer's ticket gets its person one blind token.

    hash: SHA-256; the ticket itself is not stored. public: canonical JSON of the public values that it
    carries, by field; NULL for none. At an issuer, the key's values, never NULL. Only an issuer has the rest.
    name: the operator's name for the person, "" for none. request: SHA-256 of the request that was answered;
    only this request is answered again. It is empty for a ticket that gets no token, because a restored
    backup does not know whether it got one.
    """

    __tablename__ = "tickets"
    # Without rowid: no order of creation or use.
    __table_args__ = ({"sqlite_with_rowid": False},)

    study: Mapped[int] = mapped_column(ForeignKey("studies.number"), primary_key=True, autoincrement=False)
    hash: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    public: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text, server_default=text("''"))
    request: Mapped[bytes | None] = mapped_column(LargeBinary(32))


class TicketKeyRow(Base):
    """An issuer's key pair of a study, or of one stratum of it. Only an issuer has any.

    place: its position in the study's list. spki: DER of the public key. private: DER of the private key, in
    PKCS #8. public: canonical JSON of the stratum's values.
    """

    __tablename__ = "ticket_keys"

    study: Mapped[int] = mapped_column(ForeignKey("studies.number"), primary_key=True, autoincrement=False)
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    spki: Mapped[bytes] = mapped_column(LargeBinary)
    private: Mapped[bytes] = mapped_column(LargeBinary)
    public: Mapped[str] = mapped_column(Text)


class SpentRow(Base):
    """A ticket that let a report in. mark: see `spend` in tickets/codes.py; it reveals no ticket.

    If a report is withdrawn, or deleted because its time is over, its ticket stays spent.
    """

    __tablename__ = "spent"
    # Without rowid: no order of arrival.
    __table_args__ = ({"sqlite_with_rowid": False},)

    study: Mapped[int] = mapped_column(ForeignKey("studies.number"), primary_key=True, autoincrement=False)
    mark: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)


class UpkeepRow(Base):
    """One row: the day of the last upkeep (daily.py).

    closed: whether a study was closed since.
    """

    __tablename__ = "upkeep"

    day: Mapped[date] = mapped_column(primary_key=True)
    closed: Mapped[bool] = mapped_column(server_default=false())
