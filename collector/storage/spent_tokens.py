"""The tokens that let reports in, as hashes of their nonces.

A nonce reveals no participant, nor, once both are stored, its report. If a report is withdrawn, or deleted
because its time is over, its token stays spent and lets no second report in. PostgreSQL keeps rows in order
of arrival: a nonce points to no report and no person, so their order reveals neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sqlalchemy import Table, delete
from sqlalchemy.orm import Session

from collector.models import SpentTokenRow
from collector.store import IDS_PER_STATEMENT, insert_new

SPENT_TOKENS = cast(Table, SpentTokenRow.__table__)


def spend_tokens(session: Session, study: int, nonces: Iterable[bytes]) -> set[bytes]:
    """Spend tokens, and return the newly spent ones. nonces: their hashes."""
    wanted = sorted(nonces)
    spent: set[bytes] = set()
    # In one order, which prevents deadlocks between processes.
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        rows = [{"study": study, "nonce": nonce} for nonce in wanted[start : start + IDS_PER_STATEMENT]]
        new = insert_new(session, SPENT_TOKENS, ["study", "nonce"]).values(rows)
        spent.update(session.connection().execute(new.returning(SPENT_TOKENS.c.nonce)).scalars())
    return spent


def forget_tokens(session: Session, study: int) -> None:
    """Forget the spent tokens of a study that will not accept reports again."""
    session.connection().execute(delete(SPENT_TOKENS).where(SPENT_TOKENS.c.study == study))
