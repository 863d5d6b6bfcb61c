"""The tokens that let reports in, as hashes of their nonces.

Nobody can tell whose a nonce is, nor which report came with it once both are stored. A report that is
withdrawn, or deleted since its time is over, leaves its token spent: it lets no second one in. PostgreSQL
keeps rows as they came: as a nonce stands for no report and no person, their order tells of neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sqlalchemy import Table, delete
from sqlalchemy.orm import Session

from collector.storage.models import SpentTokenRow
from collector.storage.queries import IDS_PER_STATEMENT, insert_new

SPENT_TOKENS = cast(Table, SpentTokenRow.__table__)


def spend_tokens(session: Session, study: int, nonces: Iterable[bytes]) -> set[bytes]:
    """Spend tokens, and return those that were not spent before. nonces: their hashes."""
    wanted = sorted(nonces)
    spent: set[bytes] = set()
    # In one order, so that two processes cannot wait for each other in a circle.
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        rows = [{"study": study, "nonce": nonce} for nonce in wanted[start : start + IDS_PER_STATEMENT]]
        new = insert_new(session, SPENT_TOKENS, ["study", "nonce"]).values(rows)
        spent.update(session.connection().execute(new.returning(SPENT_TOKENS.c.nonce)).scalars())
    return spent


def forget_tokens(session: Session, study: int) -> None:
    """Forget the spent tokens of a study that takes no report any more."""
    session.connection().execute(delete(SPENT_TOKENS).where(SPENT_TOKENS.c.study == study))
