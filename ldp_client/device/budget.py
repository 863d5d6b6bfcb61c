"""What answers cost: the budget, the permanent answers that repeat without new cost, and what was disclosed.

A question is asked once by a collector's study, within the owner's budgets. In repeated collection a memoized
question is randomised once, and every round reuses that: `permanent(quantised, random) -> bytes` is drawn
once and kept in the ledger, `instantaneous(permanent, random) -> payload` for each report (Erlingsson, Pihur
& Korolova 2014, RAPPOR). A question is known by its id: what it asks is the collector's to keep.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_client.device.outbox import digest_of
from ldp_client.device.policy import WIPED, Policy
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError, RefusedError
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Privacy, mechanisms_of

if TYPE_CHECKING:
    import sqlite3
    from datetime import date

    from ldp_client.mechanisms.memoized import Remembering

# A device west of the study's author reaches the opening day later; an early device does no harm.
EARLY_DAYS = 1
ZERO = Fraction(0)


class Terms:
    """A study as a device sees it.

    mechanisms, costs: by question id. memoized: the questions whose permanent answer is kept, so each version
    of the study may ask them again. noise: by question, a digest of its mechanism and its number of choices,
    which decide a permanent answer's law; empty if no question is memoized.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.mechanisms = mechanisms_of(study)
        self.costs = {}
        for question in study.questions:
            # The stated epsilon and delta, or the values from the mechanism's integers if larger.
            true, stated = self.mechanisms[question.id].privacy, question.mechanism
            cost = Privacy(max(true.epsilon, stated.epsilon), max(true.delta, stated.delta))
            self.costs[question.id] = cost
        self.memoized = {name for name in self.mechanisms if hasattr(self.mechanisms[name], "permanent")}
        self.noise = {}
        for document in study.document["questions"] if self.memoized else ():
            choices = document.get("choices", ())
            count = choices if isinstance(choices, dict) else len(choices)
            law = canonical_json({"mechanism": document["mechanism"], "choices": count})
            self.noise[document["id"]] = digest_of(law)

    def total(self, questions: list[str]) -> Privacy:
        """Return the cost of answering these questions: the sum, or the largest if only one is asked."""
        costs = [self.costs[question] for question in questions]
        join = max if self.study.sample_one_question and costs else sum
        epsilon, delta = join([cost.epsilon for cost in costs]), join([cost.delta for cost in costs])
        return Privacy(Fraction(epsilon), Fraction(delta))

    def refuse_outside_days(self, today: date) -> None:
        """Raise RefusedError before the study opens and after it closes."""
        from datetime import date

        study = self.study
        # Days are counted as numbers: a clock may show the last day that `date` has.
        if study.opens and today.toordinal() + EARLY_DAYS < date.fromisoformat(study.opens).toordinal():
            raise RefusedError(
                f"study {study.id} opens on {study.opens}; this device's clock says {today}",
                code="device.opens",
            )
        if study.closes and today > date.fromisoformat(study.closes):
            raise RefusedError(
                f"study {study.id} closed on {study.closes}; this device's clock says {today}",
                code="device.closed",
            )


def recall(connection: sqlite3.Connection, terms: Terms) -> dict[str, Remembering]:
    """Return the memoized questions of a study with their kept permanent answers.

    Raises AlreadyAnsweredError for a question that was withdrawn or whose noise changed.
    """
    if not terms.memoized:
        return {}
    from ldp_client.mechanisms.memoized import Remembering

    query = "SELECT noise, answer FROM permanent WHERE study = ? AND question = ? AND is_own(origin)"
    remembering = {}
    for question in terms.memoized:
        kept = connection.execute(query, (terms.study.id, question)).fetchall()
        if WIPED in [answer for _, answer in kept]:
            raise AlreadyAnsweredError(
                f"{terms.study.id}: {question}: was withdrawn from this device", code="device.withdrawn"
            )
        if kept and terms.noise[question] != kept[0][0]:
            raise AlreadyAnsweredError(
                f"{terms.study.id}: {question}: this device has answered it with other noise",
                code="device.other_noise",
            )
        remembering[question] = Remembering(terms.mechanisms[question], kept[0][1] if kept else None)
    return remembering


def remember(
    connection: sqlite3.Connection,
    terms: Terms,
    origin: str,
    remembering: dict[str, Remembering],
    fresh: list[str],
) -> None:
    """Store the permanent answers that were drawn now, for the `fresh` questions that were answered."""
    for question, mechanism in remembering.items():
        if question in fresh and mechanism.answer is not None:
            row = (origin, terms.study.id, question, terms.noise[question], mechanism.answer)
            connection.execute("INSERT INTO permanent VALUES (?, ?, ?, ?, ?)", row)


def refuse_second_answers(connection: sqlite3.Connection, terms: Terms) -> None:
    """Raise AlreadyAnsweredError if this collector asked a question of the study before.

    Each higher version of a study may ask a memoized question again, unless the question was answered
    without a permanent answer, in a version that did not memoize it.
    """
    spent = "SELECT version, epsilon FROM spent WHERE study = ? AND question = ? AND is_own(origin)"
    # Also the permanent answers that were withdrawn.
    kept = "SELECT 1 FROM permanent WHERE study = ? AND question = ? AND is_own(origin)"
    study = terms.study
    for question in terms.mechanisms:
        asked = (study.id, question)
        for version, epsilon in connection.execute(spent, asked).fetchall():
            is_paid_once = epsilon != "0" and not connection.execute(kept, asked).fetchone()
            if question not in terms.memoized or study.version <= version or is_paid_once:
                raise AlreadyAnsweredError(
                    f"{study.id}: {question}: this device has answered it before", code="device.answered"
                )


def refuse_overspending(
    connection: sqlite3.Connection, terms: Terms, fresh: list[str], policy: Policy
) -> None:
    """Raise BudgetError if the questions that are not paid for yet (`fresh`) exceed a limit."""
    query = "SELECT study, is_own(origin), epsilon, delta FROM spent"
    rows = connection.execute(query).fetchall()
    here = [row for row in rows if row[1]]
    of_study = [row for row in here if row[0] == terms.study.id]
    asked, budget = terms.total(fresh), "this device's budget"
    limits = (
        ("epsilon", asked.epsilon, rows, policy.epsilon, budget),
        ("epsilon", asked.epsilon, here, policy.epsilon_per_collector, "the limit for one collector"),
        ("epsilon", asked.epsilon, of_study, policy.epsilon_per_study, "the limit for one study"),
        ("delta", asked.delta, rows, policy.delta, budget),
    )
    for what, cost, spends, most, limit in limits:
        column = 2 if what == "epsilon" else 3
        left = None if most is None else most - sum(Fraction(row[column]) for row in spends)
        if left is not None and cost > left:
            raise BudgetError(
                f"answering costs {what} {float(cost):g}, but {float(max(left, ZERO)):g} of {limit} is left",
                code="device.costs",
            )


def write_spends(
    connection: sqlite3.Connection, terms: Terms, origin: str, fresh: list[str], answered: set[str]
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
            is_drawn = study.sample_one_question and question in drawn_once
            paid = terms.total(drawn_once if is_drawn else [question])
            epsilon, delta = epsilon + paid.epsilon, delta + paid.delta
        row = (origin, study.id, question, study.version, str(epsilon), str(delta))
        connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?)", row)
