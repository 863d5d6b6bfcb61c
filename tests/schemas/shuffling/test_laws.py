"""The bound is that of the dominating pair, holds for every mechanism, and begins with the samplers' laws."""

import itertools
import random
from collections import defaultdict
from fractions import Fraction
from math import comb, log, prod

import mpmath
import pytest

from ldp_client.core.integers import exp_bounds
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms import olh
from schemas.shuffling.lattice import expected_excess
from schemas.shuffling.laws import EXP_BITS, Law, any_law, bounded_law, choice_law, compose, law_of
from schemas.shuffling.reports import epsilon_of
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import PRIME, READS, laws_of

RATIOS = [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(5, 2)]
GROWTH = Fraction(3)
# What the lattice and rounding up may add: a share, and a little.
WIDER, EXACT = Fraction(102, 100), Fraction(1, 10**12)


def sets_of(laws):
    """How likely each count of payloads is, of one report by each law."""
    sets = {(0,) * len(laws[0]): Fraction(1)}
    for law in laws:
        grown = defaultdict(Fraction)
        for counts, chance in sets.items():
            for payload, likely in enumerate(law):
                one_more = (*counts[:payload], counts[payload] + 1, *counts[payload + 1 :])
                grown[one_more] += chance * likely
        sets = grown
    return sets


def divergence(one, other, ratio):
    """The δ that goes with e^ε = ratio, exactly."""
    return sum(max(Fraction(0), chance - ratio * other[counts]) for counts, chance in one.items())


def response(growth, choices, answer):
    weights = [growth if payload == answer else Fraction(1) for payload in range(choices)]
    return [weight / sum(weights) for weight in weights]


def dominating(laws, pair, people, ratio):
    """The δ where it is told which of the other reports had to be sent whatever their answers are.

    laws: of every answer. pair: the two answers of the person that is looked at.
    """
    least = [min(column) for column in zip(*laws, strict=True)]
    share = sum(least)
    blanket = [weight / share for weight in least]
    total = Fraction(0)
    for hidden in range(people):
        chance = comb(people - 1, hidden) * share**hidden * (1 - share) ** (people - 1 - hidden)
        one, other = (sets_of([laws[answer], *[blanket] * hidden]) for answer in pair)
        total += chance * divergence(one, other, ratio)
    return total


def bound(law, people, ratio):
    return expected_excess(law.atoms(ratio), people)


def response_law(choices):
    return choice_law(GROWTH, (GROWTH - 1) / (GROWTH + choices - 1), Fraction(0))


@pytest.mark.parametrize("people", [1, 4, 9])
@pytest.mark.parametrize("choices", [2, 3])
def test_bound_is_the_dominating_pairs_divergence(choices, people):
    laws = [response(GROWTH, choices, answer) for answer in range(choices)]
    for ratio in RATIOS:
        exact = dominating(laws, (0, 1), people, ratio)
        assert exact <= bound(response_law(choices), people, ratio) <= WIDER * exact + EXACT


@pytest.mark.parametrize("growth", [Fraction(1 << bits) for bits in (4, 30, 700)])
def test_bound_holds_for_large_epsilon(growth):
    """Randomized response of two choices is the worst law itself, at the other answer of all others."""
    laws = [response(growth, 2, answer) for answer in (0, 1)]
    for share in (Fraction(1, 1000), Fraction(1, 2), Fraction(999, 1000)):
        nats = Fraction(log(growth.numerator) * float(share))
        ratio = Fraction(exp_bounds(int(nats * (1 << EXP_BITS)), EXP_BITS)[0], 1 << EXP_BITS)
        truth = dominating(laws, (0, 1), 3, ratio)
        lowest = epsilon_of(any_law(growth), 3, min(truth, Fraction(9, 10)))
        assert lowest >= (nats if truth < Fraction(9, 10) else 0) - Fraction(1, 10**9)


def random_mechanism(draw, people):
    """Payloads' laws of people that differ at most by the ratio that comes with them."""
    weights = [Fraction(draw.randint(1, 50)) for _ in range(draw.randint(2, 4))]
    most = Fraction(draw.randint(11, 200), 10)
    laws = []
    for _ in range(people + 1):
        raised = [weight * (most if draw.random() < 0.5 else 1) for weight in weights]
        laws.append([weight / sum(raised) for weight in raised])
    return laws, max(max(column) / min(column) for column in zip(*laws, strict=True))


