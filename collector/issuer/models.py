"""The issuer's tables: they record who got a token, and hold no data that is also in a report."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import ForeignKeyConstraint, LargeBinary, String, Text, false
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from collector.migrations import Schema

VERSIONS = Path(__file__).parent / "migrations" / "versions"
REVISION = max(file.name[:4] for file in VERSIONS.glob("[0-9]*.py"))


class IssuerBase(DeclarativeBase):
    """All tables of an issuer."""


class IssuerRow(IssuerBase):
    """A single row: the base URL at which devices reach the issuer, as studies name it.

    is_copy: whether the database was restored from a backup, which lacks later tokens.
    """

    __tablename__ = "issuer"

    address: Mapped[str] = mapped_column(String(500), primary_key=True)
    is_copy: Mapped[bool] = mapped_column(server_default=false())


class TokenKeyRow(IssuerBase):
    """A key pair of a study, or of one stratum of it.

    Attributes:
        place: its position in the study's list.
        spki: DER of the public key.
        private: DER of the private key, in PKCS #8.
        public: canonical JSON of the stratum's values.
    """

    __tablename__ = "token_keys"

    study: Mapped[str] = mapped_column(String(64), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    spki: Mapped[bytes] = mapped_column(LargeBinary)
    private: Mapped[bytes] = mapped_column(LargeBinary)
    public: Mapped[str] = mapped_column(Text)


class CodeRow(IssuerBase):
    """A code, which gets its person one token.

    Attributes:
        hash: SHA-256 of the code; the code itself is not stored.
        name: the operator's name for the person, "" for none.
        request: SHA-256 of the request that was answered; only this request is answered again.
        ended: whether the code gets no token, because a restored backup does not know whether it got one.
    """

    __tablename__ = "codes"
    # Without rowid: rows must not show in which order codes were made or used.
    __table_args__ = (
        ForeignKeyConstraint(["study", "place"], ["token_keys.study", "token_keys.place"]),
        {"sqlite_with_rowid": False},
    )

    hash: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    study: Mapped[str] = mapped_column(String(64))
    place: Mapped[int]
    name: Mapped[str] = mapped_column(Text)
    request: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    ended: Mapped[bool] = mapped_column(server_default=false())


ISSUER = Schema(
    "collector.issuer:migrations",
    REVISION,
    "token_keys",
    "issuer's",
    "name its --database, start in the folder that `ldpkit issuer init` made, or make a new one with that",
    "ldpkit migrate --database",
    IssuerBase.metadata,
)
