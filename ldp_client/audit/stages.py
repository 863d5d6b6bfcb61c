"""The stages of an audit: the mechanism itself, or each of its privacy promises if it makes several.

A memoized mechanism draws a permanent noisy answer once and makes every report from it. It promises one
ε for the permanent answer, hence for all reports together, and a smaller ε for a single report. A record
with a yes/no response spends one share of ε on its features and the rest on its response. A number that may
be refused also has a coin that reports refusal.
"""

from copy import copy
from typing import Any

from ldp_client.audit.answers import answers_for, inside_answers
from ldp_client.audit.findings import Check
from ldp_client.core.noise_levels import log_ratio
from ldp_client.core.randomness import Source
from ldp_client.core.strips import NOISE_REACH
from ldp_client.documents.question import Question
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Mechanism, Privacy
from ldp_client.mechanisms.choice import ChoiceMechanism, Places
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from ldp_client.mechanisms.refusable import RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts


def is_unary(mechanism: Mechanism) -> bool:
    """Return True if a report has one independent bit for each choice."""
    return getattr(mechanism, "bitwise", False)


def has_parts(mechanism: Any) -> bool:
    """Return True if a report has features and a response, whose ε add up."""
    return isinstance(mechanism, GaussianYesNoRecord)


class Features(Mechanism):
    """The noisy features alone, at the privacy that the study leaves for them."""

    name = "gaussian_record"

    def __init__(self, of: Any, privacy: Privacy) -> None:
        self.of = of
        self.field, self.privacy = of.field, privacy
        self.payload_size = of.payload_size - 1

    def quantise(self, answer: Any) -> list[int]:
        entries: list[int] = self.of.quantise(answer)
        return entries

    def randomise(self, quantised: list[int], random: Source) -> bytes:
        """Draw a report without its response."""
        return bytes(self.of.randomise(quantised, random)[:-1])

    def check(self, payload: bytes) -> None:
        """Check the features as part of a report."""
        self.of.check(payload + bytes(1))


class Response(ChoiceMechanism):
    """The noisy response alone, for two records that differ in every field. Its odds give its privacy."""

    name = "randomized_response"

    def __init__(self, of: Any, records: list[Any]) -> None:
        self.of = of
        self.field = of.field
        self.records = [of.quantise(record) for record in records]
        self.labels, self.choices, self.payload_size = ("no", "yes"), 2, 1
        self.numbered, self.boolean = False, True
        self.p, self.q, self.odds = of.p, of.q, of.odds
        self.privacy = Privacy(log_ratio(*of.odds), Rational(0))

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw the response of a report."""
        return bytes(self.of.randomise(self.records[quantised], random)[-1:])

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if the payload is the index, as in randomized response."""
        return payload[0] == index

    def check(self, payload: bytes) -> None:
        """Check the response as part of a report."""
        self.of.check(bytes(self.of.payload_size - 1) + payload)


class Signs(ChoiceMechanism):
    """The noisy signs of products of records at their corners, where each product is −1 or 1.

    A report supports the records whose products in its block have its signs, so its law is a choice's.
    """

    name = "randomized_response"

    def __init__(self, of: Any, question: Question) -> None:
        self.of = of
        self.field = of.field
        answers = answers_for(question)
        words = ("yes", "no") if of.binary else ("high", "low")
        corners = tuple([f"all {end}, {word}" for word in words for end in ("high", "low")])
        self.records = [of.quantise(answers[name]) for name in corners]
        self.labels, self.choices, self.payload_size = corners, len(corners), of.payload_size
        self.numbered, self.boolean = False, False
        self._places = Places(corners)
        self.answers = {name: name for name in corners}
        # For one block on which two records differ; support_probability covers all blocks.
        self.p, self.q, self.odds = of.p, (Rational(1) - of.p) * Rational(1, of.patterns - 1), of.odds
        self.privacy = of.privacy

    def _pattern(self, place: int, index: int) -> int:
        """Return the record's own signs in a block, as bits."""
        record, bits = self.records[index], 0
        for i, j in [self.of.coordinates[product] for product in self.of.blocks[place]]:
            bits = 2 * bits + (record[i] * record[j] > 0)
        return bits

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw a report of the record."""
        payload: bytes = self.of.randomise(self.records[quantised], random)
        return payload

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if the record's products have these signs."""
        place, pattern = divmod(int.from_bytes(payload, "big"), self.of.patterns)
        return bool(self._pattern(place, index) == pattern)

    def support_probability(self, true: int, index: int) -> Rational:
        """Return the probability of support, from how often the two records' products agree."""
        places = range(len(self.of.blocks))
        agreed = sum(
            [self.of.weights[s] for s in places if self._pattern(s, true) == self._pattern(s, index)]
        )
        agreed_share = Rational(agreed, self.of.total)
        other_share = Rational(self.of.total - agreed, self.of.total)
        return agreed_share * self.p + other_share * self.q

    def check(self, payload: bytes) -> None:
        """Check the payload as the mechanism does."""
        self.of.check(payload)


class Together(Mechanism):
    """The whole report, to find joint events of features and response."""

    name = "gaussian_record"

    def __init__(self, of: Any) -> None:
        self.of = of
        self.field, self.privacy, self.payload_size = of.field, of.privacy, of.payload_size

    def quantise(self, answer: Any) -> list[int]:
        entries: list[int] = self.of.quantise(answer)
        return entries

    def randomise(self, quantised: list[int], random: Source) -> bytes:
        """Draw a report."""
        return bytes(self.of.randomise(quantised, random))

    def check(self, payload: bytes) -> None:
        """Check the payload as the mechanism does."""
        self.of.check(payload)

    def words(self, payload: bytes) -> list[int]:
        """Return the features, and the response scaled to the reach of the noise."""
        return [*super().words(payload), payload[-1] * NOISE_REACH]


