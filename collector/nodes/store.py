"""The statements that read or write a node's part in a drawing, and its shares."""

from typing import Any, NamedTuple, cast

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.orm import Session

from collector.models import DrawingRow
from collector.nodes.statements import split_ids
from collector.store import REPORTS

DRAWINGS = cast(Table, DrawingRow.__table__)


class Part(NamedTuple):
    """A node's part in a drawing: see models.py. What is not known yet is None."""

    nonce: bytes
    commitment: str
    shown_for: bytes | None = None
    drawing: bytes | None = None
    ids: bytes | None = None
    total: bytes | None = None


def find_part(session: Session, study: int, keep: bool = False) -> Part | None:
    """Return the node's part in the study's drawing.

    keep: lock it until this transaction ends.
    """
    statement = select(*[DRAWINGS.c[name] for name in Part._fields]).where(DRAWINGS.c.study == study)
    row = session.execute(statement.with_for_update() if keep else statement).one_or_none()
    return None if row is None else Part(*row)


def insert_part(session: Session, study: int, part: Part) -> None:
    """Commit the node; a second commitment for the study raises a database error."""
    session.execute(insert(DRAWINGS).values(study=study, **part._asdict()))


def change_part(session: Session, study: int, **values: Any) -> None:
    """Record what became known of the node's part."""
    session.execute(update(DRAWINGS).where(DRAWINGS.c.study == study).values(**values))


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
    # Not the whole part: a drawing has many megabytes, and all uploads wait for this.
    ids = session.scalar(select(DRAWINGS.c.ids).where(DRAWINGS.c.study == study))
    return report_id in split_ids(ids or b"")


def share_count(session: Session, study: int) -> int:
    """Return how many shares a study has, without withdrawn ones."""
    counted = select(func.count()).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return session.scalars(counted).one()
