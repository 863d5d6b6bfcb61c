"""The law of payloads under two answers, for the pair of answers that they tell apart best.

A mechanism's law is computed from its integers, exactly or rounded towards less privacy.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, prod

from ldp_client.core.integers import exp_bounds
from ldp_client.documents.errors import InputError
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas.shuffling.lattice import MASS_BITS, VALUE_BITS, Atom

EXP_BITS = 128
# Bits of a summed probability.
ALONE_BITS = 128
# With more kinds of payload than these, the general bound is used.
MOST_KINDS = 2000
Kind = tuple[Fraction, Fraction, Fraction]


class Law:
    """The kinds of payload of a mechanism, for the two answers that it tells apart best.

    Args:
        growth: an upper bound on the ratio of a payload's probabilities, e^ε₀.
        kinds: (A, B, mass) of each kind: every answer sends such a payload with probability at least `mass`,
            the first answer with A · mass, the second with B · mass.
        is_composable: whether it is also the worst law of an answer among several in a report (METHODS 1.6).

    Attributes:
        growth: as given.
        kinds: as given.
        is_composable: as given.
        covered: the probability of a report that every answer may send.
    """

    def __init__(self, growth: Fraction, kinds: Sequence[Kind], is_composable: bool = False) -> None:
        self.growth = growth
        self.kinds = tuple(kinds)
        self.is_composable = is_composable
        self.covered = sum(float(mass) for *_, mass in self.kinds)

    def atoms(self, ratio: Fraction) -> list[Atom]:
        """Return the law of A − ratio · B, rounded up, without its zero (see `lattice.py`)."""
        atoms = []
        for one, other, mass in self.kinds:
            value = ceil((one - ratio * other) * (1 << VALUE_BITS))
            scaled = mass * (1 << MASS_BITS)
            weight = ceil(scaled) if value > 0 else floor(scaled)
            if value and weight:
                atoms.append((weight, value))
        return atoms

    def alone(self, ratio: Fraction) -> Fraction:
        """Return the δ of a single report, rounded up. Other reports in the set cannot increase it."""
        terms = [mass * (one - ratio * other) for one, other, mass in self.kinds]
        excess = sum(ceil(term * (1 << ALONE_BITS)) for term in terms if term > 0)
        return min(Fraction(1), Fraction(excess, 1 << ALONE_BITS))


def any_law(growth: Fraction) -> Law:
    """Return the worst law of all mechanisms whose payloads' probabilities have ratios of at most `growth`.

    It is randomized response with two choices (METHODS 1.6).
    """
    return bounded_law(growth, Fraction(1))


def bounded_law(growth: Fraction, variation: Fraction) -> Law:
    """Return the worst law of payloads whose total variation between two answers is at most `variation`.

    growth: above 1, as of every mechanism.
    """
    most = (growth - 1) / (growth + 1)
    share = min(variation, most) / (growth - 1)
    return _law(growth, share, (1 - (growth + 1) * share) / growth, Fraction(0))


def choice_law(growth: Fraction, difference: Fraction, both: Fraction) -> Law:
    """Return the law of a mechanism that sends a set of choices with probability c·e^ε₀ or c.

    The probability is c·e^ε₀ if the set contains the answer, else c.

    Args:
        growth: e^ε₀, above 1.
        difference: p − q: the probability that the set contains the answer, less that for another choice.
        both: the probability that it contains both.

    Returns:
        The law.
    """
    share = difference / (growth - 1)
    return _law(growth, share, both / growth, 1 - (growth + 1) * share - both, is_composable=True)


def _law(
    growth: Fraction, share: Fraction, both: Fraction, neither: Fraction, is_composable: bool = False
) -> Law:
    one = Fraction(1)
    kinds = [(growth, one, share), (one, growth, share), (growth, growth, both), (one, one, neither)]
    return Law(growth, [kind for kind in kinds if kind[2] > 0], is_composable)


def compose(laws: Sequence[Law]) -> Law:
    """Return the law of a report with the payloads of several independent answers, which may all differ.

    Returns the general law if the worst law of an answer alone may not be the worst among several answers.
    """
    if len(laws) == 1:
        return laws[0]
    growth = prod((law.growth for law in laws), start=Fraction(1))
    masses = {(Fraction(1), Fraction(1)): Fraction(1)}
    for law in laws:
        if not law.is_composable or len(masses) * len(law.kinds) > MOST_KINDS:
            return any_law(growth)
        merged: defaultdict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
        for (one, other), mass in masses.items():
            for a, b, weight in law.kinds:
                merged[one * a, other * b] += mass * weight
        masses = merged
    return Law(growth, [(*pair, mass) for pair, mass in masses.items()], is_composable=True)


def mixture(laws: Sequence[Law]) -> Law:
    """Return the law of a report with a single labelled payload, drawn uniformly from several."""
    count = len(laws)
    kinds = [(one, other, mass / count) for law in laws for one, other, mass in law.kinds]
    return Law(max(law.growth for law in laws), kinds, all(law.is_composable for law in laws))


def law_of(mechanism: Mechanism) -> Law:
    """Return the law of one mechanism's payloads.

    Args:
        mechanism: a mechanism with pure ε, without a secure sum.

    Returns:
        The law.

    Raises:
        InputError: its noise has a δ, or it is memoized: repeated reports of a permanent answer, each among
            other people, reveal more with each version.
    """
    if mechanism.privacy.delta:
        raise InputError(
            f"{mechanism.field}: its noise has its own delta, and no bound towards the set of "
            "reports is certified for that. Use a mechanism of pure epsilon",
            code="set.has_delta",
        )
    if mechanism.name == "memoized":
        raise InputError(
            f"{mechanism.field}: no bound towards the set of reports is certified for a "
            "permanent answer that is reported again in each version, among other people "
            "each time",
            code="set.memoized",
        )
    if isinstance(mechanism, ChoiceMechanism):
        growth = Fraction(*mechanism.odds)
        # In a Hadamard response, fewer payloads support both choices if these are in different blocks.
        difference = mechanism.p - min(mechanism.q, getattr(mechanism, "q_elsewhere", mechanism.q))
        return choice_law(growth, difference, mechanism.p - difference * growth / (growth - 1))
    if isinstance(mechanism, SampledProducts):
        # Randomized sign patterns: two records may differ in every sign of every block.
        return choice_law(Fraction(*mechanism.odds), mechanism.p - mechanism.q, Fraction(0))
    growth = exp_above(mechanism.privacy.epsilon)
    if mechanism.name == "laplace":
        return bounded_law(growth, 1 - 1 / exp_above(mechanism.privacy.epsilon / 2))
    return any_law(growth)


def exp_above(epsilon: Fraction) -> Fraction:
    """Bound e^ε from above.

    Args:
        epsilon: at most 300.

    Returns:
        A fraction over 2**128.
    """
    return Fraction(exp_bounds(ceil(epsilon * (1 << EXP_BITS)), EXP_BITS)[1], 1 << EXP_BITS)


def law_of_report(study: Study) -> Law:
    """Return the law of a person's whole report to a study.

    Args:
        study: a study that asks people, without a secure sum.

    Returns:
        The law of a whole report.

    Raises:
        InputError: the study has a secure sum, is for data holders, or has a question for which no bound is
            known (see `law_of`).
    """
    if study.protocol is not None or study.respondent == "holder":
        raise InputError(
            f"study {study.id}: ldpkit states no bound towards the set of reports if data "
            "holders answer, or if devices send shares of a sum",
            code="set.no_reports",
        )
    laws = {name: law_of(mechanism) for name, mechanism in mechanisms_of(study).items()}
    return mixture(list(laws.values())) if study.sample_one_question else compose(list(laws.values()))
