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
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import Table, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.keys import hash_key, new_word
from collector.models import SpentRow, TicketRow
from collector.store import IDS_PER_STATEMENT, STUDIES, insert_new
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.public import PublicField
from ldp_client.words.text import counted
from schemas import Study
from schemas.warnings import names_in_words

TICKET_BYTES = 16
MOST_AT_ONCE = 1_000_000
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
    def start(cls, secret: bytes) -> Spending:
        """Return a new Spending, with a new nonce."""
        return cls._of(secrets.token_bytes(NONCE_BYTES), secret)

    @classmethod
    def read(cls, stored: bytes | None, secret: bytes) -> Spending:
        """Return the Spending for `stored`. Raises InputError if it was made with another secret."""
        spending = cls._of((stored or b"")[:NONCE_BYTES], secret)
        if stored is not None and not hmac.compare_digest(stored, spending.stored):
            raise InputError(WRONG_KEY, code="settings.wrong_ticket_key")
        return spending

    @classmethod
    def _of(cls, nonce: bytes, secret: bytes) -> Spending:
        return cls(nonce, hmac.digest(secret, nonce, "sha256"))

    @property
    def stored(self) -> bytes:
        """Return what the database keeps: the nonce, and a check value for the secret."""
        return self.nonce + hmac.digest(self.key, b"check", "sha256")

    def mark(self, hashed: bytes) -> bytes:
        """Return the mark of a used ticket."""
        return hmac.digest(self.key, b"mark" + hashed, "sha256")


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
    # 1. Refuse a study that takes no direct tickets.
    state, study = store.study_state(session, study_id), _current(session, study_id)
    if state is not None and (state.closed or state.deleted):
        how = "deleted" if state.deleted else "closed"
        raise InputError(
            f"study {study_id} was {how}: its tickets admit no reports, and none was made",
            code="ticket.study_closed",
        )
    _refuse_blind(study)
    values = {} if study is None else values_of(study, public or {})
    # 2. Note that reports need tickets, and the key that marks used ones.
    number = _number(session, study_id)
    stored = session.execute(select(STUDIES.c.spending).where(STUDIES.c.number == number)).scalar_one()
    spending = Spending.start(secret) if stored is None else Spending.read(stored, secret)
    changed: dict[str, bool | bytes] = {"spending": spending.stored} | (
        {} if values else {"needs_tickets": True}
    )
    session.execute(update(STUDIES).where(STUDIES.c.number == number).values(**changed))
    # 3. Store the hashes in their order, which is not that of the list.
    tickets = [new_word(TICKET_BYTES) for _ in range(count)]
    carried = canonical_json(values) if values else None
    rows = [{"study": number, "hash": one, "public": carried} for one in sorted(map(hash_key, tickets))]
    session.connection().execute(insert(TICKETS), rows)
    audit_log.record(session, by, "invite", study_id, counted(count, "ticket"))
    return tickets


def _refuse_blind(study: Study | None) -> None:
    """Raise InputError for blind tickets: direct ones would link people and reports."""
    if study is not None and study.channel is not None and study.channel.tickets is not None:
        raise InputError(
            f"study {study.id} takes blind tickets, so that people and reports cannot be linked: its "
            "issuer makes them, with `ldpkit invite` there",
            code="ticket.issuer_gives_them",
        )


def refuse_ended(session: Session, study_id: str, today: date, late: timedelta) -> None:
    """Raise InputError if no version takes reports any more. late: days of grace after the last day."""
    last = _last_day(session, study_id)
    if last is None or today - last <= late:
        return
    raise InputError(
        f"study {study_id} ended on {last}: its tickets admit no reports, and none was made; publish a "
        "version with a later `closes` first",
        code="ticket.study_over",
    )


def _last_day(session: Session, study_id: str) -> date | None:
    """Return the latest `closes` of all versions, or None if a version has none.

    All versions count, because an earlier version takes reports until its own last day.
    """
    state = store.study_state(session, study_id)
    if state is None or state.closes is None:
        return None
    days = [state.closes]
    for version in store.document_digests(session, state.number):
        canonical = store.canonical_bytes(session, study_id, version)
        closes = None if canonical is None else Study.from_json(canonical).closes
        if closes is None:
            return None
        days.append(date.fromisoformat(closes))
    return max(days)


def warnings_of_tickets(session: Session, study_id: str) -> list[str]:
    """Return a warning if the values that a study's tickets carry may name a person."""
    study = _current(session, study_id)
    return names_in_words(study) if study else []


