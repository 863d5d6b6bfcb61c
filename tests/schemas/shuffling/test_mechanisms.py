"""The laws that the bounds begin with are those of the payloads that the real samplers send."""

from collections import defaultdict
from fractions import Fraction
from itertools import permutations

import mpmath
import pytest

from ldp_client.documents.errors import InputError
from ldp_client.mechanisms import olh
from schemas.shuffling.lattice import expected_excess
from schemas.shuffling.laws import Law, law_of
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import PRIME, READS, laws_of

CHOICES = 4
PEOPLE = 5
RATIOS = [Fraction(1), Fraction(21, 20), Fraction(3, 2)]
EXACT = Fraction(1, 10**15)


def excess(law, ratio):
    return expected_excess(law.atoms(ratio), PEOPLE)


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
    for ratio in RATIOS:
        pairs = permutations(range(CHOICES), 2)
        worst = max(excess(blanket_law(laws, one, other), ratio) for one, other in pairs)
        assert worst <= excess(stated, ratio) + EXACT
        # A set of all choices says nothing, which the stated law takes for a set that says little.
        has_all = any(all(m.supported(payload, index) for index in range(CHOICES)) for payload in laws[0])
        assert excess(stated, ratio) <= worst * (1 + Fraction(1, 20 if has_all else 10**9))


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
    for ratio in RATIOS:
        spread = sum(float(mass) * float(a - ratio * b) ** 2 for a, b, mass in exact.kinds)
        stated = sum(float(mass) * float(a - ratio * b) ** 2 for a, b, mass in law_of(m).kinds)
        assert spread <= stated < 1.6 * spread


def test_a_number_that_may_be_refused_has_the_general_bound():
    refusable = {**studies.NUMBER, "refusal": {"share": "0.5"}}
    assert len(law_of(studies.mechanism_of(refusable)).kinds) == 2
