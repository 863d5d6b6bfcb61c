"""Sampled products: the exact law of one report, its privacy, and what does not depend on the answer."""

import itertools
import math
from fractions import Fraction
from io import BytesIO

import mpmath
import numpy as np
import pytest

from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.quantise import UNIT
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import StudyError
from ldp_client.mechanisms.sampled_products import SQUARE
from tests import studies
from tests.ldp_client.exact_laws import HIGH, RECORDS, WHOLE, products_law, worst_ratio

PLAIN = studies.PRODUCTS["mechanism"]
LOGISTIC = {"response": {"id": "rate", "ask": "yes_no"}, "model": {"name": "logistic_regression"}}


def mechanism(epsilon="1", weights=None, products=0, **changes):
    stated = {**PLAIN, "epsilon": epsilon, **({"weights": weights} if weights else {})}
    stated |= {"products": products} if products else {}
    return studies.mechanism_of(studies.PRODUCTS, mechanism=stated, **changes)


@pytest.mark.parametrize(
    ("products", "weights"), [(1, None), (1, {"response": 5, "squares": 2}), (2, {"response": 2}), (3, None)]
)
def test_exact_joint_law_of_products_has_the_stated_privacy(products, weights):
    """Each sign, and each product of a report's signs, has the gain times its own mean: that is all of it."""
    m = mechanism("2", weights, products)
    vectors = [m.quantise(record) for record in RECORDS]
    laws = [products_law(m, vector) for vector in vectors]
    assert {place for block in m.blocks for place in block} == set(range(len(m.coordinates)))
    subsets = list(itertools.product((0, 1), repeat=products))
    for vector, exact in zip(vectors, laws):
        assert sum(exact.values()) == 1
        for place, block in enumerate(m.blocks):
            pairs = [m.coordinates[product] for product in block]
            values = [Fraction(vector[i] * vector[j], SQUARE) for i, j in pairs]
            for taken in subsets:
                chosen = math.prod(itertools.compress(values, taken))
                found = sum(
                    exact.get(bytes([m.patterns * place + pattern]), 0)
                    * math.prod(itertools.compress(signs_of(pattern, products), taken))
                    for pattern in range(m.patterns)
                )
                factor = m.gain if any(taken) else 1
                assert found == Fraction(m.weights[place], m.total) * factor * chosen
    assert worst_ratio(laws) == Fraction(*m.odds)
    with mpmath.workprec(300):
        assert mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1]) <= 2
    m.threshold += 1000  # a planted fault is found
    assert worst_ratio([products_law(m, vector) for vector in vectors]) > Fraction(*m.odds)


def signs_of(pattern, products):
    return [2 * (pattern >> (products - 1 - slot) & 1) - 1 for slot in range(products)]


def test_weights_say_how_often_each_kind_is_drawn():
    m = mechanism(weights={"means": 7, "squares": 3, "response": 5})
    assert m.coordinates == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 3), (3, 3)]
    assert m.weights == [7, 7, 7, 3, 1, 5, 5, 3]


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
        ({"mechanism": {**PLAIN, "weights": {"means": 0}}}, "mechanism.weights.means"),
        ({"mechanism": {**PLAIN, "products": 0}}, "mechanism.products"),
        ({"mechanism": {**PLAIN, "products": 5}}, "mechanism.products"),
        (
            {"mechanism": {**PLAIN, "products": 4}, **LOGISTIC, "features": studies.PRODUCTS["features"][1:]},
            "mechanism.products",
        ),
        ({"mechanism": {**PLAIN, "delta": "1e-6"}}, "mechanism.delta"),
        ({"interactions": [["age", "married"]]}, "interactions"),
        ({"response": {"id": "rate", "ask": "yes_no"}}, "model.name"),
        ({**LOGISTIC, "features": [{"id": f"f{i}", "ask": "yes_no"} for i in range(17)]}, "features"),
        ({"mechanism": studies.GAUSSIAN, "norm": "1"}, "features[1].ask"),
    ],
)
def test_misfit_products_are_rejected_with_their_field(changes, field):
    with pytest.raises(StudyError) as caught:
        studies.mechanism_of(studies.PRODUCTS, **changes)
    assert caught.value.field == f"questions[0].{field}"


def test_answer_equal_to_a_cut_falls_into_the_bin_above():
    """Also of cuts between two points of the grid. Vectors hold this in JavaScript."""
    edges = [1, 1.5, 2, 2000000, 9999999.5]
    income = {"id": "income", "bounds": ["0", "10000000"], "cuts": list(map(str, edges))}
    m = mechanism(**LOGISTIC, features=[income])
    answers = [-1e300, 0.0, 9999999.0, 1e7, 1e300, *edges, *[math.nextafter(edge, 0) for edge in edges]]
    expected = [[UNIT if answer >= edge else -UNIT for edge in edges] for answer in answers]
    assert [m.quantise({"income": one, "rate": True})[1:-1] for one in answers] == expected
    columns = {"income": np.asarray(answers), "rate": np.ones(len(answers), bool)}
    assert [list(vector[1:-1]) for vector in quantise_many(m, columns)] == expected
    for answer, sign in ((10**400, UNIT), (-(10**400), -UNIT)):
        assert set(m.quantise({"income": answer, "rate": True})[1:-1]) == {sign}


def test_a_yes_no_response_has_no_square():
    m = mechanism(**LOGISTIC)
    assert m.coordinates == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 3)]
    assert m.quantise({"age": 42, "married": False, "rate": "no"}) == [1 << 20, 1 << 20, -1 << 20, -1 << 20]
