"""A mechanism's claim, bounds for an event's probabilities, and exact checks without samples.

A claim is a curve that no event's two probabilities may cross. Shares are bounded by Chernoff's inequality in
its relative-entropy form (Hoeffding 1963, Theorem 1), which holds for every sample size. Gaussian noise
claims a whole trade-off curve (METHODS 1.5).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations
from math import erfc, exp, inf, log, sqrt
from statistics import NormalDist
from typing import Any

from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.documents.question import Question
from ldp_client.mechanisms import Mechanism, Privacy
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.words.text import rounded_up
from ldpkit.auditing.answers import words_of

STEPS = 200
_NORMAL = NormalDist()


def lower_share(successes: int, trials: int, false_alarm: float) -> float:
    """Return a lower bound on a probability, which is wrong with at most the probability `false_alarm`."""
    seen = successes / trials
    if successes == 0:
        return 0.0

    def entropy(share: float) -> float:
        hit = seen * log(seen / share)
        return hit + (1 - seen) * log((1 - seen) / (1 - share)) if seen < 1 else hit

    return _last(lambda share: share == 0 or trials * entropy(share) >= -log(false_alarm), 0.0, seen)


def upper_share(successes: int, trials: int, false_alarm: float) -> float:
    """Return an upper bound on a probability, which is wrong with at most the probability `false_alarm`."""
    return 1 - lower_share(trials - successes, trials, false_alarm)


def delta_of(mu: float, epsilon: float) -> float:
    """Return δ of Gaussian noise at distance mu: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle & Wang 2018)."""
    if mu <= 0:
        return 0.0
    likely, unlikely = (erfc(-x / sqrt(2)) / 2 for x in (mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu))
    return likely - exp(epsilon) * unlikely


def largest_distance(epsilon: float, delta: float) -> float:
    """Return the largest μ whose δ at ε is at most delta."""
    return _last(lambda mu: delta_of(mu, epsilon) <= delta, 0.0, 64.0)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the ε that noise at distance mu gives with that delta."""
    return _last(lambda epsilon: delta_of(mu, epsilon) > delta, 0.0, 600.0)


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the end of the part of [low, high] on which `holds` is true, rounded down."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class Claim:
    """P(event | x) ≤ e^ε P(event | x′) + δ.

    limit: the largest `evidence` that does not break the claim.
    """

    def __init__(self, privacy: Privacy) -> None:
        self.epsilon, self.delta = float(privacy.epsilon), float(privacy.delta)
        self.limit = self.epsilon

    def evidence(self, low: float, high: float) -> float:
        """Return a lower bound on ε, for an event with probability ≥ low under x and ≤ high under x′."""
        if low - self.delta <= high:
            return 0.0
        return log((low - self.delta) / high) if high > 0 else inf

    def as_epsilon(self, evidence: float) -> float:
        """Convert evidence to nats of ε."""
        return evidence


class GaussianClaim(Claim):
    """Gaussian noise that meets (ε, δ): Φ⁻¹(P(event | x)) − Φ⁻¹(P(event | x′)) ≤ μ.

    This is the whole trade-off curve of the Gaussian mechanism (Dong, Roth & Su 2022) through (ε, δ). It has
    far more power than the one inequality at δ, which no feasible number of samples could refute.
    """

    def __init__(self, privacy: Privacy) -> None:
        super().__init__(privacy)
        self.limit = largest_distance(self.epsilon, self.delta)

    def evidence(self, low: float, high: float) -> float:
        """Return a lower bound on μ."""
        if low <= 0 or high >= 1:
            return 0.0
        if high <= 0 or low >= 1:
            return inf
        return max(_NORMAL.inv_cdf(low) - _NORMAL.inv_cdf(high), 0.0)

    def as_epsilon(self, evidence: float) -> float:
        """Return the ε that this μ means at the claim's δ."""
        return epsilon_of(evidence, self.delta)


# Decimal's exp and ln are correctly rounded, and independent of core/integers.py.
PRECISE = Context(prec=60)
ARITHMETIC = Decimal("1e-57")
RELATIVE = 1e-9
NEGLIGIBLE = Fraction(1, 1 << 24)


@dataclass
class Check:
    """The result of one check: its name, whether the mechanism passed, and the evidence."""

    name: str
    passed: bool
    detail: str


