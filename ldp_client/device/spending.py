"""What an answer costs, and whether it may be given: once, and within the budget."""

import sqlite3
from fractions import Fraction

from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.policy import Limits
    from ldp_client.device.terms import Terms

ZERO = Fraction(0)


class Spend:
    """One question asked: its study, the study's version, and what the answer cost."""

    def __init__(self, study: str, question: str, version: int, epsilon: Fraction, delta: Fraction) -> None:
        self.study = study
        self.question = question
        self.version = version
        self.epsilon = epsilon
        self.delta = delta


def refuse_second_answers(connection: sqlite3.Connection, terms: "Terms") -> None:
    """Raises AlreadyAnsweredError where a question was asked before.

    A memoized one may be asked again by each higher version of its study, unless it was answered without
    a permanent answer: by a version in which it was not memoized.
    """
    query = (
        "SELECT question, version, epsilon <> '0' AND answer IS NULL "
        "FROM spent LEFT JOIN permanent USING (study, question) WHERE study = ?"
    )
    before = {row[0]: row[1:] for row in connection.execute(query, (terms.study.id,)).fetchall()}
    for question in terms.mechanisms:
        version, answered_for_good = before.get(question, (0, False))
        may_repeat = question in terms.memoized and not answered_for_good
        if question in before and not (may_repeat and terms.study.version > version):
            raise AlreadyAnsweredError(f"{terms.study.id}: {question}: this device has answered it before")


def refuse_overspending(
    connection: sqlite3.Connection, terms: "Terms", fresh: "list[str]", limits: "Limits"
) -> None:
    """Raises BudgetError where the questions that are not paid for yet (`fresh`) exceed a limit."""
    rows = connection.execute("SELECT study, epsilon, delta FROM spent").fetchall()
    asked = terms.total(fresh)
    life = sum((Fraction(row[1]) for row in rows), ZERO)
    study = sum((Fraction(row[1]) for row in rows if row[0] == terms.study.id), ZERO)
    delta = sum((Fraction(row[2]) for row in rows), ZERO)
    _refuse_above("epsilon", asked.epsilon, limits.epsilon - life, "this device's budget")
    _refuse_above("epsilon", asked.epsilon, limits.epsilon_per_study - study, "what one study may cost")
    _refuse_above("delta", asked.delta, limits.delta - delta, "this device's budget")


def _refuse_above(what: str, asked: Fraction, left: Fraction, limit: str) -> None:
    if asked > left:
        raise BudgetError(
            f"answering costs {what} {float(asked):g}, but {float(max(left, ZERO)):g} of {limit} is left"
        )


def write_spends(
    connection: sqlite3.Connection, terms: "Terms", fresh: "list[str]", answered: "set[str]"
) -> None:
    """Every question of the study counts as asked; what is fresh and was answered is charged.

    Once more where a memoized question asks another thing than before.
    """
    study = terms.study
    for question in terms.mechanisms:
        row = (study.id, question, study.version)
        connection.execute("INSERT OR IGNORE INTO spent VALUES (?, ?, ?, '0', '0')", row)
        here = "WHERE study = ? AND question = ?"
        connection.execute(f"UPDATE spent SET version = ? {here}", (study.version, study.id, question))
        if question in fresh and question in answered:
            query = f"SELECT epsilon, delta FROM spent {here}"
            epsilon, delta = connection.execute(query, (study.id, question)).fetchone()
            paid = terms.total(fresh if terms.asks_one else [question])
            values = (str(Fraction(epsilon) + paid.epsilon), str(Fraction(delta) + paid.delta))
            connection.execute(
                f"UPDATE spent SET epsilon = ?, delta = ? {here}", (*values, study.id, question)
            )
