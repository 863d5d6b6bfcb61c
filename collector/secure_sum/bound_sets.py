"""The set that a node is bound to for each study, and its sum: the statements that reach the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.orm import Session

from collector.storage.models import SecureSumRow
from collector.storage.queries import REPORTS
from schemas.report import ID_BYTES

SECURE_SUMS = cast(Table, SecureSumRow.__table__)


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
