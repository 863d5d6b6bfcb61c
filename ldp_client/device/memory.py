"""Permanent answers: for repeated collection a question is randomised once, and every round repeats that.

A memoized mechanism splits its noise in two: `permanent(quantised, random) -> bytes`, drawn once
and kept in the ledger, and `instantaneous(permanent, random) -> payload`, drawn for each report
(Erlingsson, Pihur & Korolova 2014, RAPPOR).
"""

import hashlib
import sqlite3

from ldp_client.device.known_studies import OF_PUBLISHER
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms.memoized import Remembering
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.device.known_studies import Publisher
    from ldp_client.device.terms import Terms
    from ldp_client.documents.study import Study

WIPED = b""
# No id of a question has it.
ANOTHER = "#"


def recall(
    connection: sqlite3.Connection, terms: "Terms", publisher: "Publisher"
) -> "dict[str, Remembering]":
    """The memoized questions of a publisher's study with what the device remembers of them.

    A question that asks another thing than before, in other words or with other choices, is a new one, of
    which nothing is remembered. Raises AlreadyAnsweredError for one that was withdrawn, or whose noise is
    another.
    """
    rows = _rows(connection, terms.study, publisher)
    found = {}
    for question in terms.memoized:
        kept = {fingerprint: answer for key, fingerprint, answer in rows if _question_of(key) == question}
        if WIPED in kept.values():
            raise AlreadyAnsweredError(say("device.withdrawn", study=terms.study.id, question=question))
        words, older = words_of(terms.study, question), _without_words(terms.study, question)
        exact = _fingerprint(words, older)
        if exact not in kept and any([fingerprint.startswith(words) for fingerprint in kept]):
            raise AlreadyAnsweredError(say("device.other_noise", study=terms.study.id, question=question))
        found[question] = Remembering(terms.mechanisms[question], kept.get(exact, kept.get(older)))
    return found


def remember(
    connection: sqlite3.Connection,
    study: "Study",
    publisher: "Publisher",
    remembering: "dict[str, Remembering]",
) -> None:
    """Keep the permanent answers that were drawn."""
    for question, mechanism in remembering.items():
        if mechanism.answer is None:
            continue
        rows = [(key, fingerprint) for key, fingerprint, _ in _rows(connection, study, publisher)]
        words, older = words_of(study, question), _without_words(study, question)
        exact = _fingerprint(words, older)
        if (question, older) in rows:
            # An older ledger did not keep the words: they are those that it is asked in next.
            query = (
                "UPDATE permanent SET fingerprint = ? WHERE study = ? AND question = ? AND fingerprint = ?"
            )
            connection.execute(query, (exact, study.id, question, older))
        elif exact not in [fingerprint for _, fingerprint in rows]:
            # What was asked first has the question's id, what it came to ask later its words beside it.
            key = f"{question}{ANOTHER}{words}" if question in [key for key, _ in rows] else question
            row = (study.id, publisher.name, key, exact, mechanism.answer)
            connection.execute("INSERT INTO permanent VALUES (?, ?, ?, ?, ?)", row)


def has_permanent(
    connection: sqlite3.Connection, study: "Study", publisher: "Publisher", question: str
) -> bool:
    """Whether a permanent answer to the question is kept, or was until it was withdrawn."""
    return any([_question_of(row[0]) == question for row in _rows(connection, study, publisher)])


def keeps_words(
    connection: sqlite3.Connection, study: "Study", publisher: "Publisher", question: str
) -> bool:
    """Whether the permanent answer to what the question asks now is kept."""
    words, older = words_of(study, question), _without_words(study, question)
    rows = _rows(connection, study, publisher)
    return any([kept == older or kept.startswith(f"{words}:") for _, kept, _ in rows])


def wipe(connection: sqlite3.Connection, study_id: str, publisher: "Publisher") -> None:
    """Forget the permanent answers, though not that they were given."""
    query = f"UPDATE permanent SET answer = ? WHERE {OF_PUBLISHER}"
    connection.execute(query, (WIPED, *publisher.of(study_id)))


def _rows(
    connection: sqlite3.Connection, study: "Study", publisher: "Publisher"
) -> "list[tuple[str, str, bytes]]":
    query = f"SELECT question, fingerprint, answer FROM permanent WHERE {OF_PUBLISHER}"
    return connection.execute(query, publisher.of(study.id)).fetchall()


def _question_of(key: str) -> str:
    return key.partition(ANOTHER)[0]


def _fingerprint(words: str, older: str) -> str:
    return f"{words}:{older}"


def words_of(study: "Study", question: str) -> str:
    """What decides what a person is asked: all but noise and model; the title, where there are no words."""
    asked = {"text": study.title, **_document(study, question)}
    return _digest({key: asked[key] for key in asked if key not in ("mechanism", "model")})


def _without_words(study: "Study", question: str) -> str:
    """All but the words and the model: what older ledgers kept."""
    asked = _document(study, question)
    return _digest({key: asked[key] for key in asked if key not in ("text", "model")})


def _document(study: "Study", question: str) -> "dict[str, Any]":
    (document,) = [item for item in study.document["questions"] if item["id"] == question]
    return dict(document)


def _digest(fixed: "dict[str, Any]") -> str:
    return hashlib.sha256(canonical_json(fixed).encode("utf-8")).hexdigest()
