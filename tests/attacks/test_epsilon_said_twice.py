"""States one epsilon beside a mechanism and another in it, so that people lose more than somebody reads.

Defence: `ldpkit.ask`: refuses a mechanism that states other than what stands beside it.
"""

import pytest

import ldpkit
from ldp_client.documents.errors import InputError
from ldpkit import ask
from tests.kit.errors import raises

AGE, SICK, YEARS = ask.feature("age", 15, 45), ask.feature("sick"), ask.feature("years", 0, 23)
COIN = {"name": "randomized_response", "epsilon": "3"}
PRODUCTS = {"name": "sampled_products", "epsilon": "1", "products": 4, "weights": {"response": 4}}

CONTRADICTIONS = {
    "yes_no": lambda: ask.yes_no("a", epsilon=1, mechanism=COIN),
    "choice": lambda: ask.choice("a", ["x", "y"], epsilon=1, mechanism=COIN),
    "scale": lambda: ask.scale("a", ["x", "y"], epsilon="1", mechanism=COIN),
    "any_of": lambda: ask.any_of({"a": "A", "b": "B"}, epsilon="0.5", mechanism=COIN),
    "number": lambda: ask.number("a", 0, 1, epsilon=1, mechanism={"name": "laplace", "epsilon": 3}),
    "delta": lambda: ask.number(
        "a", 0, 1, epsilon=1, delta="1e-6", mechanism={"name": "gaussian", "delta": "0.01"}
    ),
    "linear": lambda: ask.linear("a", [AGE], YEARS, epsilon=2, mechanism=PRODUCTS),
    "logistic": lambda: ask.logistic("a", [AGE], SICK, epsilon=2, mechanism=PRODUCTS),
    "products": lambda: ask.linear("a", [AGE], YEARS, epsilon=1, products=1, mechanism=PRODUCTS),
    "weights": lambda: ask.linear("a", [AGE], YEARS, epsilon=1, weights={"response": 2}, mechanism=PRODUCTS),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_a_contradiction_is_refused(kind):
    with raises(InputError, "builder.mechanism_twice"):
        CONTRADICTIONS[kind]()


@pytest.mark.parametrize("epsilon", [3, 3.0, "3", "3.0"])
def test_the_same_said_twice_is_taken(epsilon):
    question = ask.yes_no("a", epsilon=epsilon, mechanism=COIN)
    assert question == ask.yes_no("a", epsilon=3)
    assert float(ldpkit.study("one", "One", [question]).epsilon) == 3


def test_what_is_said_in_the_mechanism_alone_is_taken():
    question = ask.linear("a", [AGE], YEARS, epsilon=1, mechanism=PRODUCTS)
    assert question == ask.linear("a", [AGE], YEARS, epsilon=1, products=4, weights={"response": 4})
