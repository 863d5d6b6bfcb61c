"""Keys: long random words, shown once and kept as hashes, each good for one role."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from enum import Enum

from sqlalchemy import select
from sqlalchemy.orm import Session

from collector.storage.models import KeyRow, RemovedKeyRow
from ldp_client.documents.errors import DocumentError, InputError
from ldp_client.documents.fields import Identifier

KEY_BYTES = 32


class Role(Enum):
    """What a key is for: publish and close studies, read exports and counts, or everything."""

    PUBLISH = "publish"
    READ = "read"
    OPERATE = "operate"

    def allows(self, needed: Role) -> bool:
        """Whether a key of this role may do what `needed` is for."""
        return self in (needed, Role.OPERATE)


def new_key() -> str:
    """A key that cannot be guessed."""
    return new_word(KEY_BYTES)


def new_word(size: int) -> str:
    """Random bytes as text that can follow a command-line option: it never begins with a dash."""
    while (word := secrets.token_urlsafe(size)).startswith("-"):
        pass
    return word


def hash_key(key: str) -> bytes:
    """SHA-256 of a key: enough, as keys are long and random."""
    return hashlib.sha256(key.encode()).digest()


def add_key(session: Session, name: str, role: Role) -> str:
    """Make a key and return it, for the only time. Raises InputError for a bad name or one in use."""
    try:
        Identifier().read(name, "name", DocumentError)
    except DocumentError as error:
        raise InputError(f"key {name[:64]!r}: {error.problem}") from None
    if session.get(KeyRow, name):
        raise InputError(f"there is a key {name!r}; remove it first")
    key = new_key()
    session.add(KeyRow(name=name, role=role.value, hash=hash_key(key)))
    return key


def remove_key(session: Session, name: str) -> None:
    """Make a key useless from now on. Raises InputError if there is none of that name."""
    row = session.get(KeyRow, name)
    if row is None:
        raise InputError(f"there is no key {name[:64]!r}")
    session.add(RemovedKeyRow(hash=row.hash))
    session.delete(row)


def was_removed(session: Session, key: str) -> bool:
    """Whether a key existed and was removed."""
    return session.get(RemovedKeyRow, hash_key(key)) is not None


def list_keys(session: Session) -> list[tuple[str, Role]]:
    """Names and roles, by name."""
    rows = session.execute(select(KeyRow.name, KeyRow.role).order_by(KeyRow.name))
    return [(name, Role(role)) for name, role in rows]


def known_hashes(session: Session) -> frozenset[bytes]:
    """The hashes of all keys."""
    return frozenset(session.scalars(select(KeyRow.hash)))


def role_of(session: Session, key: str) -> Role | None:
    """The role of a key, None for an unknown one. The time taken tells nothing about the keys that exist."""
    given = hash_key(key)
    found = None
    for role, expected in session.execute(select(KeyRow.role, KeyRow.hash)):
        if hmac.compare_digest(given, expected):
            found = Role(role)
    return found
