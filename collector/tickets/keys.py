"""A token key belongs to one study: its issuer signs nothing with it for tickets of other studies."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy import select

from collector import store
from collector.models import DocumentRow, StudyRow, TicketKeyRow
from ldp_client.documents.errors import InputError, StudyError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schemas import Study

# A field in canonical JSON. Inside a text its quotes would have backslashes.
STATED = re.compile(rb'"key":"([A-Za-z0-9+/=]+)"')


def refuse_keys_of_others(session: Session, number: int, study: Study) -> None:
    """Reject a version with a token key of another study: its participants would pay and get no token.

    A study that is closed or deleted keeps its keys. Keys in earlier versions of this study are allowed.

    Args:
        session: the session in which the version is published.
        number: its study's number.
        study: the version.

    Raises:
        StudyError: another study has the key; the error names that study.
    """
    new = keys_of(study)
    versions = store.all_versions(session, deleted=True) if new else []
    for _, keys in _KEYS.of(session, [one for one in versions if one[0] == number]):
        new -= keys
    for one, keys in _KEYS.of(session, versions if new else ()):
        if new & keys:
            other = session.scalars(select(StudyRow.id).where(StudyRow.number == one)).one()
            raise has_key_of(other, study)


def keys_of(study: Study) -> set[bytes]:
    """Return the token keys of a study, in base64."""
    tickets = study.channel.tickets if study.channel is not None else None
    return {b64encode(key.spki) for key in tickets.keys} if tickets is not None else set()


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


def keys_in(canonical: bytes) -> frozenset[bytes]:
    """Return the token keys in a study's canonical JSON, without parsing it."""
    return frozenset(STATED.findall(canonical))


def has_key_of(other: str, study: Study) -> StudyError:
    """Return the error for a study that states a key of the other study."""
    # Short, because the command shows only this much of an error.
    told = f"state what `ldpkit tickets key {study.id}` prints"
    problem = f"have a token key of study {other}, good for no other one: {told}"
    return StudyError("channel.tickets.keys", problem, code="study.ticket_key_of_other_study")


Found = TypeVar("Found")


class ReadOnce(Generic[Found]):
    """A cache of a function's values for documents, by their digests."""

    def __init__(self, read: Callable[[bytes], Found]) -> None:
        """read: computes the value from a document's canonical JSON."""
        self._read = read
        self._found: dict[str, Found] = {}

    def of(self, session: Session, versions: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, Found]]:
        """Yield (study, value) for each (study, version, digest), as `store.all_versions` returns them."""
        for study, version, digest in versions:
            if digest not in self._found:
                wanted = (DocumentRow.study == study, DocumentRow.version == version)
                text = session.scalars(select(DocumentRow.canonical).where(*wanted)).one()
                self._found[digest] = self._read(text)
            yield study, self._found[digest]


_KEYS = ReadOnce(keys_in)
