"""The tickets that let reports in, as hashes, and which of them were used.

A report and the use of its ticket are one transaction, so each ticket lets exactly one report in,
even after a crash. An attacker who reads the database's log sees both together. So a use is written as a tag,
HMAC-SHA256 of the ticket's hash under a key that this database does not have: see `Spending`. Once a day
the tickets behind the tags are deleted, all at once and ordered by hash, and the tags' key is forgotten.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from sqlalchemy import Table, delete, func, insert, select, update
from sqlalchemy.orm import Session

from collector.models import SpentTicketRow, TicketRow
from collector.store import IDS_PER_STATEMENT, STUDIES, insert_new
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import InputError

TICKETS = cast(Table, TicketRow.__table__)
SPENT = cast(Table, SpentTicketRow.__table__)
# Used tickets are deleted at least so many at a time; fewer wait.
FEWEST_TOGETHER = 10
NONCE_BYTES = 16
WRONG_KEY = (
    "setting ticket_key: not the key of this study's tickets. Put it back. If it is lost: "
    "run `ldpkit invite STUDY_ID --revoke-all` and make new tickets"
)


class Spending(NamedTuple):
    """The secret for tags, valid between two deletions of used tickets.

    key: HMAC of the setting ticket_key over a nonce, which the database keeps until they are deleted.
    """

    nonce: bytes
    key: bytes

    @classmethod
    def start(cls, secret: bytes) -> Spending:
        """Return a new Spending, with a new nonce."""
        return cls._of(secrets.token_bytes(NONCE_BYTES), secret)

    @classmethod
    def read(cls, stored: bytes | None, secret: bytes) -> Spending:
        """Return the Spending for `stored`. Raises InputError if it was made with another secret."""
        if not cls.fits(stored, secret):
            raise InputError(WRONG_KEY, code="settings.wrong_ticket_key")
        return cls._of((stored or b"")[:NONCE_BYTES], secret)

    @classmethod
    def _of(cls, nonce: bytes, secret: bytes) -> Spending:
        return cls(nonce, hmac.digest(secret, nonce, "sha256"))

    @property
    def stored(self) -> bytes:
        """Return what the database keeps: the nonce, and a check value for the secret."""
        return self.nonce + hmac.digest(self.key, b"check", "sha256")

    @classmethod
    def fits(cls, stored: bytes | None, secret: bytes) -> bool:
        """Return True if tickets can be checked with this secret, or if none was made yet."""
        return stored is None or hmac.compare_digest(stored, cls._of(stored[:NONCE_BYTES], secret).stored)

    def tag(self, hashed: bytes) -> bytes:
        """Return the tag that marks a ticket as used."""
        return hmac.digest(self.key, b"tag" + hashed, "sha256")


def add_tickets(
    session: Session,
    study: int,
    hashes: Iterable[bytes],
    secret: bytes,
    public: Mapping[str, str] | None = None,
) -> None:
    """Let these many more reports in, and only invited ones from now on. Raises InputError.

    public: the public values that all these tickets carry. Versions with such fields require tickets
    themselves, and reports of other versions are accepted as before.
    """
    stored = _stored_spending(session, study)
    spending = Spending.start(secret) if stored is None else Spending.read(stored, secret)
    changed: dict[str, bool | bytes] = {"spending": spending.stored}
    if not public:
        changed["invited"] = True
    session.connection().execute(update(STUDIES).where(STUDIES.c.number == study).values(**changed))
    carried = canonical_json(dict(public)) if public else None
    rows = [{"study": study, "hash": one, "public": carried} for one in sorted(hashes)]
    session.connection().execute(insert(TICKETS), rows)


def disable_tickets(session: Session, study: int) -> None:
    """Forget the tickets and accept reports without them."""
    revoke_tickets(session, study)
    session.connection().execute(update(STUDIES).where(STUDIES.c.number == study).values(invited=False))


def revoke_tickets(session: Session, study: int) -> None:
    """Forget the tickets, including used ones: participants then need new tickets."""
    session.connection().execute(update(STUDIES).where(STUDIES.c.number == study).values(spending=None))
    for table in (SPENT, TICKETS):
        session.connection().execute(delete(table).where(table.c.study == study))


def has_values(session: Session, study: int) -> bool:
    """Return True if any ticket to a study carries public values; recently used ones still count."""
    some = select(TICKETS.c.study).where(TICKETS.c.study == study, TICKETS.c.public.is_not(None))
    return session.connection().execute(some.limit(1)).first() is not None


def count_unused(session: Session, study: int) -> int:
    """Return how many tickets to a study are unused."""
    made, spent = (
        session.connection()
        .execute(select(func.count()).select_from(table).where(table.c.study == study))
        .scalar_one()
        for table in (TICKETS, SPENT)
    )
    return int(made - spent)


def carried_values(session: Session, study: int, hashes: Iterable[bytes]) -> dict[bytes, dict[str, str]]:
    """Return the public values that each of these tickets carries, without unknown tickets."""
    found: dict[bytes, dict[str, str]] = {}
    wanted = sorted(hashes)
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        some = TICKETS.c.hash.in_(wanted[start : start + IDS_PER_STATEMENT])
        rows = select(TICKETS.c.hash, TICKETS.c.public).where(TICKETS.c.study == study, some)
        for hashed, public in session.connection().execute(rows):
            found[hashed] = json.loads(public or "{}")
    return found


def use_tickets(session: Session, study: int, spending: Spending, hashes: Iterable[bytes]) -> set[bytes]:
    """Mark tickets as used, and return the newly used ones."""
    wanted = sorted(hashes)
    used: set[bytes] = set()
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        some = TICKETS.c.hash.in_(wanted[start : start + IDS_PER_STATEMENT])
        known = select(TICKETS.c.hash).where(TICKETS.c.study == study, some)
        tags = {spending.tag(hashed): hashed for hashed in session.connection().execute(known).scalars()}
        if tags:
            new = insert_new(session, SPENT, ["study", "tag"])
            rows = [{"study": study, "tag": tag} for tag in sorted(tags)]
            kept = session.connection().execute(new.values(rows).returning(SPENT.c.tag)).scalars()
            used.update(tags[tag] for tag in kept)
    return used


def delete_used_tickets(session: Session, study: int, secret: bytes) -> int:
    """Delete the used tickets with their tags, start a new key, and return how many were deleted.

    Tickets with the same public values are deleted together, at least FEWEST_TOGETHER of them: their
    reports have these values too, so a single deletion would point to its report. The others stay used. The
    caller holds the study's row. Raises InputError if the tags were made with another secret.
    """
    here = SPENT.c.study == study
    spent = set(session.connection().execute(select(SPENT.c.tag).where(here)).scalars())
    if len(spent) < FEWEST_TOGETHER:
        return 0
    spending = Spending.read(_stored_spending(session, study), secret)
    rows = select(TICKETS.c.hash, TICKETS.c.public).where(TICKETS.c.study == study)
    known = session.connection().execute(rows).all()
    carried = {hashed: public for hashed, public in known if spending.tag(hashed) in spent}
    if len(carried) < len(spent):
        raise InputError(WRONG_KEY, code="settings.wrong_ticket_key")
    alike = Counter(carried.values())
    used = sorted(hashed for hashed in carried if alike[carried[hashed]] >= FEWEST_TOGETHER)
    if not used:
        return 0
    for start in range(0, len(used), IDS_PER_STATEMENT):
        some = TICKETS.c.hash.in_(used[start : start + IDS_PER_STATEMENT])
        session.connection().execute(delete(TICKETS).where(TICKETS.c.study == study, some))
    session.connection().execute(delete(SPENT).where(here))
    fresh = Spending.start(secret)
    tags = sorted(fresh.tag(hashed) for hashed in carried.keys() - set(used))
    if tags:
        session.connection().execute(insert(SPENT), [{"study": study, "tag": tag} for tag in tags])
    changed = update(STUDIES).where(STUDIES.c.number == study).values(spending=fresh.stored)
    session.connection().execute(changed)
    return len(used)


def _stored_spending(session: Session, study: int) -> bytes | None:
    found = select(STUDIES.c.spending).where(STUDIES.c.number == study)
    stored: bytes | None = session.connection().execute(found).scalar_one()
    return stored
