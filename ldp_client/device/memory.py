"""Permanent answers: in repeated collection a question is randomised once, and every round reuses that.

A memoized mechanism splits its noise in two: `permanent(quantised, random) -> bytes`, drawn once and kept in
the ledger, and `instantaneous(permanent, random) -> payload`, drawn for each report (Erlingsson, Pihur &
Korolova 2014, RAPPOR). A question is known by its id: what it asks is the collector's to keep.
"""

import sqlite3

from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms.memoized import Remembering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.pricing import Terms

WIPED = b""


def recall(connection: sqlite3.Connection, terms: "Terms") -> "dict[str, Remembering]":
    """Return the memoized questions of a study with their kept permanent answers.

    Raises AlreadyAnsweredError for a question that was withdrawn or whose noise changed.
    """
    query = "SELECT noise, answer FROM permanent WHERE study = ? AND question = ? AND is_own(origin)"
    remembering = {}
    for question in terms.memoized:
        kept = connection.execute(query, (terms.study.id, question)).fetchall()
        if WIPED in [answer for _, answer in kept]:
            raise AlreadyAnsweredError.say("device.withdrawn", study=terms.study.id, question=question)
        if kept and terms.noise[question] != kept[0][0]:
            raise AlreadyAnsweredError.say("device.other_noise", study=terms.study.id, question=question)
        remembering[question] = Remembering(terms.mechanisms[question], kept[0][1] if kept else None)
    return remembering


def remember(
    connection: sqlite3.Connection,
    terms: "Terms",
    origin: str,
    remembering: "dict[str, Remembering]",
    fresh: "list[str]",
) -> None:
    """Store the permanent answers that were drawn now: those of `fresh` questions, if they were answered."""
    for question, mechanism in remembering.items():
        if question in fresh and mechanism.answer is not None:
            row = (origin, terms.study.id, question, terms.noise[question], mechanism.answer)
            connection.execute("INSERT INTO permanent VALUES (?, ?, ?, ?, ?)", row)


def has_permanent(connection: sqlite3.Connection, study_id: str, question: str) -> bool:
    """Return True if a permanent answer to the question is stored, or was until it was withdrawn."""
    query = "SELECT 1 FROM permanent WHERE study = ? AND question = ? AND is_own(origin)"
    return connection.execute(query, (study_id, question)).fetchone() is not None


def wipe(connection: sqlite3.Connection, study_id: str) -> None:
    """Erase the permanent answers, but not the fact that they were given."""
    query = "UPDATE permanent SET answer = ? WHERE study = ? AND is_own(origin)"
    connection.execute(query, (WIPED, study_id))