REPORTS = 8


class Repeated(Mechanism):
    """REPORTS reports of one permanent answer, one after another, at the longitudinal ε."""

    name = "memoized"

    def __init__(self, of: Any) -> None:
        self.of = of
        self.field, self.privacy = of.field, of.privacy
        self.payload_size = REPORTS * of.payload_size

    def quantise(self, answer: Any) -> int:
        index: int = self.of.quantise(answer)
        return index

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw one permanent answer, then REPORTS reports of it."""
        kept = self.of.permanent(quantised, random)
        return b"".join([self.of.instantaneous(kept, random) for _ in range(REPORTS)])

    def check(self, payload: bytes) -> None:
        """Check each report separately."""
        super().check(payload)
        for report in self.reports(payload):
            self.of.check(report)

    def votes(self, payload: bytes, one: int, other: int) -> int:
        """Return how many more reports support the first choice than the other."""
        supported = self.of.supported
        return sum([supported(report, one) - supported(report, other) for report in self.reports(payload)])

    def reports(self, payload: bytes) -> list[bytes]:
        """Split a payload into its single reports."""
        size = self.of.payload_size
        return [payload[start : start + size] for start in range(0, len(payload), size)]


class Again:
    """The noise of each report, on the true choice as the permanent answer. Used only to find its coin.

    unary: whether it flips bits. p, q: the coin's probability, as the mechanism's `again` states it.
    """

    def __init__(self, of: Any) -> None:
        self.of = of
        self.payload_size = of.payload_size
        self.choices = of.choices
        self.supported = of.supported
        self.unary = is_unary(of.first)
        self.p = self.q = Rational(of.again, 1 << of.bits)

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw one report of the choice."""
        if self.unary:
            kept = self.of.first.pack(1 << quantised)
        else:
            kept = quantised.to_bytes(self.payload_size, "big")
        report: bytes = self.of.instantaneous(kept, random)
        return report


class Stage:
    """A mechanism to audit, the ε that the study states for it, and its name ("" for a single stage).

    answers: the answers to try, if they differ from the question's. coin: the mechanism whose coin decides
    what a report supports, if that is not the stage's own mechanism.
    """

    def __init__(
        self,
        name: str,
        mechanism: Any,
        epsilon: Rational,
        answers: dict[str, Any] | None = None,
        coin: Any = None,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.answers = answers
        self.coin = coin or mechanism

    def name_of(self, check: Check) -> str:
        """Return a check's name, prefixed with the stage's name."""
        return f"{self.name}: {check.name}" if self.name else check.name


def stages_of(mechanism: Any, question: Question) -> list[Stage]:
    """Return the mechanism as its only stage, or its parts as several stages."""
    if hasattr(mechanism, "permanent"):
        return _memoized(mechanism, question.mechanism)
    if has_parts(mechanism):
        return _record(mechanism, question)
    if isinstance(mechanism, RefusableNumber):
        return _refusable(mechanism, question)
    if isinstance(mechanism, SampledProducts):
        signs = Signs(mechanism, question)
        epsilon = question.mechanism.epsilon
        return [
            Stage("", signs, epsilon, signs.answers),
            Stage("other records", mechanism, epsilon, inside_answers(question)),
        ]
    return [Stage("", mechanism, question.mechanism.epsilon)]


def _memoized(mechanism: Any, stated: Any) -> list[Stage]:
    """Return the stages: the permanent answer, one report, and many reports."""
    alone = copy(mechanism)
    alone.privacy = mechanism.report_privacy
    return [
        Stage("permanent answer", mechanism.first, stated.epsilon),
        Stage("one report", alone, stated.instantaneous_epsilon, coin=Again(mechanism)),
        Stage(f"{REPORTS} reports", Repeated(mechanism), stated.epsilon),
    ]


def _refusable(mechanism: Any, question: Question) -> list[Stage]:
    """Return the number and the coin, each with its own ε, and the whole report, which covers refusals."""
    answers = answers_for(question)
    numbers = {name: answers[name] for name in answers if answers[name] is not None}
    share: Any = question.refusal_share
    number, of_coin = mechanism.number.privacy, question.mechanism.epsilon * share
    coin = Response(mechanism, [answers["high"], None])
    return [
        Stage("number", Features(mechanism, number), number.epsilon, numbers),
        Stage("refusal", coin, of_coin, {"no": False, "yes": True}),
        Stage("whole report", Together(mechanism), question.mechanism.epsilon),
    ]


def _record(mechanism: Any, question: Question) -> list[Stage]:
    """Return the features and the response, each with its exact share of ε, and the whole report."""
    stated: Any = question.mechanism
    of_response = stated.epsilon * stated.response_share
    of_features = stated.epsilon - of_response
    features = Features(mechanism, Privacy(of_features, stated.delta))
    answers = answers_for(question)
    records = [answers[name] for name in ("all high, no", "all low, yes")]
    return [
        Stage("features", features, of_features),
        Stage("response", Response(mechanism, records), of_response, {"no": False, "yes": True}),
        Stage("whole report", Together(mechanism), stated.epsilon),
    ]
