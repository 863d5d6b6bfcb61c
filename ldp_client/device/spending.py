"""What an answer costs, and whether it may be given: once, and within the budget."""

import sqlite3
from fractions import Fraction

from ldp_client.device.in_clear import kept_marks
from ldp_client.device.known_studies import OF_PUBLISHER, shown_publisher
from ldp_client.device.memory import has_permanent, keeps_words, take_over
from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError, RefusedError
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.known_studies import Publisher
    from ldp_client.device.policy import Limits
    from ldp_client.device.terms import Terms

ZERO = Fraction(0)
# Of any key: where a report is deleted, nothing says whom it told. None but the owner's keys stand there.
_OF_A_KEY = "study = ? AND NOT INSTR(publisher, '/')"


class Spend:
    """One question asked: its study, the study's version, and what the answer cost."""

    def __init__(self, study: str, question: str, version: int, epsilon: Fraction, delta: Fraction) -> None:
        self.study = study
        self.question = question
        self.version = version
        self.epsilon = epsilon
        self.delta = delta


def refuse_second_answers(connection: sqlite3.Connection, terms: "Terms", publisher: "Publisher") -> None:
    """Raises AlreadyAnsweredError where a question was asked before.

    A memoized one may be asked again by each higher version of its study, unless it was answered without
    a permanent answer: by a version in which it was not memoized, or in these words to somebody else. To
    another publisher of that study's id, nothing is answered again that was asked in the same words, but a
    permanent answer that was its own before.
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
                    # Where one is asked, the words of those that were not drawn stand there too.
                    not terms.study.ask_one
                    and epsilon != "0"
                    and asked.intersection(words.split())
                    and not keeps_words(connection, terms, publisher, question)
                )
            else:
                again = not words or bool(asked.intersection(words.split()))
                # What it was given before anybody else came draws nothing new.
                again = again and not keeps_words(connection, terms, publisher, question, wholly=True)
            if again:
                elsewhere = bool(whose) and not own
                key = "device.answered_to" if elsewhere else "device.answered"
                line = say(key, study=terms.study.id, question=question, whose=shown_publisher(whose))
                raise AlreadyAnsweredError(line, elsewhere, code="device.question_answered")


def refuse_others(
    connection: sqlite3.Connection, study_id: str, publisher: "Publisher", consents: bool = False
) -> None:
    """Raises RefusedError where only other publishers' studies of that id were answered.

    consents: whether a consent of the person's, which no answer followed, is enough.
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
    """Raises BudgetError where the questions that are not paid for yet (`fresh`) exceed a limit."""
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
    """Every question of the study counts as asked; what is fresh and was answered is charged.

    Once more where a memoized question asks another thing than before.
    """
    study = terms.study
    for question in [one.id for one in study.questions]:
        kept = _taken_over(connection, terms, publisher, question)
        epsilon = sum((Fraction(row[1]) for row in kept), ZERO)
        delta = sum((Fraction(row[2]) for row in kept), ZERO)
        if question in fresh and question in answered:
            # Each version may draw another memoized one, and a study states their sum.
            drawn_once = [name for name in fresh if name not in terms.memoized]
            paid = terms.total(drawn_once if terms.asks_one and question in drawn_once else [question])
            epsilon, delta = epsilon + paid.epsilon, delta + paid.delta
        marks = kept_marks(terms, question, [row[0] for row in kept])
        asked = " ".join(sorted({*terms.told[question], *marks}))
        row = (study.id, publisher.name, question, study.version, asked, str(epsilon), str(delta))
        connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _taken_over(
    connection: sqlite3.Connection, terms: "Terms", publisher: "Publisher", question: str
) -> "list[tuple[str, str, str]]":
    """Words, epsilon and delta of the publisher's rows of a question, those of its other keys taken away.

    What is asked again in the same words is kept under who asks it now: the key before may be retired.
    What is asked in other words stays where it was: where the new key was stolen, the one before goes on.
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
