"""Permanent answers: for repeated collection a question is randomised once, and every round repeats that.

A memoized mechanism splits its noise in two: `permanent(quantised, random) -> bytes`, drawn once
and kept in the ledger, and `instantaneous(permanent, random) -> payload`, drawn for each report
(Erlingsson, Pihur & Korolova 2014, RAPPOR).
"""

import hashlib
import sqlite3

from ldp_client.mechanisms import Mechanism
from schemas.canonical import canonical_json
from schemas.errors import AlreadyAnsweredError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ldp_client.core.randomness import Source
    from ldp_client.terms import Terms
    from schemas.study import Study

WIPED = b""


class Remembering(Mechanism):
    """A memoized mechanism with this device's permanent answer: drawn at its first use, None before."""

    def __init__(self, mechanism: "Any", answer: "Optional[bytes]") -> None:
        self.name = mechanism.name
        self.field = mechanism.field
        self.privacy = mechanism.privacy
        self.payload_size = mechanism.payload_size
        self.mechanism = mechanism
        self.answer = answer

    def quantise(self, answer: "Any") -> "Any":
        return self.mechanism.quantise(answer)

    def randomise(self, quantised: "Any", random: "Source") -> bytes:
        if self.answer is None:
            self.answer = bytes(self.mechanism.permanent(quantised, random))
        return bytes(self.mechanism.instantaneous(self.answer, random))


def recall(connection: sqlite3.Connection, terms: "Terms") -> "dict[str, Remembering]":
    """The memoized questions of a study with what the device remembers of them.

    Raises AlreadyAnsweredError for one that was withdrawn, or that is now another question.
    """
    query = "SELECT question, fingerprint, answer FROM permanent WHERE study = ?"
    rows = {row[0]: row[1:] for row in connection.execute(query, (terms.study.id,)).fetchall()}
    found = {}
    for question in terms.memoized:
        fingerprint, answer = rows.get(question, (_fingerprint(terms.study, question), None))
        if answer == WIPED:
            raise AlreadyAnsweredError(f"{terms.study.id}: {question}: was withdrawn from this device")
        if fingerprint != _fingerprint(terms.study, question):
            raise AlreadyAnsweredError(
                f"{terms.study.id}: {question}: this device has answered it with other choices or noise"
            )
        found[question] = Remembering(terms.mechanisms[question], answer)
    return found


def remember(connection: sqlite3.Connection, study: "Study", remembering: "dict[str, Remembering]") -> None:
    """Keep the permanent answers that were drawn."""
    for question, mechanism in remembering.items():
        if mechanism.answer is not None:
            row = (study.id, question, _fingerprint(study, question), mechanism.answer)
            connection.execute("INSERT OR IGNORE INTO permanent VALUES (?, ?, ?, ?)", row)


def _fingerprint(study: "Study", question: str) -> str:
    """What must stay the same for an answer to be repeated: everything but the words and the model."""
    (document,) = [item for item in study.document["questions"] if item["id"] == question]
    fixed = {key: document[key] for key in document if key not in ("text", "model")}
    return hashlib.sha256(canonical_json(fixed).encode("utf-8")).hexdigest()
