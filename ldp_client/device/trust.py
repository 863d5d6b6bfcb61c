"""What a device remembers of the studies it met, and of their collectors.

A study belongs to its collector's origin, which is its scheme, host and port. The path does not count: one
operator is one collector. Any collector can publish a study under the id of another collector's study; each
origin's studies have separate versions, consents, answers and withdrawals. Only the owner's app states that a
collector moved; a server never does. Rows without an origin, from a device without a collector, move to the
first collector that is named. In SQL, `is_own(origin)` holds for the rows of this device's collector.
"""

import sqlite3
from collections.abc import Sequence
from datetime import date
from typing import Any

from ldp_client.core.public_keys import PublicKey
from ldp_client.documents.errors import AnswerError, InputError, RefusedError
from ldp_client.documents.study import Study

# The tables whose rows belong to an origin.
TABLES = ("reports", "spent", "permanent", "answered", "consents")


def origin_of(base_url: str) -> str:
    """Return the origin of a base URL in the spelling of `Policy.base_url`; "" for no collector."""
    return "/".join(base_url.split("/")[:3])


def refuse_no_study(study: Any) -> None:
    """Raise InputError for anything but a study: its text, or a signed study that was not accepted."""
    if not isinstance(study, Study):
        raise InputError.say("device.no_study", found=type(study).__name__)
    if study.only_shown:
        raise InputError.say("device.only_shown", study=study.id)


def refuse_older(connection: sqlite3.Connection, study: Study) -> None:
    """Raise RefusedError for a version below the answered one, or another document of that version."""
    query = "SELECT version, digest FROM answered WHERE study = ? AND is_own(origin)"
    for version, digest in connection.execute(query, (study.id,)).fetchall():
        if study.version < version:
            raise RefusedError.say(
                "device.older_version", study=study.id, version=study.version, seen=version
            )
        if study.version == version and digest != study.digest:
            raise RefusedError.say("device.other_version", study=study.id, seen=version)


def note_answered(connection: sqlite3.Connection, study: Study, origin: str) -> None:
    """Store the version that was answered."""
    row = (origin, study.id, study.version, study.digest)
    connection.execute("INSERT OR REPLACE INTO answered VALUES (?, ?, ?, ?)", row)


def note_signed(connection: sqlite3.Connection, study: Study, keys: Sequence[PublicKey]) -> None:
    """Store the pinned keys whose signatures on this document were valid."""
    row = (study.digest, " ".join([key.id for key in keys]))
    connection.execute("INSERT OR REPLACE INTO signed VALUES (?, ?)", row)


def refuse_unsigned(connection: sqlite3.Connection, study: Study, keys: Sequence[PublicKey]) -> None:
    """Raise RefusedError if keys are pinned and none of them is known to have signed this document."""
    row = connection.execute("SELECT keys FROM signed WHERE document = ?", (study.digest,)).fetchone()
    signers = row[0].split() if row else []
    if keys and not any([key.id in signers for key in keys]):
        raise RefusedError.say("device.not_known_signed", study=study.id)


def identity_at(connection: sqlite3.Connection, digest: str, collector: str) -> str:
    """Return the identity of the collector that serves this document at this base URL, "" if unknown."""
    query = "SELECT identity FROM identities WHERE document = ? AND collector = ?"
    row = connection.execute(query, (digest, collector)).fetchone()
    return row[0] if row else ""


def note_identity(connection: sqlite3.Connection, digest: str, collector: str, identity: str) -> None:
    """Remember which collector serves a study at this base URL.

    Once a report may have left, the identity is fixed: only that collector can delete the report.
    """
    query = "SELECT 1 FROM reports WHERE document = ? AND state <> 'queued'"
    known = identity_at(connection, digest, collector)
    if not digest or not identity or (known and connection.execute(query, (digest,)).fetchone()):
        return
    connection.execute("INSERT OR REPLACE INTO identities VALUES (?, ?, ?)", (digest, collector, identity))


