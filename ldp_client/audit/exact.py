"""The stated privacy against the exact law that the mechanism's integers give. No sampling."""

from decimal import Context, Decimal
from fractions import Fraction

from ldp_client.audit.findings import Check
from ldp_client.audit.gaussian import largest_distance
from ldp_client.audit.streams import Stream, words_of
from ldp_client.core.calibration import NOISE_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ldp_client.mechanisms import Mechanism
    from schemas.rational import Rational
    from schemas.study import Question

# Decimal's exp and ln are correctly rounded: an arithmetic of its own, beside core/integers.py.
PRECISE = Context(prec=60)
ARITHMETIC = Decimal("1e-57")
RELATIVE = 1e-9


def exact(value: "Rational") -> Fraction:
    """As a standard fraction."""
    return Fraction(value.numerator, value.denominator)


def stated_check(mechanism: "Mechanism", question: "Question") -> Check:
    """The mechanism's ε and δ are within what the study states."""
    given, asked = mechanism.privacy, question.mechanism
    good = exact(given.epsilon) <= exact(asked.epsilon) and exact(given.delta) <= exact(asked.delta)
    return Check(
        "within the study's epsilon and delta",
        good,
        f"{float(given.epsilon):.12g} of {float(asked.epsilon):.12g}",
    )


def law_checks(mechanism: "Any") -> "Iterator[Check]":
    """Choices: ε is the logarithm of the odds, and the odds are those of p and q.

    With S the random set of supported choices, P(x′ ∈ S, x ∉ S | x) e^ε = P(x ∈ S, x′ ∉ S | x), so
    r = P(both ∈ S) follows from p, q and the odds; it is 0 or pq or at least a probability.
    """
    often, seldom = mechanism.odds
    ratio = PRECISE.divide(Decimal(often), Decimal(seldom))
    given = mechanism.privacy.epsilon
    stated = PRECISE.divide(Decimal(given.numerator), Decimal(given.denominator))
    good = stated >= PRECISE.subtract(PRECISE.ln(ratio), ARITHMETIC)
    yield Check("epsilon is not below the logarithm of the odds", good, f"odds {float(ratio):.12g}")
    p, q = exact(mechanism.p), exact(mechanism.q)
    both = both_supported(mechanism)
    lawful = 0 <= both <= min(p, q) and q < p and _of_known_kind(mechanism, both)
    yield Check(
        "odds, p and q are one law", lawful, f"p {float(p):.9g}, q {float(q):.9g}, both {float(both):.3g}"
    )


def both_supported(mechanism: "Any") -> Fraction:
    """r = P(x ∈ S, x′ ∈ S | x)."""
    often, seldom = mechanism.odds
    both: Fraction = (often * exact(mechanism.q) - seldom * exact(mechanism.p)) / (often - seldom)
    return both


def is_unary(mechanism: "Any") -> bool:
    """One bit for each choice, independent of the others."""
    return bool(
        mechanism.payload_size == (mechanism.choices + 7) // 8
        and abs(both_supported(mechanism) - exact(mechanism.p) * exact(mechanism.q)) < Fraction(1, 1 << 20)
    )


def _of_known_kind(mechanism: "Any", both: Fraction) -> bool:
    """Bits that are independent have r = pq exactly; one reported choice has r = 0 exactly."""
    if is_unary(mechanism):
        return both == exact(mechanism.p) * exact(mechanism.q)
    return both == 0 or both > Fraction(1, 1 << 24)


def distance_check(mechanism: "Mechanism", answers: "list[Any]") -> Check:
    """Numbers: no two answers' integers are further apart than the noise hides.

    In L1 for Laplace noise of scale 2**NOISE_BITS, in L2 for normal noise of that standard deviation.
    """
    exact_words = [words_of(mechanism, answer, Stream(0)) for answer in answers]
    epsilon, delta = mechanism.privacy.epsilon, mechanism.privacy.delta
    pairs = [(one, other) for place, one in enumerate(exact_words) for other in exact_words[:place]]
    if delta.numerator:
        square = max([sum([(a - b) ** 2 for a, b in zip(*pair)]) for pair in pairs])
        allowed = largest_distance(float(epsilon), float(delta)) * (1 << NOISE_BITS)
        found, good = square**0.5, square**0.5 <= allowed * (1 + RELATIVE)
    else:
        largest = max([sum([abs(a - b) for a, b in zip(*pair)]) for pair in pairs])
        allowed = float(epsilon) * (1 << NOISE_BITS)
        found, good = float(largest), largest <= exact(epsilon) * (1 << NOISE_BITS)
    detail = f"{found:.9g} of {allowed:.9g} grid units, {len(answers)} answers"
    return Check("no two answers are further apart than the noise hides", good, detail)
