"""Invitations: one-time words, shown once and stored as hashes. An invited study takes no other report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.keys import hash_key, new_word
from collector.storage.invitations import (
    add_invitations,
    disable_invitations,
    has_values,
    revoke_invitations,
)
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.public import PublicField
from ldp_client.words.text import counted
from schemas import Study
from schemas.channel_warnings import names_in_words

INVITATION_BYTES = 16
MOST_AT_ONCE = 1_000_000
NO_KEY = (
    "no invitation_key is set, and the database's log would tell which invitation sent which report: start"
    " the server in the folder that has ldpkit.toml, or set LDPKIT_INVITATION_KEY"
)


def invite(
    session: Session,
    study_id: str,
    count: int,
    secret: bytes,
    public: Mapping[str, str] | None = None,
    by: str = audit_log.BY_TOKEN,
) -> list[str]:
    """Make invitations; from now on the study takes invited reports only.

    Args:
        session: the transaction.
        study_id: the study.
        count: how many invitations to make.
        secret: the bytes of the setting invitation_key.
        public: the values of the study's public fields that the invitations carry.
        by: the name of the key that makes them.

    Raises:
        InputError: the study takes no such invitations.
    """
    _refuse_over(session, study_id)
    _refuse_tokens(session, study_id)
    carried = _carried(session, study_id, public or {})
    invitations = [new_word(INVITATION_BYTES) for _ in range(count)]
    add_invitations(session, _number(session, study_id), map(hash_key, invitations), secret, carried)
    audit_log.record(session, by, "invite", study_id, counted(count, "invitation"))
    return invitations


def _refuse_over(session: Session, study_id: str) -> None:
    """Raise InputError if the study was closed or deleted."""
    state = store.study_state(session, study_id)
    if state is not None and (state.closed or state.deleted):
        how = "deleted" if state.deleted else "closed"
        raise InputError(
            f"study {study_id} was {how}: its invitations admit no reports, and none was made",
            code="ticket.study_closed",
        )


def _refuse_tokens(session: Session, study_id: str) -> None:
    """Raise InputError if the study takes tokens: invitations made here would link people and reports."""
    study = _current(session, study_id)
    if study is not None and study.channel is not None and study.channel.tokens is not None:
        raise InputError(
            f"study {study.id} takes tokens, so that people and reports cannot be linked: its issuer makes "
            "the invitations, with `ldpkit issuer invite`",
            code="ticket.issuer_gives_them",
        )


def refuse_ended(session: Session, study_id: str, today: date, late: timedelta) -> None:
    """Raise InputError if no version takes reports any more. late: days of grace after the last day."""
    last = _last_day(session, study_id)
    if last is None or today - last <= late:
        return
    raise InputError(
        f"study {study_id} ended on {last}: its invitations admit no reports, and none was made; publish a "
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


def warnings_of_invitations(session: Session, study_id: str) -> list[str]:
    """Return a warning for each field that a study's invitations carry if its values may name a person."""
    study = _current(session, study_id)
    return names_in_words(study) if study else []


def _carried(session: Session, study_id: str, public: Mapping[str, str]) -> dict[str, str]:
    study = _current(session, study_id)
    return {} if study is None else values_of(study, public)


def values_of(study: Study, public: Mapping[str, str]) -> dict[str, str]:
    """Return the values that invitations carry, spelt as in reports. Raises InputError if they do not fit."""
    fields = _carried_by(study)
    for name in public:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InputError(
                f"public field {name[:64]}: invitations to {study.id} carry {known}",
                code="ticket.unknown_public_field",
            )
    for name in fields:
        if name not in public:
            raise InputError(
                f"public field {name}: its value is missing, which invitations carry",
                code="ticket.public_value_missing",
            )
    try:
        return {name: field.value_of(public[name]) for name, field in fields.items()}
    except AnswerError as error:
        raise InputError(
            f"public field {error.field}: {error.problem}", code="ticket.public_value_invalid"
        ) from None


def disable(session: Session, study_id: str, by: str) -> None:
    """Forget a study's invitations and admit reports without invitations. Raises InputError.

    If invitations carry public values, nothing is changed: no report is taken without these values.
    """
    carried = ", ".join(carried_fields(session, study_id))
    if carried:
        raise InputError(
            f"the invitations to {study_id} carry {carried}, which every report needs: nothing was "
            "changed. To admit all reports, publish a version without such fields; --revoke-all forgets "
            "invitations",
            code="ticket.disable_carries_values",
        )
    number = _number(session, study_id)
    if has_values(session, number):
        raise InputError(
            f"invitations to an earlier version of {study_id} carry public values, without which no report "
            "of that version is taken, however late: nothing was changed. A version without such fields lets "
            "everybody in already, unless other invitations were made; --revoke-all, then --disable, "
            "gives up both",
            code="ticket.disable_earlier_version",
        )
    disable_invitations(session, number)
    audit_log.record(session, by, "disable invitations", study_id)


def revoke(session: Session, study_id: str, by: str) -> None:
    """Forget a study's invitations, so that only new ones admit reports. Raises InputError."""
    revoke_invitations(session, _number(session, study_id))
    audit_log.record(session, by, "revoke invitations", study_id)


def carried_fields(session: Session, study_id: str) -> dict[str, PublicField]:
    """Return the public fields whose values the invitations to a study carry now."""
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
