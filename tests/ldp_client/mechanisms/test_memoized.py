"""A permanent noisy answer and fresh noise on it: the law of one report, and what all of them reveal."""

from collections import Counter
from fractions import Fraction

import mpmath
import pytest

from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from tests import studies
from tests.ldp_client.exact_laws import WHOLE, coin, faults, fraction, law_of, uniform, worst_ratio
from tests.statistics import follows, seeded

SAMPLES = 15_000
BUDGETS = [("2", "1"), ("0.5", "0.4999999"), ("6", "0.1"), ("17", "3")]


def mechanism(of, choices, epsilon, instantaneous):
    stated = {"name": "memoized", "of": of, "epsilon": epsilon, "instantaneous_epsilon": instantaneous}
    question = {**studies.CHOICE, "choices": {"count": choices}, "mechanism": stated}
    return mechanism_for(Study(studies.document(question)).questions[0])


def bits(m, threshold):
    below = Fraction(threshold, WHOLE)
    chances = []
    for pattern in range(1 << m.choices):
        chance = Fraction(1)
        for place in range(m.choices):
            chance *= below if pattern >> place & 1 else 1 - below
        chances.append((bytes([pattern]) * 32, chance))
    return chances


def stages(m):
    """Return the bytes that the permanent and the instantaneous stage read."""
    thresholds = (m.first.threshold, m.again)
    if m.of == "sue":
        return [[bits(m, threshold)] for threshold in thresholds]
    return [[coin(threshold), uniform(m.choices - 1)] for threshold in thresholds]


@pytest.mark.parametrize(("epsilon", "instantaneous"), BUDGETS)
@pytest.mark.parametrize("choices", [2, 4])
@pytest.mark.parametrize("of", ["randomized_response", "sue"])
def test_one_report_has_the_stated_law(of, choices, epsilon, instantaneous):
    m = mechanism(of, choices, epsilon, instantaneous)
    first, again = stages(m)
    laws = [law_of(m, index, [*first, *again]) for index in range(choices)]
    assert not faults(m, laws)
    assert worst_ratio(laws) == Fraction(*m.odds)


@pytest.mark.parametrize(("epsilon", "instantaneous"), BUDGETS)
@pytest.mark.parametrize("of", ["randomized_response", "sue"])
def test_both_epsilons_follow_from_the_integers_within_the_stated(of, epsilon, instantaneous):
    m = mechanism(of, 7, epsilon, instantaneous)
    stated = {m.privacy: (m.first.odds, epsilon), m.report_privacy: (m.odds, instantaneous)}
    with mpmath.workprec(300):
        for privacy, (odds, limit) in stated.items():
            exact = mpmath.log(mpmath.mpf(odds[0]) / odds[1])
            assert 0 <= mpmath.mpf(privacy.epsilon.numerator) / privacy.epsilon.denominator - exact < 1e-29
            assert exact <= mpmath.mpf(limit)
            assert float(exact) == pytest.approx(float(limit), rel=1e-5)


@pytest.mark.parametrize("of", ["randomized_response", "sue"])
def test_many_reports_reveal_only_the_permanent_answer(of):
    """Exactly, for three reports together: the worst ratio stays below that of the permanent answer."""
    m = mechanism(of, 2, "2", "1")
    first, again = stages(m)
    states = [law_of(m.first, index, first) for index in range(2)]
    reports = {state: law_of(_Again(m), state, again) for state in states[0]}
    joint = []
    for law in states:
        together = Counter()
        for state, chance in law.items():
            for one, p in reports[state].items():
                for two, q in reports[state].items():
                    for three, r in reports[state].items():
                        together[one, two, three] += chance * p * q * r
        joint.append(together)
    worst = worst_ratio(joint)
    assert Fraction(*m.odds) ** 2 > worst > Fraction(*m.odds)
    assert worst < Fraction(*m.first.odds)


class _Again:
    """The instantaneous stage as a separate mechanism."""

    def __init__(self, m):
        self.randomise = m.instantaneous


@pytest.mark.parametrize("question", [studies.MEMOIZED, studies.MEMOIZED_BITS])
def test_reports_of_one_permanent_answer_scatter_around_it(question):
    m = mechanism_for(Study(studies.document(question)).questions[0])
    state = m.permanent(1, NotForRealAnswers(lambda size: bytes([255]) * size))
    law = law_of(_Again(m), state, stages(m)[1])
    source = seeded(question)
    seen = Counter(m.instantaneous(state, source) for _ in range(SAMPLES))
    assert follows([seen[payload] for payload in law], [float(chance) for chance in law.values()])
    assert law[state] == max(law.values())
    assert m.perturb(m.labels[0]) in law


def test_stage_without_noise_is_detected():
    m = mechanism("randomized_response", 4, "2", "1")
    m.again = WHOLE
    first, again = stages(m)
    assert "odds" in faults(m, [law_of(m, index, [*first, *again]) for index in range(4)])


def test_the_stated_p_and_q_are_rationals_of_both_thresholds():
    m = mechanism("sue", 5, "2", "1")
    first, again = Fraction(m.first.threshold, WHOLE), Fraction(m.again, WHOLE)
    assert fraction(m.q) == first * (1 - again) + again * (1 - first)
    assert fraction(m.p) == 1 - fraction(m.q)
