"""The issuer's records: keys of studies and strata, codes, and the request that each code answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, cast

from sqlalchemy import CursorResult, Delete, Table, Update, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from collector.issuer.models import CodeRow, IssuerRow, TokenKeyRow
from collector.issuer.signing import new_pair
from collector.keys import hash_key, new_word
from collector.store import IDS_PER_STATEMENT
from ldp_client.core.tokens import short_id_of
from ldp_client.documents.canonical import canonical_json, to_base64
from ldp_client.documents.channel import MOST_KEYS
from ldp_client.documents.errors import DocumentError, InputError, UsageError
from ldp_client.documents.fields import Identifier

CODE_BYTES = 16
MOST_AT_ONCE = 1_000_000
CODES = cast(Table, CodeRow.__table__)
# Codes that may still get a token.
UNUSED = (CodeRow.request.is_(None), CodeRow.ended.is_(False))


class Person(NamedTuple):
    """A person who is to get a code.

    Attributes:
        name: the operator's name for the person.
        public: the values of the person's stratum.
    """

    name: str
    public: Mapping[str, str]


class Count(NamedTuple):
    """The number of codes of a key, and of codes that got their token.

    Attributes:
        ended: the codes that ended when a backup was restored, and may have got a token. `codes` leaves them
            out.
    """

    study: str
    public: dict[str, str]
    codes: int
    tokens: int
    ended: int


class Named(NamedTuple):
    """A person whom the operator named. token: whether the person got one; None if unknown."""

    name: str
    token: bool | None


def address_of(session: Session) -> str:
    """Return the base URL that studies name."""
    return session.scalars(select(IssuerRow.address)).one()


def refuse_copy(session: Session, is_changing: bool = False) -> None:
    """Raise InputError if the database was restored from a backup and `accept_copy` has not run yet.

    is_changing: lock the row, so that other changes to keys or codes wait until this transaction ends.
    """
    statement = select(IssuerRow.is_copy)
    if session.scalars(statement.with_for_update() if is_changing else statement).one():
        raise InputError(
            "this database was restored from a backup: a code used since would get a second token. Run "
            "`ldpkit issuer resume-after-restore --end-unused`, or `--keep` if no code was used since",
            code="issuer.restored_from_backup",
        )


def accept_copy(session: Session, is_ending: bool) -> int:
    """Let a restored database issue tokens again; return how many codes ended.

    The ended codes stay stored, because their people may have got a token since the backup.

    Args:
        session: the transaction.
        is_ending: whether to end the unused codes.

    Raises:
        InputError: the database is not a restored copy.
    """
    if not _updated(session, update(IssuerRow).where(IssuerRow.is_copy).values(is_copy=False)):
        raise InputError(
            "this database was not restored from a backup, or was used since: its codes stay as they are",
            code="issuer.not_restored",
        )
    return _updated(session, update(CodeRow).where(*UNUSED).values(ended=True)) if is_ending else 0


def _updated(session: Session, statement: Update | Delete) -> int:
    return int(cast("CursorResult[Any]", session.execute(statement)).rowcount)


def end_unused(session: Session, study_id: str, names: Collection[str]) -> None:
    """Delete the unused codes of these people."""
    rows = session.execute(select(CodeRow.hash, CodeRow.name).where(CodeRow.study == study_id, *UNUSED))
    hashes = sorted(hashed for hashed, name in rows if name in names)
    for start in range(0, len(hashes), IDS_PER_STATEMENT):
        some = CodeRow.hash.in_(hashes[start : start + IDS_PER_STATEMENT])
        # A code that got its token meanwhile stays.
        ending = delete(CodeRow).where(some, *UNUSED).execution_options(synchronize_session=False)
        session.execute(ending)


def end_unnamed(session: Session, study_id: str, public: Mapping[str, str]) -> tuple[int, int]:
    """Delete a stratum's unused codes of people without names.

    Returns:
        How many codes were deleted, and how many are left: these got a token, or may have got one.
    """
    places = [row.place for row in keys_of(session, study_id) if json.loads(row.public) == dict(public)]
    unnamed = (CodeRow.study == study_id, CodeRow.place.in_(places), CodeRow.name == "")
    ended = _updated(session, delete(CodeRow).where(*unnamed, *UNUSED))
    return ended, session.scalars(select(func.count(CodeRow.hash)).where(*unnamed)).one()


def keys_of(session: Session, study_id: str) -> list[TokenKeyRow]:
    """Return a study's keys, in its order."""
    rows = select(TokenKeyRow).where(TokenKeyRow.study == study_id).order_by(TokenKeyRow.place)
    return list(session.scalars(rows))


def all_spkis(session: Session) -> list[bytes]:
    """Return every public key, sorted."""
    return sorted(session.scalars(select(TokenKeyRow.spki)))


def add_key(session: Session, study_id: str, public: Mapping[str, str]) -> None:
    """Make a key pair for a study, or for a stratum of it. Raises InputError."""
    Identifier().read(study_id, "STUDY_ID", DocumentError)
    rows = keys_of(session, study_id)
    if len(rows) >= MOST_KEYS:
        raise InputError(
            f"study {study_id} has {MOST_KEYS} keys, the most that a study can name",
            code="issuer.too_many_keys",
        )
    strata = [json.loads(row.public) for row in rows]
    if dict(public) in strata:
        raise InputError(
            f"study {study_id} has a key for {shown(public)}: one is made for each stratum",
            code="issuer.duplicate_key",
        )
    if strata and set(strata[0]) != set(public):
        raise InputError(
            f"the keys of study {study_id} are by {', '.join(strata[0]) or 'nothing'}: all are",
            code="issuer.other_strata",
        )
    taken = {short_id_of(row.spki) for row in rows}
    spki, private = new_pair()
    while short_id_of(spki) in taken:
        # Requests name keys by one byte, so these bytes must differ within a study.
        spki, private = new_pair()
    written = canonical_json(dict(public))
    place = rows[-1].place + 1 if rows else 0
    session.add(TokenKeyRow(study=study_id, place=place, spki=spki, private=private, public=written))
    session.flush()


