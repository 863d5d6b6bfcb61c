"""A device: answers a study once, remembers that it did, and sends the report."""

import os
from datetime import date, timedelta
from fractions import Fraction

from ldp_client.answering import perturb_answers
from ldp_client.ledger import Ledger, Queued, Spend
from ldp_client.mechanisms import Mechanism, mechanism_for
from ldp_client.upload import put_with_retries
from schemas.errors import InputError, RefusedError
from schemas.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from schemas.study import Study

# A device west of the study's author reaches the opening day later; one that is early does no harm.
EARLY_DAYS = timedelta(days=1)

_mechanisms: "dict[str, dict[str, Mechanism]]" = {}


class Flushed:
    """What `flush` did: how many reports were sent, refused for good (with reasons), and still wait."""

    def __init__(self) -> None:
        self.sent = 0
        self.waiting = 0
        self.refused: "list[str]" = []
        self.reason = ""


class Device:
    """One person's device.

    folder: where ledger and outbox live. max_epsilon: the privacy budget, a decimal in a string,
    for the device's life, over all studies. collector: base URL of the collector, needed to flush.
    Raises LedgerError if the ledger cannot be used, InputError for a bad max_epsilon.
    """

    def __init__(
        self, folder: "str | os.PathLike[str]", max_epsilon: str, collector: "Optional[str]" = None
    ) -> None:
        self.max_epsilon = _budget(max_epsilon)
        self.collector = collector
        self.ledger = Ledger(os.fspath(folder))

    def answer(self, study: "Study", answers: "dict[str, Any]") -> str:
        """Perturb every answer once, write spend and report durably, queue the report; returns its id.

        answers: {question id: answer}, one for each question of the study. Raises AnswerError
        before any noise is drawn, AlreadyAnsweredError, BudgetError, or RefusedError outside the
        study's days. The true answers are not kept.
        """
        _refuse_outside_window(study, date.today())
        report = perturb_answers(study, _mechanisms_of(study), answers)
        spends = [
            Spend(study.id, question.id, study.version, _cost(question)) for question in study.questions
        ]
        self.ledger.record(spends, Queued(report.id, study.id, report.to_json()), self.max_epsilon)
        return report.id

    def flush(self, attempts: int = 5) -> Flushed:
        """Send what is queued, byte for byte as it was written; what cannot be sent now stays queued."""
        if self.collector is None:
            raise InputError("the device has no collector: Device(folder, max_epsilon, collector=URL)")
        result = Flushed()
        for queued in self.ledger.queued():
            url = f"{self.collector.rstrip('/')}/v1/studies/{queued.study}/reports/{queued.report_id}"
            outcome = put_with_retries(url, queued.body, attempts)
            result.reason = outcome.reason or result.reason
            if outcome.state == "waiting":
                result.waiting += 1
                continue
            if outcome.state == "sent":
                result.sent += 1
            else:
                result.refused.append(f"report {queued.report_id}: {outcome.reason}")
            self.ledger.remove(queued.report_id)
        return result

    @property
    def epsilon_left(self) -> Fraction:
        """What is left of the budget, exactly."""
        return self.max_epsilon - sum((spend.epsilon for spend in self.ledger.spent()), Fraction(0))


def _cost(question: "Any") -> Fraction:
    """The stated epsilon: never below what the mechanism really spends."""
    stated: Rational = question.mechanism.epsilon
    return Fraction(stated.numerator, stated.denominator)


def _budget(text: str) -> Fraction:
    try:
        budget = Rational.parse(text)
    except ValueError:
        raise InputError('max_epsilon must be a decimal in a string, such as "4"') from None
    if not Rational(0) < budget:
        raise InputError("max_epsilon must be above 0")
    return Fraction(budget.numerator, budget.denominator)


def _mechanisms_of(study: "Study") -> "dict[str, Mechanism]":
    """The study's mechanisms, kept while the process lives: calibration takes milliseconds."""
    if study.digest not in _mechanisms:
        _mechanisms[study.digest] = {question.id: mechanism_for(question) for question in study.questions}
    return _mechanisms[study.digest]


def _refuse_outside_window(study: "Study", today: date) -> None:
    if study.opens and today + EARLY_DAYS < date.fromisoformat(study.opens):
        raise RefusedError(f"study {study.id} opens on {study.opens}")
    if study.closes and today > date.fromisoformat(study.closes):
        raise RefusedError(f"study {study.id} closed on {study.closes}")