def adopt(connection: sqlite3.Connection, origin: str, former: Sequence[str]) -> None:
    """Move the rows of former origins, and those without an origin, to the collector's present origin.

    A row stays if the present origin has one for the same question.
    """
    for table in TABLES:
        for old in former:
            query = f"UPDATE OR IGNORE {table} SET origin = ? WHERE origin = ?"
            connection.execute(query, (origin, old))


def has_rows(connection: sqlite3.Connection, origins: Sequence[str]) -> bool:
    """Return True if the ledger has rows of one of these origins."""
    query = " UNION ".join([f"SELECT origin FROM {table}" for table in TABLES])
    return any([origin in origins for (origin,) in connection.execute(query).fetchall()])


def refuse_nameless(connection: sqlite3.Connection, study: Study, origin: str) -> None:
    """Raise RefusedError if a device without a collector answered the study to one before.

    Its report would go to the first collector that it names, perhaps as a second answer.
    """
    named = "study = ?1 AND origin <> ''"
    query = " UNION ".join([f"SELECT origin FROM {table} WHERE {named}" for table in TABLES])
    known = connection.execute(query, (study.id,)).fetchone() if not origin else None
    if known:
        raise RefusedError.say("device.name_collector", study=study.id, collector=known[0])


def refuse_unknown(connection: sqlite3.Connection, study_id: str) -> None:
    """Raise InputError unless the device agreed to answer a study of this id from its collector."""
    tables = ("consents", "spent", "reports")
    query = " UNION ".join([f"SELECT 1 FROM {table} WHERE study = ?1 AND is_own(origin)" for table in tables])
    if not isinstance(study_id, str) or not connection.execute(query, (study_id,)).fetchone():
        raise InputError.say("device.unknown_study")


def note_consent(connection: sqlite3.Connection, study: Study, origin: str, today: date) -> None:
    """Record that the person agrees to answer exactly this document to this collector."""
    row = (origin, study.id, study.digest, today.isoformat())
    connection.execute("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?)", row)


def forget_consent(connection: sqlite3.Connection, study_id: str) -> None:
    """Delete the person's consent to answer this study."""
    connection.execute("DELETE FROM consents WHERE study = ? AND is_own(origin)", (study_id,))


def refuse_without_consent(connection: sqlite3.Connection, study: Study) -> None:
    """Raise RefusedError unless the person agreed to answer exactly this document to this collector."""
    query = "SELECT 1 FROM consents WHERE study = ? AND is_own(origin) AND digest = ?"
    if not connection.execute(query, (study.id, study.digest)).fetchone():
        raise RefusedError.say("device.no_consent", study=study.id, version=study.version)


def refuse_asked_behind_noise(connection: sqlite3.Connection, study: Study) -> None:
    """Raise RefusedError if a public field has the id of a question that this study asked before."""
    query = "SELECT 1 FROM spent WHERE study = ? AND question = ? AND is_own(origin)"
    for field in study.public:
        if connection.execute(query, (study.id, field.id)).fetchone():
            raise RefusedError.say("device.asked_behind_noise", study=study.id, field=field.id)


def with_public(
    study: Study, answers: dict[str, Any], public: dict[str, Any] | None, is_watched: bool
) -> dict[str, Any]:
    """Return answers and public values in one dict.

    is_watched: the person agreed to exactly this study, and so to the fields that leave in clear. Otherwise
    public values must be given in `public`: `answers` alone do not show that a field is no longer private.

    Raises RefusedError if they are not given there, AnswerError for an unknown public field or a value given
    twice.
    """
    fields = [field.id for field in study.public]
    if public is not None and not isinstance(public, dict):
        raise AnswerError.say("core.answers", "public")
    if not isinstance(answers, dict):
        return answers  # which `quantise_answers` refuses
    for name in public or {}:
        if name not in fields:
            raise AnswerError.say("core.not_public", str(name)[:64])
        if name in answers:
            raise AnswerError.say("device.given_twice", name)
    unnamed = [name for name in fields if name in answers]
    if unnamed and not is_watched:
        raise RefusedError.say("device.clear_unnamed", study=study.id, fields=", ".join(unnamed))
    return {**answers, **(public or {})}
