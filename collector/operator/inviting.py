"""Tickets: one-time words, shown once and stored as hashes. An invited study takes no other report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.keys import hash_key, new_word
from collector.storage.tickets import (
    add_tickets,
    disable_tickets,
    has_values,
    revoke_tickets,
)
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.public import PublicField
from ldp_client.words.text import counted
from schemas import Study
from schemas.channel_warnings import names_in_words

TICKET_BYTES = 16
MOST_AT_ONCE = 1_000_000
NO_KEY = (
    "no ticket_key is set, and the database's log would tell which ticket sent which report: start"
    " the server in the folder that has ldpkit.toml, or set LDPKIT_TICKET_KEY"
)


def invite(
    session: Session,
    study_id: str,
    count: int,
    secret: bytes,
    public: Mapping[str, str] | None = None,
    by: str = audit_log.BY_TOKEN,
) -> list[str]:
    """Make tickets; from now on the study takes invited reports only.

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
    _refuse_over(session, study_id)
    _refuse_tokens(session, study_id)
    carried = _carried(session, study_id, public or {})
    tickets = [new_word(TICKET_BYTES) for _ in range(count)]
    add_tickets(session, _number(session, study_id), map(hash_key, tickets), secret, carried)
    audit_log.record(session, by, "invite", study_id, counted(count, "ticket"))
    return tickets


def _refuse_over(session: Session, study_id: str) -> None:
    """Raise InputError if the study was closed or deleted."""
    state = store.study_state(session, study_id)
    if state is not None and (state.closed or state.deleted):
        how = "deleted" if state.deleted else "closed"
        raise InputError(
            f"study {study_id} was {how}: its tickets admit no reports, and none was made",
            code="ticket.study_closed",
        )


def _refuse_tokens(session: Session, study_id: str) -> None:
    """Raise InputError if the study takes blind tickets: tickets made here would link people and reports."""
    study = _current(session, study_id)
    if study is not None and study.channel is not None and study.channel.tickets is not None:
        raise InputError(
            f"study {study.id} takes blind tickets, so that people and reports cannot be linked: its "
            "issuer makes them, with `ldpkit issuer invite`",
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
    """Return a warning for each field that a study's tickets carry if its values may name a person."""
    study = _current(session, study_id)
    return names_in_words(study) if study else []


def _carried(session: Session, study_id: str, public: Mapping[str, str]) -> dict[str, str]:
    study = _current(session, study_id)
    return {} if study is None else values_of(study, public)


def values_of(study: Study, public: Mapping[str, str]) -> dict[str, str]:
    """Return the values that tickets carry, spelt as in reports. Raises InputError if they do not fit."""
    fields = _carried_by(study)
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
    number = _number(session, study_id)
    if has_values(session, number):
        raise InputError(
            f"tickets to an earlier version of {study_id} carry public values, without which no report "
            "of that version is taken, however late: nothing was changed. A version without such fields lets "
            "everybody in already, unless other tickets were made; --revoke-all, then --disable, "
            "gives up both",
            code="ticket.disable_earlier_version",
        )
    disable_tickets(session, number)
    audit_log.record(session, by, "disable tickets", study_id)


def revoke(session: Session, study_id: str, by: str) -> None:
    """Forget a study's tickets, so that only new ones admit reports. Raises InputError."""
    revoke_tickets(session, _number(session, study_id))
    audit_log.record(session, by, "revoke tickets", study_id)


def carried_fields(session: Session, study_id: str) -> dict[str, PublicField]:
    """Return the public fields whose values the tickets to a study carry now."""
    study = _current(session, study_id)
    return _carried_by(study) if study else {}


def _carried_by(study: Study) -> dict[str, PublicField]:
    return {field.id: field for field in study.carried}


def _current(session: Session, study_id: str) -> Study | None:
    document = store.find_document(session, study_id)
    return None if document is None else Study.from_json(document.canonical)


def _number(session: Session, study_id: str) -> int:
    study = store.locked_study(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}", code="study.unknown")
    return study.number
