"""What a device remembers of the studies it met, and who publishes them.

Any collector can publish a study under the id of another collector's study. The device remembers the highest
version, its signing key and the person's consent.

The publisher is the holder of the pinned keys, or else the collector, by its base URL. The collector's
identity is no proof, as any client that requests it can repeat it. A ledger row without a publisher (from a
device without a collector) matches any publisher, and so does a study without one.

Each publisher has separate versions, consents, permanent answers, invitations and withdrawals. Each publisher
may ask a question once, and each time is paid for. In the same words a question is asked once by all
publishers together, so a collector that returns under another name gets no second answer.
"""

import sqlite3
from datetime import date

from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.documents.study import Study
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ldp_client.core.public_keys import PublicKey

# SQL condition for the rows about a publisher's study of an id. `Publisher.of` gives its values.
OF_PUBLISHER = "study = ? AND (INSTR(?, char(10) || publisher || char(10)) OR ?)"


class Publisher:
    """The publisher of a study.

    name: the name of its rows in the ledger, "" if unknown. names: all names whose rows belong to it.
    """

    def __init__(self, name: str, also: "Sequence[str]" = ()) -> None:
        self.name = name
        self.names = {"", name, *also}

    def of(self, study_id: str) -> "tuple[str, str, bool]":
        """Return the values for OF_PUBLISHER."""
        return study_id, "\n{}\n".format("\n".join(sorted(self.names))), self.names == {""}

    def is_own(self, name: str) -> bool:
        """Return True if rows under this name are about the publisher's study."""
        return name in self.names or self.names == {""}


# Owns every row.
ANYBODY = Publisher("")


def shown_publisher(name: str, collector: str = "") -> str:
    """Return a name to show: the publisher's own or its reports' collector, else its key."""
    known = [place for place in (name, collector) if "/" in place and " " not in place]
    return known[0] if known else say("device.the_key", key=name[:16])


def note_version(
    connection: sqlite3.Connection, study: "Study", publisher: Publisher, key_id: str = ""
) -> None:
    """Store the study's version, and the key that was verified to have signed it.

    Raises RefusedError for a version below the highest that this publisher had, or for another document of
    the same version.
    """
    query = f"SELECT version, digest, key FROM seen WHERE {OF_PUBLISHER} ORDER BY version DESC"
    rows = connection.execute(query, publisher.of(study.id)).fetchall()
    for version, digest, _ in rows:
        if study.version < version:
            raise RefusedError.say(
                "device.older_version", study=study.id, version=study.version, seen=version
            )
        if study.version == version and digest != study.digest:
            raise RefusedError.say("device.other_version", study=study.id, seen=version)
    signed_by = [key for version, _, key in rows if version == study.version and key]
    kept = key_id or max(signed_by, key=publisher.name.__eq__, default="")
    row = (study.id, publisher.name, study.version, study.digest, kept)
    connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", row)


def signer_of(connection: sqlite3.Connection, study: "Study", keys: "Sequence[PublicKey]") -> str:
    """Return the id of the pinned key that is known to have signed this document, "" if no key is pinned.

    If several keys signed it, return the key whose first answered version is highest: otherwise answers moved
    to a new key would move back to the earlier key. The last of these keys counts as first answered now if it
    was not answered yet.

    Raises RefusedError if keys are pinned and none is known to have signed the document.
    """
    query = "SELECT key FROM seen WHERE study = ? AND digest = ?"
    signed_by = connection.execute(query, (study.id, study.digest)).fetchall()
    trusted = [key.id for key in keys if (key.id,) in signed_by]
    if keys and not trusted:
        _refuse_older(connection, study, [pinned.id for pinned in keys])
        raise RefusedError.say("device.not_known_signed", study=study.id)
    query = "SELECT publisher, MIN(version) FROM reports WHERE study = ? GROUP BY publisher"
    first = {**dict.fromkeys(trusted[-1:], study.version), **dict(connection.execute(query, (study.id,)))}
    return max(trusted[::-1], key=lambda key: first.get(key, 0), default="")


def _refuse_older(connection: sqlite3.Connection, study: "Study", key_ids: "list[str]") -> None:
    """Raise RefusedError if a pinned key signed a higher version: the ledger keeps only the highest."""
    rows = connection.execute("SELECT version, key FROM seen WHERE study = ?", (study.id,)).fetchall()
    seen = max([version for version, key in rows if key in key_ids], default=0)
    if study.version < seen:
        raise RefusedError.say("device.older_version", study=study.id, version=study.version, seen=seen)


def publisher_of(connection: sqlite3.Connection, digest: str, collector: str) -> str:
    """Return the identity of the collector that serves this document at this base URL, "" if unknown."""
    query = "SELECT identity FROM publishers WHERE document = ? AND collector = ?"
    row = connection.execute(query, (digest, collector)).fetchone()
    return row[0] if row else ""


def note_publisher(connection: sqlite3.Connection, digest: str, collector: str, identity: str) -> None:
    """Remember which collector serves a study at this base URL.

    Once a report may have left, the identity is fixed: only that collector can delete the report.
    """
    query = "SELECT 1 FROM reports WHERE document = ? AND state <> 'queued'"
    known = publisher_of(connection, digest, collector)
    if not digest or not identity or (known and connection.execute(query, (digest,)).fetchone()):
        return
    connection.execute("INSERT OR REPLACE INTO publishers VALUES (?, ?, ?)", (digest, collector, identity))


def refuse_no_study(study: "Any") -> None:
    """Raise InputError for anything but a study: its text, or a signed study that was not accepted."""
    if not isinstance(study, Study):
        raise InputError.say("device.no_study", found=type(study).__name__)
    if study.only_shown:
        raise InputError.say("device.only_shown", study=study.id)


def warn_of_others(study_id: str, others: "list[str]") -> None:
    """Log one warning with the publishers whose studies of that id a withdrawal leaves."""
    import logging  # only when needed, as in locking.py

    line = say("device.also_answered", study=study_id, others=say("and").join(others))
    logging.getLogger("ldpkit").warning("%s", line)


def refuse_unknown(connection: sqlite3.Connection, study_id: str) -> None:
    """Raise InputError unless the device has met a study of this id."""
    tables = ("seen", "consents", "spent", "reports")
    query = " UNION ".join([f"SELECT study FROM {table}" for table in tables])
    if (study_id,) not in connection.execute(query).fetchall():
        raise InputError.say("device.unknown_study")


def note_consent(connection: sqlite3.Connection, study: "Study", publisher: Publisher, today: date) -> None:
    """Record that the person agrees to answer exactly this document to this publisher."""
    row = (study.id, publisher.name, study.digest, today.isoformat())
    connection.execute("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?)", row)


def forget_consent(connection: sqlite3.Connection, study_id: str, publisher: Publisher) -> None:
    """Delete the person's consent to answer this study."""
    connection.execute(f"DELETE FROM consents WHERE {OF_PUBLISHER}", publisher.of(study_id))


def refuse_without_consent(connection: sqlite3.Connection, study: "Study", publisher: Publisher) -> None:
    """Raise RefusedError unless the person agreed to answer exactly this document to this publisher."""
    query = f"SELECT 1 FROM consents WHERE {OF_PUBLISHER} AND digest = ?"
    if not connection.execute(query, (*publisher.of(study.id), study.digest)).fetchone():
        raise RefusedError.say("device.no_consent", study=study.id, version=study.version)
