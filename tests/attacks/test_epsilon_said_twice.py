"""A question states one epsilon itself and another in its mechanism, so that people lose more than it seems.

Defence: `ldpkit.ask`: refuses a mechanism that contradicts the question's own settings.
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
def test_contradicting_epsilons_are_rejected(kind):
    with raises(InputError, "builder.mechanism_twice"):
        CONTRADICTIONS[kind]()


@pytest.mark.parametrize("epsilon", [3, 3.0, "3", "3.0"])
def test_repeated_equal_epsilon_is_accepted(epsilon):
    question = ask.yes_no("a", epsilon=epsilon, mechanism=COIN)
    assert question == ask.yes_no("a", epsilon=3)
    assert float(ldpkit.study("one", "One", [question]).epsilon) == 3


def test_settings_stated_only_in_mechanism_are_used():
    question = ask.linear("a", [AGE], YEARS, epsilon=1, mechanism=PRODUCTS)
    assert question == ask.linear("a", [AGE], YEARS, epsilon=1, products=4, weights={"response": 4})
