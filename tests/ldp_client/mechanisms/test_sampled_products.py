"""Sampled products: the exact law of one report, its privacy, and what does not depend on the answer."""

import itertools
import math
from fractions import Fraction
from io import BytesIO

import mpmath
import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError, ReportError, StudyError
from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE
from schemas import Rational, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import WHOLE, coin, fraction, joined, law_of, uniform, worst_ratio
from tests.statistics import follows, seeded

PLAIN = studies.PRODUCTS["mechanism"]
LOGISTIC = {"response": {"id": "rate", "ask": "yes_no"}, "model": {"name": "logistic_regression"}}
MARRIED = {"id": "married", "ask": "yes_no"}
HIGH = {"age": 1e9, "married": "yes", "rate": 5}
RECORDS = [
    HIGH,
    {"age": -1e9, "married": "no", "rate": 1},
    {"age": 42, "married": False, "rate": 1},
    {"age": 33.1, "married": True, "rate": 2.123},
]


def mechanism(epsilon="1", weights=None, products=0, **changes):
    stated = {**PLAIN, "epsilon": epsilon, **({"weights": weights} if weights else {})}
    stated |= {"products": products} if products else {}
    return mechanism_for(
        Study(studies.document({**studies.PRODUCTS, "mechanism": stated, **changes})).questions[0]
    )


def rounding(product):
    """Eight bytes that round a product up, and eight that round it down."""
    up = Fraction(SQUARE + product, 2 * SQUARE)
    last = (SQUARE + product) << SPARE_BITS
    ends = [(max(last - 1, 0), up), (min(last, (1 << 64) - 1), 1 - up)]
    return [(value.to_bytes(8, "big"), chance) for value, chance in ends]


def law(m, quantised):
    """{payload: probability}, block by block, as the rounding of each product has its own edge."""
    found = {}
    for place, block in enumerate(m.blocks):
        words = [(number.to_bytes(4, "big"), Fraction(1, m.total)) for number in range(m.total)]
        read = words[m.ends[place] - m.weights[place] : m.ends[place]]
        for i, j in [m.coordinates[product] for product in block]:
            read = joined(read, rounding(quantised[i] * quantised[j]))
        flips = [uniform(m.patterns - 1)] if m.signs > 1 else []
        found |= law_of(m, quantised, [joined(read, coin(m.threshold)), *flips])
    return found


@pytest.mark.parametrize("weights", [None, {"response": 5, "squares": 2}])
def test_exact_law_has_the_products_mean_and_stated_privacy(weights):
    m = mechanism(weights=weights)
    vectors = [m.quantise(record) for record in RECORDS]
    laws = [law(m, vector) for vector in vectors]
    for vector, exact in zip(vectors, laws):
        assert sum(exact.values()) == 1
        for place, (i, j) in enumerate(m.coordinates):
            chance = Fraction(m.weights[place], m.total)
            mean = fraction(m.gain) * Fraction(vector[i] * vector[j], SQUARE)
            positive = exact.get(bytes([2 * place + 1]), 0)
            assert positive == chance * (1 + mean) / 2
    assert worst_ratio(laws[:3]) == Fraction(*m.odds)
    assert worst_ratio(laws) == Fraction(*m.odds)
    m.threshold += 1000  # a planted fault is found
    assert worst_ratio([law(m, vector) for vector in vectors]) > Fraction(*m.odds)


@pytest.mark.parametrize("products", [2, 3])
def test_exact_joint_law_of_products_has_the_stated_privacy(products):
    """Each sign, and each product of a report's signs, has the gain times its own mean: that is all of it."""
    m = mechanism("2", {"response": 2}, products)
    vectors = [m.quantise(record) for record in RECORDS]
    laws = [law(m, vector) for vector in vectors]
    subsets = list(itertools.product((0, 1), repeat=products))
    for vector, exact in zip(vectors, laws):
        assert sum(exact.values()) == 1
        for place, block in enumerate(m.blocks):
            values = [
                Fraction(vector[i] * vector[j], SQUARE) for i, j in map(m.coordinates.__getitem__, block)
            ]
            for taken in subsets:
                chosen = math.prod(itertools.compress(values, taken))
                found = sum(
                    exact.get(bytes([m.patterns * place + pattern]), 0)
                    * math.prod(itertools.compress(signs_of(pattern, products), taken))
                    for pattern in range(m.patterns)
                )
                factor = fraction(m.gain) if any(taken) else 1
                assert found == Fraction(m.weights[place], m.total) * factor * chosen
    assert worst_ratio(laws) == Fraction(*m.odds)
    with mpmath.workprec(300):
        assert mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1]) <= 2
    m.threshold += 1000  # a planted fault is found
    assert worst_ratio([law(m, vector) for vector in vectors]) > Fraction(*m.odds)


def signs_of(pattern, products):
    return [2 * (pattern >> (products - 1 - slot) & 1) - 1 for slot in range(products)]


def test_blocks_contain_every_product_grouped_by_weight():
    m = mechanism("4", {"response": 5, "squares": 3}, 3)
    assert len(m.coordinates) == 8
    assert {place for block in m.blocks for place in block} == set(range(8))
    assert all(len(set(block)) == 3 for block in m.blocks)
    of_product = dict(zip(m.coordinates, mechanism("4", {"response": 5, "squares": 3}).weights))
    assert m.weights == [sum(of_product[m.coordinates[place]] for place in block) for block in m.blocks]
    assert m.blocks == [(0, 1, 2), (4, 3, 7), (5, 6, 0)]
    assert m.payload_size == 1


