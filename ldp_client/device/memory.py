"""Permanent answers: in repeated collection a question is randomised once, and every round reuses that.

A memoized mechanism splits its noise in two: `permanent(quantised, random) -> bytes`, drawn once and kept in
the ledger, and `instantaneous(permanent, random) -> payload`, drawn for each report (Erlingsson, Pihur &
Korolova 2014, RAPPOR).
"""

import sqlite3

from ldp_client.device.fingerprint import is_same, key_of, place_of
from ldp_client.device.trust import OF_PUBLISHER
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms.memoized import Remembering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.pricing import Terms
    from ldp_client.device.trust import Publisher
    from ldp_client.documents.study import Study

WIPED = b""
# Never part of a question's id.
ANOTHER = "#"


def recall(
    connection: sqlite3.Connection, terms: "Terms", publisher: "Publisher"
) -> "dict[str, Remembering]":
    """Return the memoized questions of a publisher's study with their kept permanent answers.

    A question with other words or choices than before is new, so nothing is remembered of it. Added languages
    do not make it new. Raises AlreadyAnsweredError for a question that was withdrawn or whose noise changed.
    """
    rows = _rows(connection, terms.study, publisher)
    found = {}
    for question in terms.memoized:
        kept = [
            (_told(fingerprint), answer) for key, fingerprint, answer in rows if _question_of(key) == question
        ]
        if WIPED in [answer for _, answer in kept]:
            raise AlreadyAnsweredError.say("device.withdrawn", study=terms.study.id, question=question)
        now = terms.told[question]
        same = [(told, answer) for told, answer in kept if is_same(told, now)]
        answers = [
            answer for told, answer in same if told.items() <= now.items() or now.items() <= told.items()
        ]
        if same and not answers:
            raise AlreadyAnsweredError.say("device.other_noise", study=terms.study.id, question=question)
        found[question] = Remembering(terms.mechanisms[question], answers[0] if answers else None)
    return found


def remember(
    connection: sqlite3.Connection,
    terms: "Terms",
    publisher: "Publisher",
    remembering: "dict[str, Remembering]",
) -> None:
    """Store the permanent answers that were drawn."""
    study = terms.study
    for question, mechanism in remembering.items():
        if mechanism.answer is None:
            continue
        rows = [
            (key, kept)
            for key, kept, _ in _rows(connection, study, publisher)
            if _question_of(key) == question
        ]
        now = terms.told[question]
        exact = " ".join([f"{words}:{noise}" for words, noise in sorted(now.items())])
        told = [_told(kept) for _, kept in rows]
        place = place_of([set(one) for one in told], set(now))
        if place is not None and place < len(rows):
            query = "UPDATE permanent SET fingerprint = ? WHERE study = ? AND fingerprint = ?"
            connection.execute(query, (exact, study.id, rows[place][1]))
        elif place is not None:
            # The words asked first use the question's id alone as the key. Later words are appended to it.
            beside = key_of(now, not rows)
            key = f"{question}{ANOTHER}{beside}" if beside else question
            row = (study.id, publisher.name, key, exact, mechanism.answer)
            connection.execute("INSERT INTO permanent VALUES (?, ?, ?, ?, ?)", row)


def has_permanent(
    connection: sqlite3.Connection, study: "Study", publisher: "Publisher", question: str
) -> bool:
    """Return True if a permanent answer to the question is stored, or was until it was withdrawn."""
    return any([_question_of(row[0]) == question for row in _rows(connection, study, publisher)])


def keeps_words(
    connection: sqlite3.Connection,
    terms: "Terms",
    publisher: "Publisher",
    question: str,
    wholly: bool = False,
) -> bool:
    """Return True if a permanent answer covers the question as asked now in any language (wholly: in all)."""
    now = terms.told[question]
    kept = [_told(fingerprint) for _, fingerprint, _ in _rows(connection, terms.study, publisher)]
    return any([is_same(told, now) if wholly else told.keys() & now for told in kept])


def take_over(
    connection: sqlite3.Connection,
    terms: "Terms",
    publisher: "Publisher",
    whose: str,
    question: str,
    words: str,
) -> bool:
    """Move another key's permanent answers to the publisher and return True, if the question is the same.

    words: what the other key asked so far. They are used if it has no permanent answer, as when a study draws
    one question.
    """
    its = (terms.study.id, whose, question + ANOTHER)
    which = f"study = ? AND publisher = ? AND INSTR(question || '{ANOTHER}', ?) = 1"
    rows = connection.execute(f"SELECT fingerprint FROM permanent WHERE {which}", its).fetchall()
    asked = [list(_told(row[0])) for row in rows] or [[one for one in words.split() if one.isalnum()]]
    if not any([is_same(one, terms.told[question]) for one in asked]):
        return False
    # Keep both answers if the publisher's own already uses the question's id.
    for key in ("question", f"question || '{ANOTHER}' || publisher"):
        query = f"UPDATE OR IGNORE permanent SET publisher = ?, question = {key} WHERE {which}"
        connection.execute(query, (publisher.name, *its))
    return True


def wipe(connection: sqlite3.Connection, study_id: str, publisher: "Publisher") -> None:
    """Erase the permanent answers, but not the fact that they were given."""
    query = f"UPDATE permanent SET answer = ? WHERE {OF_PUBLISHER}"
    connection.execute(query, (WIPED, *publisher.of(study_id)))


def _rows(
    connection: sqlite3.Connection, study: "Study", publisher: "Publisher"
) -> "list[tuple[str, str, bytes]]":
    query = f"SELECT question, fingerprint, answer FROM permanent WHERE {OF_PUBLISHER} ORDER BY question"
    return connection.execute(query, publisher.of(study.id)).fetchall()


def _question_of(key: str) -> str:
    return key.partition(ANOTHER)[0]


def _told(fingerprint: str) -> "dict[str, str]":
    """Return the words and noise that the answer was given to, as `told_in` does."""
    both = [one.rpartition(":") for one in fingerprint.split()]
    return {words: noise for words, _, noise in both}
