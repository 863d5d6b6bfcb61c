"""Permanent answers: for repeated collection a question is randomised once, and every round repeats that.

A memoized mechanism splits its noise in two: `permanent(quantised, random) -> bytes`, drawn once
and kept in the ledger, and `instantaneous(permanent, random) -> payload`, drawn for each report
(Erlingsson, Pihur & Korolova 2014, RAPPOR).
"""

import sqlite3

from ldp_client.device.asking import is_same, key_of, place_of
from ldp_client.device.known_studies import OF_PUBLISHER
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms.memoized import Remembering

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    which nothing is remembered; one that is said in more languages is not. Raises AlreadyAnsweredError for
    one that was withdrawn, or whose noise is another.
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
    """Keep the permanent answers that were drawn."""
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
            # What was asked first has the question's id, what it came to ask later its words beside it.
            beside = key_of(now, not rows)
            key = f"{question}{ANOTHER}{beside}" if beside else question
            row = (study.id, publisher.name, key, exact, mechanism.answer)
            connection.execute("INSERT INTO permanent VALUES (?, ?, ?, ?, ?)", row)


def has_permanent(
    connection: sqlite3.Connection, study: "Study", publisher: "Publisher", question: str
) -> bool:
    """Whether a permanent answer to the question is kept, or was until it was withdrawn."""
    return any([_question_of(row[0]) == question for row in _rows(connection, study, publisher)])


def keeps_words(
    connection: sqlite3.Connection,
    terms: "Terms",
    publisher: "Publisher",
    question: str,
    wholly: bool = False,
) -> bool:
    """Whether a permanent answer is kept to what the question asks now in any language; wholly: in all."""
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
    """Whether a question asks what it did for another key, whose permanent answers are the publisher's then.

    words: what the other key asked so far, where there is no permanent answer: one question was drawn.
    """
    its = (terms.study.id, whose, question + ANOTHER)
    which = f"study = ? AND publisher = ? AND INSTR(question || '{ANOTHER}', ?) = 1"
    rows = connection.execute(f"SELECT fingerprint FROM permanent WHERE {which}", its).fetchall()
    asked = [list(_told(row[0])) for row in rows] or [[one for one in words.split() if one.isalnum()]]
    if not any([is_same(one, terms.told[question]) for one in asked]):
        return False
    # Beside an answer of the publisher's own where that has the question's id.
    for key in ("question", f"question || '{ANOTHER}' || publisher"):
        query = f"UPDATE OR IGNORE permanent SET publisher = ?, question = {key} WHERE {which}"
        connection.execute(query, (publisher.name, *its))
    return True


def wipe(connection: sqlite3.Connection, study_id: str, publisher: "Publisher") -> None:
    """Forget the permanent answers, though not that they were given."""
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
    """What the answer was given to, as `told_in` has it."""
    both = [one.rpartition(":") for one in fingerprint.split()]
    return {words: noise for words, _, noise in both}
