"""The cost of an answer, and whether it is allowed: once, and within the budget."""

import sqlite3
from fractions import Fraction

from ldp_client.device.memory import has_permanent
from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.policy import Limits
    from ldp_client.device.pricing import Terms

ZERO = Fraction(0)


class Spend:
    """One question that was asked: its study, the study's version, and the cost of the answer."""

    def __init__(self, study: str, question: str, version: int, epsilon: Fraction, delta: Fraction) -> None:
        self.study = study
        self.question = question
        self.version = version
        self.epsilon = epsilon
        self.delta = delta


def refuse_second_answers(connection: sqlite3.Connection, terms: "Terms") -> None:
    """Raise AlreadyAnsweredError if this collector asked a question of the study before.

    Each higher version of a study may ask a memoized question again, unless the question was answered
    without a permanent answer, in a version that did not memoize it.
    """
    query = "SELECT version, epsilon FROM spent WHERE study = ? AND question = ? AND is_own(origin)"
    study = terms.study
    for question in terms.mechanisms:
        for version, epsilon in connection.execute(query, (study.id, question)).fetchall():
            is_paid_once = epsilon != "0" and not has_permanent(connection, study.id, question)
            if question not in terms.memoized or study.version <= version or is_paid_once:
                raise AlreadyAnsweredError.say("device.answered", study=study.id, question=question)


def refuse_overspending(
    connection: sqlite3.Connection, terms: "Terms", fresh: "list[str]", limits: "Limits"
) -> None:
    """Raise BudgetError if the questions that are not paid for yet (`fresh`) exceed a limit."""
    query = "SELECT study, is_own(origin), epsilon, delta FROM spent"
    rows = [(*row[:2], Fraction(row[2]), Fraction(row[3])) for row in connection.execute(query).fetchall()]
    asked = terms.total(fresh)
    here = [row for row in rows if row[1]]
    spent = {
        "device.budget": (sum((row[2] for row in rows), ZERO), limits.epsilon),
        "device.budget_of_collector": (sum((row[2] for row in here), ZERO), limits.epsilon_per_collector),
        "device.budget_of_study": (
            sum((row[2] for row in here if row[0] == terms.study.id), ZERO),
            limits.epsilon_per_study,
        ),
    }
    for limit, (epsilon, most) in spent.items():
        if most is not None:
            _refuse_above("epsilon", asked.epsilon, most - epsilon, say(limit))
    delta = sum((row[3] for row in rows), ZERO)
    _refuse_above("delta", asked.delta, limits.delta - delta, say("device.budget"))


def _refuse_above(what: str, asked: Fraction, left: Fraction, limit: str) -> None:
    if asked > left:
        raise BudgetError.say(
            "device.costs", what=what, cost=float(asked), left=float(max(left, ZERO)), limit=limit
        )


def write_spends(
    connection: sqlite3.Connection, terms: "Terms", origin: str, fresh: "list[str]", answered: "set[str]"
) -> None:
    """Record every question of the study as asked, and charge each fresh question that was answered."""
    study = terms.study
    query = "SELECT epsilon, delta FROM spent WHERE origin = ? AND study = ? AND question = ?"
    for question in terms.mechanisms:
        kept = connection.execute(query, (origin, study.id, question)).fetchone() or ("0", "0")
        epsilon, delta = Fraction(kept[0]), Fraction(kept[1])
        if question in fresh and question in answered:
            # Each version may draw another memoized question, and a study states the sum of their costs.
            drawn_once = [name for name in fresh if name not in terms.memoized]
            paid = terms.total(drawn_once if terms.samples_one and question in drawn_once else [question])
            epsilon, delta = epsilon + paid.epsilon, delta + paid.delta
        row = (origin, study.id, question, study.version, str(epsilon), str(delta))
        connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?)", row)
