"""Direct tickets: one-time words, shown once and stored as hashes, and which of them were used.

A report and the use of its ticket are one transaction, so each ticket lets exactly one report in, even after
a crash. An attacker who reads the database's log sees both together. So a use is written as a mark:
HMAC-SHA256 of the ticket's hash under a key that this database does not have (see `Spending`). Once a day the
tickets behind the marks are deleted, all at once and ordered by hash, and the marks' key is forgotten.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from operator import itemgetter
from typing import Any, NamedTuple, cast

from sqlalchemy import Table, delete, exists, func, insert, select, text, update
from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.keys import hash_key, new_word
from collector.models import SpentRow, StudyRow, TicketKeyRow, TicketRow
from collector.store import STUDIES, chunks, insert_new
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.words.text import counted
from schemas import Study

TICKET_BYTES = 16
# Used tickets are deleted at least so many at a time; fewer wait.
FEWEST_TOGETHER = 10
NONCE_BYTES = 16
TICKETS = cast(Table, TicketRow.__table__)
SPENT = cast(Table, SpentRow.__table__)
NO_KEY = (
    "no ticket_key is set, and the database's log would tell which ticket sent which report: start"
    " the server in the folder that has ldpkit.toml, or set LDPKIT_TICKET_KEY"
)
WRONG_KEY = (
    "setting ticket_key: not the key of this study's tickets. Put it back. If it is lost: "
    "run `ldpkit invite STUDY_ID --revoke-all` and make new tickets"
)


class Spending(NamedTuple):
    """The secret for marks, valid between two deletions of used tickets.

    key: HMAC of the setting ticket_key over a nonce, which the database keeps until they are deleted.
    """

    nonce: bytes
    key: bytes

    @classmethod
    def of(cls, secret: bytes, stored: bytes | None = None) -> Spending:
        """Return the Spending that is stored, or a new one. Raises InputError for another secret than its."""
        nonce = secrets.token_bytes(NONCE_BYTES) if stored is None else stored[:NONCE_BYTES]
        spending = cls(nonce, hmac.digest(secret, nonce, "sha256"))
        if stored is not None and not hmac.compare_digest(stored, spending.stored):
            raise InputError(WRONG_KEY, code="settings.wrong_ticket_key")
        return spending

    @property
    def stored(self) -> bytes:
        """Return what the database keeps: the nonce, and a check value for the secret."""
        return self.nonce + hmac.digest(self.key, b"check", "sha256")

    def mark(self, hashed: bytes) -> bytes:
        """Return the mark of a used ticket."""
        return hmac.digest(self.key, b"mark" + hashed, "sha256")


def new_tickets(
    session: Session, number: int, carried: Sequence[str | None], names: Iterable[str]
) -> list[str]:
    """Make a ticket for each member, and store the hashes in their order, which is not that of the list.

    number: of their study. carried: the public values of each, in canonical JSON. names: the operator's.
    """
    tickets = [new_word(TICKET_BYTES) for _ in carried]
    rows = [
        {"study": number, "hash": hash_key(ticket), "public": public, "name": name}
        for ticket, public, name in zip(tickets, carried, names, strict=True)
    ]
    session.connection().execute(insert(TICKETS), sorted(rows, key=itemgetter("hash")))
    return tickets


def make_tickets(
    session: Session,
    study_id: str,
    count: int,
    secret: bytes,
    public: Mapping[str, str] | None = None,
    by: str = audit_log.BY_TOKEN,
) -> list[str]:
    """Make tickets; from now on the study takes no report without one.

    Tickets that carry public values are needed by the versions with such fields, and by no other version.

    Args:
        session: the transaction.
        study_id: the study.
        count: how many tickets to make.
        secret: the bytes of the setting ticket_key.
        public: the values of the study's public fields that the tickets carry.
        by: the name of the key that makes them.

    Raises:
        InputError: the study takes no such tickets.
    """
    row, study = _locked(session, study_id)
    values = values_of(study, public or {})
    row.spending = Spending.of(secret, row.spending).stored
    row.needs_tickets = row.needs_tickets or not values
    carried = canonical_json(values) if values else None
    tickets = new_tickets(session, row.number, [carried] * count, [""] * count)
    audit_log.record(session, by, "invite", study_id, counted(count, "ticket"))
    return tickets


def _locked(session: Session, study_id: str) -> tuple[StudyRow, Study]:
    """Return a study's row, locked, and its current version.

    Raises ProblemError if the study is unknown, and InputError if it has blind tickets: direct ones would
    link people with reports.
    """
    row, document = store.locked_study(session, study_id), store.require_document(session, study_id)
    study = Study.from_json(document.canonical)
    if study.channel is not None and study.channel.tickets is not None:
        raise InputError(
            f"study {study.id} takes blind tickets, so that people and reports cannot be linked: its "
            "issuer makes them, with `ldpkit invite` there",
            code="ticket.issuer_gives_them",
        )
    return row, study


def refuse_ended(session: Session, study_id: str, today: date, late: timedelta) -> None:
    """Raise InputError if the study takes no reports any more. late: days of grace after the last day."""
    state = store.study_state(session, study_id)
    if state is None or not (state.closed or (state.closes is not None and today - state.closes > late)):
        return
    over = (
        f"ended on {state.closes}" if not state.closed else "was deleted" if state.deleted else "was closed"
    )
    raise InputError(
        f"study {study_id} {over}: its tickets admit no reports, and none was made", code="ticket.study_over"
    )


def values_of(study: Study, public: Mapping[str, str]) -> dict[str, str]:
    """Return the values that tickets carry, spelt as in reports. Raises InputError if they do not fit."""
    fields = {field.id: field for field in study.carried}
    if public.keys() != fields.keys():
        raise InputError(
            f"tickets to {study.id} carry the public fields {', '.join(fields) or '(none)'}: give a value of "
            "each, and of no other",
            code="ticket.other_public_fields",
        )
    try:
        return {name: field.value_of(public[name]) for name, field in fields.items()}
    except AnswerError as error:
        raise InputError(
            f"public field {error.field}: {error.problem}", code="ticket.public_value_invalid"
        ) from None


def disable(session: Session, study_id: str, by: str) -> None:
    """Forget a study's tickets and admit reports without tickets. Raises InputError.

    If tickets carry public values, nothing is changed: no report is taken without these values.
    """
    row, study = _locked(session, study_id)
    # Tickets of earlier versions count too, and recently used ones.
    if study.carried or has_tickets(session, row.number, TICKETS.c.public.is_not(None)):
        raise InputError(
            f"tickets to {study_id} carry public values, which reports need: nothing was changed. Publish a "
            "version without such fields, then use --revoke-all and --disable",
            code="ticket.disable_carries_values",
        )
    forget(session, row.number)
    audit_log.record(session, by, "disable tickets", study_id)


def revoke(session: Session, study_id: str, by: str) -> None:
    """Forget a study's tickets, so that only new ones admit reports. Raises InputError."""
    row, _ = _locked(session, study_id)
    if not row.needs_tickets and not has_tickets(session, row.number):
        raise InputError(
            f"study {study_id} has no tickets to revoke: everybody may answer it. --count makes the first",
            code="ticket.none_to_revoke",
        )
    _delete_all(session, row.number)
    audit_log.record(session, by, "revoke tickets", study_id)