def remove_key(session: Session, study_id: str, public: Mapping[str, str]) -> int:
    """Remove a key that was made by mistake, and its codes; return how many codes it had.

    Raises InputError if the study has no such key, or if a person has, or may have, a token of it.
    """
    found = [row for row in keys_of(session, study_id) if json.loads(row.public) == dict(public)]
    if not found:
        raise InputError(f"study {study_id[:64]} has no key for {shown(public)}", code="issuer.unknown_key")
    (row,) = found
    of_key = (CodeRow.study == study_id, CodeRow.place == row.place)
    codes = len(session.scalars(delete(CodeRow).where(*of_key, *UNUSED).returning(CodeRow.hash)).all())
    # Count after the deletion, to include a token that was issued meanwhile.
    counted = select(func.count(CodeRow.hash), func.count(CodeRow.request)).where(*of_key)
    left, tokens = session.execute(counted).one()
    if left:
        has = "has" if tokens else "may have"
        raise InputError(
            f"the key of study {study_id} for {shown(public)} stays: a person {has} a token of it",
            code="issuer.key_in_use",
        )
    session.delete(row)
    session.flush()
    return codes


def tokens_block(session: Session, study_id: str) -> dict[str, object]:
    """Return the member `channel.tickets` of the study's document."""
    keys: list[dict[str, object]] = []
    for row in keys_of(session, study_id):
        public = json.loads(row.public)
        keys.append({"key": to_base64(row.spki), **({"public": public} if public else {})})
    return {"issuer": address_of(session), "keys": keys}


def add_codes(session: Session, study_id: str, people: Sequence[Person]) -> list[str]:
    """Make a code for each person; only its hash is stored. Raises InputError if a stratum has no key."""
    if not 1 <= len(people) <= MOST_AT_ONCE:
        raise UsageError(
            f"{len(people)} codes: must be from 1 to {MOST_AT_ONCE}", code="issuer.wrong_code_count"
        )
    places = {frozenset(json.loads(row.public).items()): row.place for row in keys_of(session, study_id)}
    if not places:
        raise InputError(
            f"study {study_id[:64]} has no key: make one with `ldpkit issuer key`",
            code="issuer.study_without_key",
        )
    codes: list[str] = []
    rows: list[dict[str, object]] = []
    for person in people:
        stratum = frozenset(person.public.items())
        if stratum not in places:
            raise InputError(
                f"study {study_id} has no key for {shown(person.public)}", code="issuer.stratum_without_key"
            )
        codes.append(new_word(CODE_BYTES))
        named = {"name": person.name, "study": study_id, "place": places[stratum]}
        rows.append({"hash": hash_key(codes[-1]), **named})
    # Sorted by hash, so that the table does not show the order of the list.
    rows.sort(key=itemgetter("hash"))
    session.connection().execute(insert(CODES), rows)
    return codes


def counts(session: Session) -> list[Count]:
    """Return each key's number of codes and tokens."""
    joined = (CodeRow.study == TokenKeyRow.study) & (CodeRow.place == TokenKeyRow.place)
    columns = (TokenKeyRow.study, TokenKeyRow.place, TokenKeyRow.public)
    hashes = func.count(CodeRow.hash)
    is_ended = CodeRow.ended.is_(True)
    counted = (hashes.filter(~is_ended), func.count(CodeRow.request), hashes.filter(is_ended))
    rows = select(*columns, *counted).outerjoin(CodeRow, joined).group_by(*columns).order_by(*columns[:2])
    return [
        Count(study, json.loads(public), *numbers) for study, _, public, *numbers in session.execute(rows)
    ]


def names_of(session: Session, study_id: str, with_token: bool = False) -> list[Named]:
    """Return the people whom the operator named, by name.

    with_token: only people who got their token, or may have got it.
    """
    rows = select(CodeRow.name, CodeRow.request.is_not(None), CodeRow.ended)
    rows = rows.where(CodeRow.study == study_id, CodeRow.name != "")
    if with_token:
        rows = rows.where(or_(CodeRow.request.is_not(None), CodeRow.ended))
    return sorted(
        (Named(name, None if ended else got) for name, got, ended in session.execute(rows)),
        key=lambda one: (one.name, bool(one.token)),
    )


def code_row(session: Session, code: str) -> CodeRow | None:
    """Return the row of a code that has not ended, locked until this transaction ends."""
    known = (CodeRow.hash == hash_key(code), CodeRow.ended.is_(False))
    return session.scalar(select(CodeRow).where(*known).with_for_update())


def digest_of(body: bytes) -> bytes:
    """Return the digest that is stored for a request."""
    return hashlib.sha256(body).digest()


def shown(public: Mapping[str, str]) -> str:
    """Return a stratum in words."""
    return ", ".join(f"{name}={value}" for name, value in public.items()) or "everybody"
