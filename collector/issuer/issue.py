"""The issuer's side of blind tickets: keys, the tickets of people, and one blind-signed token for each.

It works on a collector's tables. A study here has no document, only a row that names it: nothing that
is in a report is in an issuer's database.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast
from unicodedata import category, normalize

from sqlalchemy import CursorResult, Delete, Update, delete, func, or_, select, update
from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.issuer.signing import new_pair
from collector.models import CollectorRow, DocumentRow, TicketKeyRow, TicketRow
from collector.tickets.codes import new_tickets
from ldp_client.core.tokens import short_id_of
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted, visible

# Names that a warning shows.
SHOWN = 5
# The request of a ticket that may have got a token: a restored backup does not know.
ENDED = b""
UNUSED = TicketRow.request.is_(None)
NEW_NAMES = (
    "names without a ticket here: {names} ({count}). If a name was spelt differently before, the person's "
    "earlier ticket stays valid"
)


class Person(NamedTuple):
    """A person who is to get a ticket. name: the operator's, "" for none. public: the person's stratum."""

    name: str
    public: Mapping[str, str]


class Count(NamedTuple):
    """The numbers of a key: its tickets, how many got their token, and how many a restored copy ended."""

    key: bytes
    public: dict[str, str]
    tickets: int
    tokens: int
    ended: int


def require_original(session: Session) -> None:
    """Raise InputError if the database was restored from a backup and `accept_copy` has not run yet."""
    if session.scalars(select(CollectorRow.is_copy)).one():
        raise InputError(
            "this database was restored from a backup: a ticket used since would get a second token. Run "
            "`ldpkit tickets resume --unused end`, or `--unused keep` if no ticket was used since",
            code="issuer.restored_from_backup",
        )


def accept_copy(session: Session, is_ending: bool) -> int:
    """Let a restored database issue tokens again; return how many tickets ended.

    The ended tickets stay stored, because their people may have got a token since the backup.

    Args:
        session: the transaction.
        is_ending: whether to end the unused tickets.

    Raises:
        InputError: the database is not a restored copy.
    """
    if not _changed(session, update(CollectorRow).where(CollectorRow.is_copy).values(is_copy=False)):
        raise InputError(
            "this database was not restored from a backup, or was used since: its tickets stay as they are",
            code="issuer.not_restored",
        )
    return _changed(session, update(TicketRow).where(UNUSED).values(request=ENDED)) if is_ending else 0


def _changed(session: Session, statement: Update | Delete) -> int:
    """Execute a statement, and return how many rows it changed."""
    statement = statement.execution_options(synchronize_session=False)
    return int(cast("CursorResult[Any]", session.execute(statement)).rowcount)


def refuse_reports(session: Session) -> None:
    """Raise InputError for a collector's database: with names it could join people and reports."""
    if session.scalars(select(DocumentRow.study).limit(1)).first() is not None:
        raise InputError(
            "this database has published studies: an issuer needs a separate one, from `ldpkit init --as "
            "issuer`",
            code="issuer.collectors_database",
        )


def keys_of(session: Session, study_id: str) -> list[TicketKeyRow]:
    """Return a study's keys, in its order."""
    number = select(store.STUDIES.c.number).where(store.STUDIES.c.id == study_id).scalar_subquery()
    rows = select(TicketKeyRow).where(TicketKeyRow.study == number).order_by(TicketKeyRow.place)
    return list(session.scalars(rows))


def add_key(session: Session, study_id: str, public: Mapping[str, str], by: str) -> None:
    """Make a key pair for a study, or for a stratum of it, unless there is one. Raises InputError."""
    require_original(session)
    refuse_reports(session)
    number = store.locked_or_new_study(session, study_id).number
    rows, written = keys_of(session, study_id), canonical_json(dict(public))
    if written in [row.public for row in rows]:
        return
    taken = {short_id_of(row.spki) for row in rows}
    spki, private = new_pair()
    while short_id_of(spki) in taken:
        # Requests name keys by one byte, so these bytes must differ within a study.
        spki, private = new_pair()
    session.add(TicketKeyRow(study=number, place=len(rows), spki=spki, private=private, public=written))
    audit_log.record(session, by, "add ticket key", study_id, shown(public))
    session.flush()