def test_random_mechanisms_stay_below_the_general_bound():
    """Each person may even use a different mechanism."""
    draw, nearest = random.Random(20), Fraction(0)
    for _ in range(300):
        people = draw.randint(1, 4)
        laws, growth = random_mechanism(draw, people)
        if growth == 1:
            continue
        ratio = 1 + (growth - 1) * Fraction(draw.randint(0, 9), 10)
        truth = divergence(sets_of([laws[0], *laws[2:]]), sets_of([laws[1], *laws[2:]]), ratio)
        variation = divergence(sets_of([laws[0]]), sets_of([laws[1]]), Fraction(1))
        general = bound(any_law(growth), people, ratio)
        narrower = bound(bounded_law(growth, variation), people, ratio)
        assert truth <= narrower <= WIDER * general + EXACT
        nearest = max(nearest, truth / general)
    # It is no bound that holds by being far away.
    assert nearest > Fraction(9, 10)


def test_whole_reports_of_people_are_below_the_bound():
    """Yes/no questions by the truth of all others' answers, of few people."""
    questions = 2
    rows = {answer: response(GROWTH, 2, answer) for answer in (0, 1)}
    payloads = {
        answers: [prod(row) for row in itertools.product(*(rows[answer] for answer in answers))]
        for answers in itertools.product((0, 1), repeat=questions)
    }
    law, one, other = compose([response_law(2)] * questions), (0,) * questions, (1,) * questions
    for ratio in RATIOS:
        truth = max(
            divergence(*(sets_of([payloads[first], *rest]) for first in (one, pair)), ratio)
            for rest in itertools.combinations_with_replacement(payloads.values(), 2)
            # Also of pairs that differ in one question only.
            for pair in (other, (1,) + (0,) * (questions - 1))
        )
        assert truth <= bound(law, 3, ratio) <= 2 * truth


CHOICES, PEOPLE = 4, 5
NEAR_RATIOS = [Fraction(1), Fraction(21, 20), Fraction(3, 2)]


def blanket_law(laws, one, other):
    """Return the law of an ordered pair of answers over every payload that can be sent."""
    kinds = defaultdict(Fraction)
    for payload in laws[0]:
        least = min(law[payload] for law in laws)
        kinds[laws[one][payload] / least, laws[other][payload] / least] += least
    return Law(max(a for a, _ in kinds), [(a, b, mass) for (a, b), mass in kinds.items()])


@pytest.mark.parametrize("name", sorted(READS))
def test_stated_law_is_the_samplers_worst_pair(name, monkeypatch):
    monkeypatch.setattr(olh, "PRIME", PRIME)
    m = studies.mechanism_of(studies.choice_of(name, CHOICES))
    laws, stated = laws_of(m), law_of(m)
    for ratio in NEAR_RATIOS:
        pairs = itertools.permutations(range(CHOICES), 2)
        worst = max(bound(blanket_law(laws, one, other), PEOPLE, ratio) for one, other in pairs)
        assert worst <= bound(stated, PEOPLE, ratio) + Fraction(1, 10**15)
        # A set of all choices says nothing, which the stated law takes for a set that says little.
        has_all = any(all(m.supported(payload, index) for index in range(CHOICES)) for payload in laws[0])
        assert bound(stated, PEOPLE, ratio) <= worst * (1 + Fraction(1, 20 if has_all else 10**9))


@pytest.mark.parametrize("question", [studies.MEMOIZED, studies.MEMOIZED_BITS])
def test_memoized_question_is_rejected(question):
    """Each version leaks more: 0.52 after 8 versions, 0.28 after one."""
    with raises(InputError, "set.memoized"):
        law_of(studies.mechanism_of(question))


def test_stated_law_of_numbers_is_close_to_the_exact_law():
    """Compare the two ends by cells of the exact law: the payloads' ratio in between is e^(ε − 2y)."""
    m = studies.mechanism_of(studies.NUMBER)
    epsilon, cells = mpmath.mpf(1), 400
    growth = law_of(m).growth
    kinds = []
    for cell in range(cells):
        # From y to y + ε / cells the smaller of both densities is that of the farther end.
        y = epsilon * (cell + mpmath.mpf(1) / 2) / cells
        mass = mpmath.exp(-max(y, epsilon - y)) * epsilon / cells / 2
        low = mpmath.exp(epsilon - 2 * y)
        kinds.append((max(low, 1), max(1 / low, 1), mass))
    kinds += [(mpmath.e, 1, mpmath.exp(-1) / 2), (1, mpmath.e, mpmath.exp(-1) / 2)]
    exact = Law(growth, [tuple(Fraction(str(part)) for part in kind) for kind in kinds])
    for ratio in NEAR_RATIOS:
        spread = sum(float(mass) * float(a - ratio * b) ** 2 for a, b, mass in exact.kinds)
        stated = sum(float(mass) * float(a - ratio * b) ** 2 for a, b, mass in law_of(m).kinds)
        assert spread <= stated < 1.6 * spread


def test_a_number_that_may_be_refused_has_the_general_bound():
    refusable = {**studies.NUMBER, "refusal": {"share": "0.5"}}
    assert len(law_of(studies.mechanism_of(refusable)).kinds) == 2