def forget(session: Session, number: int) -> None:
    """Forget the tickets of a study, blind and direct, and that its reports need any."""
    _delete_all(session, number)
    session.execute(update(STUDIES).where(STUDIES.c.number == number).values(needs_tickets=False))


def _delete_all(session: Session, number: int) -> None:
    """Delete tickets and their marks: participants then need new tickets."""
    session.execute(update(STUDIES).where(STUDIES.c.number == number).values(spending=None))
    for table in (SPENT, TICKETS):
        session.connection().execute(delete(table).where(table.c.study == number))


def has_tickets(session: Session, number: int, *conditions: Any) -> bool:
    """Return True if direct tickets to a study exist that meet the conditions, used or unused."""
    return bool(session.scalar(select(exists().where(TICKETS.c.study == number, *conditions))))


def count_unused(session: Session, number: int) -> int:
    """Return how many direct tickets to a study are unused."""
    made, spent = (
        session.scalar(select(func.count()).select_from(table).where(table.c.study == number))
        for table in (TICKETS, SPENT)
    )
    return int(made or 0) - int(spent or 0)


def known_tickets(session: Session, study: int, hashes: Iterable[bytes]) -> dict[bytes, dict[str, str]]:
    """Return the known tickets among these, used or unused, with the public values that each carries."""
    known: dict[bytes, dict[str, str]] = {}
    for some in chunks(sorted(hashes)):
        here = (TICKETS.c.study == study, TICKETS.c.hash.in_(some))
        rows = select(TICKETS.c.hash, TICKETS.c.public).where(*here)
        known.update((hashed, json.loads(public or "{}")) for hashed, public in session.execute(rows))
    return known


