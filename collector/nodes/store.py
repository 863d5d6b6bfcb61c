"""The statements that read or write a node's drawings, sets and sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.orm import Session

from collector.models import DrawingRow, SecureSumRow
from collector.store import REPORTS
from ldp_client.documents.report import ID_BYTES

SECURE_SUMS = cast(Table, SecureSumRow.__table__)
DRAWINGS = cast(Table, DrawingRow.__table__)


class Part(NamedTuple):
    """A node's part in a drawing; shown_for and drawing are None until then."""

    nonce: bytes
    commitment: str
    shown_for: bytes | None
    drawing: bytes | None


def find_part(session: Session, study: int, keep: bool = False) -> Part | None:
    """Return the node's part in the study's drawing.

    keep: lock it until this transaction ends.
    """
    columns = (DRAWINGS.c.nonce, DRAWINGS.c.commitment, DRAWINGS.c.shown_for, DRAWINGS.c.drawing)
    statement = select(*columns).where(DRAWINGS.c.study == study)
    row = session.execute(statement.with_for_update() if keep else statement).one_or_none()
    return None if row is None else Part(*row)


def insert_part(session: Session, study: int, nonce: bytes, commitment: str) -> None:
    """Commit the node; a second commitment for the study raises a database error."""
    session.execute(insert(DRAWINGS).values(study=study, nonce=nonce, commitment=commitment))


def note_shown(session: Session, study: int, commitments: bytes) -> None:
    """Record the commitments for which the nonce is shown; it is never shown for others."""
    session.execute(update(DRAWINGS).where(DRAWINGS.c.study == study).values(shown_for=commitments))


def share_ids(session: Session, study: int) -> list[bytes]:
    """Return the ids of a study's shares, ascending, without withdrawn ones."""
    statement = select(REPORTS.c.id).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return [bytes(found) for found in session.scalars(statement.order_by(REPORTS.c.id))]


def is_fixed(session: Session, study: int, report_id: bytes) -> bool:
    """Return True if a closed study has this share or had it when its set was bound.

    Then the share may be part of the sum.
    """
    held = select(REPORTS.c.id).where(REPORTS.c.study == study, REPORTS.c.id == report_id)
    if session.scalar(held.where(REPORTS.c.payloads != b"")) is not None:
        return True
    return report_id in (bound_ids(session, study) or ())


def share_count(session: Session, study: int) -> int:
    """Return how many shares a study has, without withdrawn ones."""
    counted = select(func.count()).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return session.scalars(counted).one()


def bound_ids(session: Session, study: int) -> list[bytes] | None:
    """Return the set that the node is bound to, or None."""
    joined = session.scalar(select(SECURE_SUMS.c.ids).where(SECURE_SUMS.c.study == study))
    if joined is None:
        return None
    return [joined[start : start + ID_BYTES] for start in range(0, len(joined), ID_BYTES)]


def insert_set(session: Session, study: int, ids: Sequence[bytes], drawing: bytes) -> None:
    """Bind the node to the set of a drawing; a second set for the study raises a database error."""
    session.execute(insert(SECURE_SUMS).values(study=study, ids=b"".join(ids)))
    session.execute(update(DRAWINGS).where(DRAWINGS.c.study == study).values(drawing=drawing))


def stored_total(session: Session, study: int) -> bytes | None:
    """Return the sum if it was already given away, else None."""
    return session.scalar(select(SECURE_SUMS.c.total).where(SECURE_SUMS.c.study == study))


def store_total(session: Session, study: int, total: bytes) -> None:
    """Store the sum permanently, so that it stays the same whatever becomes of the shares."""
    session.execute(
        update(SECURE_SUMS)
        .where(SECURE_SUMS.c.study == study, SECURE_SUMS.c.total.is_(None))
        .values(total=total)
    )