def test_weights_say_how_often_each_kind_is_drawn():
    m = mechanism(weights={"means": 7, "squares": 3, "response": 5})
    by_pair = dict(zip(m.coordinates, m.weights))
    assert by_pair == {
        (0, 1): 7,
        (0, 2): 7,
        (0, 3): 7,
        (1, 1): 3,
        (1, 2): 1,
        (1, 3): 5,
        (2, 3): 5,
        (3, 3): 3,
    }
    source = seeded("products")
    drawn = [m.perturb(HIGH, source)[0] >> 1 for _ in range(20_000)]
    counts = np.bincount(drawn, minlength=len(m.weights))
    assert follows(counts, np.asarray(m.weights) / m.total)
    assert not follows(counts, np.full(len(m.weights), 1 / len(m.weights)))


@pytest.mark.parametrize("epsilon", ["0.001", "1", "20"])
def test_epsilon_is_the_logarithm_of_the_odds_and_within_the_stated_one(epsilon):
    m = mechanism(epsilon)
    with mpmath.workprec(300):
        odds = mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1])
        given = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
        assert 0 <= given - odds < 1e-29
    assert m.privacy.epsilon <= Rational.parse(epsilon)
    assert m.privacy.delta == Rational(0)
    assert float(m.gain) == pytest.approx(np.tanh(float(epsilon) / 2), abs=1e-9)


@pytest.mark.parametrize("products", [1, 3])
def test_many_at_once_have_the_law_of_one_at_a_time(products):
    m = mechanism("2", {"response": 4}, products)
    record = RECORDS[3]
    n = 40_000
    answers = {name: np.asarray([value] * n) for name, value in record.items()}
    many = perturb_many(m, answers, seeded(products))
    exact = law(m, m.quantise(record))
    shares = [float(exact.get(bytes([told]), 0)) for told in range(m.patterns * len(m.weights))]
    counts = np.bincount(many[:, 0], minlength=len(shares))
    assert follows(counts, shares)
    assert not follows(counts, np.asarray(shares).reshape(-1, m.patterns)[:, ::-1].ravel())


@pytest.mark.parametrize("products", [1, 4])
def test_bytes_read_do_not_depend_on_the_answer(products):
    m = mechanism(products=products)
    for seed in range(200):
        taken = []
        for record in RECORDS:
            random, sizes = np.random.default_rng(seed), []
            noted = lambda size: (sizes.append(size), random.bytes(size))[1]  # noqa: B023, E731
            payload = m.perturb(record, NotForRealAnswers(noted))
            assert len(payload) == m.payload_size
            taken.append(sizes)
        assert all(sizes == taken[0] for sizes in taken)


def test_biased_word_is_redrawn():
    m = mechanism()
    stream = BytesIO(b"\xff" * 4 + bytes(8) + (3).to_bytes(4, "big") + bytes(4))
    mended = mechanism(weights={"means": 7})
    assert WHOLE % mended.total
    payload = mended.perturb(HIGH, NotForRealAnswers(stream.read))
    assert not stream.read()
    assert payload[0] == 1
    assert m.perturb(HIGH, NotForRealAnswers(bytes))[0] == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"norm": "1"}, "norm"),
        ({"mechanism": {**PLAIN, "epsilon": "1e-12"}}, "mechanism.epsilon"),
        ({"mechanism": {**PLAIN, "weights": {"means": 0}}}, "mechanism.weights.means"),
        ({"mechanism": {**PLAIN, "products": 0}}, "mechanism.products"),
        ({"mechanism": {**PLAIN, "products": 5}}, "mechanism.products"),
        ({"mechanism": {**PLAIN, "products": 4}, **LOGISTIC, "features": [MARRIED]}, "mechanism.products"),
        ({"mechanism": {**PLAIN, "delta": "1e-6"}}, "mechanism.delta"),
        ({"interactions": [["age", "married"]]}, "interactions"),
        ({"response": {"id": "rate", "ask": "yes_no"}}, "model.name"),
        ({**LOGISTIC, "features": [{"id": f"f{i}", "ask": "yes_no"} for i in range(17)]}, "features"),
        ({"mechanism": studies.GAUSSIAN, "norm": "1"}, "features[1].ask"),
    ],
)
def test_misfit_products_are_rejected_with_their_field(changes, field):
    with pytest.raises(StudyError) as caught:
        mechanism_for(Study(studies.document({**studies.PRODUCTS, **changes})).questions[0])
    assert caught.value.field == f"questions[0].{field}"


def test_a_yes_no_response_has_no_square():
    m = mechanism(**LOGISTIC)
    assert m.coordinates == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 3)]
    assert m.quantise({"age": 42, "married": False, "rate": "no"}) == [1 << 20, 1 << 20, -1 << 20, -1 << 20]


def test_impossible_payloads_and_answers_are_refused():
    m = mechanism()
    for payload in (bytes([2 * len(m.coordinates)]), b"", bytes(2)):
        with raises(ReportError, "report.payload_impossible", field=f"payloads.{m.field}"):
            m.check(payload)
    m.check(bytes([2 * len(m.coordinates) - 1]))
    for name, wrong, code in (
        ("age", "30", "core.number"),
        ("married", 1, "core.yes_or_no"),
        ("rate", None, "core.missing"),
    ):
        with raises(AnswerError, code, field=f"salary.{name}"):
            m.perturb({**RECORDS[3], name: wrong})