def values_of(study: Study, public: Mapping[str, str]) -> dict[str, str]:
    """Return the values that tickets carry, spelt as in reports. Raises InputError if they do not fit."""
    fields = {field.id: field for field in study.carried}
    for name in public:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InputError(
                f"public field {name[:64]}: tickets to {study.id} carry {known}",
                code="ticket.unknown_public_field",
            )
    for name in fields:
        if name not in public:
            raise InputError(
                f"public field {name}: its value is missing, which tickets carry",
                code="ticket.public_value_missing",
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
    carried = ", ".join(carried_fields(session, study_id))
    if carried:
        raise InputError(
            f"the tickets to {study_id} carry {carried}, which every report needs: nothing was "
            "changed. To admit all reports, publish a version without such fields; --revoke-all forgets "
            "tickets",
            code="ticket.disable_carries_values",
        )
    _refuse_blind(_current(session, study_id))
    number = _number(session, study_id)
    # Recently used ones count too.
    if _exists(session, number, TICKETS.c.public.is_not(None)):
        raise InputError(
            f"tickets to an earlier version of {study_id} carry public values, without which no report "
            "of that version is taken, however late: nothing was changed. A version without such fields lets "
            "everybody in already, unless other tickets were made; --revoke-all, then --disable, "
            "gives up both",
            code="ticket.disable_earlier_version",
        )
    forget(session, number)
    audit_log.record(session, by, "disable tickets", study_id)


def revoke(session: Session, study_id: str, by: str) -> None:
    """Forget a study's tickets, so that only new ones admit reports. Raises InputError."""
    _refuse_blind(_current(session, study_id))
    row = store.locked_study(session, study_id)
    if row is not None and not row.needs_tickets and not has_tickets(session, row.number):
        raise InputError(
            f"study {study_id} has no tickets to revoke: everybody may answer it. --count makes the first",
            code="ticket.none_to_revoke",
        )
    _delete_all(session, _number(session, study_id))
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


def carried_fields(session: Session, study_id: str) -> dict[str, PublicField]:
    """Return the public fields whose values the tickets to a study carry now."""
    study = _current(session, study_id)
    return {field.id: field for field in study.carried} if study else {}


def has_tickets(session: Session, number: int) -> bool:
    """Return True if direct tickets to a study exist, used or unused."""
    return _exists(session, number)


def _exists(session: Session, number: int, *conditions: Any) -> bool:
    return bool(session.scalar(select(exists().where(TICKETS.c.study == number, *conditions))))


def count_unused(session: Session, number: int) -> int:
    """Return how many direct tickets to a study are unused."""
    made, spent = (
        session.scalar(select(func.count()).select_from(table).where(table.c.study == number))
        for table in (TICKETS, SPENT)
    )
    return int(made or 0) - int(spent or 0)


def known_tickets(session: Session, study: int, hashes: Iterable[bytes]) -> dict[bytes, dict[str, str]]:
    """Return the known ones of these tickets, used or unused, with the public values that each carries."""
    known: dict[bytes, dict[str, str]] = {}
    wanted = sorted(hashes)
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        some = TICKETS.c.hash.in_(wanted[start : start + IDS_PER_STATEMENT])
        rows = select(TICKETS.c.hash, TICKETS.c.public).where(TICKETS.c.study == study, some)
        known.update((hashed, json.loads(public or "{}")) for hashed, public in session.execute(rows))
    return known


def spend(session: Session, study: int, marks: Iterable[bytes]) -> set[bytes]:
    """Store marks, and return the new ones. The others let a report in before.

    A mark is that of a direct ticket (`Spending.mark`) or the hash of a blind token's nonce. Neither reveals
    a participant or, once both are stored, a report. PostgreSQL keeps rows in order of arrival.
    """
    wanted = sorted(marks)
    spent: set[bytes] = set()
    # In one order, which prevents deadlocks between processes.
    for start in range(0, len(wanted), IDS_PER_STATEMENT):
        rows = [{"study": study, "mark": mark} for mark in wanted[start : start + IDS_PER_STATEMENT]]
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
    # Without `spending` the marks are those of blind tokens, which stay.
    spent = set(session.execute(select(SPENT.c.mark).where(here)).scalars()) if stored else set()
    if len(spent) < FEWEST_TOGETHER:
        return 0
    spending = Spending.read(stored, secret)
    known = session.execute(select(TICKETS.c.hash, TICKETS.c.public).where(TICKETS.c.study == study)).all()
    carried = {hashed: public for hashed, public in known if spending.mark(hashed) in spent}
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
    spend(session, study, map(fresh.mark, carried.keys() - set(used)))
    session.execute(update(STUDIES).where(STUDIES.c.number == study).values(spending=fresh.stored))
    return len(used)


def _current(session: Session, study_id: str) -> Study | None:
    document = store.find_document(session, study_id)
    return None if document is None else Study.from_json(document.canonical)


def _number(session: Session, study_id: str) -> int:
    study = store.locked_study(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}", code="study.unknown")
    return study.number
