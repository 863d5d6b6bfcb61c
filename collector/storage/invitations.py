"""The invitations that were not used yet, as hashes; using one deletes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sqlalchemy import Table, delete, func, insert, select, update
from sqlalchemy.orm import Session

from collector.storage.models import InvitationRow
from collector.storage.queries import IDS_PER_STATEMENT, STUDIES

INVITATIONS = cast(Table, InvitationRow.__table__)


def add_invitations(session: Session, study: int, hashes: Iterable[bytes]) -> None:
    """Let only invited reports in from now on, and these many more of them."""
    session.connection().execute(update(STUDIES).where(STUDIES.c.number == study).values(invited=True))
    rows = [{"study": study, "hash": one} for one in sorted(hashes)]
    session.connection().execute(insert(INVITATIONS), rows)


def lift_invitations(session: Session, study: int) -> None:
    """Let everybody's reports in, and forget the invitations."""
    session.connection().execute(update(STUDIES).where(STUDIES.c.number == study).values(invited=False))
    session.connection().execute(delete(INVITATIONS).where(INVITATIONS.c.study == study))


def use_invitations(session: Session, study: int, hashes: Iterable[bytes]) -> set[bytes]:
    """Delete those of these invitations that were not used yet, and return them."""
    wanted = sorted(hashes)
    used: set[bytes] = set()
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        some = INVITATIONS.c.hash.in_(wanted[start : start + IDS_PER_STATEMENT])
        statement = delete(INVITATIONS).where(INVITATIONS.c.study == study, some)
        used.update(session.connection().execute(statement.returning(INVITATIONS.c.hash)).scalars())
    return used


def count_invitations(session: Session, study: int) -> int:
    """How many were not used yet."""
    counted = select(func.count()).select_from(INVITATIONS).where(INVITATIONS.c.study == study)
    return int(session.connection().execute(counted).scalar_one())