def spend(session: Session, study: int, marks: Iterable[bytes]) -> set[bytes]:
    """Store marks, and return the new ones. The others let a report in before.

    A mark is that of a direct ticket (`Spending.mark`) or the hash of a blind token's nonce. Neither reveals
    a participant or, once both are stored, a report. PostgreSQL keeps rows in order of arrival.
    """
    spent: set[bytes] = set()
    # In one order, which prevents deadlocks between processes.
    for some in chunks(sorted(marks)):
        rows = [{"study": study, "mark": mark} for mark in some]
        new = insert_new(session, SPENT, ["study", "mark"]).values(rows)
        spent.update(session.connection().execute(new.returning(SPENT.c.mark)).scalars())
    return spent


def delete_used_tickets(session: Session, study: int, secret: bytes) -> int:
    """Delete the used direct tickets with their marks, start a new key, and return how many were deleted.

    Tickets with the same public values are deleted together, at least FEWEST_TOGETHER of them: their
    reports have these values too, so a single deletion would point to its report. The others stay used. The
    caller holds the study's row. Raises InputError if the marks were made with another secret.
    """
    stored = session.execute(select(STUDIES.c.spending).where(STUDIES.c.number == study)).scalar_one()
    here = SPENT.c.study == study
    # Without `spending` the marks belong to blind tokens, and stay.
    spent = set(session.execute(select(SPENT.c.mark).where(here)).scalars()) if stored else set()
    if len(spent) < FEWEST_TOGETHER:
        return 0
    spending = Spending.of(secret, stored)
    known = session.execute(select(TICKETS.c.hash, TICKETS.c.public).where(TICKETS.c.study == study)).all()
    carried = {hashed: public for hashed, public in known if spending.mark(hashed) in spent}
    if len(carried) < len(spent):
        raise InputError(WRONG_KEY, code="settings.wrong_ticket_key")
    alike = Counter(carried.values())
    used = sorted(hashed for hashed in carried if alike[carried[hashed]] >= FEWEST_TOGETHER)
    if not used:
        return 0
    for some in chunks(used):
        together = delete(TICKETS).where(TICKETS.c.study == study, TICKETS.c.hash.in_(some))
        session.connection().execute(together)
    session.connection().execute(delete(SPENT).where(here))
    fresh = Spending.of(secret)
    spend(session, study, map(fresh.mark, carried.keys() - set(used)))
    session.execute(update(STUDIES).where(STUDIES.c.number == study).values(spending=fresh.stored))
    return len(used)


def is_issuers(session: Session) -> bool:
    """Return True for an issuer's database: with reports it could join them with people."""
    return session.scalars(select(TicketKeyRow.study).limit(1)).first() is not None


def refuse_issuers(session: Session) -> None:
    """Raise InputError for an issuer's database."""
    if is_issuers(session):
        raise InputError(
            "this database is an issuer's: start it with `ldpkit serve --as issuer`; a collector needs "
            "another one, from `ldpkit init`",
            code="database.is_issuers",
        )


def write_again(session: Session) -> None:
    """Rewrite used tickets in PostgreSQL: their place, and the transaction, show when each was used."""
    if session.scalars(select(TicketRow.hash).where(TicketRow.request.is_not(None)).limit(1)).first():
        # A concurrent request would not find a row that is being moved.
        session.execute(text("LOCK TABLE tickets IN ACCESS EXCLUSIVE MODE"))
        session.execute(
            text(
                "WITH moved AS (DELETE FROM tickets WHERE request IS NOT NULL RETURNING *) "
                "INSERT INTO tickets SELECT * FROM moved ORDER BY study, hash"
            )
        )
