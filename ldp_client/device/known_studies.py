"""What a device remembers of the studies it met, and whose they are: any collector can publish one under
the id of another's.

It remembers the highest version, who signed it and the person's consent.

The publisher is who signs with the pinned keys, else the collector, by its base URL: its identity is no
proof, as whoever asks for it can repeat it. A row of the ledger without a publisher, of a device without a
collector, is taken for anybody's, and so is a study without one.

What this decides: which versions were seen, what a person agreed to, which permanent answer is repeated, what
an invitation is for and what is withdrawn is each publisher's own. A question is asked once by each, and is
paid for each time; in the same words it is asked once by all of them, so that a collector that comes back
under another name is not answered again.
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

# Which rows are about a publisher's study of some id: for the values that `Publisher.of` gives.
OF_PUBLISHER = "study = ? AND (INSTR(?, char(10) || publisher || char(10)) OR ?)"


class Publisher:
    """The publisher of a study.

    name: what rows of the ledger are kept under, "" if it is not known. names: which rows are its own.
    """

    def __init__(self, name: str, also: "Sequence[str]" = ()) -> None:
        self.name = name
        self.names = {"", name, *also}

    def of(self, study_id: str) -> "tuple[str, str, bool]":
        """The values of OF_PUBLISHER."""
        return study_id, "\n{}\n".format("\n".join(sorted(self.names))), self.names == {""}

    def is_own(self, name: str) -> bool:
        """Whether a row that is kept under this name is about its study."""
        return name in self.names or self.names == {""}


# Whose every row is.
ANYBODY = Publisher("")


def shown_publisher(name: str, collector: str = "") -> str:
    """What to call a publisher by: the collector that it is, or that its reports are for; else its key."""
    known = [place for place in (name, collector) if "/" in place and " " not in place]
    return known[0] if known else say("device.the_key", key=name[:16])


def note_version(
    connection: sqlite3.Connection, study: "Study", publisher: Publisher, key_id: str = ""
) -> None:
    """Remember the study's version, and the key that was verified to have signed it.

    Raises RefusedError for a version below one that this publisher had, or for another document of the same
    version.
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
    """The id of the pinned key that is known to have signed this document, "" where no key is pinned.

    Of several the one that was answered last for the first time: else what went over to a new key would go
    back to the one before. Where the last of `keys` was not answered yet, it is that one.

    Raises RefusedError where keys are pinned, and none of them is known to have signed it.
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
    """Raises RefusedError where a pinned key signed a higher version: only of the highest is it kept."""
    rows = connection.execute("SELECT version, key FROM seen WHERE study = ?", (study.id,)).fetchall()
    seen = max([version for version, key in rows if key in key_ids], default=0)
    if study.version < seen:
        raise RefusedError.say("device.older_version", study=study.id, version=study.version, seen=seen)


def publisher_of(connection: sqlite3.Connection, digest: str, collector: str) -> str:
    """The identity of the collector that serves this document at this base URL, "" for unknown."""
    query = "SELECT identity FROM publishers WHERE document = ? AND collector = ?"
    row = connection.execute(query, (digest, collector)).fetchone()
    return row[0] if row else ""


def note_publisher(connection: sqlite3.Connection, digest: str, collector: str, identity: str) -> None:
    """Remember which collector serves a study there; once a report may have left, only it can delete that."""
    query = "SELECT 1 FROM reports WHERE document = ? AND state <> 'queued'"
    known = publisher_of(connection, digest, collector)
    if not digest or not identity or (known and connection.execute(query, (digest,)).fetchone()):
        return
    connection.execute("INSERT OR REPLACE INTO publishers VALUES (?, ?, ?)", (digest, collector, identity))


def refuse_no_study(study: "Any") -> None:
    """Raises InputError for what is no study, such as its text, or a signed one that nobody accepted."""
    if not isinstance(study, Study):
        raise InputError.say("device.no_study", found=type(study).__name__)
    if study.only_shown:
        raise InputError.say("device.only_shown", study=study.id)


def warn_of_others(study_id: str, others: "list[str]") -> None:
    """Name publishers whose studies of that id a withdrawal leaves, in one warning."""
    import logging  # when there is something to say, as in locking.py

    line = say("device.also_answered", study=study_id, others=say("and").join(others))
    logging.getLogger("ldpkit").warning("%s", line)


def refuse_unknown(connection: sqlite3.Connection, study_id: str) -> None:
    """Raises InputError for what is no id of a study that this device has met."""
    tables = ("seen", "consents", "spent", "reports")
    query = " UNION ".join([f"SELECT study FROM {table}" for table in tables])
    if (study_id,) not in connection.execute(query).fetchall():
        raise InputError.say("device.unknown_study")


def note_consent(connection: sqlite3.Connection, study: "Study", publisher: Publisher, today: date) -> None:
    """The person agrees to answer exactly this document to this publisher."""
    row = (study.id, publisher.name, study.digest, today.isoformat())
    connection.execute("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?)", row)


def forget_consent(connection: sqlite3.Connection, study_id: str, publisher: Publisher) -> None:
    """Forget that the person agreed to answer this study."""
    connection.execute(f"DELETE FROM consents WHERE {OF_PUBLISHER}", publisher.of(study_id))


def refuse_without_consent(connection: sqlite3.Connection, study: "Study", publisher: Publisher) -> None:
    """Raises RefusedError unless the person agreed to answer exactly this document to this publisher."""
    query = f"SELECT 1 FROM consents WHERE {OF_PUBLISHER} AND digest = ?"
    if not connection.execute(query, (*publisher.of(study.id), study.digest)).fetchone():
        raise RefusedError.say("device.no_consent", study=study.id, version=study.version)
