"""The stated privacy against the exact law that the mechanism's integers give. No sampling."""

from decimal import Context, Decimal
from fractions import Fraction

from ldp_client.audit.findings import Check
from ldp_client.audit.gaussian import largest_distance
from ldp_client.audit.kinds import is_unary
from ldp_client.audit.streams import Stream, words_of
from ldp_client.core.calibration import NOISE_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ldp_client.audit.stages import Stage
    from ldp_client.audit.views import Pair
    from ldp_client.mechanisms import Mechanism
    from schemas.rational import Rational
    from schemas.study import Question

# Decimal's exp and ln are correctly rounded: an arithmetic of its own, beside core/integers.py.
PRECISE = Context(prec=60)
ARITHMETIC = Decimal("1e-57")
RELATIVE = 1e-9
NEGLIGIBLE = Fraction(1, 1 << 24)


def exact(value: "Rational") -> Fraction:
    """As a standard fraction."""
    return Fraction(value.numerator, value.denominator)


def stated_check(stage: "Stage", question: "Question") -> Check:
    """The mechanism's ε and δ are within what the study states."""
    given = stage.mechanism.privacy
    good = exact(given.epsilon) <= exact(stage.epsilon)
    good = good and exact(given.delta) <= exact(question.mechanism.delta)
    return Check(
        "within the study's epsilon and delta",
        good,
        f"{float(given.epsilon):.12g} of {float(stage.epsilon):.12g}",
    )


def law_checks(pair: "Pair") -> "Iterator[Check]":
    """Choices: ε is the logarithm of the odds, and the odds are those of p and q, all in exact numbers."""
    mechanism: "Any" = pair.mechanism
    often, seldom = mechanism.odds
    ratio = PRECISE.divide(Decimal(often), Decimal(seldom))
    given = mechanism.privacy.epsilon
    stated = PRECISE.divide(Decimal(given.numerator), Decimal(given.denominator))
    good = stated >= PRECISE.subtract(PRECISE.ln(ratio), ARITHMETIC)
    yield Check("epsilon is not below the logarithm of the odds", good, f"odds {float(ratio):.12g}")
    p, q, both = support_law(pair)
    lawful = 0 <= both <= min(p, q) and q < p
    lawful = lawful and (both == p * q if is_unary(mechanism) else both == 0 or both > NEGLIGIBLE)
    detail = f"p {float(p):.9g}, q {float(q):.9g}, both {float(both):.3g}"
    yield Check("odds, p and q are one law", lawful, detail)


def support_law(pair: "Pair") -> "tuple[Fraction, Fraction, Fraction]":
    """P(x ∈ S), P(x′ ∈ S) and P(both ∈ S) when x is answered, S the random set of supported choices.

    P(x′ ∈ S, x ∉ S | x) e^ε = P(x ∈ S, x′ ∉ S | x), so the last follows from p, q and the odds. It is pq
    where bits are independent, 0 where S has one choice only: exactly, so odds cannot be off by a little.
    """
    mechanism: "Any" = pair.mechanism
    one, other = mechanism.quantise(pair.one), mechanism.quantise(pair.other)
    p, q = (exact(mechanism.support_probability(one, index)) for index in (one, other))
    often, seldom = mechanism.odds
    return p, q, (often * q - seldom * p) / (often - seldom)


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
