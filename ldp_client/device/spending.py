"""The cost of an answer, and whether it is allowed: once, and within the budget."""

import sqlite3
from fractions import Fraction

from ldp_client.device.memory import has_permanent, keeps_words, take_over
from ldp_client.device.public_fields import kept_marks
from ldp_client.device.trust import OF_PUBLISHER, shown_publisher
from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError, RefusedError
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.policy import Limits
    from ldp_client.device.pricing import Terms
    from ldp_client.device.trust import Publisher

ZERO = Fraction(0)
# Rows of any key: after a report is deleted, no row tells which publisher had its answer. Only the owner's
# keys occur here.
_OF_A_KEY = "study = ? AND NOT INSTR(publisher, '/')"


class Spend:
    """One question that was asked: its study, the study's version, and the cost of the answer."""

    def __init__(self, study: str, question: str, version: int, epsilon: Fraction, delta: Fraction) -> None:
        self.study = study
        self.question = question
        self.version = version
        self.epsilon = epsilon
        self.delta = delta


def refuse_second_answers(connection: sqlite3.Connection, terms: "Terms", publisher: "Publisher") -> None:
    """Raise AlreadyAnsweredError if a question was asked before.

    Each higher version of a study may ask a memoized question again. It may not if the question was answered
    without a permanent answer: in a version that did not memoize it, or in these words to another publisher.
    A question that one publisher asked is not answered to another publisher of that study's id in the same
    words. The exception is a permanent answer that this publisher had before.
    """
    query = "SELECT publisher, version, words, epsilon FROM spent WHERE study = ? AND question = ?"
    for question in terms.mechanisms:
        asked = set(terms.told[question])
        for whose, version, words, epsilon in connection.execute(
            query, (terms.study.id, question)
        ).fetchall():
            own = publisher.is_own(whose)
            if own:
                paid_once = epsilon != "0" and not has_permanent(connection, terms.study, publisher, question)
                again = question not in terms.memoized or terms.study.version <= version or paid_once
                again = again or bool(
                    # A study that asks one question also stores the words of questions that were not drawn.
                    not terms.study.sample_one_question
                    and epsilon != "0"
                    and asked.intersection(words.split())
                    and not keeps_words(connection, terms, publisher, question)
                )
            else:
                again = not words or bool(asked.intersection(words.split()))
                # A permanent answer that this publisher had first draws nothing new.
                again = again and not keeps_words(connection, terms, publisher, question, wholly=True)
            if again:
                elsewhere = bool(whose) and not own
                key = "device.answered_to" if elsewhere else "device.answered"
                line = say(key, study=terms.study.id, question=question, whose=shown_publisher(whose))
                raise AlreadyAnsweredError(line, elsewhere, code="device.question_answered")


def refuse_others(
    connection: sqlite3.Connection, study_id: str, publisher: "Publisher", consents: bool = False
) -> None:
    """Raise RefusedError if only other publishers' studies of that id were answered.

    consents: accept the person's consent even if no answer followed.
    """
    query = "SELECT DISTINCT publisher FROM {} WHERE study = ?"
    answered = [row[0] for row in connection.execute(query.format("spent"), (study_id,)).fetchall()]
    agreed = connection.execute(query.format("consents"), (study_id,)).fetchall() if consents else []
    known = [*answered, *[row[0] for row in agreed]]
    if answered and not any([publisher.is_own(name) for name in known]):
        whose = say("or").join([shown_publisher(name) for name in answered])
        raise RefusedError.say("device.of_others", study=study_id, whose=whose)


def refuse_overspending(
    connection: sqlite3.Connection,
    terms: "Terms",
    publisher: "Publisher",
    fresh: "list[str]",
    limits: "Limits",
) -> None:
    """Raise BudgetError if the questions that are not paid for yet (`fresh`) exceed a limit."""
    rows = connection.execute("SELECT study, epsilon, delta FROM spent").fetchall()
    query = f"SELECT epsilon FROM spent WHERE {OF_PUBLISHER} OR {_OF_A_KEY}"
    here = connection.execute(query, (*publisher.of(terms.study.id), terms.study.id))
    asked = terms.total(fresh)
    life = sum((Fraction(row[1]) for row in rows), ZERO)
    study = sum((Fraction(row[0]) for row in here.fetchall()), ZERO)
    delta = sum((Fraction(row[2]) for row in rows), ZERO)
    _refuse_above("epsilon", asked.epsilon, limits.epsilon - life, say("device.budget"))
    _refuse_above("epsilon", asked.epsilon, limits.epsilon_per_study - study, say("device.budget_of_study"))
    _refuse_above("delta", asked.delta, limits.delta - delta, say("device.budget"))


def _refuse_above(what: str, asked: Fraction, left: Fraction, limit: str) -> None:
    if asked > left:
        raise BudgetError.say(
            "device.costs", what=what, cost=float(asked), left=float(max(left, ZERO)), limit=limit
        )


def write_spends(
    connection: sqlite3.Connection,
    terms: "Terms",
    publisher: "Publisher",
    fresh: "list[str]",
    answered: "set[str]",
) -> None:
    """Record every question of the study as asked, and charge each fresh question that was answered.

    A memoized question is charged again if it asks something else than before.
    """
    study = terms.study
    for question in [one.id for one in study.questions]:
        kept = _taken_over(connection, terms, publisher, question)
        epsilon = sum((Fraction(row[1]) for row in kept), ZERO)
        delta = sum((Fraction(row[2]) for row in kept), ZERO)
        if question in fresh and question in answered:
            # Each version may draw another memoized question, and a study states the sum of their costs.
            drawn_once = [name for name in fresh if name not in terms.memoized]
            paid = terms.total(drawn_once if terms.samples_one and question in drawn_once else [question])
            epsilon, delta = epsilon + paid.epsilon, delta + paid.delta
        marks = kept_marks(terms, question, [row[0] for row in kept])
        asked = " ".join(sorted({*terms.told[question], *marks}))
        row = (study.id, publisher.name, question, study.version, asked, str(epsilon), str(delta))
        connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _taken_over(
    connection: sqlite3.Connection, terms: "Terms", publisher: "Publisher", question: str
) -> "list[tuple[str, str, str]]":
    """Return words, epsilon and delta of the publisher's rows of a question, and delete its other keys' rows.

    A question asked again in the same words moves to the key that asks it now, as the earlier key may be
    retired. A question asked in other words keeps its row: if the new key was stolen, the earlier key goes
    on.
    """
    query = "SELECT publisher, words, epsilon, delta FROM spent WHERE study = ? AND question = ?"
    kept = []
    for whose, *row in connection.execute(query, (terms.study.id, question)).fetchall():
        if whose == publisher.name:
            kept.append(row)
        elif (
            whose
            and whose in publisher.names
            and take_over(connection, terms, publisher, whose, question, row[0])
        ):
            kept.append(row)
            its = (terms.study.id, whose, question)
            connection.execute("DELETE FROM spent WHERE study = ? AND publisher = ? AND question = ?", its)
    return kept
