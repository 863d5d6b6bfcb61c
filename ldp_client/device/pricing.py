"""A study as a device sees it: its mechanisms, their true cost, and its days."""

from datetime import date
from fractions import Fraction
from hashlib import sha256

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import RefusedError, StudyError
from ldp_client.mechanisms import MECHANISMS, Mechanism, mechanisms_of
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ldp_client.documents.rational import Rational
    from ldp_client.documents.study import Question, Study

    Document = TypeVar("Document")

# A device west of the study's author reaches the opening day later; an early device does no harm.
EARLY_DAYS = 1

_terms: "dict[str, Terms]" = {}


class Cost:
    """Privacy loss: epsilon in nats, delta a probability, both exact."""

    def __init__(self, epsilon: Fraction, delta: Fraction) -> None:
        self.epsilon = epsilon
        self.delta = delta


class Terms:
    """A study as a device sees it.

    mechanisms, costs: by question id. memoized: the questions whose permanent answer is kept, so each version
    of the study may ask them again. noise: by memoized question, a digest of its mechanism and the number of
    its choices. Raises RefusedError for a mechanism that this version of ldpkit lacks.
    """

    def __init__(self, study: "Study") -> None:
        self.study = study
        for question in study.questions:
            if question.mechanism.name not in MECHANISMS:
                raise _unknown(study.id, say("device.the_mechanism", mechanism=question.mechanism.name))
        self.mechanisms = mechanisms_of(study)
        self.costs = {item.id: _cost(item, self.mechanisms[item.id]) for item in study.questions}
        self.memoized = {name for name in self.mechanisms if hasattr(self.mechanisms[name], "permanent")}
        self.samples_one: bool = study.sample_one_question
        documents = {question["id"]: question for question in study.document["questions"]}
        self.noise = {name: _noise_of(documents[name]) for name in self.memoized}

    def total(self, questions: "list[str]") -> Cost:
        """Return the cost of answering these questions: the sum, or the largest if only one is asked."""
        costs = [self.costs[question] for question in questions]
        join = max if self.samples_one and costs else sum
        return Cost(
            Fraction(join([cost.epsilon for cost in costs])), Fraction(join([cost.delta for cost in costs]))
        )

    def refuse_outside_days(self, today: date) -> None:
        """Raise RefusedError before the study opens and after it closes."""
        study = self.study
        # Days are counted as numbers: a clock may stand on the last day that `date` has.
        if study.opens and today.toordinal() + EARLY_DAYS < date.fromisoformat(study.opens).toordinal():
            raise RefusedError.say("device.opens", study=study.id, opens=study.opens, today=today)
        if study.closes and today > date.fromisoformat(study.closes):
            raise RefusedError.say("device.closed", study=study.id, closes=study.closes, today=today)


def terms_of(study: "Study") -> Terms:
    """Return the study's terms, cached for the process: finding the integers takes milliseconds."""
    if study.digest not in _terms:
        _terms[study.digest] = Terms(study)
    return _terms[study.digest]


def read_new(read: "Callable[[str | bytes], Document]", text: "str | bytes") -> "Document":
    """Read a document from outside with `read`.

    Raises RefusedError if it names a mechanism that only a newer ldpkit can know, else StudyError.
    """
    try:
        return read(text)
    except StudyError as error:
        if error.field.endswith("mechanism.name") and "is unknown" in error.problem:
            raise _unknown(say("device.this_study"), f"{error.field}: {error.problem}") from None
        raise


def _unknown(study: str, what: str) -> RefusedError:
    return RefusedError.say("device.cannot_be_answered", study=study, what=what)


def _noise_of(question: "dict[str, Any]") -> str:
    """Return a digest of what decides a permanent answer's law."""
    law = {"mechanism": question["mechanism"], "choices": len(question.get("choices", ()))}
    return sha256(canonical_json(law).encode("utf-8")).hexdigest()


def _cost(question: "Question", mechanism: "Mechanism") -> Cost:
    """Return the stated epsilon and delta, or the values from the mechanism's integers if larger."""
    true, stated = mechanism.privacy, question.mechanism
    return Cost(
        max(_fraction(true.epsilon), _fraction(stated.epsilon)),
        max(_fraction(true.delta), _fraction(stated.delta)),
    )


def _fraction(number: "Rational") -> Fraction:
    return Fraction(number.numerator, number.denominator)