def is_numeric(mechanism: Mechanism) -> bool:
    """Return True if payloads are integers with added noise."""
    coded = isinstance(mechanism, (ChoiceMechanism, SampledProducts))
    return not coded and len(mechanism.words(bytes(mechanism.payload_size))) > 0


def stated_check(mechanism: Mechanism, epsilon: Fraction, question: Question) -> Check:
    """Check that the mechanism's ε and δ are within the study's."""
    given = mechanism.privacy
    good = given.epsilon <= epsilon and given.delta <= question.mechanism.delta
    detail = f"{rounded_up(float(given.epsilon), 12)} of {rounded_up(float(epsilon), 12)}"
    return Check("within the study's epsilon and delta", good, detail)


def odds_check(mechanism: Any) -> Check:
    """Check for a mechanism with odds that ε is not below their logarithm."""
    often, seldom = mechanism.odds
    ratio = PRECISE.divide(Decimal(often), Decimal(seldom))
    given = mechanism.privacy.epsilon
    stated = PRECISE.divide(Decimal(given.numerator), Decimal(given.denominator))
    good = stated >= PRECISE.subtract(PRECISE.ln(ratio), ARITHMETIC)
    return Check("epsilon is not below the logarithm of the odds", good, f"odds {float(ratio):.12g}")


def law_checks(mechanism: Any, answers: Sequence[Any]) -> Iterator[Check]:
    """Check for choices that the odds match ε, p and q, in exact numbers."""
    yield odds_check(mechanism)
    p, q, both = support_law(mechanism, answers)
    lawful = 0 <= both <= min(p, q) and q < p
    lawful = lawful and (both == p * q if mechanism.bitwise else both == 0 or both > NEGLIGIBLE)
    detail = f"p {float(p):.9g}, q {float(q):.9g}, both {float(both):.3g}"
    yield Check("odds, p and q are one law", lawful, detail)


def support_law(mechanism: Any, answers: Sequence[Any]) -> tuple[Fraction, Fraction, Fraction]:
    """Return P(x ∈ S), P(x′ ∈ S) and P(both ∈ S) if x is answered. S is the random set of supported choices.

    P(x′ ∈ S, x ∉ S | x) e^ε = P(x ∈ S, x′ ∉ S | x), so the last follows from p, q and the odds. It is exactly
    pq if bits are independent, and 0 if S has one choice only, so even a small error in the odds shows.
    """
    first, second = [mechanism.quantise(answer) for answer in answers]
    p, q = [mechanism.support_probability(first, index) for index in (first, second)]
    often, seldom = mechanism.odds
    return p, q, (often * q - seldom * p) / (often - seldom)


def distance_check(mechanism: Any, answers: list[Any]) -> Check:
    """Check for numbers that no two answers' integers are further apart than the noise hides.

    The distance is L1 for Laplace noise of scale 2**NOISE_BITS, and L2 for normal noise of that sd. If a
    last byte, drawn by odds, differs too, their logarithm is taken from ε first.
    """
    epsilon, delta = float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)
    often, seldom = getattr(mechanism, "odds", (1, 1))
    coin = float(PRECISE.ln(PRECISE.divide(Decimal(often), Decimal(seldom))))
    allowed = []
    for left in (epsilon, epsilon - coin):
        hidden = largest_distance(left, delta) if delta else left
        allowed.append(hidden * (1 << NOISE_BITS) * (1 + RELATIVE))
    integers = [words_of(mechanism, answer) for answer in answers]
    worst, detail = -1.0, ""
    for (words, answer), (other_words, other_answer) in combinations(zip(integers, answers), 2):
        gaps = [abs(a - b) for a, b in zip(words, other_words)]
        distance = sum([gap * gap for gap in gaps]) ** 0.5 if delta else float(sum(gaps))
        quantised = [mechanism.quantise(each) for each in (answer, other_answer)]
        limit = allowed[hasattr(mechanism, "odds") and quantised[0][-1] != quantised[1][-1]]
        share = distance / limit if limit > 0 else float(distance > 0)
        if share > worst:
            worst, detail = share, f"{distance:.9g} of {limit:.9g} grid units, {len(answers)} answers"
    return Check("no two answers are further apart than the noise hides", worst <= 1, detail)
