"""The set that a node is bound to for each study, and its sum: the statements that reach the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.orm import Session

from collector.storage.models import DrawingRow, SecureSumRow
from collector.storage.queries import REPORTS
from ldp_client.documents.report import ID_BYTES

SECURE_SUMS = cast(Table, SecureSumRow.__table__)
DRAWINGS = cast(Table, DrawingRow.__table__)


class Part(NamedTuple):
    """A node's part in a drawing; shown_for and drawing are None until then."""

    nonce: bytes
    commitment: str
    shown_for: bytes | None
    drawing: bytes | None


def find_part(session: Session, study: int) -> Part | None:
    """What the node contributed to the study's drawing."""
    columns = (DRAWINGS.c.nonce, DRAWINGS.c.commitment, DRAWINGS.c.shown_for, DRAWINGS.c.drawing)
    row = session.execute(select(*columns).where(DRAWINGS.c.study == study)).one_or_none()
    return None if row is None else Part(*row)


def insert_part(session: Session, study: int, nonce: bytes, commitment: str) -> None:
    """Commit the node; a second commitment for the study is an error of the database."""
    session.execute(insert(DRAWINGS).values(study=study, nonce=nonce, commitment=commitment))


def note_shown(session: Session, study: int, commitments: bytes) -> None:
    """The nonce is shown for these commitments, and never for others."""
    session.execute(update(DRAWINGS).where(DRAWINGS.c.study == study).values(shown_for=commitments))


def store_drawing(session: Session, study: int, drawing: bytes) -> None:
    """Keep what the set was drawn by."""
    session.execute(update(DRAWINGS).where(DRAWINGS.c.study == study).values(drawing=drawing))


def share_ids(session: Session, study: int) -> list[bytes]:
    """The ids of a study's shares, ascending, without withdrawn ones."""
    statement = select(REPORTS.c.id).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return [bytes(found) for found in session.scalars(statement.order_by(REPORTS.c.id))]


def share_count(session: Session, study: int) -> int:
    """How many shares a study has, without withdrawn ones."""
    counted = select(func.count()).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return session.scalars(counted).one()


def confirmed_ids(session: Session, study: int) -> list[bytes] | None:
    """The set that the node is bound to."""
    joined = session.scalar(select(SECURE_SUMS.c.ids).where(SECURE_SUMS.c.study == study))
    if joined is None:
        return None
    return [joined[start : start + ID_BYTES] for start in range(0, len(joined), ID_BYTES)]


def insert_set(session: Session, study: int, ids: Sequence[bytes]) -> None:
    """Bind the node; a second set for the study is an error of the database."""
    session.execute(insert(SECURE_SUMS).values(study=study, ids=b"".join(ids)))


def stored_total(session: Session, study: int) -> bytes | None:
    """The sum, once it was given away."""
    return session.scalar(select(SECURE_SUMS.c.total).where(SECURE_SUMS.c.study == study))


def store_total(session: Session, study: int, total: bytes) -> None:
    """Keep the sum, so that it is the same for ever, whatever becomes of the shares."""
    session.execute(
        update(SECURE_SUMS)
        .where(SECURE_SUMS.c.study == study, SECURE_SUMS.c.total.is_(None))
        .values(total=total)
    )