def invite(
    session: Session,
    study_id: str,
    people: Sequence[Person],
    by: str,
    is_again: bool = False,
    is_second: bool = False,
) -> tuple[list[str], list[str]]:
    """Make a ticket for each person; only its hash is stored.

    Args:
        session: the transaction.
        study_id: the study.
        people: all with names, or all without and of one stratum.
        by: the name of the key that makes them.
        is_again: end the unused tickets of these people; without names, of all people without names.
        is_second: also replace used tickets, with which these people may send two reports.

    Returns:
        The tickets in the order of the people, and warnings.

    Raises:
        InputError: a stratum has no key, or a person would get a second token.
    """
    require_original(session)
    strata = {row.public for row in keys_of(session, study_id)}
    if not strata:
        raise InputError(
            f"study {study_id[:64]} has no key: make one with `ldpkit tickets key`",
            code="issuer.study_without_key",
        )
    # Other changes to its tickets wait.
    number = store.locked_study(session, study_id).number
    carried = [canonical_json(dict(person.public)) for person in people]
    for person, public in zip(people, carried):
        if public not in strata:
            raise InputError(
                f"study {study_id} has no key for {shown(person.public)}", code="issuer.stratum_without_key"
            )
    warnings: list[str] = []
    if people[0].name:
        warnings = _replace_named(session, number, people, is_again, is_second)
    elif is_again:
        # People without names cannot be told apart.
        unnamed = (TicketRow.study == number, TicketRow.public == carried[0], TicketRow.name == "")
        ended = _changed(session, delete(TicketRow).where(*unnamed, UNUSED))
        # Counted after that, to count a token issued until then.
        left = session.scalar(select(func.count()).select_from(TicketRow).where(*unnamed)) or 0
        if left and not is_second:
            raise InputError(
                f"{counted(left, 'ticket')} of people without names got a token, or may have: with new ones, "
                "they may send two reports. If that is intended: --again all",
                code="issuer.unnamed_tokens",
            )
        warnings = [f"{counted(ended, 'ticket')} of people without names ended"]
    tickets = new_tickets(session, number, carried, [person.name for person in people])
    audit_log.record(session, by, "invite", study_id, counted(len(people), "ticket"))
    return tickets, warnings


def _replace_named(
    session: Session, number: int, people: Sequence[Person], is_again: bool, is_second: bool
) -> list[str]:
    """End the tickets that `invite` replaces. Returns its warnings, and raises its errors."""
    # 1. Compare names by their looks.
    wanted = {looks(person.name): visible(person.name[:64]) for person in people}
    if len(wanted) < len(people):
        raise InputError("a name is listed twice: one person gets one token", code="issuer.duplicate_name")
    here = select(TicketRow.hash, TicketRow.name, TicketRow.request).where(TicketRow.study == number)
    rows = [(hashed, looks(name)) for hashed, name, _ in session.execute(here) if name]
    known = {form for _, form in rows}
    if not is_again:
        for form, name in wanted.items():
            if form in known:
                raise InputError(
                    f"{name} has a ticket already: one person gets one token; --again unused replaces it",
                    code="issuer.duplicate_name",
                )
        return []
    # 2. End unused tickets.
    end_unused(session, number, sorted(hashed for hashed, form in rows if form in wanted))
    # 3. Look for tokens after that, to count a token issued until then.
    used = {
        looks(name): request for _, name, request in session.execute(here) if name and request is not None
    }
    for form, name in wanted.items() if not is_second else ():
        if form in used:
            what = "may have got a token after the backup" if used[form] == ENDED else "got a token already"
            raise InputError(
                f"{name} {what}: with a second one, this person may send two reports. If that is intended, "
                "use --again all",
                code="issuer.name_has_token",
            )
    strangers = [name for form, name in wanted.items() if form not in known]
    return [NEW_NAMES.format(names=", ".join(strangers[:SHOWN]), count=len(strangers))] if strangers else []


def end_unused(session: Session, number: int, hashes: Sequence[bytes]) -> None:
    """Delete the unused among these tickets. A ticket that got its token meanwhile stays."""
    for some in store.chunks(hashes):
        here = (TicketRow.study == number, TicketRow.hash.in_(some), UNUSED)
        _changed(session, delete(TicketRow).where(*here))


@lru_cache(maxsize=1 << 16)
def looks(name: str) -> str:
    """Return a name without capitals, outer blanks and invisible marks, because spreadsheets add such."""
    seen = "".join(one for one in normalize("NFKC", name) if category(one) != "Cf")
    return " ".join(seen.split()).casefold()


def counts(session: Session, study_id: str) -> list[Count]:
    """Return the numbers of each key of a study."""
    got = TicketRow.request != ENDED
    every, ended = func.count().filter(or_(UNUSED, got)), func.count().filter(TicketRow.request == ENDED)
    numbers = select(every, func.count().filter(got), ended).select_from(TicketRow)
    result = []
    for row in keys_of(session, study_id):
        of_key = (TicketRow.study == row.study, TicketRow.public == row.public)
        result.append(Count(row.spki, json.loads(row.public), *session.execute(numbers.where(*of_key)).one()))
    return result


def names_of(session: Session, study_id: str) -> list[tuple[str, bool | None]]:
    """Return the people of a study whom the operator named, and whether each got a token; None if unknown.

    They are in the order of their names; of one person, a token comes last.
    """
    study = store.study_state(session, study_id)
    number = None if study is None else study.number
    rows = select(TicketRow.name, TicketRow.request).where(TicketRow.study == number, TicketRow.name != "")
    named = [
        (name, None if request == ENDED else request is not None) for name, request in session.execute(rows)
    ]
    return sorted(named, key=lambda person: (person[0], bool(person[1])))


def shown(public: Mapping[str, str]) -> str:
    """Return a stratum in words."""
    return ", ".join(f"{name}={value}" for name, value in public.items()) or "everybody"
